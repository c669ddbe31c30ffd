"""Read tables from text: CSV with any usual delimiter, in UTF-8 or UTF-16, and JSON Lines."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from ..errors import InputError
from .files import contents
from .tables import MAX_HEADER, check_columns, check_header, restored

SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
SAMPLE = 50
"""Number of lines, with the header, from which the delimiter is recognised."""
_TOO_MANY_CELLS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
"""Pandas' error about a row with more cells than the header."""
_UNNAMED = re.compile(r"(Unnamed: \d+)?")


def csv_rows(path: Path) -> pd.DataFrame:
    """Return all columns of a CSV as texts; delimiter and encoding are recognised."""
    text, delimiter = delimited(path)
    # as texts, so that the ids 007 and NA are unchanged, and without a header, as pandas would
    # rename repeated columns
    texts: Any = {"header": None, "dtype": str, "keep_default_na": False, "skipinitialspace": True}
    try:
        rows = pd.read_csv(text, sep=delimiter, **texts)
    except pd.errors.ParserError as error:
        if not (row := _TOO_MANY_CELLS.search(str(error))):
            raise
        width, line, cells = map(int, row.groups())
        raise InputError(
            f"{path}: line {line} has {cells} cells, the header {width}; put a cell that holds "
            f"{delimiter!r} in quotes"
        ) from None
    rows = rows.apply(lambda cells: cells.str.strip())
    # spreadsheets write empty rows and columns at the end, and pandas its index
    rows = rows[: 1 + int(np.flatnonzero((rows != "").any(axis=1))[-1])]
    rows = rows.loc[:, [not _is_index(rows[column]) for column in rows]]
    columns = rows.iloc[0]
    if columns.duplicated().any():
        raise InputError(f"{path}: column {columns[columns.duplicated()].iloc[0]!r} stands twice")
    return restored(rows.iloc[1:].set_axis(columns.tolist(), axis=1))


def delimited(path: Path) -> tuple[TextIO, str]:
    """Return the text of a CSV, and its delimiter.

    The delimiter is that of a first line such as "sep=;", which spreadsheets write, and which is
    replaced by an empty line; else that of ``delimiter_of``.
    """
    text = table_text(path)
    first, _, rest = text.partition("\n")
    first = first.strip().strip('"')
    delimiter = delimiter_of(text)
    if first.lower().startswith("sep="):
        delimiter, text = first[4:5] or "\t", f"\n{rest}"
    check_header(text.removeprefix("\n")[:MAX_HEADER].partition("\n")[0], path, delimiter)
    return io.StringIO(text), delimiter


def _is_index(column: "pd.Series[str]") -> bool:
    """Return whether a column has no name, and is empty or has the numbers of its rows."""
    name, cells = column.iloc[0], column.iloc[1:]
    numbers = [[str(row + first) for row in range(len(cells))] for first in (0, 1)]
    empty = not name and (cells == "").all()
    return bool(empty or (_UNNAMED.fullmatch(name) and cells.tolist() in numbers))


def table_text(path: Path) -> str:
    """Return the text of a table in UTF-8 or UTF-16. Raise ValueError for any other encoding."""
    data = contents(path)
    if path.suffix.lower() in SPREADSHEETS or data.startswith((b"PK\3\4", b"\xd0\xcf\x11\xe0")):
        raise ValueError("it is a spreadsheet; save the spreadsheet as CSV (UTF-8)")
    try:
        text = data.decode(json.detect_encoding(data))  # of UTF-8 and UTF-16, with a mark or not
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} is no UTF-8, the file is likely in a code page of Windows; save it as "
            "UTF-8 (in Excel: CSV UTF-8)"
        ) from None


def delimiter_of(text: str) -> str:
    """Return the delimiter, of comma, semicolon, tab and bar, by which the header and the first
    rows have the same number of cells; of several, the one with the most cells."""
    best, most = ",", (0.0, 1)
    for delimiter in ",;\t|":
        lines = [line for line in text[:MAX_HEADER].split("\n", SAMPLE)[:SAMPLE] if line.strip()]
        try:
            rows = [*csv.reader(lines, delimiter=delimiter, skipinitialspace=True)]
        except csv.Error:
            continue
        width = len(rows[0]) if rows else 1
        same = float(np.mean([len(row) == width for row in rows])) if width > 1 else 0.0
        if (same, width) > most:
            best, most = delimiter, (same, width)
    return best


def json_lines(path: Path) -> pd.DataFrame:
    """Return a table from JSON Lines, one object per row; a missing cell is NaN."""
    rows = []
    for number, line in enumerate(table_text(path).split("\n"), start=1):
        try:
            row = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: expected a JSON object, got {line[:60]!r}")
        rows += [row] if row else []
    table = pd.DataFrame(rows, dtype=object)
    check_columns(table.shape[1], path)
    return table.rename(columns=str)
