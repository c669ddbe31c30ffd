"""Images in the rows of Arrow and Parquet files, decoded one by one while they stay there.

Hugging Face's ``datasets`` keeps an image as a struct of ``bytes`` (a PNG, JPEG ...) and ``path``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...types import Image, Mask
from ...utils.extras import pip_install
from ...utils.files import why_unread
from ...utils.image_files import as_mask, read_image
from ...utils.image_headers import declared_size

BATCH = 16
"""Rows of a Parquet file that are in memory at a time."""


@dataclass(frozen=True)
class Place:
    """A row of a file: of the group ``group`` of a Parquet file, of all rows of an Arrow file."""

    file: Path
    group: int
    row: int


@dataclass(frozen=True)
class InFile:
    """Base: an image within a file, which reads like a path, so that ``read_image`` takes it for
    one; ``name`` is what errors call it."""

    name: str

    def data(self) -> bytes:
        """The bytes of the image: a PNG, JPEG ..."""
        raise TypeError(f"{type(self).__name__} defines no data")

    def read_bytes(self) -> bytes:
        return self.data()

    def __str__(self) -> str:
        return self.name

    def decoded(self, where: str) -> Image:
        """H x W x C uint8; raises InputError, beginning with ``where``, where it is no image."""
        return read_image(cast(Path, self), where)


class Images:
    """One column of the rows at ``places``, those of each group in their order; ``names`` are what
    the rows are called in errors."""

    def __init__(self, places: Sequence[Place], names: Sequence[str], column: str) -> None:
        self._places, self._names, self._column = places, names, column

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int, /) -> Image:
        """H x W x C uint8; raises InputError where the cell holds no image."""
        return self._cell(index, value_at(self._places[index], self._column)).image()

    def __iter__(self) -> Iterator[Image]:
        """All, as above, in one pass over each file: ``[index]`` reads a group from its start."""
        for index, value in enumerate(_values(self._places, self._column)):
            yield self._cell(index, value).image()

    def pixels(self, index: int) -> float:
        """Of one image as its file declares them; NaN where it does not."""
        size = declared_size(self._cell(index, value_at(self._places[index], self._column)).data())
        return np.nan if size is None else float(size[0] * size[1])

    def _cell(self, index: int, value: Any) -> "_Cell":
        return _Cell(f"{self._names[index]}, column {self._column!r}", value)


@dataclass(frozen=True)
class StoredMask:
    """The mask of one row, decoded when it is made an array: inside is above 127, or, with
    ``value``, where the pixel (its first channel) is that."""

    images: Images
    index: int
    value: int | None

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Mask:
        image = self.images[self.index]
        return as_mask(image if self.value is None else image[..., 0] == self.value, "mask")


@dataclass(frozen=True)
class _Cell(InFile):
    """What a cell holds."""

    value: Any

    def data(self) -> bytes:
        data = self.value.get("bytes") if isinstance(self.value, dict) else self.value
        if not isinstance(data, bytes):
            raise InputError(
                f"{self.name}: expected the image itself, got {_outside(self.value)}; save_to_disk "
                "and push_to_hub write images into the file"
            )
        return data

    def image(self) -> Image:
        return self.decoded(self.name)


def _outside(value: Any) -> str:
    path = value.get("path") if isinstance(value, dict) else value
    return "nothing" if path is None else f"{str(path)[:80]!r}"


def value_at(place: Place, column: str) -> Any:
    """What a cell holds; of a Parquet file, one batch of its group is in memory at a time."""
    if place.file.suffix == ".arrow":
        return opened_arrow(place.file)[column][place.row].as_py()
    return next(_values([place], column))


def _values(places: Iterable[Place], column: str) -> Iterator[Any]:
    """What the cells hold, in one pass over each group, whose rows come in their order."""
    for (file, group), rows in groupby(places, key=lambda place: (place.file, place.group)):
        cells = enumerate(_cells(file, group, column))
        for place in rows:
            cell = next((cell for row, cell in cells if row == place.row), None)
            if cell is None:
                raise InputError(f"{file}: the file has changed while it was in use")
            yield cell.as_py()


def _cells(file: Path, group: int, column: str) -> Iterator[Any]:
    """pyarrow's scalars of one column of a group."""
    if file.suffix == ".arrow":
        yield from opened_arrow(file)[column]
        return
    for batch in opened_parquet(file).iter_batches(BATCH, row_groups=[group], columns=[column]):
        yield from batch.column(0)


@lru_cache(maxsize=64)
def opened_arrow(path: Path) -> Any:
    """The table in an Arrow file, left on the disk until it is looked at."""
    pyarrow = imported("pyarrow", path)
    try:
        source = pyarrow.memory_map(str(path))
        try:
            return pyarrow.ipc.open_stream(source).read_all()
        except pyarrow.ArrowInvalid:  # the other of the two layouts
            return pyarrow.ipc.open_file(source).read_all()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read a table: {why_unread(path, error)}") from None


@lru_cache(maxsize=64)
def opened_parquet(path: Path) -> Any:
    """A Parquet file that stays open."""
    return parquet_file(path)


def parquet_file(path: Path) -> Any:
    """A Parquet file, read page by page: by default a whole row group would be in memory."""
    parquet = imported("pyarrow.parquet", path)
    try:
        return parquet.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read a table: {why_unread(path, error)}") from None


def imported(module: str, path: Path) -> Any:
    """pyarrow, or a part of it; raises InputError where it is not installed."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"{path}: reading Arrow and Parquet needs pyarrow: {pip_install('parquet')}"
        ) from None
