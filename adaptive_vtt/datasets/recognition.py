"""Recognise the format of a path: a published one, class folders, masks, a table, or images alone.

The result is a kind of dataset and its options, as in the [dataset] section of SPEC.toml, so that
Python and ``avtt init`` read the same folders alike.
"""

import json
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, check_known, listed, some, unexpected
from ..utils.files import contents, near_file, regular
from ..utils.tables import MAX_HEADER
from ..utils.web import text_of
from .base import Dataset, adapted_dataset
from .columns import label_cells, sorted_columns, words_of
from .formats import folders, table_file
from .formats.coco import PARTS
from .formats.endobench import NEEDED
from .formats.image_rows import parquet_file
from .formats.table_file import TABLES, ImageNames, file_columns
from .formats.yolo import yolo_folders
from .kinds import REGISTRY
from .scanning import NAMES, Folder, folders_below, holds_images, image_files, images_and_masks
from .table import Labels, Metadata, described, from_table, image_ids, is_names, of_rows

VOC = ("Annotations", "JPEGImages")
"""Folders of a dataset in the layout of PASCAL VOC."""
NAMED = ("labels", "metadata")
"""Names of the table that is read if a folder has several, as one of `avtt export` has."""
MOST = 0.5
"""Minimum share of cells that name existing files, for a column of image files."""
MANY = 20
"""Number of images from which on folders with one image each are not taken for classes."""
ORDER = ("test", "val", "dev", "train")
"""Splits in the order of preference, if only one can be audited."""
HEAD, FILES = 4096, 2000
"""Bytes of each file, and number of files, that are searched for formats of other tools."""


@dataclass(frozen=True)
class Layout:
    """A recognised dataset.

    Attributes:
        kind: Its kind, a name in ``datasets.REGISTRY``.
        path: The file or folder.
        options: Further options of that kind.
        apart: A remark on files that are not read, and how to read them; "" if there are none.
    """

    kind: str
    path: Path
    options: Mapping[str, Any]
    apart: str = ""

    def load(self) -> Dataset:
        """Return the dataset; raise InputError if a part of it cannot be used."""
        return REGISTRY.get(self.kind)(self.path, **self.options)

    def about(self, concepts: list[str] | None, metadata: Any = None) -> Dataset:
        """Return the dataset with certain concepts and metadata.

        Args:
            concepts: Columns of a table, or names of the concepts that masks or images show. None:
                all of the dataset.
            metadata: Columns that describe samples. None: those of the dataset.

        Raises:
            InputError: The dataset has further concepts, or lacks a concept or column.
        """
        options = {**self.options}
        if self.kind == "table" and (concepts or metadata):
            columns = None if "class_column" in options else concepts
            options |= {"concepts": columns, "metadata": metadata}
        elif concepts and self.kind == "images":
            options["concepts"] = concepts
        elif concepts and self.kind == "masks" and len(concepts) == 1:
            options["concept"] = concepts[0]
        dataset = _only(replace(self, options=options).load(), concepts)
        for name in metadata or ():
            check_known("metadata column", name, adapted_dataset(dataset).metadata_columns)
        return dataset


@dataclass(frozen=True)
class Contents:
    """Contents of a folder, searched once for all formats."""

    root: Path

    @cached_property
    def folders(self) -> list[Path]:
        """The folders below it that contain images."""
        return [path for path in folders_below(self.root) if holds_images(path)]

    @cached_property
    def loose(self) -> bool:
        """True if the folder itself contains images."""
        return holds_images(self.root)

    @cached_property
    def pictures(self) -> list[Path]:
        """All folders that contain images, with the folder itself."""
        return [*self.folders, *[self.root] * self.loose]

    @cached_property
    def tables(self) -> tuple[list[Path], str]:
        """The tables of labels in the folder, or in its splits, and a remark on unread tables.

        Of several tables, the one called "labels" or "metadata" is chosen, or that of the split to
        be audited.
        """
        files = [file for file in sorted(self.root.iterdir()) if file.suffix.lower() in TABLES]
        if not files:
            below = sorted(self.root.glob("*/metadata.*"))
            files = [file for file in below if file.suffix.lower() in TABLES]
        chosen = [file for file in files if file.stem.lower() in NAMED]
        if len(chosen) != 1 and all(split_rank(file, self.root) < len(ORDER) for file in files):
            chosen = sorted(files, key=lambda file: split_rank(file, self.root))[:1]
        if len(files) < 2 or len(chosen) != 1:
            return files, ""
        return chosen, _read_alone(chosen[0], self.root, [f for f in files if f not in chosen])


