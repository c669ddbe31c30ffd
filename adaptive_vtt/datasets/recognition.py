"""What a path holds: a published format, class folders, images and masks, a table of labels, or
images alone.

What is found is a kind of dataset and its options, as the [dataset] section of a SPEC.toml has
them, so that Python and ``avtt init`` understand the same folders.
"""

import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, listed, some, unknown
from ..utils.tables import MAX_HEADER
from .base import Dataset
from .formats.coco import PARTS, from_coco
from .formats.endobench import NEEDED, from_endobench
from .formats.folders import (
    NOTHING,
    class_places,
    from_class_folders,
    from_images,
    from_masks,
    mask_layouts,
)
from .formats.foreign import foreign_labels
from .formats.hugging_face import from_hugging_face
from .formats.image_rows import parquet_file
from .formats.medmnist import from_medmnist
from .formats.table_file import (
    EMPTY,
    TABLES,
    near_image,
    odd_cells,
    odd_label,
    read_rows,
    read_table,
    share_of_files,
)
from .formats.voc import from_voc
from .formats.yolo import from_yolo, yolo_folders
from .scanning import NAMES, Folder, folders_below, image_files
from .table import Labels, as_labels, from_table, image_ids, label_cells

Known = tuple[str, Path, dict[str, object], str]
"""A kind of dataset, its file or folder, its options, and what was left alone, as of a Layout."""


def known_file(path: Path) -> Known | None:
    """What the file is; None where it is in none of these formats."""
    if path.suffix == ".npz":
        return "medmnist", path, {}, ""
    if path.suffix == ".json":
        return _coco(path)
    if path.suffix not in (".tsv", ".parquet"):
        return None
    return ("endobench", path, {}, "") if {*NEEDED} <= {*_columns(path)} else None


def known_folder(root: Path, pictures: list[Path]) -> Known | None:
    """The same of a folder; ``pictures``: the folders of image files in it."""
    files = [*root.glob("*.json"), *root.glob("*/*.json")]
    files.sort(key=lambda file: (split_rank(file, root), file))
    while files:
        file = files.pop(0)
        if found := _coco(file, [file.parent, *pictures, root], last=not files):
            others = [other for other in files if _coco(other, [root], last=False)]
            said = f"{file.relative_to(root)} is read; {_left_alone(others)}" if others else ""
            return (*found[:3], said)
    if pictures:
        return None
    archives = sorted(root.glob("*.npz"))
    if len(archives) == 1:
        return known_file(archives[0])
    tables = sorted(root.glob("*.tsv"))
    if len(tables) == 1:
        return known_file(tables[0])
    saved = (root / "state.json").is_file() and (root / "dataset_info.json").is_file()
    return ("hugging-face", root, {}, "") if saved else None


def _columns(path: Path) -> list[str]:
    """The names in a table's header; [] where it cannot be read, which is said later."""
    try:
        if path.suffix == ".parquet":
            return [*parquet_file(path).schema_arrow.names]
        with path.open(encoding="utf-8-sig") as file:
            return [cell.strip().strip('"') for cell in file.readline(MAX_HEADER).split("\t")]
    except (InputError, OSError, UnicodeDecodeError):
        return []


