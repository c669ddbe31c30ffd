"""Datasets from a table of binary labels, with or without images.

``as_labels`` makes a table with one column per concept of labels in other forms. A
``WordedDataset`` is asked about in words.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, replace
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
from .base import HeldTruths, finite_rows
from .scanning import NAMES, by_number, image_files

Labels = pd.DataFrame | pd.Series | npt.NDArray[Any] | Sequence[Any]
"""n x C of 0, 1 or NaN, or n class names; see ``as_labels``."""
_WHOLE = re.compile(r"^([+-]?\d+)\.0*$")


def as_labels(labels: Labels, images: Any = None) -> pd.DataFrame:
    """Return labels as a table n x C, indexed by sample id, with a column per concept.

    Args:
        labels: A DataFrame, which is returned unchanged; an array n x C, whose concepts are "0",
            "1" ...; or n cells. Cells that are all 0, 1 or NaN are one concept (named as the
            Series, else "label"). Other cells name classes, and each class is a column.
        images: n images. Labels without an index get the names of their files as ids, or "0", "1"
            ... if images are no files.

    Raises:
        InputError: Labels have another number of dimensions, or are a path.
    """
    if isinstance(labels, pd.DataFrame):
        return labels
    if isinstance(labels, str | Path):
        path = repr(str(labels))
        remedy = f"read_table({path}, IMAGES) reads labels and a folder of images, as_dataset("
        raise unexpected("labels", "a table", f"the path {path}", f"{remedy}FOLDER) a folder")
    cells = np.asarray(labels)
    if cells.ndim == 2:
        table = pd.DataFrame(cells, columns=[str(k) for k in range(cells.shape[1])])
    elif cells.ndim != 1:
        expected = "a table n x C of 0, 1 or NaN (images x concepts), or n classes"
        raise unexpected("labels", expected, f"shape {cells.shape}")
    else:
        column = pd.Series(cells)
        numbers = pd.to_numeric(column, errors="coerce")
        if bool(((numbers.isna() & column.isna()) | numbers.isin((0, 1))).all()):
            table = pd.DataFrame({str(getattr(labels, "name", None) or "label"): numbers})
        else:
            table = one_per_class(column)
    if isinstance(labels, pd.Series) and not isinstance(labels.index, pd.RangeIndex):
        return table.set_axis(labels.index, axis=0)
    ids = image_ids(images)
    return table if ids is None or len(ids) != len(table) else table.set_axis(ids, axis=0)


def image_ids(images: Any) -> list[str] | None:
    """Return the names of image files, with their folders if two are alike; None if not files."""
    if not isinstance(images, Sequence) or not all(isinstance(i, str | Path) for i in images):
        return None
    names = [Path(image).name for image in images]
    return names if len(set(names)) == len(names) else [str(image) for image in images]


def one_per_class(classes: pd.Series) -> pd.DataFrame:
    """Return n x C of 0 and 1 from the class of each sample; a row without a class is unknown.

    Columns are in the order of ``by_number``. Whole numbers lose their decimals: "3.0" is 3. Bars,
    semicolons or commas separate several classes, where one of them is a cell in another row.
    """
    named = classes.map(class_name, na_action="ignore")
    known = {*named.dropna()}
    for mark in "|;,":
        parts = {p.strip() for name in known if mark in name for p in name.split(mark)}
        if parts & known:
            parted = named.str.replace(rf"\s*\{mark}\s*", mark, regex=True)
            return parted.str.get_dummies(mark).astype(float).where(named.notna())
    names = sorted(named.dropna().unique().tolist(), key=by_number)
    table = {name: (named == name).astype(float).where(named.notna()) for name in names}
    return pd.DataFrame(table, index=classes.index)


def class_name(cell: Any) -> str:
    """Return the name of a class; a table may hold the class 3 as 3, "3", 3.0 or "3.0"."""
    return _WHOLE.sub(r"\1", str(cell).strip())


@dataclass(frozen=True)
class Cells:
    """The n cells of a column: truths 1, 0 or NaN (unknown); ``odd``: which are no labels."""

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

    -1 is uncertain in a column with 0 and 1, as chest X-rays have it. In a column with 1 alone it
    may mean No, and is no label.
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
    """Images whose size is known without decoding them."""

    def pixels(self, index: int) -> float:
        """Return the number of pixels of an image, NaN if its header cannot be read."""


WORDS = {**dict.fromkeys(NAMES["yes"], 1), **dict.fromkeys(NAMES["no"], 0)}
"""Words that may stand for labels, in letters of any size."""
ImageSource = Sequence[Any] | npt.NDArray[Any] | None
MaskSource = Mapping[str, Sequence[Any]]


@dataclass(repr=False, eq=False)
class TableDataset(HeldTruths):
    """A dataset whose truths are in memory, one byte each; images are decoded when asked for.

    Args:
        images: n images, as ``from_table`` takes them; None if answers are recorded.
        truths: 0, 1 or UNKNOWN (n x C).
        ids: Sample ids (n).
        concepts: Names of the concepts (C).
        features: Numbers by which samples are alike (n x d).
        metadata: Values of any kind (n rows).
        masks: n sources by concept, as ``from_table`` takes them.
        ignored: n sources of the masks of pixels that no score counts.
        boxes: The boxes of each of n samples; see ``Sample``.
        sizes: n pairs (height, width) that the images must have, as boxes are for that size.
            Decoding an image of another size raises InputError.
        skipped: Names of the files that were left out when the dataset was made.
        name: What the dataset is called.
    """

    images: ImageSource | Rows
    truths: Truths
    ids: Sequence[str]
    concepts: tuple[str, ...]
    _: KW_ONLY
    features: Floats | None = None
    metadata: pd.DataFrame | None = None
    masks: MaskSource | None = None
    ignored: Sequence[Any] | None = None
    boxes: Sequence[Sequence[Box]] | None = None
    sizes: Sequence[tuple[int, int]] | None = None
    skipped: Sequence[str] = ()
    name: str = "table"

    def __post_init__(self) -> None:
        super().__init__(self.truths)
        self.concepts, self.skipped = tuple(self.concepts), tuple(self.skipped)
        if self.boxes is not None:
            self.boxes = tuple(map(tuple, self.boxes))
            self.most_boxes = max(map(len, self.boxes), default=0)
        if self.metadata is not None:
            self.metadata_columns = tuple(map(str, self.metadata.columns))
        self._pixels: dict[int, float] = {}  # of images that were measured

    @property
    def has_images(self) -> bool:
        return self.images is not None

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=12)
        digest.update(repr((self.concepts, [*self.ids])).encode())
        digest.update(np.ascontiguousarray(self.truths).tobytes())
        for concept, masks in (self.masks or {}).items():
            digest.update(repr((concept, [mask is not None for mask in masks])).encode())
        if self.boxes is not None:
            digest = hashlib.blake2b(digest.hexdigest().encode(), digest_size=12)
            for boxes in self.boxes:
                digest.update(repr(boxes).encode())
        return digest.hexdigest()

    def sample(self, index: int) -> Sample:
        row, id = self.truths[index].tolist(), self.ids[index]
        truth = {c: v for c, v in zip(self.concepts, row, strict=True) if v != UNKNOWN}
        metadata = {name: values[index] for name, values in self._columns.items()}
        image = self._image(index, f"sample {id!r}")
        sources = {c: m[index] for c, m in (self.masks or {}).items() if m[index] is not None}
        ignored = None if self.ignored is None else self.ignored[index]
        masks: Mapping[str, Mask] = {}
        if sources or ignored is not None:
            size = None if image is None else image.shape[:2]
            masks = LazyMasks(sources, size, f"sample {id!r}", ignored)
        boxes = () if self.boxes is None else tuple(self.boxes[index])
        return Sample(id, image, truth, metadata, masks, boxes=boxes)

    def sample_id(self, index: int) -> str:
        return self.ids[index]

    def asks(self, index: int) -> Mapping[str, Ask]:
        return {}

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        return {}

    @cached_property
    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the metadata by name: numbers unchanged, all else as objects.

        Each rendered image reads a row, which takes pandas as long as rendering a small image.
        """
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, cells in ({} if self.metadata is None else self.metadata).items():
            number = isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "biuf"
            columns[str(name)] = cells.to_numpy(None if number else object)
        return columns

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        if self.metadata is None or not self.metadata_columns:
            raise InputError(
                f"dataset {self.name!r}: unknown metadata column {column!r}: none is declared; "
                f'metadata = ["{column}"] in [dataset] (in Python metadata=) declares it'
            )
        check_known("metadata column", column, self.metadata_columns, f"dataset {self.name!r}")
        return self.metadata[column].to_numpy(dtype=object)

    def pixels(self, samples: Indices) -> Floats:
        if self.images is None:
            return np.full(len(samples), np.nan)
        for index in set(samples.tolist()) - self._pixels.keys():
            size, measured = np.nan, isinstance(self.images, Measured)
            source = None if measured else self.images[index]
            if isinstance(self.images, Measured):
                size = self.images.pixels(index)
            elif isinstance(source, str | Path):
                size = pixels_declared(as_path(source))
            elif isinstance(source, np.ndarray):
                size = float(np.prod(source.shape[:2]))
            self._pixels[index] = size
        return np.array([self._pixels[index] for index in samples.tolist()])

    def _image(self, index: int, where: str) -> Image | None:
        if self.images is None:
            return None
        source = self.images[index]
        try:
            is_file = isinstance(source, str | Path)
            image = read_image(as_path(source), where) if is_file else as_image(source, where)
        except InputError as error:
            remedy = "; broken = 'skip' in [dataset] leaves out files that cannot be read"
            raise InputError(f"{error}{remedy * is_file}") from None
        if self.sizes is not None and image.shape[:2] != self.sizes[index]:
            expected = "an image of {} x {} (height x width) as annotated"
            got = "{} x {}".format(*image.shape)
            raise unexpected(where, expected.format(*self.sizes[index]), got)
        return image