# -- formats: each function returns the layout of a folder in its format, None for other folders ---


def _published(folder: Contents) -> Layout | None:
    """Recognise images with masks, VOC and YOLO, by their folders."""
    root = folder.root
    if all((root / name).is_dir() for name in VOC):  # before masks, which VOC has for some images
        return Layout("voc", root, {})
    if folders.mask_layouts(root):
        return Layout("masks", root, {"concept": "object"})
    return Layout("yolo", root, {}) if yolo_folders(root) else None


def _coco(folder: Contents) -> Layout | None:
    root = folder.root
    files = [*root.glob("*.json"), *root.glob("*/*.json")]
    files.sort(key=lambda file: (split_rank(file, root), file))
    while files:
        file = files.pop(0)
        layout = _instances(file, [file.parent, *folder.pictures, root], last=not files)
        if layout is not None:
            others = [other for other in files if _instances(other, [root], last=False)]
            return replace(layout, apart=_read_alone(file, root, others) if others else "")
    return None


def _instances(path: Path, folders: list[Path], last: bool = True) -> Layout | None:
    """Return the layout of a JSON file of COCO, None for another file.

    Args:
        path: The file.
        folders: Folders that may contain its images.
        last: Whether to raise InputError if none of them does.
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
            f"{path}: expected a folder with its images, such as {first!r}, got none near it; "
            'name both in [dataset]: kind = "coco", labels = ..., images = ...'
        )
    return None if images is None else Layout("coco", path, {"images": images})


def _without_pictures(folder: Contents) -> Layout | None:
    """Recognise a MedMNIST archive, EndoBench's table, and a folder of save_to_disk."""
    if folder.pictures:
        return None
    for ending in ("npz", "tsv"):
        files = [*folder.root.glob(f"*.{ending}")]
        if len(files) == 1:
            return _known_file(files[0])
    saved = all((folder.root / name).is_file() for name in ("state.json", "dataset_info.json"))
    return Layout("hugging-face", folder.root, {}) if saved else None


def _classes(folder: Contents) -> Layout | None:
    """Recognise folders of two or more classes, unless each of many classes has one image."""
    if folder.loose or len(folder.folders) < 2:
        return None
    files = [file for f in folder.folders for file in image_files(f, allow_outside=True)]
    places = folders.class_places(files, folder.root)
    named = [file for file in files if file.parent in places]
    names = [file.relative_to(folder.root).parts[places[file.parent]] for file in named]
    if len({*names}) < 2 or len({*names}) == len(names) >= MANY:
        return None
    return Layout("classes", folder.root, {}, _left_alone(folder.tables[0]))


def _labels(folder: Contents) -> Layout | None:
    tables, apart = folder.tables
    if len(tables) != 1:
        return None
    layout = _table(tables[0], folder.pictures)
    return replace(layout, apart="; ".join(filter(None, [layout.apart, apart])))


def _images(folder: Contents) -> Layout | None:
    alone = folder.loose or len(folder.folders) == 1
    return Layout("images", folder.pictures[-1], {}) if alone and not folder.tables[0] else None


FORMATS = (_published, _coco, _without_pictures, _classes, _labels, _images)
"""Functions that recognise a folder, in the order in which they are tried."""


def recognised(path: Path | str) -> Layout:
    """Return the layout of a file or folder, by the first of FORMATS that recognises it.

    Args:
        path: A file or folder.

    Returns:
        The kind of dataset, its path and its options.

    Raises:
        InputError: None of them recognises it.
    """
    root = Path(path)
    if root.is_file() and (known := _known_file(root)):
        return known
    if root.is_file() and root.suffix.lower() in TABLES:
        return _table(root, Contents(root.parent).folders)
    if not root.is_dir():
        expected = f"a folder, a table of labels ({', '.join(TABLES)}), a MedMNIST archive (.npz)"
        absent = f"nothing: it does not exist{near_file(root)}"
        got = "another file" if root.exists() else absent
        raise unexpected(str(root), f"{expected} or COCO's boxes (.json)", got)
    folder = Contents(root)
    layout = next(filter(None, (recognise(folder) for recognise in FORMATS)), None)
    foreign = not_read(folder, layout)
    if layout is not None:
        return replace(layout, apart="; ".join(filter(None, [layout.apart, foreign])))
    tables = [table.name for table in folder.tables[0]]
    below = [str(path.relative_to(root)) for path in folder.folders]
    words: Any = {"root": root, "tables": tables, "folders": below, "foreign": foreign}
    raise InputError(text_of(__package__, "unrecognised.txt", listed=listed, **words).strip())


