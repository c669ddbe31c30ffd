"""Datasets from a table of binary labels, with or without images.

``as_labels`` turns labels in other forms into a table with one column per concept. A
``WordedDataset`` has questions in words, too.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import InputError, check_known, listed, unexpected
from ..types import UNKNOWN, Ask, Box, Floats, Image, Indices, Mask, Sample, Truths
from ..utils.files import as_path
from ..utils.image_files import as_image, pixels_declared, read_image
from ..utils.mask_values import as_mask, read_mask
from .base import HeldTruths, finite_rows
from .columns import label_cells, one_per_class, sorted_columns
from .pairing import Pairing, check_unique, is_numbers, paired
from .scanning import image_files

Labels = pd.DataFrame | pd.Series | npt.NDArray[Any] | Sequence[Any]
"""Labels, n x C of 0, 1 or NaN, or n names of classes; see ``as_labels``."""
Metadata = Sequence[str] | pd.DataFrame | pd.Series | Mapping[str, Any]
"""Names of columns of the table of labels, or a row, or a cell of each column, per image."""


def as_labels(labels: Labels) -> pd.DataFrame:
    """Return labels as a table n x C with a column per concept, and the index of a Series.

    Args:
        labels: A DataFrame, which is returned unchanged; an array n x C, whose concepts are "0",
            "1" ...; or n cells. Cells that are all 0, 1 or NaN are one concept, with the name of
            the Series, else "label". Other cells name classes, and each class becomes a column.

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
        return pd.DataFrame(cells).rename(columns=str)
    if cells.ndim != 1:
        expected = "a table n x C of 0, 1 or NaN (images x concepts), or n classes"
        raise unexpected("labels", expected, f"shape {cells.shape}")
    column = pd.Series(cells, labels.index if isinstance(labels, pd.Series) else None)
    numbers = pd.to_numeric(column, errors="coerce")
    if bool(((numbers.isna() & column.isna()) | numbers.isin((0, 1))).all()):
        return pd.DataFrame({str(getattr(labels, "name", None) or "label"): numbers})
    return one_per_class(column)


def image_ids(images: Any) -> list[str] | None:
    """Return the names of image files, with their folders if two names are equal.

    The result is None if the images are no files.
    """
    files = _file_names(images)
    names = [Path(file).name for file in files or ()]
    return names if files and len(set(names)) == len(names) else files


def _file_names(images: Any) -> list[str] | None:
    """Return the paths of images as texts, None if the images are no files."""
    rows = images if isinstance(images, Sequence | np.ndarray) else [None]
    named = all(isinstance(image, str | Path) for image in rows)
    return [str(image) for image in rows] if named else None


class Rows(Protocol):
    """Images that are read one by one."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


@runtime_checkable
class Measured(Protocol):
    """Images whose size is known without decoding them."""

    def pixels(self, index: int) -> float:
        """Return the number of pixels of an image, NaN if its header cannot be read."""


ImageSource = Sequence[Any] | npt.NDArray[Any] | None
MaskSource = Mapping[str, Sequence[Any]]


@dataclass(repr=False, eq=False)
class TableDataset(HeldTruths):
    """A dataset with truths in memory, one byte each, and images that are decoded on access.

    Args:
        images: n images, as ``from_table`` accepts them; None if answers are recorded.
        truths: n x C of 0, 1 or UNKNOWN.
        ids: n ids of samples.
        concepts: Names of the C concepts.
        features: Features by which samples are similar, n x d.
        metadata: n rows of any values.
        masks: Concept -> n sources of masks, as ``from_table`` accepts them.
        ignored: n sources of masks of the pixels that scores ignore.
        boxes: The boxes of each of n samples; see ``Sample``.
        sizes: n pairs (height, width) of the images for which boxes were annotated. Decoding an
            image of another size raises InputError.
        skipped: Names of the files that were left out when the dataset was made.
        name: Name of the dataset.
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
        self._pixels: dict[int, float] = {}  # by index, of images that were measured

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
        """Return the metadata by column: numbers unchanged, other values as objects.

        Each rendered image needs a row of it, and pandas takes as long to read a row as to render a
        small image.
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
            size = np.nan
            if isinstance(self.images, Measured):
                size = self.images.pixels(index)
            elif isinstance(source := self.images[index], str | Path):
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
    """The masks of a sample, H x W each, which are decoded on access.

    Args:
        sources: Concept -> source of the mask: a file, an array, or a function that returns one.
        size: Required (height, width); None: any. A mask of another size raises InputError when it
            is decoded.
        where: Name of the sample, for errors.
        ignored: Source of the mask of the pixels that scores ignore. Default None: none.
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
        """The pixels that scores ignore, H x W; None if all count."""
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
    """Raise InputError unless the (height, width) of a mask are those of its image."""
    if tuple(mask) != tuple(image):
        expected = f"a mask as large as its image, {image[0]} x {image[1]} (height x width)"
        raise unexpected(where, expected, f"{mask[0]} x {mask[1]}")


