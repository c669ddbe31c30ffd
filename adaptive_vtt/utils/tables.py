"""Write tables as CSV and LaTeX, and check the size of tables that are read.

A spreadsheet treats a cell that begins with = + - @ as a formula (CWE-1236). Such texts are written
with an apostrophe before them, and read back without it. Numbers are unchanged.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from ..errors import unexpected
from .files import write_text

MAX_COLUMNS = 10_000
"""Maximum number of columns of a table; one with more is refused before it is read."""
MAX_HEADER = 4 * 2**20
"""Maximum number of characters of a header line."""
TABLES = "tables"
"""Folder of tables within a run."""
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_OF_LINE_BREAK = re.compile(r"^(?=[*\[])", re.MULTILINE)
"""Matches the beginning of a row in LaTeX with * or [, which would be an argument of the line break
before it."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def inert(cell: Any) -> Any:
    """Return a cell, with an apostrophe before a text that a spreadsheet would run as a formula."""
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def original(cell: Any) -> Any:
    """Return a cell as it was before ``inert``."""
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and _FORMULA.match(cell) else cell


def csv_text(table: pd.DataFrame, digits: int | None = None) -> str:
    """Return a table as a CSV without its index, with ``inert`` names and texts.

    Args:
        table: The table; the names of its columns are texts.
        digits: Significant digits of floats. Default None: all.
    """
    floats = None if digits is None else f"%.{digits}g"
    return str(_changed(table, inert).to_csv(index=False, float_format=floats))


def latex(table: pd.DataFrame, name: str, caption: str = "", digits: str = "%.4f") -> str:
    """Return a table in LaTeX, for \\input with the package booktabs.

    Columns with a number are aligned to the right.

    Args:
        table: The table.
        name: The label.
        caption: The caption in LaTeX, with < and > outside of formulas. Default: the name.
        digits: Format of floats.
    """
    title = caption or name.replace("-", " ").capitalize()
    options: dict[str, Any] = {"index": False, "na_rep": "--", "float_format": digits}
    numbers = [any(isinstance(cell, Number) for cell in table[column]) for column in table]
    options["column_format"] = "".join("r" if some else "l" for some in numbers)
    rows = table.to_latex(escape=True, label=name, caption=title, **options)
    rows = _OF_LINE_BREAK.sub("{}", rows).replace("<", "$<$").replace(">", "$>$")
    return f"% needs \\usepackage{{booktabs}}\n{rows}"


def write_tables(
    folder: Path,
    tables: Mapping[str, pd.DataFrame],
    for_paper: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> None:
    """Write tables as tables/NAME.csv and tables/NAME.tex.

    Args:
        folder: The folder that contains "tables".
        tables: Name -> table.
        for_paper: Name -> columns of the LaTeX. Default: all columns.
    """
    for name, table in tables.items():
        columns = [column for column in for_paper.get(name, table) if column in table]
        write_text(folder / TABLES / f"{name}.csv", csv_text(table))
        write_text(folder / TABLES / f"{name}.tex", latex(table[columns], name))


def restored(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it was before ``csv_text``, with names and texts without apostrophes."""
    return _changed(table, original)


def check_header(line: str, path: Path, delimiter: str) -> None:
    """Raise InputError for a header of over MAX_COLUMNS columns, or of MAX_HEADER characters."""
    if len(line) == MAX_HEADER:
        expected = f"a header of fewer than {MAX_HEADER} characters"
        raise unexpected(str(path), expected, "a longer line")
    # an upper bound, as delimiters in quotes are counted, too
    check_columns(line.count(delimiter) + 1, path)


def check_columns(count: int, path: Path) -> None:
    """Raise InputError for more than MAX_COLUMNS columns."""
    if count > MAX_COLUMNS:
        remedy = "leave out those that are neither asked about nor metadata"
        raise unexpected(str(path), f"at most {MAX_COLUMNS} columns", count, remedy)


def _changed(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    texts = table.select_dtypes(exclude="number")
    columns: dict[str, list[Any]] = {}
    for name, cells in zip(texts, texts.to_numpy(dtype=object).T, strict=True):
        made = [*map(change, cells)]
        if any(new is not old for new, old in zip(made, cells, strict=True)):
            columns[str(name)] = made
    return table.assign(**columns).rename(columns=change)