def _known_file(path: Path) -> Layout | None:
    """Return the layout of a file in a published format, None for other files."""
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
        return None  # the reader of the table raises this error again
    names = {name.strip().strip('"') for name in columns}
    return Layout("endobench", path, {}) if {*NEEDED} <= names else None


def not_read(folder: Contents, layout: Layout | None) -> str:
    """Return a remark on label files of other tools, and on masks, that a layout does not read.

    It has their numbers and how to read them; it is "" if there are none.
    """
    root, kind = folder.root, "none" if layout is None else layout.kind
    counts, endings = Counter[str](), (".json", ".xml", ".dcm", ".dicom", "")
    files = (path for path in root.rglob("*") if path.suffix.lower() in endings and path.is_file())
    for path in islice(files, FILES):
        with path.open("rb") as file:
            head = file.read(HEAD)
        if path.suffix.lower() in (".dcm", ".dicom"):
            head = bytes(128) + b"DICM"
        marks = NAMES["foreign"].items()
        counts.update([text for start, text in marks if re.match(start.encode(), head, re.DOTALL)])
    unread = [text for text in counts if not (kind == "voc" and "PASCAL VOC" in text)]
    rows = [f"{counts[text]:,} files hold {text}" for text in unread]
    pictures = folder.pictures if kind != "masks" else ()
    if masks := sum(len(images_and_masks(path)[1]) for path in pictures):
        remedy = "move them into a folder masks/, the images into images/"
        rows.append(f"{masks:,} masks in the folders of their images; {remedy}")
    return f"not read: {'; '.join(rows)}" if rows else ""


def split_rank(path: Path, root: Path) -> int:
    """Return the index in ORDER of the split in a path below the root, len(ORDER) without one."""
    words = words_of(path.relative_to(root).as_posix())
    return next((k for k, n in enumerate(ORDER) if any(w.startswith(n) for w in words)), len(ORDER))


def _read_alone(file: Path, root: Path, others: list[Path]) -> str:
    return f"{file.relative_to(root)} is read; {_left_alone(others)}"


def _left_alone(tables: list[Path]) -> str:
    """Return a remark on tables that are not read; "" for none."""
    if not tables:
        return ""
    one, them = ("it", "was") if len(tables) == 1 else ("one of them", "were")
    instead = f"to read {one}, give {tables[0]} in place of the folder"
    return f"{listed(table.name for table in tables)} {them} left alone; {instead}"


# -- data in memory --------------------------------------------------------------------------------


def as_dataset(
    data: Any,
    labels: Labels | None = None,
    concepts: list[str] | None = None,
    metadata: Metadata | None = None,
) -> Dataset:
    """Return data in any form as a dataset.

    Args:
        data: A Dataset; a path that ``recognised`` accepts; a table of labels with a column of
            image files (DataFrame); or images: arrays, paths, PIL images, or one array n x H x W
            (x C).
        labels: Labels of images, as ``from_table`` accepts them. Default None: truths are unknown.
        concepts: Columns of a table to ask about, or, without labels, names of the concepts that a
            model answers about. Default None: all columns of labels, or "image".
        metadata: Names of columns that describe images, or a table or columns with a row per image,
            which are joined as labels are. Default None: all other columns of a table.

    Returns:
        The dataset.

    Raises:
        InputError: The data has another form, or lacks one of the concepts.
    """
    if isinstance(data, Dataset) and metadata is not None:
        raise unexpected("data", "a Dataset alone", "metadata, too", "give them to the Dataset")
    if isinstance(data, Dataset):
        return _only(data, concepts)
    if isinstance(data, str | Path) and labels is None:
        layout = recognised(data)
        if layout.apart and concepts is None:
            warnings.warn(f"{data}: {layout.apart}", stacklevel=3)
        named = is_names(metadata)
        dataset = layout.about(concepts, metadata if named else None)
        return dataset if named else described(dataset, metadata)
    if isinstance(data, pd.DataFrame) and labels is None:
        return _of_rows(data, concepts, metadata)
    images = image_files(Path(data)) if isinstance(data, str | Path) else data
    if not isinstance(images, list | tuple | np.ndarray) or not len(images):
        expected = "a Dataset, a folder, a table of labels or a list of images"
        raise unexpected("data", expected, type(data).__name__)
    if labels is None:
        ids = image_ids(images) or [str(number) for number in range(len(images))]
        unknown = pd.DataFrame(np.nan, ids, concepts or [folders.NOTHING])
        return described(of_rows(images, unknown, name="images"), metadata)
    chosen = concepts if isinstance(labels, pd.DataFrame) else None
    dataset = from_table(images, labels, concepts=chosen, metadata=metadata, name="images")
    return _only(dataset, concepts)


