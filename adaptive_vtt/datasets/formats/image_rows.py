"""Images in the rows of TSV and Parquet tables, which stay in the file until they are decoded.

Only the position of an image is kept in memory: of its line in a TSV, of its row in Parquet.
"""

import binascii
import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import InputError, check_known, one_line, unexpected
from ...types import Image
from ...utils.files import as_file, opened, reads
from ...utils.image_files import checked_size, image_of
from ...utils.importing import needed
from ...utils.tables import MAX_HEADER, check_columns, check_header
from ..scanning import Reading

BATCH = 16
"""Rows of a Parquet file that are in memory at a time."""
IMAGE = "image"
LONGEST = 2**30
"""Maximum length of a cell of a TSV, which may be an image; the default of csv is 131,072."""


@dataclass(frozen=True)
class Stored:
    """An image within a table.

    Attributes:
        name: Name of the image in errors.
        pixels: Number of its pixels.
        data: Function that reads its bytes (PNG, JPEG ...).
    """

    name: str
    pixels: float
    data: Callable[[], bytes]

    def decoded(self, where: str) -> Image:
        """Return the image, H x W x C of uint8; raise InputError if it cannot be read."""
        try:
            data = self.data()
        except OSError as error:
            why = error.strerror or error
            raise InputError(f"{where}: cannot read image {self.name!r}: {why}") from None
        return image_of(data, self.name, where)


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        cells: Column -> text, without the image.
        image: Its image.
        where: Name of the row in errors.
    """

    cells: dict[str, str]
    image: Stored
    where: str


# -- TSV -------------------------------------------------------------------------------------------


def tsv_rows(path: Path, needed: Sequence[str], reading: Reading) -> Iterator[Row]:
    """Yield the rows of a TSV, whose cells may be quoted as in a CSV.

    Args:
        path: The file.
        needed: Columns that it must have, in addition to the image and the options A and B.
        reading: Handler of broken rows.

    Raises:
        InputError: The file cannot be read, or columns are missing.
    """
    with reads(path, "a table"), opened(path) as file:
        line = file.readline(MAX_HEADER).removeprefix(b"\xef\xbb\xbf")
        check_header(line.decode(errors="replace"), path, "\t")
        header = _cells(line, str(path))
        _check_header(header, needed, path)
        offset = file.tell()
        for number, line in enumerate(_lines(file, len(header) - 1), start=1):
            if line.strip():
                where = f"{path}, row {number}"
                if row := reading.attempt(_text_row, path, where, offset, line, header):
                    yield row
            offset += len(line)


def _lines(file: BinaryIO, tabs: int) -> Iterator[bytes]:
    """Yield the lines of rows. A line is joined with the next while a quote is open and it has
    fewer tabs than the header."""
    joined = b""
    for line in file:
        joined += line
        if joined.count(b'"') % 2 == 0 or joined.count(b"\t") >= tabs:
            yield joined
            joined = b""
    if joined:
        yield joined


def _cells(line: bytes, where: str) -> list[str]:
    """Return the cells of a line."""
    # set here, as the limit is global to a process, and a worker may read only this line
    csv.field_size_limit(max(LONGEST, csv.field_size_limit()))
    try:
        rows = [*csv.reader([line.decode().rstrip("\r\n")], delimiter="\t")]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{where}: cannot read its cells: {one_line(error)}") from None
    return rows[0] if rows else []


def _text_row(path: Path, where: str, offset: int, line: bytes, header: list[str]) -> Row:
    cells = _cells(line, where)
    if len(cells) != len(header):
        raise unexpected(where, f"{len(header)} columns", len(cells))
    named = dict(zip(header, cells, strict=True))
    pixels = _pixels(_decoded(named.pop(IMAGE), where), where)
    data = partial(_text_image, path, where, offset, len(line), header.index(IMAGE))
    return Row(named, Stored(where, pixels, data), where)


def _text_image(path: Path, where: str, offset: int, length: int, column: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return _decoded(_cells(file.read(length), where)[column], where)


# -- Parquet ---------------------------------------------------------------------------------------


def parquet_file(path: Path) -> Any:
    """Open a Parquet file so that pages are read one by one; by default whole row groups are."""
    with needed("parquet", f"{path}: reading Arrow and Parquet needs pyarrow"):
        parquet = import_module("pyarrow.parquet")
    with reads(path, "a table"):
        return parquet.ParquetFile(as_file(path), buffer_size=1 << 16, pre_buffer=False)


opened_parquet = lru_cache(maxsize=64)(parquet_file)
"""A Parquet file that stays open."""


def parquet_rows(path: Path, needed: Sequence[str], reading: Reading) -> Iterator[Row]:
    """Yield the rows of a Parquet file, whose image is bytes, base64, or a struct with its bytes.

    Args:
        path: The file.
        needed: Columns that it must have, in addition to the image and the options A and B.
        reading: Handler of broken rows.

    Raises:
        InputError: The file cannot be read, or a column or pyarrow is missing.
    """
    file = parquet_file(path)
    check_columns(len(file.schema_arrow.names), path)
    _check_header(file.schema_arrow.names, needed, path)

    def row_of(cells: dict[str, Any], group: int, place: int, where: str) -> Row:
        pixels = _pixels(_bytes(cells.pop(IMAGE), where), where)
        texts = {name: "" if value is None else str(value) for name, value in cells.items()}
        return Row(texts, Stored(where, pixels, partial(_parquet_image, path, group, place)), where)

    number = 0
    for group in range(file.num_row_groups):
        batches = file.iter_batches(BATCH, row_groups=[group])
        for place, cells in enumerate(row for batch in batches for row in batch.to_pylist()):
            number += 1
            if row := reading.attempt(row_of, cells, group, place, f"{path}, row {number}"):
                yield row


def _parquet_image(path: Path, group: int, place: int) -> bytes:
    """Return the bytes of a row's image; one batch of its group is in memory at a time."""
    batches = opened_parquet(path).iter_batches(BATCH, row_groups=[group], columns=[IMAGE])
    cell = next(islice((cell for batch in batches for cell in batch.column(0)), place, None), None)
    if cell is None:
        raise InputError(f"{path}: the file has changed while it was in use")
    return _bytes(cell.as_py(), str(path))


# -- both ------------------------------------------------------------------------------------------


def _check_header(columns: Sequence[str], needed: Sequence[str], path: Path) -> None:
    for column in (IMAGE, *needed, "A", "B"):
        check_known("column", column, columns, str(path))


def _bytes(value: Any, where: str) -> bytes:
    """Return an image's bytes from a cell of Parquet."""
    value = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(value, str):
        return _decoded(value, where)
    if not isinstance(value, bytes):
        raise unexpected(where, "an image", type(value).__name__)
    return value


def _decoded(coded: str, where: str) -> bytes:
    try:
        return binascii.a2b_base64(coded, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{where}: expected an image in base64: {one_line(error)}") from None


def _pixels(data: bytes, where: str) -> float:
    """Return the number of pixels in an image's header; raise InputError if that is malformed, or
    the image too large."""
    width, height = checked_size(data, IMAGE, where)
    return float(width * height)
