"""Datasets from a table of binary labels and, where there are any, images.

Labels may be at hand in many forms, of which ``as_labels`` makes a table with one column per
concept. A ``WordedDataset`` is asked about in words.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import InputError, check_known, some, unexpected
from ..types import UNKNOWN, Ask, Box, Floats, Image, Indices, Mask, Sample, Truths
from ..utils.files import as_path
from ..utils.image_files import as_image, pixels_declared, read_image
from ..utils.mask_values import as_mask, read_mask
from .base import HeldTruths
from .scanning import NAMES, image_files

Labels = pd.DataFrame | pd.Series | npt.NDArray[Any] | Sequence[Any]
"""n x C of 0, 1 or NaN, or n class names; see ``as_labels``."""
_WHOLE = re.compile(r"^([+-]?\d+)\.0*$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ONE = "label"
"""The concept of labels without a name that are 0 or 1."""


def as_labels(labels: Labels, images: Any = None) -> pd.DataFrame:
    """n x C, indexed by sample id, a column per concept.

    A DataFrame is that already, and keeps its index. An array n x C gets the concepts "0", "1" ...
    A column of n cells is one concept where all are 0, 1 or NaN (named as the Series, else
    "label"), otherwise the class of each sample, and a column per class comes of it. Where labels
    have no index, samples are called as their ``images``, if those are files, else "0", "1" ...

    Raises:
        InputError: for another number of dimensions, and for a path.
    """
    if isinstance(labels, pd.DataFrame):
        return labels
    if isinstance(labels, str | Path):
        path = repr(str(labels))
        remedy = f"read_table({path}, IMAGES) reads a file of labels beside a folder of images, "
        remedy += "and as_dataset(FOLDER) the folder that holds both"
        raise unexpected("labels", "a table", f"the path {path}", remedy)
    table = _table(labels)
    if isinstance(labels, pd.Series) and not isinstance(labels.index, pd.RangeIndex):
        return table.set_axis(labels.index, axis=0)
    ids = image_ids(images)
    return table if ids is None or len(ids) != len(table) else table.set_axis(ids, axis=0)


def image_ids(images: Any) -> list[str] | None:
    """Return the names of image files, if images are files that all have another; else None."""
    if not isinstance(images, Sequence) or not all(isinstance(i, str | Path) for i in images):
        return None
    names = [Path(image).name for image in images]
    return names if len(set(names)) == len(names) else [str(image) for image in images]


def one_per_class(classes: pd.Series) -> pd.DataFrame:
    """Return n x C of 0 and 1 from the class of each sample; a row without a class is unknown.

    Columns are in the order of ``by_number``. Whole numbers lose their decimals: "3.0" is 3. A
    cell names several classes where bars, semicolons or commas part it, and one of its parts is
    the whole of another cell.
    """
    named = classes.map(class_name, na_action="ignore")
    if mark := _parting(named):
        parted = named.str.replace(rf"\s*\{mark}\s*", mark, regex=True)
        return parted.str.get_dummies(mark).astype(float).where(named.notna())
    names = sorted(named.dropna().unique().tolist(), key=by_number)
    table = {name: (named == name).astype(float).where(named.notna()) for name in names}
    return pd.DataFrame(table, index=classes.index)


def _parting(names: "pd.Series[str]") -> str:
    """Return the mark that parts several classes in one cell, "" where each names one."""
    known = {*names.dropna()}
    for mark in "|;,":
        joint = [name.split(mark) for name in known if mark in name]
        if any(part.strip() in known for parts in joint for part in parts):
            return mark
    return ""


def class_name(cell: Any) -> str:
    """Return the name of a class; a table may hold the class 3 as 3, "3", 3.0 or "3.0"."""
    return _WHOLE.sub(r"\1", str(cell).strip())


def by_number(name: str) -> tuple[Any, ...]:
    """Return a key that sorts names as text, but the numbers in them as numbers: 2 before 10."""
    if _NUMBER.fullmatch(name):
        return (0, float(name), name)
    parts = re.split(r"(\d+)", name)
    return (1, [(int(p), p) if i % 2 else (p,) for i, p in enumerate(parts)], name)


def _table(labels: pd.Series | npt.NDArray[Any] | Sequence[Any]) -> pd.DataFrame:
    name = labels.name if isinstance(labels, pd.Series) else None
    cells = np.asarray(labels)
    if cells.ndim == 2:
        return pd.DataFrame(cells, columns=[str(k) for k in range(cells.shape[1])])
    if cells.ndim != 1:
        expected = "a table n x C of 0, 1 or NaN (images x concepts), or n classes"
        raise unexpected("labels", expected, f"shape {cells.shape}")
    column = pd.Series(cells)
    numbers = pd.to_numeric(column, errors="coerce")
    if bool(((numbers.isna() & column.isna()) | numbers.isin((0, 1))).all()):
        return pd.DataFrame({str(name or ONE): numbers})
    return one_per_class(column)


@dataclass(frozen=True)
class Cells:
    """What the n cells of a column say: 1, 0 or NaN (unknown) each, and which are no labels."""

    texts: pd.Series
    truths: pd.Series
    odd: pd.Series

    @property
    def remark(self) -> str:
        """Return how cells other than 0 and 1 were read, with their counts; "" for none."""
        parts = []
        kinds = self.truths.map({1: "yes", 0: "no"}).fillna("unknown")[~self.odd]
        for word in ("yes", "no", "unknown"):
            counts = self.texts[kinds.index][kinds == word].value_counts()
            counts = counts.drop(["0", "1", "0.0", "1.0", "nan"], errors="ignore")
            if len(counts):
                read = some([f"{t or 'empty'!r} ({n:,})" for t, n in counts.items()], 4)
                parts.append(f"{read} as {word}")
        return f"read {'; '.join(parts)}" if parts else ""


def label_cells(cells: pd.Series) -> Cells:
    """Read a column of labels: numbers, words in letters of any size, or nothing.

    -1 is uncertain beside 0 and 1, as chest X-rays have it. Beside 1 alone it may mean No: it is
    no label there.
    """
    texts = cells.astype(str).str.strip()
    words = texts.str.casefold().str.replace(r"^(-?\d),(0+)$", r"\1.\2", regex=True)  # 1,0 is 1
    numbers = pd.to_numeric(words, errors="coerce")
    truths = numbers.where(numbers.isin((0, 1))).fillna(words.map(WORDS)).astype(float)
    missing = cells.isna() | words.isin(NAMES["missing"])
    if (truths == 0).any():
        missing |= numbers == -1
    return Cells(texts, truths, truths.isna() & ~missing)


class Rows(Protocol):
    """Images that are fetched one by one."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