def described(dataset: Any, metadata: Metadata | None, labels: Pairing | None = None) -> Any:
    """Add metadata to a dataset, and return it; columns replace others of their names.

    Args:
        dataset: A ``TableDataset``.
        metadata: A table, a column, or the cells of each column. They are joined by their index if
            it is that of the labels, else as labels are. None: no more.
        labels: How labels were paired with the images. Default None: they are named by their ids.

    Raises:
        InputError: The dataset or metadata are of another form, or ``paired`` refuses them.
    """
    if metadata is None:
        return dataset
    if isinstance(metadata, pd.Series):
        metadata = metadata.to_frame(metadata.name or "metadata")
    try:
        rows = pd.DataFrame(metadata).rename(columns=str)
    except (TypeError, ValueError):
        rows = pd.DataFrame()
    if rows.empty or not isinstance(dataset, TableDataset):
        expected = "a row per image, or names of columns of a table of labels"
        raise unexpected("metadata", expected, f"{type(metadata).__name__} for {dataset!r}")
    labels, own = labels or Pairing(pd.Index(dataset.ids)), Pairing(rows.index)
    same = rows.index.is_unique and {*rows.index} == {*labels.index}
    if not same or is_numbers(rows.index):  # numbers may count rows that have names, too
        plain = rows.reset_index(drop=True) if same else rows
        own = paired(plain, _file_names(dataset.images), "metadata")
    rows = labels.along(rows) if own.order is None else rows.take(own.order)
    rows = rows.drop(columns=[*own.columns])
    if len(rows) != len(dataset):
        raise unexpected("metadata", f"{len(dataset)} (one per row of labels)", len(rows))
    known = pd.DataFrame(index=range(len(rows))) if dataset.metadata is None else dataset.metadata
    known = known.drop(columns=rows.columns, errors="ignore").reset_index(drop=True)
    dataset.metadata = known.join(rows.reset_index(drop=True))
    dataset.metadata_columns = (*map(str, dataset.metadata),)
    return dataset


def from_table(
    images: ImageSource | Path | str,
    labels: Labels,
    *,
    concepts: Sequence[str] | None = None,
    features: npt.ArrayLike | None = None,
    metadata: Metadata | None = None,
    masks: MaskSource | None = None,
    ignored: Sequence[Any] | None = None,
    skipped: Sequence[str] = (),
    name: str = "table",
) -> TableDataset:
    """Make a dataset of images and a table of labels.

    Args:
        images: n arrays (H x W or H x W x C, uint8), n paths, n PIL images, a folder of n images,
            or None if answers are recorded.
        labels: A table with a row per image; or n x C of 0, 1 or NaN (unknown), or n classes, see
            ``as_labels``. If the index or a column names the image files, rows are joined by it.
            Else rows, and all other parts, are in the order of the images, and a text index names
            the samples.
        concepts: Columns of labels of the table. Default None: those of 0, 1 and empty cells, or
            the one that names classes, see ``sorted_columns``.
        features: Features by which samples are similar, n x d.
        metadata: Columns of the table that describe images, or n rows of any values, joined as
            labels are. Default None: all columns of the table that are no labels.
        masks: Concept -> n arrays (H x W, bool, or uint8 of two values far apart), paths, or
            functions that return an array; None for a sample without a mask.
        ignored: n masks of the pixels that scores ignore, in one of these forms.
        skipped: Names of the files that were left out when the dataset was made.
        name: Name of the dataset.

    Returns:
        The dataset of n samples and C concepts.

    Raises:
        InputError: A label is not 0, 1 or unknown, an id or a column repeats, parts differ in
            length, masks are of no concept, or a file does not exist. Names match some images only,
            or the index is numbers other than 0, 1 ... in order.
    """
    if isinstance(images, str | Path):
        images = image_files(Path(images))
    images = [*images] if isinstance(images, pd.Series) else images
    rows = as_labels(labels) if not isinstance(labels, pd.DataFrame | pd.Series) else labels
    named: Any = metadata if is_names(metadata) else None
    pairing = Pairing(rows.index) if images is None else paired(rows, _file_names(images))
    table, others, notes = pairing.along(rows), None, dict[str, str]()
    if isinstance(table, pd.DataFrame) and isinstance(labels, pd.DataFrame):
        check_unique([*map(str, table)], "concept", "labels", "columns")
        table = table.drop(columns=[c for c in pairing.columns if c not in (named or ())])
        table = table.rename(columns=str)
        columns = sorted_columns(table, "labels", concepts=concepts, metadata=named)
        others = table[columns.metadata] if columns.metadata else None
        table, notes = columns.truths(table), columns.notes
    elif named:
        raise unexpected("metadata", "rows, as these labels have no such columns", listed(named))
    table = as_labels(table)
    ids = image_ids(images)
    if ids is not None and len(ids) == len(table) and is_numbers(table.index):
        table = table.set_axis(ids, axis=0)
    parts: dict[str, Any] = {"metadata": others, "skipped": skipped, "name": name}
    parts |= {"features": pairing.along(features), "ignored": pairing.along(ignored)}
    parts["masks"] = {concept: [*pairing.along(own)] for concept, own in (masks or {}).items()}
    dataset = of_rows(images, table, **parts)
    described(dataset, None if named else metadata, pairing)
    dataset.remarks = ({"labels": pairing.remark} if pairing.remark else {}) | notes
    return dataset


