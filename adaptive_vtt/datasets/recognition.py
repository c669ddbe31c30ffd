"""What a path holds: a published format, class folders, images and masks, a table of labels, or
images alone.

What is found is a kind of dataset and its options, as the [dataset] section of a SPEC.toml has
them, so that Python and ``avtt init`` understand the same folders.
"""

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, listed, some, unexpected, unknown
from ..utils.files import contents, regular
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
from .formats.hugging_face import from_hugging_face
from .formats.image_rows import parquet_file
from .formats.medmnist import from_medmnist
from .formats.table_file import (
    EMPTY,
    TABLES,
    ImageNames,
    near_image,
    odd_cells,
    odd_label,
    read_rows,
    read_table,
)
from .formats.voc import from_voc
from .formats.yolo import from_yolo, yolo_folders
from .scanning import NAMES, Folder, folders_below, holds_images, image_files, images_and_masks
from .table import Labels, as_labels, from_table, image_ids, label_cells

VOC = ("Annotations", "JPEGImages")
"""The folders of a set in the layout of PASCAL VOC."""
SHOWN = "object"
"""What masks show, as far as a folder tells."""
NAMED = ("labels", "metadata")
"""The table that is meant where there are others, as in what `avtt export` writes."""
MOST = 0.5
"""Share of its first cells that a column of image files names at least, where some are missing."""
MANY = 20
"""Images from which on a class of each one's own is no class."""
ORDER = ("test", "val", "dev", "train")
"""Which split is audited, where only one is."""
HEAD, FILES = 4096, 2000
"""Bytes of a file that are looked at for the mark of another tool, and files."""

