"""Hugging Face's datasets: what ``save_to_disk`` wrote, and Parquet files, by pyarrow alone.

Layouts (https://huggingface.co/docs/datasets): a folder of ``data-00000-of-00002.arrow`` named in
``state.json``; for several splits such a folder each beside ``dataset_dict.json``; or
``data/test-00000-of-00002.parquet``. Which columns are images and what classes are called stands in
the schema's metadata, under "huggingface".
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, one_line
from ...types import UNKNOWN, Ask, Mask
from ...utils.files import instead
from ...utils.image_files import MASK_THRESHOLD
from ...utils.options import Option, at_base
from ...utils.tables import check_columns
from ..scanning import natural
from ..table import TableDataset, WordedDataset, from_table, one_per_class
from .image_rows import Images, Place, opened_arrow, opened_parquet

QUESTION = "question"
"""The concept of questions in words."""
_SHARD = re.compile(r"^(?P<split>.+?)-\d+-of-\d+")


def from_hugging_face(
    path: Annotated[Path | str, Option("the folder, or a .parquet file", reads=at_base)],
    *,
    split: Annotated[str | None, Option("needed where there are several")] = None,
    image_column: Annotated[
        str | None, Option("column of images (default: the only one that holds some)")
    ] = None,
    class_column: Annotated[
        str | None, Option("column of classes (default: the only one said to be)")
    ] = None,
    concepts: Annotated[Sequence[str] | None, Option("instead: columns of 0 and 1")] = None,
    mask_column: Annotated[str | None, Option("instead: column of masks")] = None,
    mask_values: Annotated[
        Mapping[str, int] | None,
        Option("concept -> its pixel value (default: inside is above 127)"),
    ] = None,
    question_column: Annotated[str | None, Option("instead: column of questions in words")] = None,
    answer_column: Annotated[
        str | None, Option("column of right answers, one or a list; with question_column")
    ] = None,
    id_column: Annotated[str | None, Option("column of sample ids (default: row numbers)")] = None,
    metadata: Annotated[Sequence[str] | None, Option("columns that describe samples")] = None,
) -> TableDataset:
    """A dataset from what ``Dataset.save_to_disk`` or ``DatasetDict.save_to_disk`` wrote, a Parquet
    file, or a folder of such files.

    What is known of the images is one of: ``concepts``; ``class_column`` (of lists: each image has
    several); ``mask_column``; or ``question_column`` and ``answer_column``. Raises InputError for
    what is not there or cannot be read, naming file and column.
    """
    rows = Rows.read(Path(path), split)
    ids = rows.ids(id_column)
    images = rows.images(image_column, mask_column, ids)
    described = rows.columns(metadata)[[*metadata]].set_axis(ids) if metadata else None
    if question_column is not None:
        return _worded(rows, images, ids, question_column, answer_column, described)
    masks: dict[str, list[Callable[[], Mask] | None]] = {}
    if mask_column is not None:
        masks = _masks(rows.column(mask_column, ids), mask_column, mask_values)
        held = {c: [int(mask is not None) for mask in given] for c, given in masks.items()}
        labels = pd.DataFrame(held, index=ids)
    elif concepts is not None:
        labels = rows.columns(concepts)[[*concepts]].set_axis(ids)
    else:
        labels = rows.classes(class_column).set_axis(ids)
    given = cast(Sequence[Any], images)  # which are fetched one by one
    return from_table(given, labels, metadata=described, masks=masks, name=rows.name)


@dataclass(frozen=True)
class Rows:
    """All rows of some files, whose images stay there."""

    name: str
    files: tuple[Path, ...]

    @classmethod
    def read(cls, path: Path, split: str | None) -> "Rows":
        """Of a file or folder; raises InputError where it holds no such data, or other splits."""
        found = splits_of(path)
        if split is None and len(found) > 1:
            raise InputError(
                f"{path}: expected dataset.split, one of {', '.join(found)}, as there are several"
            )
        chosen = next(iter(found)) if split is None else split
        check_known("split", chosen, found, str(path))
        rows = cls(path.resolve().stem, tuple(found[chosen]))
        check_columns(len(rows.names), path)
        return rows

    @property
    def where(self) -> str:
        """What errors call it."""
        return str(self.files[0])

    @cached_property
    def schema(self) -> Any:
        """Of the first file."""
        first = self.files[0]
        return (
            opened_arrow(first).schema if _is_arrow(first) else opened_parquet(first).schema_arrow
        )

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.schema.names]

    @cached_property
    def features(self) -> dict[str, Any]:
        """What the dataset says of its columns; empty for other people's files."""
        try:
            text = (self.schema.metadata or {})[b"huggingface"]
            found = json.loads(text)["info"]["features"]
        except (KeyError, TypeError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def places(self) -> list[Place]:
        """Where each row is."""
        found: list[Place] = []
        for file in self.files:
            if _is_arrow(file):
                found += [Place(file, 0, row) for row in range(len(opened_arrow(file)))]
                continue
            facts = opened_parquet(file).metadata
            for group in range(facts.num_row_groups):
                found += [Place(file, group, k) for k in range(facts.row_group(group).num_rows)]
        return found

    def columns(self, names: Sequence[str]) -> pd.DataFrame:
        """Columns that are no images, in memory."""
        for name in names:
            self._check(name)
        chosen = [*dict.fromkeys(names)]
        try:
            parts = [
                opened_arrow(file).select(chosen)
                if _is_arrow(file)
                else opened_parquet(file).read(columns=chosen)
                for file in self.files
            ]
            tables = [part.to_pandas() for part in parts]
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{self.where}: cannot read a table: {one_line(error)}") from None
        return pd.concat(tables, ignore_index=True)

    def ids(self, column: str | None) -> list[str]:
        """One per row."""
        if column is None:
            return [str(number) for number in range(len(self.places))]
        found = [str(cell) for cell in self.columns([column])[column]]
        if len(set(found)) < len(found):
            raise InputError(
                f"{self.where}: expected another id in every row, got some of column {column!r} "
                "again; leave out id_column, and rows are numbered"
            )
        return found

    def images(self, column: str | None, apart: str | None, ids: Sequence[str]) -> Images:
        """The column of images, the only one unless it is given; ``apart``: the one of masks."""
        if column is None:
            found = [n for n in self.names if n != apart and self._holds_images(n)]
            if len(found) != 1:
                raise InputError(
                    f"{self.where}: expected one column of images, found "
                    f"{', '.join(found) or 'none'}; image_column in [dataset] names it"
                )
            column = found[0]
        return self.column(column, ids)

    def column(self, name: str, ids: Sequence[str]) -> Images:
        """A column of images."""
        self._check(name)
        return Images(self.places, [f"sample {i!r}" for i in ids], name)

    def classes(self, column: str | None) -> pd.DataFrame:
        """n x C of 0 and 1, a concept per class, in the dataset's order where it has one."""
        if column is None:
            found = [name for name in self.names if self._class_names(name)]
            if len(found) != 1:
                raise InputError(
                    f"{self.where}: expected class_column, concepts, mask_column or "
                    f"question_column in [dataset], as {len(found) or 'no'} columns are said to be "
                    f"classes; columns are {', '.join(self.names)}"
                )
            column = found[0]
        cells, names = self.columns([column])[column], self._class_names(column)
        if cells.map(lambda cell: isinstance(cell, list | np.ndarray)).any():
            return _several(cells, names)
        if not names:
            return one_per_class(cells)
        numbers = pd.to_numeric(cells, errors="coerce")
        known = numbers.where(numbers >= 0)  # -1 is a class that is not told
        return pd.DataFrame(
            {name: (known == k).astype(float).where(known.notna()) for k, name in enumerate(names)}
        )

    def _check(self, name: str) -> None:
        check_known("column", name, self.names, self.where)

    def _holds_images(self, name: str) -> bool:
        told = self.features.get(name)
        if isinstance(told, dict) and "_type" in told:
            return bool(told["_type"] == "Image")
        of = self.schema.field(name).type
        return str(of).startswith("struct<bytes: binary")

    def _class_names(self, name: str) -> list[str]:
        told = self.features.get(name)
        if isinstance(told, dict):
            told = told.get("feature", told)  # of a list: of its members
        elif isinstance(told, list) and told:
            told = told[0]
        if not isinstance(told, dict) or told.get("_type") != "ClassLabel":
            return []
        return [str(word) for word in told.get("names") or ()]


def _is_arrow(file: Path) -> bool:
    return file.suffix == ".arrow"


def splits_of(path: Path) -> dict[str, list[Path]]:
    """Split -> its files, in order; "" where splits have no name."""
    if path.is_file():
        return {"": [path]}
    if not path.is_dir():
        raise InputError(f"{path}: is neither a file nor a folder{instead(path)}")
    if (path / "dataset_dict.json").is_file():
        names = _told(path / "dataset_dict.json", "splits")
        return {name: _shards(_inside(path, name)) for name in names}
    if (path / "state.json").is_file():
        return {"": _shards(path)}
    found: dict[str, list[Path]] = {}
    for file in sorted(path.rglob("*.parquet"), key=natural):
        match = _SHARD.match(file.stem)
        found.setdefault(match["split"] if match else file.stem, []).append(file)
    if not found:
        raise InputError(
            f"{path}: expected what save_to_disk wrote (state.json or dataset_dict.json), or "
            ".parquet files, found neither"
        )
    return found


def _shards(folder: Path) -> list[Path]:
    told = _told(folder / "state.json", "_data_files")
    names = [one.get("filename") for one in told if isinstance(one, dict)]
    found = [_inside(folder, str(name)) for name in names]
    for file in found:
        if not file.is_file():
            raise InputError(f"{file}: does not exist, and {folder / 'state.json'} names it")
    if not found:
        raise InputError(f"{folder / 'state.json'}: expected names of files, found none")
    return found


def _inside(folder: Path, name: str) -> Path:
    """A file or folder right in ``folder``: names in data must lead nowhere else."""
    if Path(name).name != name or name in ("", ".", ".."):
        raise InputError(f"{folder}: expected names right in that folder, got {name!r:.80}")
    return folder / name


def _told(file: Path, field: str) -> list[Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))[field]
    except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: expected JSON with {field!r}: {one_line(error)}") from None
    if not isinstance(found, list):
        raise InputError(f"{file}: expected a list under {field!r}, got {type(found).__name__}")
    return found