def _only(dataset: Dataset, concepts: list[str] | None) -> Dataset:
    """Return the dataset. Raise InputError unless its concepts are these, or None is given."""
    if concepts is not None and [*concepts] != [*dataset.concepts]:
        expected = f"those of the data, {listed(dataset.concepts, 6)}, or to be left out"
        raise unexpected("concepts", expected, listed(concepts, 6))
    return dataset


# -- tables ----------------------------------------------------------------------------


def _table(path: Path, below: list[Path]) -> Layout:
    """Return the layout of a table of labels.

    Args:
        path: The table.
        below: Folders that may contain its images.

    Raises:
        InputError: No column can identify samples.
    """
    table = table_file.read_rows(path)
    places = [[folder] for folder in dict.fromkeys([path.parent, path.parent.parent, *below])]
    # the share of files that each column names in each folder: the largest one is chosen
    shares = {
        (column, tuple(folders)): ImageNames(folders).share(table[column])
        for folders in [*places, *[below] * (len(below) > 1)]
        for column in table
        if table[column].is_unique or label_cells(table[column]).odd.any()  # not 0 and 1
    }
    best = max(shares, key=lambda pair: shares[pair], default=None)
    file, options = None, dict[str, Any]()
    if best is not None and shares[best] >= MOST:
        file, options["images"] = best[0], best[1][0] if len(best[1]) == 1 else [*best[1]]
    others = table.drop(columns=[file] if file else [])
    columns = sorted_columns(others, str(path), strict=False)
    unique = [name for name in columns.metadata if table[name].is_unique]
    id_column = min(unique, key=lambda name: name.lower() != "id", default=None)
    if file is not None and table[file].is_unique:
        id_column = str(file)
    elif id_column:
        options["file_column"] = file
    else:
        column = file or table.nunique().idxmax()
        cells = table[column]
        value = cells[cells.duplicated()].iloc[0]
        rows = some([str(row + 1) for row in np.flatnonzero(cells == value)], 3)
        raise InputError(
            f"{path}: expected a column whose values all differ, to identify samples, got none "
            f"among {', '.join(map(str, table))}; {value!r} stands more than once in "
            f"{str(column)!r}: rows {rows}"
        )
    metadata = [name for name in columns.metadata if name != id_column]
    notes = {name: columns.notes[name] for name in metadata if name in columns.notes}
    cautions = [f"column {name!r} was taken for {note}; {MEND}" for name, note in notes.items()]
    cautions += [
        f"column {name!r}, called as classes are, was taken for metadata, as other columns hold 0 "
        f'and 1: class_column = "{name}" in [dataset] asks about it'
        for name in metadata
        if name.lower() in NAMES["class_columns"] and name not in notes
    ]
    options |= {"id_column": id_column, "concepts": columns.concepts}
    options |= {"class_column": columns.classes, "metadata": metadata}
    return Layout("table", path, {k: v for k, v in options.items() if v}, "; ".join(cautions))


MEND = "mend that cell and move the column from `metadata` to `concepts` in SPEC.toml"


def _of_rows(table: pd.DataFrame, concepts: list[str] | None, metadata: Metadata | None) -> Dataset:
    """Return the dataset of a table in memory with a column of image files."""
    files = file_columns(table, Path())
    if not files:
        raise InputError(
            "data: expected a column of image files, as seen from this folder, got none among "
            f"{some([*map(str, table)], 6)}; give the folder of images as data and the table as "
            "labels="
        )
    here = Folder(Path(), allow_outside=True)
    paths = [table_file.near_image(here, name) for name in table[files[0]].astype(str)]
    return from_table(paths, table, concepts=concepts, metadata=metadata, name="images")
