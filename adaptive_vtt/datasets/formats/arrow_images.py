"""Images in the rows of Arrow and Parquet files, decoded one by one while they stay there.

Hugging Face's ``datasets`` keeps an image as a struct of ``bytes`` (a PNG, JPEG ...) and ``path``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy.typing as npt

from ...errors import InputError, one_line
from ...types import Image, Mask
from ...utils.extras import pip_install
from ...utils.image_files import as_mask, read_image

BATCH = 16
"""Rows of a Parquet file whose images are in memory at a time."""


@dataclass(frozen=True)
class Place:
    """A row of a file: of the group ``group`` of a Parquet file, of all rows of an Arrow file."""

    file: Path
    group: int
    row: int


class Images:
    """One column of the rows at ``places``; ``names`` are what they are called in errors."""

    def __init__(self, places: Sequence[Place], names: Sequence[str], column: str) -> None:
        self._places, self._names, self._column = places, names, column

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int, /) -> Image:
        """H x W x C uint8; raises InputError where the cell holds no image."""
        where = f"{self._names[index]}, column {self._column!r}"
        return read_image(cast(Path, _Cell(self._places[index], self._column, where)), where)


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
class _Cell:
    """Reads like a path, so that ``read_image`` takes it for one."""

    place: Place
    column: str
    name: str

    def read_bytes(self) -> bytes:
        value = _value(self.place, self.column)
        data = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(data, bytes):
            raise InputError(
                f"{self.name}: expected the image itself, got {_outside(value)}; save_to_disk and "
                "push_to_hub write images into the file"
            )
        return data

    def __str__(self) -> str:
        return self.name


def _outside(value: Any) -> str:
    path = value.get("path") if isinstance(value, dict) else value
    return "nothing" if path is None else f"{str(path)[:80]!r}"


def _value(place: Place, column: str) -> Any:
    if place.file.suffix == ".arrow":
        return opened_arrow(place.file)[column][place.row].as_py()
    row = place.row
    for batch in opened_parquet(place.file).iter_batches(
        BATCH, row_groups=[place.group], columns=[column]
    ):
        if row < len(batch):
            return batch.column(0)[row].as_py()
        row -= len(batch)
    raise InputError(f"{place.file}: the file has changed while it was in use")


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
        raise InputError(f"{path}: cannot read a table: {one_line(error)}") from None


@lru_cache(maxsize=64)
def opened_parquet(path: Path) -> Any:
    """A Parquet file, read page by page: by default a whole row group would be in memory."""
    parquet = imported("pyarrow.parquet", path)
    try:
        return parquet.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read a table: {one_line(error)}") from None


def imported(module: str, path: Path) -> Any:
    """pyarrow, or a part of it; raises InputError where it is not installed."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"{path}: reading Arrow and Parquet needs pyarrow: {pip_install('parquet')}"
        ) from None