def _coco(path: Path, folders: list[Path] | None = None, last: bool = True) -> Known | None:
    """``folders``: where the images may be; default: those beside the file, and one further up.
    ``last``: whether to raise InputError where they are not."""
    try:
        data = path.read_bytes()
        content = json.loads(data) if all(f'"{part}"'.encode() in data for part in PARTS) else {}
        first = content["images"][0]["file_name"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    if folders is None:
        parents = [path.parent, path.parent.parent]
        folders = [*parents, *(f for top in parents for f in sorted(top.iterdir()) if f.is_dir())]
    found = next((folder for folder in folders if (folder / first).is_file()), None)
    if found is None and last:
        raise InputError(
            f"{path}: expected the folder with its images, such as {first!r}, beside it, found "
            'none; name both in [dataset]: kind = "coco", labels = ..., images = ...'
        )
    return None if found is None else ("coco", path, {"images": found}, "")


VOC = ("Annotations", "JPEGImages")
"""The folders of a set in the layout of PASCAL VOC."""
SHOWN = "object"
"""What masks show, as far as a folder tells."""
LABELS = "labels"
"""The table that is meant where there are others beside it, as in what `avtt export` writes."""
MOST = 0.5
"""Share of its first cells that a column of image files names at least, where some are missing."""
_READERS: Mapping[str, Callable[..., Dataset]] = {
    "table": read_table,
    "masks": from_masks,
    "classes": from_class_folders,
    "images": from_images,
    "voc": from_voc,
    "medmnist": from_medmnist,
    "coco": from_coco,
    "yolo": from_yolo,
    "endobench": from_endobench,
    "hugging-face": from_hugging_face,
}


@dataclass(frozen=True)
class Layout:
    """A kind of dataset (a name of ``datasets.REGISTRY``), where it is, and its other options."""

    kind: str
    path: Path
    options: Mapping[str, Any]
    apart: str = ""
    """What of the folder was left alone, and how to choose it; "" for nothing."""

    def load(self) -> Dataset:
        """The dataset; raises InputError for whatever in it cannot be used."""
        return _READERS[self.kind](self.path, **self.options)

    def about(self, concepts: list[str] | None) -> Dataset:
        """The dataset, with these columns of its table as concepts, or this name for what its
        masks or images show. Raises InputError where the data have other concepts, too."""
        options = {**self.options}
        if concepts and self.kind == "table" and "class_column" not in options:
            known = [*options.get("concepts", ()), *options.get("metadata", ())]
            options["concepts"] = concepts
            options["metadata"] = [name for name in known if name not in concepts]
        elif concepts and self.kind == "images":
            options["concepts"] = concepts
        elif concepts and self.kind == "masks" and len(concepts) == 1:
            options["concept"] = concepts[0]
        return _only(replace(self, options=options).load(), concepts)


def as_dataset(
    data: Any, labels: Labels | None = None, concepts: list[str] | None = None
) -> Dataset:
    """A dataset of whatever is at hand.

    ``data``: a Dataset; a path that ``recognised`` knows; a table of labels with a column of image
    files (DataFrame); or images: arrays, paths, PIL images, or one array n x H x W (x C).
    ``labels``: of images, as ``as_labels`` takes them; without any nothing is known of the images,
    and ``concepts`` names what a model answers about them (default: "image").
    ``concepts`` also chooses among the columns of a table. Raises InputError for anything else, and
    for concepts that are not those of the data.
    """
    if isinstance(data, Dataset):
        return _only(data, concepts)
    if labels is None and isinstance(data, str | Path):
        layout = recognised(data)
        if layout.apart and concepts is None:
            warnings.warn(f"{data}: {layout.apart}", stacklevel=3)
        return layout.about(concepts)
    if labels is None and isinstance(data, pd.DataFrame):
        return _of_rows(data, concepts)
    images = image_files(Path(data)) if isinstance(data, str | Path) else data
    if not isinstance(images, list | tuple | np.ndarray) or not len(images):
        raise InputError(
            "data: expected a Dataset, a folder, a table of labels or a list of images, got "
            f"{type(data).__name__}"
        )
    if labels is None:
        ids = image_ids(images) or [str(number) for number in range(len(images))]
        labels = pd.DataFrame(np.nan, ids, concepts or [NOTHING])
    elif isinstance(labels, pd.DataFrame) and concepts:
        labels = labels[_known(concepts, labels)]
    return _only(from_table(images, labels, name="images"), concepts)


def _only(dataset: Dataset, concepts: list[str] | None) -> Dataset:
    if concepts is not None and [*concepts] != [*dataset.concepts]:
        raise InputError(
            f"concepts: expected those of the data, {listed(dataset.concepts, 6)}, or to be left "
            f"out, got {listed(concepts, 6)}"
        )
    return dataset


def _known(concepts: list[str], table: pd.DataFrame) -> list[str]:
    """``concepts``; raises InputError for one that is no column of the table."""
    for name in concepts:
        if name not in table:
            raise unknown("concept", name, [*map(str, table)], "concepts")
    return concepts


def recognised(path: Path | str) -> Layout:
    """What the file or folder holds.

    Looked for in this order: images beside masks (``from_masks`` names the layouts); PASCAL VOC's
    folders of annotations and images; YOLO, COCO, MedMNIST, EndoBench and Hugging Face
    (``known_folder``); a table of labels, the file itself, the one called "labels" or the only one
    in the folder; one folder of images per class; images and nothing else, in the folder or in the
    only one below it.
    Raises InputError where it is none.
    """
    root = Path(path)
    if not root.is_dir():
        return _of_file(root)
    tables, apart = _tables(root)
    foreign = foreign_labels(root)
    folders, loose = _image_folders(root), _are_loose(root)
    pictures = [*folders, *[root] * loose]
    layout = _published(root, pictures)
    classes = layout is None and not loose and len(folders) > 1 and _has_classes(folders, root)
    if layout is None and len(tables) == 1 and not classes:
        layout = _table(tables[0], pictures)
    elif layout is None and classes:
        layout, apart = Layout("classes", root, {}), _left_alone(tables)
    elif layout is None and len(pictures) and (loose or len(folders) == 1) and len(tables) < 2:
        layout = Layout("images", pictures[-1], {})
    if layout is not None:
        return replace(layout, apart="; ".join(filter(None, [layout.apart, apart, foreign])))
    expected = (
        "one folder of images per class, folders images/ and masks/, a table of labels (CSV or "
        "Parquet) beside images, or images; found none of these"
    )
    if len(tables) > 1:
        expected = f"one table of labels, found {listed(t.name for t in tables)}; name one of them"
    elif folders:
        names = listed((str(folder.relative_to(root)) for folder in folders), 3)
        expected = (
            "one folder of images per class, or a table of labels beside them, found "
            f"{len(folders)} folders of images, {names}, whose names are no classes; name one of "
            "them to read images without labels"
        )
    raise InputError("; ".join(filter(None, [f"{root}: expected {expected}", foreign])))


def _published(root: Path, pictures: list[Path]) -> Layout | None:
    """Return what a folder holds that has a layout of its own; None where it has none."""
    if mask_layouts(root):
        return Layout("masks", root, {"concept": SHOWN})
    if all((root / name).is_dir() for name in VOC):
        return Layout("voc", root, {})
    if yolo_folders(root):
        return Layout("yolo", root, {})
    known = known_folder(root, pictures)
    return known and Layout(*known)


def _has_classes(folders: list[Path], root: Path) -> bool:
    """Return whether folders of images have two classes or more, with more images than classes."""
    files = [file for folder in folders for file in image_files(folder, allow_outside=True)]
    places = class_places(files, root)
    named = [file for file in files if file.parent in places]
    names = [file.relative_to(root).parts[places[file.parent]] for file in named]
    return len({*names}) >= 2 and (len({*names}) < len(names) or len(names) < MANY)


def _tables(root: Path) -> tuple[list[Path], str]:
    """Return the tables of labels in a folder, or in its splits, and what is said of others: one
    called "labels" or "metadata" is meant, or that of the split to be audited."""
    files = [file for file in sorted(root.iterdir()) if file.suffix.lower() in TABLES]
    found = files or [f for f in sorted(root.glob("*/metadata.*")) if f.suffix.lower() in TABLES]
    chosen = [file for file in found if file.stem.lower() in (LABELS, "metadata")]
    if len(chosen) != 1 and all(split_rank(file, root) < len(ORDER) for file in found):
        chosen = sorted(found, key=lambda file: split_rank(file, root))[:1]
    if len(found) < 2 or len(chosen) != 1:
        return found, ""
    others = _left_alone([file for file in found if file not in chosen])
    return chosen, f"{chosen[0].relative_to(root)} is read; {others}"


ORDER = ("test", "val", "dev", "train")
"""Which split is audited, where only one is."""


def split_rank(path: Path, root: Path) -> int:
    """Return the place in ORDER of the split that a path names below the root; its length for
    none."""
    words = _words(path.relative_to(root).as_posix())
    return next((k for k, n in enumerate(ORDER) if any(w.startswith(n) for w in words)), len(ORDER))


MANY = 20
"""Images from which on a class of each one's own is no class."""


def _of_file(path: Path) -> Layout:
    if path.is_file() and (known := known_file(path)) is not None:
        return Layout(*known)
    if path.is_file() and path.suffix.lower() in TABLES:
        return _table(path)
    raise InputError(
        f"{path}: expected a folder, a table of labels ({', '.join(TABLES)}), a MedMNIST archive "
        "(.npz) or COCO's boxes (.json), got "
        f"{'another file' if path.is_file() else 'nothing: it does not exist'}"
    )


def _left_alone(tables: list[Path]) -> str:
    """What is said of tables beside what was taken; "" for none."""
    if not tables:
        return ""
    names = listed(table.name for table in tables)
    one, them = ("it", "was") if len(tables) == 1 else ("one of them", "were")
    instead = f"to go by {one}, give {tables[0]} in place of the folder"
    return f"{names} there {them} left alone; {instead}"


def _are_loose(path: Path | str) -> bool:
    return Path(path).is_dir() and bool(image_files(Path(path), allow_outside=True))


def _image_folders(root: Path) -> list[Path]:
    return [path for path in folders_below(root) if _are_loose(path)]


# -- tables ----------------------------------------------------------------------------


def _table(path: Path, image_folders: list[Path] | None = None) -> Layout:
    table = read_rows(path)
    below = _image_folders(path.parent) if image_folders is None else image_folders
    places = [[folder] for folder in dict.fromkeys([path.parent, path.parent.parent, *below])]
    # where most files are there, the column is meant, and reading it says more
    shares = {
        (column, tuple(folders)): share_of_files(table[column], folders)
        for folders in [*places, *[below] * (len(below) > 1)]
        for column in table
        if table[column].is_unique or label_cells(table[column]).odd.any()  # not 0 and 1
    }
    best = max(shares, key=lambda pair: shares[pair], default=None)
    file, options = None, dict[str, Any]()
    if best is not None and shares[best] >= MOST:
        file, folders = best[0], [*best[1]]
        options["images"] = folders[0] if len(folders) == 1 else folders
    rest = _roles(table.drop(columns=[file] if file else []), str(path))
    if file is not None and table[file].is_unique:
        rest["metadata"] += [rest["id_column"]] if rest["id_column"] else []
        rest["id_column"] = file
    elif rest["id_column"]:
        options["file_column"] = file
    else:
        raise InputError(
            f"{path}: expected a column whose values all differ, to tell samples apart, found none "
            f"among {', '.join(map(str, table))}; {_twice(table.rename(columns=str), file)}"
        )
    odd = {name: told for name in rest["metadata"] if (told := odd_label(table[name]))}
    said = [f"column {name!r} was taken for metadata: {told}; {MEND}" for name, told in odd.items()]
    said += [
        f"column {name!r}, called as classes are, was taken for metadata, as other columns hold 0 "
        f'and 1: class_column = "{name}" in [dataset] asks about it'
        for name in rest["metadata"]
        if str(name).lower() in NAMES["class_columns"] and name not in odd
    ]
    kept = {k: v for k, v in {**options, **rest}.items() if v}
    return Layout("table", path, kept, "; ".join(said))


MEND = "mend that cell and move the column from `metadata` to `concepts` in SPEC.toml"


def _twice(table: pd.DataFrame, column: Any) -> str:
    """What stands twice in the column, or in the one with the most values, and where."""
    column = column or table.nunique().idxmax()
    cells = table[column].reset_index(drop=True)
    value = cells[cells.duplicated()].iloc[0]
    rows = some([str(row + 1) for row in np.flatnonzero(cells == value)], 3)
    return f"{value!r} stands more than once in {str(column)!r}: rows {rows}"


def _of_rows(table: pd.DataFrame, concepts: list[str] | None) -> Dataset:
    """A table in memory, one column of which names image files."""
    texts = table.rename(columns=str).astype(object)
    files = [c for c in texts if share_of_files(texts[c].astype(str), [Path()]) == 1]
    if not files:
        raise InputError(
            "data: expected a column of image files in the table of labels, found none among "
            f"{', '.join(map(str, texts))}; give the images as data and the table as labels="
        )
    here = Folder(Path(), allow_outside=True)
    paths = [near_image(here, name) for name in texts[files[0]].astype(str)]
    roles = _roles(texts.drop(columns=files[0]).fillna("").astype(str), "data")
    chosen = roles["class_column"] or roles["concepts"]
    if concepts and not roles["class_column"]:
        chosen = _known(concepts, texts)
    others = [*roles["concepts"], *roles["metadata"], *filter(None, [roles["id_column"]])]
    others = [name for name in others if name not in chosen]
    ids = texts[roles["id_column"]].tolist() if roles["id_column"] else image_ids(paths)
    dataset = from_table(
        [path for path in paths if path is not None],
        as_labels(table.rename(columns=str)[chosen]).set_axis([*map(str, ids or [])], axis=0),
        metadata=texts[others] if others else None,
        name="table",
    )
    return _only(dataset, concepts)


def _roles(table: pd.DataFrame, where: str) -> dict[str, Any]:
    """What the columns of a table are, those of image files apart, by the options of
    ``read_table``; cells are texts.

    Columns of 0, 1 and empty cells, or of yes and no, are concepts. Where none is of 0 and 1, a
    column called "class" or the like names the class; where there is neither, the only column whose
    values all repeat does.
    """
    known = table.mask(table.isin(EMPTY))
    read = {c: label_cells(table[c]) for c in table}
    concepts = [c for c in table if read[c].truths.notna().any() and not read[c].odd.any()]
    numbers = any(pd.to_numeric(known[c], errors="coerce").notna().any() for c in concepts)
    if not numbers and any(str(c).lower() in NAMES["class_columns"] for c in known):
        concepts = []
    unique = [c for c in known if c not in concepts and known[c].is_unique]
    id_column = next((c for c in unique if str(c).lower() == "id"), next(iter(unique), None))
    classes = None if concepts else _class_column(known.drop(columns=unique))
    if not concepts and classes is None:
        raise InputError(
            f"{where}: expected a column of 0 and 1, or yes and no, per concept, or one that names "
            f"the class, found neither among {', '.join(map(str, table))}{odd_cells(table)}; write "
            "labels so, or call the column 'class', or name it: class_column = ... in [dataset]"
        )
    others = [c for c in table if c not in (id_column, classes, *concepts)]
    return {
        "id_column": id_column,
        "concepts": concepts,
        "class_column": classes,
        "metadata": others,
    }


def _class_column(table: pd.DataFrame) -> str | None:
    """The column called as classes are, else the only one whose values all repeat."""
    named = [c for c in table if str(c).lower() in NAMES["class_columns"]]
    repeating = [c for c in table if 2 <= table[c].nunique() <= len(table) / 2]
    repeating = [c for c in repeating if not {*_words(c)} & {*NAMES["group_columns"]}]
    return str(named[0]) if named else str(repeating[0]) if len(repeating) == 1 else None


def _words(name: object) -> list[str]:
    return re.split(r"[^a-z]+", str(name).lower())