class LazyMasks(Mapping[str, Mask]):
    """A sample's masks, H x W each, decoded when asked for.

    Args:
        sources: What each mask is decoded from, by concept.
        size: (height, width) that masks must have; None for any. A mask of another size raises
            InputError when it is decoded.
        where: Name of the sample for messages.
        ignored: Source of the mask of the pixels that no score counts. None: all pixels count.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        size: tuple[int, ...] | None,
        where: str,
        ignored: Any = None,
    ) -> None:
        self._sources, self._size, self._where, self._ignored = sources, size, where, ignored
        self._decoded: dict[str, Mask] = {}

    def __getitem__(self, concept: str) -> Mask:
        if concept not in self._decoded:
            self._decoded[concept] = self._mask(self._sources[concept], f"mask of {concept!r}")
        return self._decoded[concept]

    @cached_property
    def ignored(self) -> Mask | None:
        """The pixels that no score counts, H x W; None if all count."""
        return None if self._ignored is None else self._mask(self._ignored, "pixels to ignore")

    def _mask(self, source: Any, what: str) -> Mask:
        where, source = f"{self._where}, {what}", source() if callable(source) else source
        is_file = isinstance(source, str | Path)
        mask = read_mask(as_path(source), where) if is_file else as_mask(source, where)
        if self._size is not None:
            same_size(mask.shape, self._size, where)
        return mask

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


def same_size(mask: Sequence[int], image: Sequence[int], where: str) -> None:
    """Raise InputError if the two (height, width) differ."""
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
            or None if answers are recorded.
        labels: 0, 1 or NaN for unknown (n x C), indexed by sample id, with a column per concept; or
            an array, or n classes, see ``as_labels``.
        features: Numbers by which samples are alike (n x d).
        metadata: Values of any kind (n rows).
        masks: By concept, n arrays (H x W, bool, or uint8 of two values far apart), paths, or
            functions that make an array; None for a sample without a mask.
        ignored: n masks of the pixels that no score counts, in one of these forms.
        skipped: Names of the files that were left out when the dataset was made.
        name: What the dataset is called.

    Returns:
        The dataset of n samples and C concepts.

    Raises:
        InputError: A label is not 0, 1 or unknown, an id or a column repeats, parts differ in
            length, masks are of no concept, or a file does not exist.
    """
    if isinstance(images, str | Path):
        images = image_files(Path(images))
    labels = as_labels(labels, images)
    if 0 in labels.shape:
        got = "{} x {}".format(*labels.shape)
        remedy = "a row is a sample, a column of 0 and 1 a concept"
        raise unexpected("labels", "at least one sample and one concept", got, remedy)
    ids, concepts = [str(i) for i in labels.index], tuple(map(str, labels.columns))
    check_unique(ids, "sample id", "labels")
    check_unique(concepts, "concept", "labels")
    table = None if features is None else finite_rows(features, len(ids), "features")
    parts: dict[str, Any] = {"images": images, "metadata": metadata}
    for concept, sources in (masks or {}).items():
        check_known("concept", concept, concepts, "masks")
        parts[f"masks of {concept!r}"] = sources
    for part, rows in parts.items():
        if isinstance(rows, Sized) and len(rows) != len(ids):
            raise unexpected(part, f"{len(ids)} (one per row of labels)", len(rows))
    for kind, files in (("image", images), *(("mask", m) for m in (masks or {}).values())):
        if files is not None and not isinstance(files, np.ndarray):
            _check_files(kind, files, ids)
    more: dict[str, Any] = {"features": table, "metadata": metadata, "masks": masks}
    more |= {"ignored": ignored, "skipped": skipped, "name": name}
    return TableDataset(images, _truths(labels, ids, concepts), ids, concepts, **more)


