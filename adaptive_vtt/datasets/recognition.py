"""Recognise what a path holds: a published format, class folders, images and masks, a table of
labels, or images alone.

The result is a kind of dataset and its options, as the [dataset] section of a SPEC.toml has them,
so that Python and ``avtt init`` understand the same folders.
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
from ..utils.files import contents, regular
from ..utils.tables import MAX_HEADER
from ..utils.web import text_of
from .base import Dataset
from .formats import folders, table_file
from .formats.coco import PARTS
from .formats.endobench import NEEDED
from .formats.image_rows import parquet_file
from .formats.table_file import TABLES, ImageNames, odd_label
from .formats.yolo import yolo_folders
from .kinds import REGISTRY
from .scanning import NAMES, Folder, folders_below, holds_images, image_files, images_and_masks
from .table import Labels, as_labels, from_table, image_ids, label_cells

VOC = ("Annotations", "JPEGImages")
"""The folders of a set in the layout of PASCAL VOC."""
NAMED = ("labels", "metadata")
"""The table that is meant where there are others, as in what `avtt export` writes."""
MOST = 0.5
"""Least share of its first cells that a column of image files names, where some are missing."""
MANY = 20
"""Images from which on classes of one image each are no classes."""
ORDER = ("test", "val", "dev", "train")
"""Which split is audited, where only one is."""
HEAD, FILES = 4096, 2000
"""Bytes of a file that are searched for the mark of another tool, and files."""


@dataclass(frozen=True)
class Layout:
    """A kind of dataset (a name of ``datasets.REGISTRY``), where it is, and its other options.

    ``apart``: what was left alone in the folder, and how to choose it; "" for nothing.
    """

    kind: str
    path: Path
    options: Mapping[str, Any]
    apart: str = ""

    def load(self) -> Dataset:
        """Return the dataset. Raise InputError for parts of it that cannot be used."""
        return REGISTRY.get(self.kind)(self.path, **self.options)

    def about(self, concepts: list[str] | None) -> Dataset:
        """Return the dataset with these columns of its table, or this name of what its masks or
        images show, as concepts. Raise InputError if the data have other concepts, too."""
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
    """A folder as the formats see it; each part is searched for once."""

    root: Path

    @cached_property
    def folders(self) -> list[Path]:
        """The folders of images below it."""
        return [path for path in folders_below(self.root) if holds_images(path)]

    @cached_property
    def loose(self) -> bool:
        """True if images lie in the folder itself."""
        return holds_images(self.root)

    @cached_property
    def pictures(self) -> list[Path]:
        """All folders of images, the folder itself among them."""
        return [*self.folders, *[self.root] * self.loose]

    @cached_property
    def tables(self) -> tuple[list[Path], str]:
        """The tables of labels in the folder, or in its splits, and a remark on tables left alone.

        A table called "labels" or "metadata" is meant, or that of the split to be audited.
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


# -- formats: each returns the layout of a folder in it, None for others ---------------------------


def _published(held: Contents) -> Layout | None:
    """Recognise images with masks, VOC and YOLO, by what lies in their folders."""
    root = held.root
    if all((root / name).is_dir() for name in VOC):  # it has masks of some of its images, too
        return Layout("voc", root, {})
    if folders.mask_layouts(root):
        return Layout("masks", root, {"concept": "object"})
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
            return replace(layout, apart=_read_alone(file, root, others) if others else "")
    return None


