"""CSV files: written so that a spreadsheet runs nothing of them, read without trusting them.

A spreadsheet takes a cell that begins with = + - @ for a formula (CWE-1236). Cells of text that
do are written with an apostrophe before them, and read back without it; numbers stay numbers.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from ..errors import InputError
from .files import write_text

MAX_COLUMNS = 10_000
"""Most columns of a table; one with more is refused before it is read."""
MAX_HEADER = 4 * 2**20
"""Most characters of a header line; a longer one is refused."""
TABLES = "tables"
"""The folder of a run that holds them."""
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_OF_LINE_BREAK = re.compile(r"^(?=[*\[])", re.MULTILINE)
"""Where a row of LaTeX begins with what the line break of the row before would take for its own."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def inert(cell: Any) -> Any:
    """Return a cell, with an apostrophe before what may be taken for a formula."""
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def original(cell: Any) -> Any:
    """Return what ``inert`` made this cell of."""
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and _FORMULA.match(cell) else cell


def csv_text(table: pd.DataFrame, digits: int | None = None) -> str:
    """Return the table as a CSV file, without its index, names and texts made ``inert``.

    ``table``: its columns are named by texts. ``digits``: that floats have; None: all.
    """
    floats = None if digits is None else f"%.{digits}g"
    return str(_changed(table, inert).to_csv(index=False, float_format=floats))


def latex(table: pd.DataFrame, name: str, caption: str = "", digits: str = "%.4f") -> str:
    """Return the table for a paper, to be read by \\input; needs the package booktabs.

    ``caption``: as LaTeX, with < and > outside of formulas. Default: the name. ``digits``: how
    floats are written. Columns that hold a number are set to the right.
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
    """Write each as tables/NAME.csv and tables/NAME.tex in the folder. ``for_paper``: the columns
    that the LaTeX of a table has, as far as there are such, where a page cannot hold all."""
    for name, table in tables.items():
        columns = [column for column in for_paper.get(name, table) if column in table]
        write_text(folder / TABLES / f"{name}.csv", csv_text(table))
        write_text(folder / TABLES / f"{name}.tex", latex(table[columns], name))


def restored(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table that ``csv_text`` wrote: names and texts without the apostrophe."""
    return _changed(table, original)


def check_header(line: str, path: Path, delimiter: str) -> None:
    """Raise InputError for a header with over MAX_COLUMNS columns, or of MAX_HEADER characters."""
    if len(line) == MAX_HEADER:
        raise InputError(
            f"{path}: expected a header of fewer than {MAX_HEADER} characters, got a longer line"
        )
    # cells with delimiters in quotes count as several: a bound is enough
    check_columns(line.count(delimiter) + 1, path)


def check_columns(count: int, path: Path) -> None:
    """Raise InputError for more than MAX_COLUMNS columns."""
    if count > MAX_COLUMNS:
        raise InputError(
            f"{path}: expected at most {MAX_COLUMNS} columns, got {count}; leave out those that "
            "are neither asked about nor metadata"
        )


def _changed(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    texts = table.select_dtypes(exclude="number")
    columns: dict[str, list[Any]] = {}
    for name, cells in zip(texts, texts.to_numpy(dtype=object).T, strict=True):
        made = [*map(change, cells)]
        if any(new is not old for new, old in zip(made, cells, strict=True)):
            columns[str(name)] = made
    return table.assign(**columns).rename(columns=change)
