"""Pair labels with images: by the names of files where they have any, else by position."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import InputError, some, unexpected
from ..types import Indices
from ..utils.web import text_of
from .columns import label_cells
from .scanning import ENDINGS, NAMES, NUMBERED, folded

Rows = pd.DataFrame | pd.Series


@dataclass(frozen=True)
class Pairing:
    """How the rows of a table of labels belong to images.

    Attributes:
        index: The index of the table, (n,).
        order: The row of each image, (n,); None if rows are in the order of the images.
        columns: The columns that name the images.
        remark: A sentence for people; "" for images without names.
    """

    index: "pd.Index[Any]"
    order: Indices | None = None
    columns: Sequence[Any] = ()
    remark: str = ""

    def along(self, rows: Any) -> Any:
        """Return a table or column, whose index is that of the labels, in the order of the images.

        Other data are returned unchanged.

        Raises:
            InputError: The index is other numbers.
        """
        if not isinstance(rows, Rows):
            return rows
        if not rows.index.equals(self.index):
            if not (rows.index.is_unique and {*rows.index} == {*self.index}):
                _check_counted(rows.index, "rows next to labels")
                return rows
            rows = rows.loc[self.index]
        return rows if self.order is None else rows.take(self.order)


class _Names(NamedTuple):
    """Names of n rows, by which they may be joined with files."""

    source: str
    """"the index", or the column."""
    names: list[str]
    rows: dict[int, int]
    """The row of each file that is named."""
    column: Any
    """The column; None for the index."""
    numbers: bool
    """True if the column is whole numbers."""
    meant: bool
    """True if they seem to be names of files: by their endings, or the column's name."""


def paired(table: Rows, files: Sequence[str] | None, where: str = "labels") -> Pairing:
    """Pair the rows of a table with images.

    Args:
        table: The table. Its index, or a column, names the image files, with or without folders and
            ending; or rows are in the order of the images, and the index is 0, 1 ... A column of
            whole numbers counts if neither the index nor texts name all files.
        files: The names of n image files; None for images without names.
        where: Name of the table, for errors.

    Raises:
        InputError: Names match some files only, or none though they seem to be names, or the index
            is other numbers.
    """
    if files is None:
        _check_counted(table.index, where)
        return Pairing(table.index)
    sources = [*_sources(table, files)]
    complete = [s for s in sources if len(s.rows) == len(files) == len(table)]
    if whole := [s for s in complete if not s.numbers] or complete:
        if any(other.rows != whole[0].rows for other in whole):
            got = f"{' and '.join(s.source for s in whole)}, which differ"
            raise unexpected(where, "one name of each file", got, "leave one out")
        order = np.array([whole[0].rows[k] for k in range(len(files))])
        columns = [s.column for s in complete if s.column is not None and s.rows == whole[0].rows]
        return Pairing(table.index, order, columns, f"joined with files by {whole[0].source}")
    sources = [s for s in sources if s.meant or not s.numbers]
    best = max(sources, key=lambda s: (len(s.rows), s.meant), default=None)
    if best and (best.meant or 2 * len(best.rows) >= min(len(files), len(table))):
        raise _unmatched(best, files, where)
    _check_counted(table.index, where)
    first = [f"{Path(name).name} is row {k}" for k, name in enumerate(files[:2], start=1)]
    return Pairing(table.index, remark=f"in the order of the files: {', '.join(first)} ...")


def _sources(table: Rows, files: Sequence[str]) -> Iterator[_Names]:
    """Yield the index and the columns that may name files.

    A column of labels does not, and one that counts rows only does if it names each file.
    """
    meant = not is_numbers(table.index)
    if not is_counted(table.index) and (meant or table.index.is_unique):
        names = [*map(str, table.index)]
        yield _Names("the index", names, _rows(names, files), None, False, meant)
    for column, cells in table.items() if isinstance(table, pd.DataFrame) else ():
        texts = all(isinstance(cell, str | Path) for cell in cells)
        numbers = is_numbers(pd.Index(cells)) and bool((cells % 1 == 0).all())
        meant = str(column).lower() in NAMES["name_columns"]
        meant |= texts and all(Path(cell).suffix.lower() in ENDINGS for cell in cells)
        fit = (texts or numbers) and (cells.is_unique or (texts and meant))
        if fit and label_cells(cells).odd.any():
            names = [str(int(cell)) if numbers else str(cell) for cell in cells]
            rows = _rows(names, files)
            if len(rows) == len(files) or names != [*map(str, range(len(names)))]:
                yield _Names(f"column {str(column)!r}", names, rows, column, numbers, meant)


