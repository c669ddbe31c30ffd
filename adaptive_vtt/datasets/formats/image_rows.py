"""Images in the rows of tables, decoded one by one while they stay in the file.

What is kept of an image is where it is: offset and length in a TSV, file and row in Parquet.
"""

import base64
import binascii
import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import InputError, check_known, one_line
from ...types import Image
from ...utils.files import why_unread
from ...utils.image_codec import declared_size
from ...utils.image_files import MAX_PIXELS, image_of
from ...utils.importing import needed
from ...utils.tables import MAX_HEADER, check_columns, check_width
from ..scanning import Reading

BATCH = 16
"""Rows of a Parquet file that are in memory at a time."""


@dataclass(frozen=True)
class Place:
    """A row of the group ``group`` of a Parquet file."""

    file: Path
    group: int
    row: int


@dataclass(frozen=True)
class Stored:
    """An image within a file: what errors call it, how many pixels it has, and what reads the bytes
    of the image file that it is (a PNG, JPEG ...)."""

    name: str
    pixels: float
    data: Callable[[], bytes]

    def decoded(self, where: str) -> Image:
        """H x W x C uint8; raises InputError, beginning with ``where``, where it is no image."""
        try:
            data = self.data()
        except OSError as error:
            raise InputError(
                f"{where}: cannot read image {self.name!r}: {error.strerror or error}"
            ) from None
        return image_of(data, self.name, where)


def value_at(place: Place, column: str) -> Any:
    """What a cell holds; one batch of its group is in memory at a time."""
    file = opened_parquet(place.file)
    batches = file.iter_batches(BATCH, row_groups=[place.group], columns=[column])
    cells = (cell for batch in batches for cell in batch.column(0))
    cell = next(islice(cells, place.row, None), None)
    if cell is None:
        raise InputError(f"{place.file}: the file has changed while it was in use")
    return cell.as_py()


def parquet_file(path: Path) -> Any:
    """A Parquet file, read page by page: by default a whole row group would be in memory."""
    parquet = imported("pyarrow.parquet", path)
    try:
        return parquet.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read a table: {why_unread(path, error)}") from None


opened_parquet = lru_cache(maxsize=64)(parquet_file)
"""A Parquet file that stays open."""


def imported(module: str, path: Path) -> Any:
    """pyarrow, or a part of it; raises InputError where it is not installed."""
    with needed("parquet", f"{path}: reading Arrow and Parquet needs pyarrow"):
        found = import_module(module)
    return found


IMAGE = "image"
_LONG = 1024
"""Length in bytes from which a field is taken for the image and cut out before the row is
parsed."""


@dataclass(frozen=True)
class Row:
    """A row: its text cells by column, its image, and what to call it in errors."""

    cells: dict[str, str]
    image: Stored
    where: str


def tsv_rows(path: Path, needed: Sequence[str], reading: Reading) -> Iterator[Row]:
    """The rows of a TSV with quotes as CSV has them, in one pass over the file.

    Raises InputError for a file that cannot be read and columns that are missing.
    """
    try:
        with path.open("rb") as file:
            check_width(path, "\t")
            header = _parsed(file.readline(MAX_HEADER).removeprefix(b"\xef\xbb\xbf"))
            _check_header(header, needed, path)
            offset = file.tell()
            for number, line in enumerate(_lines(file, len(header) - 1), start=1):
                where, at = f"{path}, row {number}", offset
                offset += len(line)
                if line.strip():
                    row = reading.attempt(partial(_text_row, path, where, at, line, header))
                    if row is not None:
                        yield row
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read a table: {why_unread(path, error)}") from None


def parquet_rows(path: Path, needed: Sequence[str], reading: Reading) -> Iterator[Row]:
    """The rows of a Parquet file; the image is bytes, base64, or has its bytes as a field.

    Raises InputError for a file that cannot be read, columns that are missing, and where
    pyarrow is.
    """
    file = parquet_file(path)
    check_columns(len(file.schema_arrow.names), path)
    _check_header(file.schema_arrow.names, needed, path)
    number = 0
    for group in range(file.num_row_groups):
        batches = file.iter_batches(BATCH, row_groups=[group])
        cells = (row for batch in batches for row in batch.to_pylist())
        for at, row in enumerate(cells):
            number += 1
            place = Place(path, group, at)
            found = reading.attempt(partial(_parquet_row, place, row, f"{path}, row {number}"))
            if found is not None:
                yield found