@runtime_checkable
class Measured(Protocol):
    """Images that tell their size without being decoded."""

    def pixels(self, index: int) -> float:
        """Of one image; NaN where that cannot be told."""


WORDS = {**dict.fromkeys(NAMES["yes"], 1), **dict.fromkeys(NAMES["no"], 0)}
"""Words that may stand for labels, in letters of any size."""
LEAVE_OUT = "broken = 'skip' in [dataset] leaves out files that cannot be read"
ImageSource = Sequence[Any] | npt.NDArray[Any] | None
MaskSource = Mapping[str, Sequence[Any]]


class TableDataset(HeldTruths):
    """n samples x C concepts held in memory as one byte each; images decoded when asked for.

    Args:
        images: n images, as ``from_table`` takes them; None where answers are recorded.
        truths: n x C of 0, 1 or UNKNOWN.
        ids: n sample ids.
        concepts: C names.
        features: n x d floats that make samples alike.
        metadata: n rows of anything.
        masks: n sources by concept, as ``from_table`` takes them.
        ignored: n sources of pixels that nobody is to judge.
        boxes: those of each of n samples; see ``Sample``.
        sizes: n pairs (height, width) that the images must have; an image that has another raises
            InputError when it is decoded, for its boxes would be elsewhere.
        skipped: names of the files that were left out when the dataset was made.
        name: what the dataset is called.
    """

    def __init__(
        self,
        images: ImageSource | Rows,
        truths: Truths,
        ids: Sequence[str],
        concepts: Sequence[str],
        *,
        features: Floats | None = None,
        metadata: pd.DataFrame | None = None,
        masks: MaskSource | None = None,
        ignored: Sequence[Any] | None = None,
        boxes: Sequence[Sequence[Box]] | None = None,
        sizes: Sequence[tuple[int, int]] | None = None,
        skipped: Sequence[str] = (),
        name: str = "table",
    ) -> None:
        super().__init__(truths)
        self.name = name
        self.concepts = tuple(concepts)
        self.features = features
        self.metadata = metadata
        self.skipped = tuple(skipped)
        self._images = images
        self._masks = dict(masks or {})
        self._ignored = ignored
        self._boxes = None if boxes is None else tuple(map(tuple, boxes))
        self._sizes = sizes
        self._ids = list(ids)
        self._pixels: dict[int, float] = {}  # of images that were measured

    @property
    def has_images(self) -> bool:
        return self._images is not None

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=12)
        digest.update(repr((self.concepts, self._ids)).encode())
        digest.update(np.ascontiguousarray(self._truths).tobytes())
        for concept, masks in self._masks.items():
            digest.update(repr((concept, [mask is not None for mask in masks])).encode())
        if self._boxes is not None:
            digest = hashlib.blake2b(digest.hexdigest().encode(), digest_size=12)
            for boxes in self._boxes:
                digest.update(repr(boxes).encode())
        return digest.hexdigest()

    @cached_property
    def most_boxes(self) -> int | None:
        return None if self._boxes is None else max(map(len, self._boxes), default=0)

    def sample(self, index: int) -> Sample:
        row = self._truths[index].tolist()
        truth = {c: v for c, v in zip(self.concepts, row, strict=True) if v != UNKNOWN}
        metadata = {name: values[index] for name, values in self._columns.items()}
        image = self._image(index)
        masks: Mapping[str, Mask] = {}
        sources = {c: m[index] for c, m in self._masks.items() if m[index] is not None}
        ignored = None if self._ignored is None else self._ignored[index]
        if sources or ignored is not None:
            masks = LazyMasks(sources, image, f"sample {self._ids[index]!r}", ignored)
        boxes = self._boxes[index] if self._boxes is not None else ()
        return Sample(self._ids[index], image, truth, metadata, masks, boxes=boxes)

    def sample_id(self, index: int) -> str:
        return self._ids[index]

    def asks(self, index: int) -> Mapping[str, Ask]:
        return {}

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        return {}

    @cached_property
    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """Metadata by name: numbers as they are, all else as objects. Every rendered image reads a
        row, and pandas takes as long to find one as a small image takes to render."""
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, cells in ({} if self.metadata is None else self.metadata).items():
            number = isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "biuf"
            columns[str(name)] = cells.to_numpy(None if number else object)
        return columns

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        return () if self.metadata is None else tuple(map(str, self.metadata.columns))

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        if self.metadata is None or not self.metadata_columns:
            raise InputError(
                f"dataset {self.name!r}: unknown metadata column {column!r}: none is declared; "
                f'metadata = ["{column}"] in [dataset] (in Python metadata=) declares it'
            )
        check_known("metadata column", column, self.metadata_columns, f"dataset {self.name!r}")
        return self.metadata[column].to_numpy(dtype=object)

    def pixels(self, samples: Indices) -> Floats:
        if self._images is None:
            return np.full(len(samples), np.nan)
        for index in set(samples.tolist()) - self._pixels.keys():
            if isinstance(self._images, Measured):
                self._pixels[index] = self._images.pixels(index)
                continue
            source, size = self._images[index], np.nan
            if isinstance(source, str | Path):
                size = pixels_declared(as_path(source))
            elif isinstance(source, np.ndarray):
                size = float(np.prod(source.shape[:2]))
            self._pixels[index] = size
        return np.array([self._pixels[index] for index in samples.tolist()])

    def _image(self, index: int) -> Image | None:
        if self._images is None:
            return None
        source = self._images[index]
        where = f"sample {self._ids[index]!r}"
        if isinstance(source, str | Path):
            try:
                image = read_image(as_path(source), where)
            except InputError as error:
                raise InputError(f"{error}; {LEAVE_OUT}") from None
        else:
            image = as_image(source, where)
        if self._sizes is not None and image.shape[:2] != self._sizes[index]:
            expected = "an image of {} x {} (height x width) as annotated"
            got = "{} x {}".format(*image.shape)
            raise unexpected(where, expected.format(*self._sizes[index]), got)
        return image