READERS: Mapping[str, Callable[..., Dataset]] = {
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
        """Return the dataset. Raise InputError for whatever in it cannot be used."""
        return READERS[self.kind](self.path, **self.options)

    def about(self, concepts: list[str] | None) -> Dataset:
        """Return the dataset, with these columns of its table as concepts, or this name for what
        its masks or images show. Raise InputError where the data have other concepts, too."""
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


@dataclass(frozen=True)
class Contents:
    """A folder as the formats look at it; each part is looked for once."""

    root: Path

    @cached_property
    def folders(self) -> list[Path]:
        """The folders of images below it."""
        return [path for path in folders_below(self.root) if holds_images(path)]

    @cached_property
    def loose(self) -> bool:
        """Whether images lie in the folder itself."""
        return holds_images(self.root)

    @cached_property
    def pictures(self) -> list[Path]:
        """All folders of images, the folder itself among them."""
        return [*self.folders, *[self.root] * self.loose]

    @cached_property
    def tables(self) -> tuple[list[Path], str]:
        """The tables of labels in the folder, or in its splits, and what is said of others: one
        called "labels" or "metadata" is meant, or that of the split to be audited."""
        files = [file for file in sorted(self.root.iterdir()) if file.suffix.lower() in TABLES]
        if not files:
            below = sorted(self.root.glob("*/metadata.*"))
            files = [file for file in below if file.suffix.lower() in TABLES]
        chosen = [file for file in files if file.stem.lower() in NAMED]
        if len(chosen) != 1 and all(split_rank(file, self.root) < len(ORDER) for file in files):
            chosen = sorted(files, key=lambda file: split_rank(file, self.root))[:1]
        if len(files) < 2 or len(chosen) != 1:
            return files, ""
        others = _left_alone([file for file in files if file not in chosen])
        return chosen, f"{chosen[0].relative_to(self.root)} is read; {others}"


# -- formats: each says whether a folder is in it --------------------------------------------------


def _published(held: Contents) -> Layout | None:
    """Recognise masks beside images, VOC and YOLO, by what lies in their folders."""
    root = held.root
    if all((root / name).is_dir() for name in VOC):  # it has masks of some of its images, too
        return Layout("voc", root, {})
    if mask_layouts(root):
        return Layout("masks", root, {"concept": SHOWN})
    return Layout("yolo", root, {}) if yolo_folders(root) else None


def _coco(held: Contents) -> Layout | None:
    root = held.root
    files = [*root.glob("*.json"), *root.glob("*/*.json")]
    files.sort(key=lambda file: (split_rank(file, root), file))
    while files:
        file = files.pop(0)
        layout = _instances(file, [file.parent, *held.pictures, root], last=not files)
        if layout is not None:
            others = [other for other in files if _instances(other, [root], last=False)]
            apart = f"{file.relative_to(root)} is read; {_left_alone(others)}" if others else ""
            return replace(layout, apart=apart)
    return None


def _instances(path: Path, folders: list[Path], last: bool = True) -> Layout | None:
    """Return the layout of COCO's JSON, None for another file.

    ``folders``: where the images may be. ``last``: whether to raise InputError where they are not.
    """
    try:
        data = contents(path)
        content = json.loads(data) if all(f'"{part}"'.encode() in data for part in PARTS) else {}
        first = content["images"][0]["file_name"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    images = next((folder for folder in folders if (folder / first).is_file()), None)
    if images is None and last:
        raise InputError(
            f"{path}: expected the folder with its images, such as {first!r}, beside it, found "
            'none; name both in [dataset]: kind = "coco", labels = ..., images = ...'
        )
    return None if images is None else Layout("coco", path, {"images": images})


def _without_pictures(held: Contents) -> Layout | None:
    """Recognise a MedMNIST archive, EndoBench's table, and what save_to_disk wrote."""
    if held.pictures:
        return None
    for ending in ("npz", "tsv"):
        files = [*held.root.glob(f"*.{ending}")]
        if len(files) == 1:
            return _known_file(files[0])
    saved = all((held.root / name).is_file() for name in ("state.json", "dataset_info.json"))
    return Layout("hugging-face", held.root, {}) if saved else None


def _classes(held: Contents) -> Layout | None:
    """Recognise two classes or more, with more images than classes."""
    if held.loose or len(held.folders) < 2:
        return None
    files = [file for f in held.folders for file in image_files(f, allow_outside=True)]
    places = class_places(files, held.root)
    named = [file for file in files if file.parent in places]
    names = [file.relative_to(held.root).parts[places[file.parent]] for file in named]
    if len({*names}) < 2 or len({*names}) == len(names) >= MANY:
        return None
    return Layout("classes", held.root, {}, _left_alone(held.tables[0]))


def _labels(held: Contents) -> Layout | None:
    tables, apart = held.tables
    if len(tables) != 1:
        return None
    layout = _table(tables[0], held.pictures)
    return replace(layout, apart="; ".join(filter(None, [layout.apart, apart])))


def _images(held: Contents) -> Layout | None:
    alone = held.loose or len(held.folders) == 1
    return Layout("images", held.pictures[-1], {}) if alone and not held.tables[0] else None


FORMATS: tuple[Callable[[Contents], Layout | None], ...] = (
    _published,
    _coco,
    _without_pictures,
    _classes,
    _labels,
    _images,
)
"""What recognises a folder; the first that does is taken."""


def recognised(path: Path | str) -> Layout:
    """Return what the file or folder holds, by the first of FORMATS that recognises it.

    Raises:
        InputError: where none does.
    """
    root = Path(path)
    if not root.is_dir():
        layout = _known_file(root) if root.is_file() else None
        if layout is None and root.is_file() and root.suffix.lower() in TABLES:
            layout = _table(root, Contents(root.parent).folders)
        if layout is None:
            raise InputError(
                f"{root}: expected a folder, a table of labels ({', '.join(TABLES)}), a MedMNIST "
                "archive (.npz) or COCO's boxes (.json), got "
                f"{'another file' if root.is_file() else 'nothing: it does not exist'}"
            )
        return layout
    held = Contents(root)
    layout = next(filter(None, (recognise(held) for recognise in FORMATS)), None)
    foreign = not_read(held, layout)
    if layout is not None:
        return replace(layout, apart="; ".join(filter(None, [layout.apart, foreign])))
    expected = (
        "one folder of images per class, folders images/ and masks/, a table of labels (CSV or "
        "Parquet) beside images, or images; found none of these"
    )
    tables, _ = held.tables
    if len(tables) > 1:
        expected = f"one table of labels, found {listed(t.name for t in tables)}; name one of them"
    elif held.folders:
        names = listed((str(folder.relative_to(root)) for folder in held.folders), 3)
        expected = (
            "one folder of images per class, or a table of labels beside them, found "
            f"{len(held.folders)} folders of images, {names}, whose names are no classes; name one "
            "of them to read images without labels"
        )
    raise InputError("; ".join(filter(None, [f"{root}: expected {expected}", foreign])))


def _known_file(path: Path) -> Layout | None:
    """Return what the file is, None where it is in none of the published formats."""
    if path.suffix == ".npz":
        return Layout("medmnist", path, {})
    if path.suffix == ".json":
        parents = [path.parent, path.parent.parent]
        below = [folder for top in parents for folder in sorted(top.iterdir()) if folder.is_dir()]
        return _instances(path, [*parents, *below])
    if path.suffix not in (".tsv", ".parquet"):
        return None
    try:
        if path.suffix == ".parquet":
            columns = [*parquet_file(path).schema_arrow.names]
        else:
            with open(path, encoding="utf-8-sig", opener=regular) as file:
                columns = file.readline(MAX_HEADER).split("\t")
    except (InputError, OSError, UnicodeDecodeError):
        return None  # whoever reads the table says why
    names = {name.strip().strip('"') for name in columns}
    return Layout("endobench", path, {}) if {*NEEDED} <= names else None


def not_read(held: Contents, layout: Layout | None) -> str:
    """Return which label files of other tools, and which masks, the layout leaves alone, with their
    number and the remedy; "" for none."""
    root, read = held.root, "none" if layout is None else layout.kind
    counts, endings = Counter[str](), (".json", ".xml", ".dcm", ".dicom", "")
    files = (path for path in root.rglob("*") if path.suffix.lower() in endings and path.is_file())
    for path in islice(files, FILES):
        with path.open("rb") as file:
            head = file.read(HEAD)
        if path.suffix.lower() in (".dcm", ".dicom"):
            head = bytes(128) + b"DICM"
        kinds = NAMES["foreign"].items()
        counts.update([kind for start, kind in kinds if re.match(start.encode(), head, re.DOTALL)])
    if read == "voc":
        counts = Counter({kind: n for kind, n in counts.items() if "PASCAL VOC" not in kind})
    kinds_met = [f"{number:,} files hold {kind}" for kind, number in counts.items()]
    folders = held.pictures if read != "masks" else ()
    if masks := sum(len(images_and_masks(folder)[1]) for folder in folders):
        remedy = "move them into a folder masks/, the images into images/"
        kinds_met.append(f"{masks:,} masks beside their images; {remedy}")
    return f"not read: {'; '.join(kinds_met)}" if kinds_met else ""


def split_rank(path: Path, root: Path) -> int:
    """Return the place in ORDER of the split that a path names below the root; its length for
    none."""
    words = _words(path.relative_to(root).as_posix())
    return next((k for k, n in enumerate(ORDER) if any(w.startswith(n) for w in words)), len(ORDER))


def _left_alone(tables: list[Path]) -> str:
    """Return what is said of tables beside what was taken; "" for none."""
    if not tables:
        return ""
    names = listed(table.name for table in tables)
    one, them = ("it", "was") if len(tables) == 1 else ("one of them", "were")
    instead = f"to go by {one}, give {tables[0]} in place of the folder"
    return f"{names} there {them} left alone; {instead}"


# -- data at hand ----------------------------------------------------------------------------------


def as_dataset(
    data: Any, labels: Labels | None = None, concepts: list[str] | None = None
) -> Dataset:
    """Return a dataset of whatever is at hand.

    Args:
        data: a Dataset; a path that ``recognised`` knows; a table of labels with a column of image
            files (DataFrame); or images: arrays, paths, PIL images, or one array n x H x W (x C).
        labels: of images, as ``as_labels`` takes them; without any nothing is known of the images.
        concepts: which columns of a table to ask about, or, without labels, what a model answers
            about images (default: "image").

    Raises:
        InputError: for anything else, and for concepts that are not those of the data.
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
        expected = "a Dataset, a folder, a table of labels or a list of images"
        raise unexpected("data", expected, type(data).__name__)
    if labels is None:
        ids = image_ids(images) or [str(number) for number in range(len(images))]
        labels = pd.DataFrame(np.nan, ids, concepts or [NOTHING])
    elif isinstance(labels, pd.DataFrame) and concepts:
        labels = labels[_known(concepts, labels)]
    return _only(from_table(images, labels, name="images"), concepts)


def _only(dataset: Dataset, concepts: list[str] | None) -> Dataset:
    if concepts is not None and [*concepts] != [*dataset.concepts]:
        expected = f"those of the data, {listed(dataset.concepts, 6)}, or to be left out"
        raise unexpected("concepts", expected, listed(concepts, 6))
    return dataset


def _known(concepts: list[str], table: pd.DataFrame) -> list[str]:
    """``concepts``; raises InputError for one that is no column of the table."""
    for name in concepts:
        if name not in table:
            raise unknown("concept", name, [*map(str, table)], "concepts")
    return concepts


# -- tables ----------------------------------------------------------------------------


def _table(path: Path, below: list[Path]) -> Layout:
    """Return how to read a table of labels. ``below``: the folders of images beside it."""
    table = read_rows(path)
    places = [[folder] for folder in dict.fromkeys([path.parent, path.parent.parent, *below])]
    # where most files are there, the column is meant, and reading it says more
    shares = {
        (column, tuple(folders)): ImageNames(folders).share(table[column])
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
        column = file or table.nunique().idxmax()
        cells = table[column].reset_index(drop=True)
        value = cells[cells.duplicated()].iloc[0]
        rows = some([str(row + 1) for row in np.flatnonzero(cells == value)], 3)
        raise InputError(
            f"{path}: expected a column whose values all differ, to tell samples apart, found none "
            f"among {', '.join(map(str, table))}; {value!r} stands more than once in "
            f"{str(column)!r}: rows {rows}"
        )
    odd = {name: text for name in rest["metadata"] if (text := odd_label(table[name]))}
    cautions = [
        f"column {name!r} was taken for metadata: {text}; {MEND}" for name, text in odd.items()
    ]
    cautions += [
        f"column {name!r}, called as classes are, was taken for metadata, as other columns hold 0 "
        f'and 1: class_column = "{name}" in [dataset] asks about it'
        for name in rest["metadata"]
        if str(name).lower() in NAMES["class_columns"] and name not in odd
    ]
    kept = {k: v for k, v in {**options, **rest}.items() if v}
    return Layout("table", path, kept, "; ".join(cautions))


MEND = "mend that cell and move the column from `metadata` to `concepts` in SPEC.toml"


def _of_rows(table: pd.DataFrame, concepts: list[str] | None) -> Dataset:
    """Return a table in memory, one column of which names image files."""
    texts = table.rename(columns=str).astype(object)
    files = [c for c in texts if ImageNames(Path()).share(texts[c].astype(str)) == 1]
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
    """Return what the columns of a table are, those of image files apart, by the options of
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
    """Return the column called as classes are, else the only one whose values all repeat."""
    named = [c for c in table if str(c).lower() in NAMES["class_columns"]]
    repeating = [c for c in table if 2 <= table[c].nunique() <= len(table) / 2]
    repeating = [c for c in repeating if not {*_words(c)} & {*NAMES["group_columns"]}]
    return str(named[0]) if named else str(repeating[0]) if len(repeating) == 1 else None


def _words(name: object) -> list[str]:
    return re.split(r"[^a-z]+", str(name).lower())