def _parquet_row(place: Place, row: dict[str, Any], where: str) -> Row:
    pixels = _checked(_bytes(row.pop(IMAGE), where), where)
    cells = {c: "" if v is None else str(v) for c, v in row.items()}
    return Row(cells, Stored(where, pixels, partial(_parquet_bytes, place, where)), where)


def _parquet_bytes(place: Place, where: str) -> bytes:
    return _bytes(value_at(place, IMAGE), where)


def _text_bytes(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return base64.b64decode(file.read(length))


def _lines(file: BinaryIO, tabs: int) -> Iterator[bytes]:
    """Lines; one in which a quote stays open goes on in the next, if it has too few tabs."""
    held = b""
    for line in file:
        held += line
        if held.count(b'"') % 2 == 0 or held.count(b"\t") >= tabs:
            yield held
            held = b""
    if held:
        yield held


def _text_row(path: Path, where: str, offset: int, line: bytes, header: list[str]) -> Row:
    start, stop = _longest(line)
    if stop - start < _LONG:
        start = stop = 0
    try:
        cells = _parsed(line[:start] + line[stop:])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{where}: cannot read its cells: {one_line(error)}") from None
    if len(cells) != len(header):
        raise InputError(f"{where}: expected {len(header)} columns, got {len(cells)}")
    found = dict(zip(header, cells, strict=True))
    coded = found.pop(IMAGE).encode()
    if stop and coded:
        raise InputError(f"{where}: expected the image in column {IMAGE!r}")
    if not stop:
        start = line.index(coded)
        stop = start + len(coded)
    pixels = _checked(_decoded(line[start:stop], where), where)
    data = partial(_text_bytes, path, offset + start, stop - start)
    return Row(found, Stored(where, pixels, data), where)


def _longest(line: bytes) -> tuple[int, int]:
    """Where the longest field is in a line, without quotes around it."""
    fields = line.split(b"\t")
    place = max(range(len(fields)), key=lambda k: len(fields[k]))
    start = sum(map(len, fields[:place])) + place
    field = fields[place].rstrip(b"\r\n")
    quoted = field[:1] == field[-1:] == b'"'
    return start + quoted, start + len(field) - quoted


def _decoded(coded: bytes | str, where: str) -> bytes:
    try:
        return binascii.a2b_base64(coded, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{where}: expected an image in base64: {one_line(error)}") from None


def _parsed(line: bytes) -> list[str]:
    rows = list(csv.reader([line.decode().rstrip("\r\n")], delimiter="\t"))
    return rows[0] if rows else []


def _check_header(columns: Sequence[str], needed: Sequence[str], path: Path) -> None:
    for column in (IMAGE, *needed, "A", "B"):
        check_known("column", column, columns, str(path))


def _checked(data: bytes, where: str) -> float:
    """The pixels of an image's bytes. Raises InputError unless they begin like an image that is not
    too large."""
    size = declared_size(data)
    if size is None or 0 in size:
        raise InputError(f"{where}: expected an image (JPEG, PNG ...), got {len(data)} other bytes")
    if size[0] * size[1] > MAX_PIXELS:
        raise InputError(
            f"{where}: the image is {size[0]} x {size[1]} pixels, over the limit of "
            f"{MAX_PIXELS} pixels"
        )
    return float(size[0] * size[1])


def _bytes(value: Any, where: str) -> bytes:
    """An image's bytes: as they are, in base64, or in a field of a struct."""
    if isinstance(value, dict):
        value = value.get("bytes")
    if isinstance(value, str):
        return _decoded(value, where)
    if not isinstance(value, bytes):
        raise InputError(f"{where}: expected an image, got {type(value).__name__}")
    return value