def _several(cells: pd.Series, names: Sequence[str]) -> pd.DataFrame:
    """n x C of images that have several classes each: the others they lack."""
    held = [set() if cell is None else set(cell) for cell in cells]
    classes: list[Any] = [*range(len(names))] if names else sorted(set[Any]().union(*held))
    table = {(names[c] if names else str(c)): [int(c in of) for of in held] for c in classes}
    return pd.DataFrame(table)


def _masks(
    images: Images, column: str, values: Mapping[str, int] | None
) -> dict[str, list[Callable[[], Mask] | None]]:
    """Concept -> a mask per row, None where nothing is inside; every one is decoded once."""
    wanted: Mapping[str, int | None] = {column: None} if values is None else values
    found: dict[str, list[Callable[[], Mask] | None]] = {concept: [] for concept in wanted}
    for index, image in enumerate(images):
        for concept, value in wanted.items():
            inside = image > MASK_THRESHOLD if value is None else image[..., 0] == value
            found[concept].append(partial(images.mask, index, value) if inside.any() else None)
    return found


def _worded(
    rows: Rows,
    images: Images,
    ids: Sequence[str],
    question: str,
    answer: str | None,
    metadata: pd.DataFrame | None,
) -> WordedDataset:
    if answer is None:
        raise InputError(
            f"{rows.where}: expected answer_column beside question_column, got none of {rows.names}"
        )
    table = rows.columns([question, answer])
    right = [_accepted(cell) for cell in table[answer]]
    truths = np.array([[1 if texts else UNKNOWN] for texts in right], np.int8)
    return WordedDataset(
        images,
        truths,
        ids,
        (QUESTION,),
        asks=[{QUESTION: Ask(str(text))} for text in table[question]],
        answers=[{QUESTION: texts} for texts in right],
        metadata=metadata,
        name=rows.name,
    )


def _accepted(cell: Any) -> tuple[str, ...]:
    """The texts that are right, each once; none where no answer is told."""
    several = cell if isinstance(cell, list | tuple | np.ndarray) else [cell]
    texts = [one.get("answer") if isinstance(one, dict) else one for one in several]
    return tuple(dict.fromkeys(str(text) for text in texts if text is not None and text == text))
