"""Pair labels with images: by the names of files where they have any, else by position."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, some, unexpected
from ..types import Indices
from .scanning import ENDINGS, NUMBERED, folded

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
    columns: tuple[Any, ...] = ()
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


def paired(table: Rows, files: Sequence[str] | None) -> Pairing:
    """Pair the rows of a table of labels with images.

    Args:
        table: The table. Its index, or a column of texts, names the image files, with or without
            folders and ending; or rows are in the order of the images, and the index is 0, 1 ...
        files: The names of n image files; None for images without names.

    Raises:
        InputError: Names match some files only, or the index is other numbers.
    """
    if files is None:
        _check_counted(table.index, "labels")
        return Pairing(table.index)
    cells = table.items() if isinstance(table, pd.DataFrame) else ()
    texts = {n: c for n, c in cells if c.is_unique and all(isinstance(x, str | Path) for x in c)}
    sources = {f"column {str(name)!r}": column for name, column in texts.items()}
    if not _is_counted(table.index):
        sources = {"the index": table.index.to_series(), **sources}
    names = {source: [str(name) for name in rows] for source, rows in sources.items()}
    rows = {source: _rows(own, files) for source, own in names.items()}
    whole = [source for source, own in rows.items() if len(own) == len(files) == len(table)]
    if whole:
        orders = {source: [rows[source][k] for k in range(len(files))] for source in whole}
        order = orders[whole[0]]
        if any(other != order for other in orders.values()):
            got = f"{' and '.join(whole)}, which differ"
            raise unexpected("labels", "one name of each file", got, "leave one out")
        columns = tuple(name for name in texts if f"column {str(name)!r}" in whole)
        return Pairing(table.index, np.array(order), columns, f"joined with files by {whole[0]}")
    best = max(rows, key=lambda source: len(rows[source]), default="")
    if best and 2 * len(rows[best]) >= min(len(files), len(table)):
        raise _unmatched(names[best], files, rows[best], best)
    _check_counted(table.index, "labels")
    if not _is_counted(table.index):
        expected = f"an index of file names, such as {Path(files[0]).name!r}"
        remedy = "add a column of file names, or reset_index(drop=True) if rows are in the order "
        remedy += "of the files"
        raise unexpected("labels", expected, f"{names['the index'][0]!r} ...", remedy)
    first = [f"{Path(name).name} is row {k}" for k, name in enumerate(files[:2], start=1)]
    return Pairing(table.index, remark=f"in the order of the files: {', '.join(first)} ...")


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


def _is_counted(index: "pd.Index[Any]") -> bool:
    """Return whether an index is 0, 1 ... n - 1 in order."""
    return index.equals(pd.RangeIndex(len(index)))


def _check_counted(index: "pd.Index[Any]", where: str) -> None:
    """Raise InputError if an index is numbers other than 0, 1 ... n - 1 in order."""
    if is_numbers(index) and not _is_counted(index):
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


def _unmatched(
    names: Sequence[str], files: Sequence[str], rows: dict[int, int], source: str
) -> InputError:
    """Return the error for rows without a file, or files without a row."""
    check_unique(names, "file name", f"labels, {source}")
    lacking = [Path(file).name for k, file in enumerate(files) if k not in rows]
    if lacking:
        got = f"none for {len(lacking):,} of {len(files):,}, such as {lacking[0]!r}"
        remedy = "add their rows (empty cells: unknown), or leave the files out"
        return unexpected(f"labels, {source}", "a row for each image file", got, remedy)
    more = [name for row, name in enumerate(names) if row not in {*rows.values()}]
    got = f"{more[0]!r}, which names none ({len(more):,} of {len(names):,} rows)"
    return unexpected(f"labels, {source}", "names of image files", got, "leave such rows out")