def _instances(path: Path, folders: list[Path], last: bool = True) -> Layout | None:
    """Return the layout of COCO's JSON, None for another file.

    ``folders``: where the images may be. ``last``: whether to raise InputError if they are not.
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
    places = folders.class_places(files, held.root)
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


FORMATS = (_published, _coco, _without_pictures, _classes, _labels, _images)
"""Functions that recognise a folder; the first that does counts."""


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
    if not root.is_dir():
        layout = _known_file(root) if root.is_file() else None
        if layout is None and root.is_file() and root.suffix.lower() in TABLES:
            layout = _table(root, Contents(root.parent).folders)
        if layout is None:
            expected = f"a folder, a table of labels ({', '.join(TABLES)}), a MedMNIST archive "
            got = "another file" if root.is_file() else "nothing: it does not exist"
            raise unexpected(str(root), f"{expected}(.npz) or COCO's boxes (.json)", got)
        return layout
    held = Contents(root)
    layout = next(filter(None, (recognise(held) for recognise in FORMATS)), None)
    foreign = not_read(held, layout)
    if layout is not None:
        return replace(layout, apart="; ".join(filter(None, [layout.apart, foreign])))
    tables = [table.name for table in held.tables[0]]
    below = [str(folder.relative_to(root)) for folder in held.folders]
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


def not_read(held: Contents, layout: Layout | None) -> str:
    """Return the number and remedy of label files of other tools, and of masks, that the layout
    leaves alone; "" for none."""
    root, kind = held.root, "none" if layout is None else layout.kind
    counts, endings = Counter[str](), (".json", ".xml", ".dcm", ".dicom", "")
    files = (path for path in root.rglob("*") if path.suffix.lower() in endings and path.is_file())
    for path in islice(files, FILES):
        with path.open("rb") as file:
            head = file.read(HEAD)
        if path.suffix.lower() in (".dcm", ".dicom"):
            head = bytes(128) + b"DICM"
        marks = NAMES["foreign"].items()
        counts.update([text for start, text in marks if re.match(start.encode(), head, re.DOTALL)])
    rows = [
        f"{number:,} files hold {text}"
        for text, number in counts.items()
        if not (kind == "voc" and "PASCAL VOC" in text)
    ]
    pictures = held.pictures if kind != "masks" else ()
    if masks := sum(len(images_and_masks(folder)[1]) for folder in pictures):
        remedy = "move them into a folder masks/, the images into images/"
        rows.append(f"{masks:,} masks in the folders of their images; {remedy}")
    return f"not read: {'; '.join(rows)}" if rows else ""


def split_rank(path: Path, root: Path) -> int:
    """Return the place in ORDER of the split that a path below the root names; its length for
    none."""
    words = _words(path.relative_to(root).as_posix())
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


# -- data at hand ----------------------------------------------------------------------------------


def as_dataset(
    data: Any, labels: Labels | None = None, concepts: list[str] | None = None
) -> Dataset:
    """Return data in any form as a dataset.

    Args:
        data: A Dataset; a path that ``recognised`` knows; a table of labels with a column of image
            files (DataFrame); or images: arrays, paths, PIL images, or one array n x H x W (x C).
        labels: Labels of images, as ``as_labels`` takes them. Without any, truths are unknown.
        concepts: Which columns of a table to ask about, or, without labels, what a model answers
            about images (default: "image").

    Returns:
        The dataset.

    Raises:
        InputError: The data has another form, or lacks one of the concepts.
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
        labels = pd.DataFrame(np.nan, ids, concepts or [folders.NOTHING])
    elif isinstance(labels, pd.DataFrame) and concepts:
        labels = labels[_known(concepts, labels)]
    return _only(from_table(images, labels, name="images"), concepts)


def _only(dataset: Dataset, concepts: list[str] | None) -> Dataset:
    if concepts is not None and [*concepts] != [*dataset.concepts]:
        expected = f"those of the data, {listed(dataset.concepts, 6)}, or to be left out"
        raise unexpected("concepts", expected, listed(concepts, 6))
    return dataset


def _known(concepts: list[str], table: pd.DataFrame) -> list[str]:
    """Return ``concepts``. Raise InputError for one that is no column of the table."""
    for name in concepts:
        check_known("concept", name, [*map(str, table)], "concepts")
    return concepts


# -- tables ----------------------------------------------------------------------------