def check_unique(names: Sequence[str], what: str, where: str, places: str = "rows") -> None:
    """Raise InputError if a name is repeated, with its ``places``, counted from 1."""
    repeated = np.flatnonzero(pd.Index(names).duplicated())
    if len(repeated):
        name = names[repeated[0]]
        again = some([str(place) for place, own in enumerate(names, start=1) if own == name], 3)
        raise InputError(f"{where}: {what} {name!r} stands twice, in {places} {again}; leave one")


def is_numbers(index: "pd.Index[Any]") -> bool:
    """Return whether an index is numbers, and names nothing."""
    return index.inferred_type in ("integer", "floating")


def is_counted(index: "pd.Index[Any]") -> bool:
    """Return whether an index is 0, 1 ... n - 1 in order."""
    return index.equals(pd.RangeIndex(len(index)))


def _check_counted(index: "pd.Index[Any]", where: str) -> None:
    """Raise InputError if an index is numbers other than 0, 1 ... n - 1 in order."""
    if is_numbers(index) and not is_counted(index):
        repeated = [f"{number} twice" for number in index[index.duplicated()]]
        numbers = ", ".join((repeated or [*map(str, index)])[:3])
        remedy = "reset_index(drop=True) if rows are in the order of the images, else set_index "
        remedy += "of the column that names the images"
        raise unexpected(where, "an index 0, 1 ... in order", f"{numbers} ...", remedy)


def _rows(names: Sequence[str], files: Sequence[str]) -> dict[int, int]:
    """Return the row of each file that is named, by the form of names that matches most files.

    Forms have no folder, the last one, two ...; names are the same, or similar.
    """
    best = dict[int, int]()
    for depth in range(1 + max((name.count("/") for name in names), default=0)):
        for similar in (False, True):
            keys = [_form(file, depth, similar) for file in files]
            row = {_form(name, depth, similar): k for k, name in enumerate(names)}
            rows = {k: row[key] for k, key in enumerate(keys) if key in row}
            if len({*keys}) == len(keys) and len(rows) > len(best):
                best = rows
        if len(best) == len(files):
            break
    return best


def _form(name: str, depth: int, similar: bool) -> str:
    """Return a name with at most ``depth`` folders, the same for all similar ones if wanted.

    They differ in letter case, Unicode form, the ending of an image, or zeros before a number.
    """
    name = name.replace("\\", "/")
    parts = (folded(name) if similar else name).split("/")[-1 - depth :]
    if similar:
        stem, dot, last = parts[-1].rpartition(".")
        parts[-1] = stem if dot and f".{last}" in ENDINGS else parts[-1]
        number = NUMBERED.fullmatch(parts[-1])
        parts[-1] = number[1] if number else parts[-1]
    return "/".join(parts)


def _unmatched(source: _Names, files: Sequence[str], where: str) -> InputError:
    """Return the error for rows without a file, or files without a row."""
    place, matched = f"{where}, {source.source}", {*source.rows.values()}
    check_unique(source.names, "file name", place)
    unknown = [name for row, name in enumerate(source.names) if row not in matched]
    lacking = [Path(file).name for k, file in enumerate(files) if k not in source.rows]
    words = {"first": Path(files[0]).name, "total": len(files), "lacking": lacking}
    words |= {"place": place, "source": source, "unknown": unknown, "repr": repr}
    return InputError(text_of(__package__, "unmatched.txt", **words).strip())
