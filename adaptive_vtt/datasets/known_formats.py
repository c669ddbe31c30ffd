"""Published formats that a file or folder is known by: MedMNIST, COCO, EndoBench, Hugging Face."""

import json
from pathlib import Path

from ..errors import InputError
from ..utils.tables import MAX_HEADER
from .formats.endobench import NEEDED
from .formats.hugging_face import Rows, splits_of

Known = tuple[str, Path, dict[str, object], str]
"""A kind of dataset, its file or folder, its options, and what was left alone, as of a Layout."""
COCO = ("images", "categories", "annotations")
"""What the JSON of COCO's boxes holds."""


def known_file(path: Path) -> Known | None:
    """What the file is; None where it is in none of these formats."""
    if path.suffix == ".npz":
        return "medmnist", path, {}, ""
    if path.suffix == ".json":
        return _coco(path)
    if path.suffix not in (".tsv", ".parquet"):
        return None
    if {*NEEDED} <= {*_columns(path)}:
        return "endobench", path, {}, ""
    return _hugging_face(path) if path.suffix == ".parquet" else None


def known_folder(root: Path, pictures: list[Path]) -> Known | None:
    """The same of a folder; ``pictures``: the folders of image files in it."""
    annotations = [*root.glob("instances*.json"), *root.glob("annotations/instances*.json")]
    for file in sorted(annotations):
        if (found := _coco(file, [*pictures, root])) is not None:
            return found
    if pictures:
        return None
    archives = sorted(root.glob("*.npz"))
    if len(archives) == 1:
        return known_file(archives[0])
    tables = sorted(root.glob("*.tsv"))
    return known_file(tables[0]) if len(tables) == 1 else _hugging_face(root)


def _columns(path: Path) -> list[str]:
    """The names in a table's header; [] where it cannot be read, which is said later."""
    try:
        if path.suffix == ".parquet":
            return Rows(path.stem, (path,)).names
        with path.open(encoding="utf-8-sig") as file:
            return [cell.strip().strip('"') for cell in file.readline(MAX_HEADER).split("\t")]
    except (InputError, OSError, UnicodeDecodeError):
        return []


def _hugging_face(path: Path) -> Known | None:
    """Of several splits the one for tests, else the first."""
    try:
        splits = splits_of(path)
        split = "test" if "test" in splits else next(iter(splits))
        Rows.read(path, split).images(None, None, [])
    except InputError:  # no such files, or none with a column of images
        return None
    if len(splits) == 1:
        return "hf", path, {}, ""
    return "hf", path, {"split": split}, f"of the splits {', '.join(splits)} {split!r} was taken"


def _coco(path: Path, folders: list[Path] | None = None) -> Known | None:
    """``folders``: where the images may be; default: those beside the file, and one further up."""
    try:
        content = json.loads(path.read_bytes())
        first = content["images"][0]["file_name"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    if not {*COCO} <= content.keys():
        return None
    if folders is None:
        parents = [path.parent, path.parent.parent]
        folders = [*parents, *(f for top in parents for f in sorted(top.iterdir()) if f.is_dir())]
    found = next((folder for folder in folders if (folder / first).is_file()), None)
    if found is None:
        raise InputError(
            f"{path}: expected the folder with its images, such as {first!r}, beside it, found "
            'none; name both in [dataset]: kind = "coco", labels = ..., images = ...'
        )
    return "coco", path, {"images": found}, ""