class LazyMasks(Mapping[str, Mask]):
    """A sample's masks, H x W each, decoded when asked for.

    Raises InputError for a mask that is not of the image's size.
    """

    def __init__(
        self, sources: Mapping[str, Any], image: Image | None, where: str, ignored: Any = None
    ) -> None:
        self._sources, self._ignored = sources, ignored
        self._shape = None if image is None else image.shape[:2]
        self._where = where
        self._decoded: dict[str, Mask] = {}

    def __getitem__(self, concept: str) -> Mask:
        if concept not in self._decoded:
            where = f"{self._where}, mask of {concept!r}"
            self._decoded[concept] = self._mask(self._sources[concept], where)
        return self._decoded[concept]

    @cached_property
    def ignored(self) -> Mask | None:
        """The pixels that nobody is to judge, H x W; None where all are judged."""
        if self._ignored is None:
            return None
        return self._mask(self._ignored, f"{self._where}, pixels to ignore")

    def _mask(self, source: Any, where: str) -> Mask:
        source = source() if callable(source) else source
        if isinstance(source, str | Path):
            mask = read_mask(as_path(source), where)
        else:
            mask = as_mask(source, where)
        if self._shape is not None:
            same_size(mask.shape, self._shape, where)
        return mask

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def same_size(mask: Sequence[int], image: Sequence[int], where: str) -> None:
    """Raise InputError where the two (height, width) differ."""
    if tuple(mask) != tuple(image):
        expected = f"a mask as large as its image, {image[0]} x {image[1]} (height x width)"
        raise unexpected(where, expected, f"{mask[0]} x {mask[1]}")