def _check_files(kind: str, sources: Sequence[Any], ids: Sequence[str]) -> None:
    for id, source in zip(ids, sources, strict=True):
        if not isinstance(source, str | Path | None):
            return
        if source is not None and not os.path.isfile(source):
            raise InputError(f"sample {id!r}: {kind} file {str(source)!r} does not exist")


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


def check_unique(names: Sequence[str], what: str, where: str) -> None:
    """Raise InputError if a name stands twice."""
    again = np.flatnonzero(pd.Index(names).duplicated())
    if len(again):
        name, place = names[again[0]], again[0]
        remedy = "each is to be another"
        raise InputError(
            f"{where}: {what} {name!r} stands twice, again at position {place}; {remedy}"
        )


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
        # a guess among k options is wrong in 1 - 1 / k
        self.guessing = self._measured(0.5, lambda ask: 1 - 1 / (len(ask.options) or 2))

    @cached_property
    def _lengths(self) -> Floats:
        """Return n x C: characters of the words of each question, and of its options."""
        return self._measured(0, lambda ask: len(ask.text) + sum(map(len, ask.options)))

    def _measured(self, without: float, measure: Callable[[Ask], float]) -> Floats:
        """Return ``measure`` of each question, n x C, and ``without`` where there is none."""
        values = np.full((len(self), len(self.concepts)), without, float)
        for row, asks in enumerate(self._asks):
            for concept, ask in asks.items():
                values[row, self.concepts.index(concept)] = measure(ask)
        return values

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self._lengths[samples, concepts]

    @property
    def fingerprint(self) -> str:
        """Return a hash that covers the words of the questions, too: other words, another audit."""
        content = repr((super().fingerprint, self._asks, self._answers))
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()

    def asks(self, index: int) -> Mapping[str, Ask]:
        return self._asks[index]

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        return self._answers[index]

    def sample(self, index: int) -> Sample:
        return replace(super().sample(index), asks=self._asks[index], answers=self._answers[index])