def is_names(metadata: Any) -> bool:
    """Return whether metadata are names of columns, or None."""
    names = metadata if isinstance(metadata, list | tuple) else [1]
    return metadata is None or all(isinstance(name, str) for name in names)


def of_rows(
    images: ImageSource,
    labels: pd.DataFrame,
    *,
    features: npt.ArrayLike | None = None,
    metadata: pd.DataFrame | None = None,
    masks: MaskSource | None = None,
    **named: Any,
) -> TableDataset:
    """Make a dataset as ``from_table`` does, of rows in the order of the images.

    Args:
        images: n images; None if answers are recorded.
        labels: n x C of 0, 1 or NaN (unknown), indexed by sample id.
        features: Features by which samples are similar, n x d.
        metadata: n rows of any values.
        masks: Concept -> n sources of masks.
        named: Other arguments of ``TableDataset``.

    Raises:
        InputError: A part cannot be used, see ``from_table``.
    """
    if 0 in labels.shape:
        got = "{} x {}".format(*labels.shape)
        remedy = "a row is a sample, a column of 0 and 1 a concept"
        raise unexpected("labels", "at least one sample and one concept", got, remedy)
    ids, concepts = [str(i) for i in labels.index], tuple(map(str, labels.columns))
    check_unique(ids, "sample id", "labels")
    check_unique(concepts, "concept", "labels", "columns")
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
    more: dict[str, Any] = {"features": table, "metadata": metadata, "masks": masks, **named}
    return TableDataset(images, _truths(labels, ids, concepts), ids, concepts, **more)


def _check_files(kind: str, sources: Sequence[Any], ids: Sequence[str]) -> None:
    """Raise InputError for the first path, among sources that are paths, that does not exist."""
    for id, source in zip(ids, sources, strict=True):
        if not isinstance(source, str | Path | None):
            return
        if source is not None and not os.path.isfile(source):
            raise InputError(f"sample {id!r}: {kind} file {str(source)!r} does not exist")


def _truths(labels: pd.DataFrame, ids: Sequence[str], concepts: Sequence[str]) -> Truths:
    """Return labels as 0, 1 or UNKNOWN; raise InputError for another value."""
    values = np.full(labels.shape, np.inf)
    with suppress(TypeError, ValueError):
        values = labels.to_numpy(dtype=float, na_value=np.nan)
    if not (np.isnan(values) | (values == 0) | (values == 1)).all():
        columns = [label_cells(cells) for _, cells in labels.items()]
        values = np.column_stack([column.truths.mask(column.odd, np.inf) for column in columns])
    wrong = np.isinf(values)
    if wrong.any():
        row, column = map(int, np.argwhere(wrong)[0])
        got = f"{labels.iat[row, column]!r} at sample {ids[row]!r}, concept {concepts[column]!r}"
        remedy = "correct that cell; or name the column in metadata if it holds no labels"
        raise unexpected("labels", "0, 1 or empty (unknown)", got, remedy)
    return np.where(np.isnan(values), UNKNOWN, values).astype(np.int8)


class WordedDataset(TableDataset):
    """A ``TableDataset`` with questions in words.

    Args:
        *table: Positional arguments of ``TableDataset``.
        asks: For each of n samples, concept -> question; see ``Sample``.
        answers: For each of n samples, concept -> accepted answers; see ``Sample``.
        **named: Keyword arguments of ``TableDataset``.
    """

    def __init__(
        self,
        *table: Any,
        asks: Sequence[Mapping[str, Ask]],
        answers: Sequence[Mapping[str, tuple[str, ...]]],
        **named: Any,
    ) -> None:
        super().__init__(*table, **named)
        self._asks, self._answers = tuple(asks), tuple(answers)
        # a guess among k options is wrong in 1 - 1 / k
        self.guessing = self._measured(0.5, lambda ask: 1 - 1 / (len(ask.options) or 2))

    @cached_property
    def _lengths(self) -> Floats:
        """The length in characters of each question with its options, n x C."""
        return self._measured(0, lambda ask: len(ask.text) + sum(map(len, ask.options)))

    def _measured(self, without: float, measure: Callable[[Ask], float]) -> Floats:
        """Return ``measure`` of each question, n x C, or ``without`` for a pair without one."""
        values = np.full((len(self), len(self.concepts)), without, float)
        for row, asks in enumerate(self._asks):
            for concept, ask in asks.items():
                values[row, self.concepts.index(concept)] = measure(ask)
        return values

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self._lengths[samples, concepts]

    @property
    def fingerprint(self) -> str:
        """Return a hash that covers the text of questions and answers, too."""
        content = repr((super().fingerprint, self._asks, self._answers))
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()

    def asks(self, index: int) -> Mapping[str, Ask]:
        return self._asks[index]

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        return self._answers[index]

    def sample(self, index: int) -> Sample:
        return replace(super().sample(index), asks=self._asks[index], answers=self._answers[index])