def from_table(
    images: ImageSource | Path | str,
    labels: Labels,
    *,
    features: npt.ArrayLike | None = None,
    metadata: pd.DataFrame | None = None,
    masks: MaskSource | None = None,
    ignored: Sequence[Any] | None = None,
    skipped: Sequence[str] = (),
    name: str = "table",
) -> TableDataset:
    """Make a dataset of images and a table of labels.

    Args:
        images: n arrays (H x W or H x W x C, uint8), n paths, n PIL images, a folder of n images,
            or None where answers are recorded.
        labels: n x C, indexed by sample id, one column per concept, 0, 1 or NaN (unknown); or an
            array, or n classes, see ``as_labels``.
        features: n x d floats.
        metadata: n rows of anything.
        masks: for concepts that have some, n arrays (H x W, bool, or uint8 of two values far
            apart), paths, functions that make an array, or None where the sample has none.
        ignored: the same per sample, of pixels that nobody is to judge.
        skipped: names of files left out, for the record.
        name: what the dataset is called.

    Raises:
        InputError: for a label outside {0, 1, unknown}, ids that repeat, columns that repeat, parts
            of different length, masks of no concept, and files that do not exist.
    """
    if isinstance(images, str | Path):
        images = image_files(Path(images))
    labels = as_labels(labels, images)
    if 0 in labels.shape:
        got = "{} x {}".format(*labels.shape)
        remedy = "a row is a sample, a column of 0 and 1 a concept"
        raise unexpected("labels", "at least one sample and one concept", got, remedy)
    ids = [str(i) for i in labels.index]
    concepts = [str(c) for c in labels.columns]
    check_unique(ids, "sample id", "labels")
    check_unique(concepts, "concept", "labels")
    parts = {"images": images, "features": features, "metadata": metadata}
    for concept, sources in (masks or {}).items():
        check_known("concept", concept, concepts, "masks")
        parts[f"masks of {concept!r}"] = sources
    for part, rows in parts.items():
        if isinstance(rows, Sized) and len(rows) != len(ids):
            raise unexpected(part, f"{len(ids)} (one per row of labels)", len(rows))
    for kind, files in (("image", images), *(("mask", m) for m in (masks or {}).values())):
        _files_exist(kind, () if files is None else files, ids)
    return TableDataset(
        images,
        _truths(labels, ids, concepts),
        ids,
        concepts,
        features=None if features is None else _features(features),
        metadata=metadata,
        masks=masks,
        ignored=ignored,
        skipped=skipped,
        name=name,
    )