def _table(path: Path, below: list[Path]) -> Layout:
    """Return how to read a table of labels. ``below``: folders of images that it may be about."""
    table = table_file.read_rows(path)
    places = [[folder] for folder in dict.fromkeys([path.parent, path.parent.parent, *below])]
    # the column that names most files is meant, and reading it shows what is missing
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
    roles = _roles(table.drop(columns=[file] if file else []), str(path))
    if file is not None and table[file].is_unique:
        roles["metadata"] += [roles["id_column"]] if roles["id_column"] else []
        roles["id_column"] = file
    elif roles["id_column"]:
        options["file_column"] = file
    else:
        column = file or table.nunique().idxmax()
        cells = table[column].reset_index(drop=True)
        value = cells[cells.duplicated()].iloc[0]
        rows = some([str(row + 1) for row in np.flatnonzero(cells == value)], 3)
        raise InputError(
            f"{path}: expected a column whose values all differ, to identify samples, got none "
            f"among {', '.join(map(str, table))}; {value!r} stands more than once in "
            f"{str(column)!r}: rows {rows}"
        )
    odd = {name: text for name in roles["metadata"] if (text := odd_label(table[name]))}
    cautions = [
        f"column {name!r} was taken for metadata: {text}; {MEND}" for name, text in odd.items()
    ]
    cautions += [
        f"column {name!r}, called as classes are, was taken for metadata, as other columns hold 0 "
        f'and 1: class_column = "{name}" in [dataset] asks about it'
        for name in roles["metadata"]
        if str(name).lower() in NAMES["class_columns"] and name not in odd
    ]
    kept = {k: v for k, v in {**options, **roles}.items() if v}
    return Layout("table", path, kept, "; ".join(cautions))


MEND = "mend that cell and move the column from `metadata` to `concepts` in SPEC.toml"


def _of_rows(table: pd.DataFrame, concepts: list[str] | None) -> Dataset:
    """Return the dataset of a table in memory with a column of image files."""
    table = table.rename(columns=str)
    texts = table.astype(object)
    files = [c for c in texts if ImageNames(Path()).share(texts[c].astype(str)) == 1]
    if not files:
        raise InputError(
            "data: expected a column of image files in the table of labels, got none among "
            f"{', '.join(map(str, texts))}; give the images as data and the table as labels="
        )
    here = Folder(Path(), allow_outside=True)
    paths = [table_file.near_image(here, name) for name in texts[files[0]].astype(str)]
    roles = _roles(texts.drop(columns=files[0]).fillna("").astype(str), "data")
    id_column, chosen = roles["id_column"], roles["class_column"] or roles["concepts"]
    if concepts and not roles["class_column"]:
        chosen = _known(concepts, texts)
    others = [*roles["concepts"], *roles["metadata"], *filter(None, [id_column])]
    others = [name for name in others if name not in chosen]
    ids = texts[id_column].tolist() if id_column else image_ids(paths)
    dataset = from_table(
        [path for path in paths if path is not None],
        as_labels(table[chosen]).set_axis([*map(str, ids or [])], axis=0),
        metadata=texts[others] if others else None,
    )
    return _only(dataset, concepts)


def _roles(table: pd.DataFrame, where: str) -> dict[str, Any]:
    """Return the roles of a table's columns, without image files, as options of ``read_table``.

    Cells are texts. Columns of 0, 1 and empty cells, or of yes and no, are concepts. Where none is
    of 0 and 1, a column called "class" or the like names the class. Without either, the only column
    whose values all repeat does.
    """
    known = table.mask(table.isin(table_file.EMPTY))
    read = {c: label_cells(table[c]) for c in table}
    concepts = [c for c in table if read[c].truths.notna().any() and not read[c].odd.any()]
    numbers = any(pd.to_numeric(known[c], errors="coerce").notna().any() for c in concepts)
    named = [c for c in known if str(c).lower() in NAMES["class_columns"]]
    if not numbers and named:
        concepts = []
    unique = [c for c in known if c not in concepts and known[c].is_unique]
    classes = None
    if not concepts:
        left = known.drop(columns=unique)
        repeating = [c for c in left if 2 <= left[c].nunique() <= len(left) / 2]
        repeating = [c for c in repeating if not {*_words(c)} & {*NAMES["group_columns"]}]
        named = [c for c in named if c in left] or (repeating if len(repeating) == 1 else [])
        if not named:
            expected = "a column of 0 and 1, or yes and no, per concept, or one that names the "
            raise InputError(
                f"{where}: expected {expected}class, got neither among "
                f"{', '.join(map(str, table))}{table_file.odd_cells(table)}; write labels so, or "
                "call the column 'class', or name it: class_column = ... in [dataset]"
            )
        classes = str(named[0])
    id_column = next((c for c in unique if str(c).lower() == "id"), next(iter(unique), None))
    others = [c for c in table if c not in (id_column, classes, *concepts)]
    names = ("id_column", "concepts", "class_column", "metadata")
    return dict(zip(names, (id_column, concepts, classes, others), strict=True))


def _words(name: object) -> list[str]:
    return re.split(r"[^a-z]+", str(name).lower())