def _truths(labels: pd.DataFrame, ids: Sequence[str], concepts: Sequence[str]) -> Truths:
    try:
        values = labels.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        columns = [label_cells(labels.iloc[:, k]) for k in range(labels.shape[1])]
        values = np.column_stack([c.truths.mask(c.odd, np.inf) for c in columns])
    wrong = ~(np.isnan(values) | (values == 0) | (values == 1))
    if wrong.any():
        row, column = map(int, np.argwhere(wrong)[0])
        got = f"{labels.iat[row, column]!r} at sample {ids[row]!r}, concept {concepts[column]!r}"
        raise unexpected("labels", "0, 1 or empty (unknown)", got)
    return np.where(np.isnan(values), UNKNOWN, values).astype(np.int8)


def _features(features: npt.ArrayLike) -> Floats:
    table = np.asarray(features, dtype=float)
    if table.ndim != 2:
        raise unexpected("features", "a table n x d", f"shape {table.shape}")
    if not np.isfinite(table).all():
        row = int(np.argwhere(~np.isfinite(table))[0, 0])
        raise unexpected("features", "finite numbers", f"NaN or infinity in row {row}")
    return table


def check_unique(names: Sequence[str], what: str, where: str) -> None:
    """Raise InputError where a name stands twice."""
    again = np.flatnonzero(pd.Index(names).duplicated())
    if len(again):
        raise InputError(
            f"{where}: {what} {names[again[0]]!r} stands twice, again at position {again[0]}; each "
            "is to be another"
        )


def _files_exist(kind: str, sources: Iterable[Any], ids: Sequence[str]) -> None:
    for sample, source in zip(ids, sources, strict=False):
        if isinstance(source, str | Path):
            if not os.path.isfile(source):
                raise InputError(f"sample {sample!r}: {kind} file {str(source)!r} does not exist")
        elif source is not None:
            return


Answers = Mapping[str, tuple[str, ...]]


class WordedDataset(TableDataset):
    """A ``TableDataset`` with n ``asks`` and ``answers``, by concept; see ``Sample``."""

    def __init__(
        self,
        *table: Any,
        asks: Sequence[Mapping[str, Ask]],
        answers: Sequence[Answers],
        **named: Any,
    ) -> None:
        super().__init__(*table, **named)
        self._asks, self._answers = tuple(asks), tuple(answers)

    @cached_property
    def guessing(self) -> Floats:
        """n x C: the error of who guesses among the options, 1 - 1 / their number; else 1/2."""
        errors = np.full((len(self), len(self.concepts)), 0.5)
        for row, column, ask in self._questions():
            if ask.options:
                errors[row, column] = 1 - 1 / len(ask.options)
        return errors

    @cached_property
    def _lengths(self) -> npt.NDArray[np.float32]:
        """n x C: characters of the words of each question, and of its options."""
        lengths = np.zeros((len(self), len(self.concepts)), np.float32)
        for row, column, ask in self._questions():
            lengths[row, column] = len(ask.text) + sum(map(len, ask.options))
        return lengths

    def _questions(self) -> Iterator[tuple[int, int, Ask]]:
        """Yield sample, concept and words of each question."""
        for row, asks in enumerate(self._asks):
            for concept, ask in asks.items():
                yield row, self.concepts.index(concept), ask

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self._lengths[samples, concepts].astype(float)

    @property
    def fingerprint(self) -> str:
        """A hash that covers the words of the questions too, so an audit with other words is
        another audit."""
        content = repr((super().fingerprint, self._asks, self._answers))
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()

    def asks(self, index: int) -> Mapping[str, Ask]:
        return self._asks[index]

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        return self._answers[index]

    def sample(self, index: int) -> Sample:
        return replace(super().sample(index), asks=self._asks[index], answers=self._answers[index])
