"""Tables of papers, with rows of runs above the published ones, and their formats.

A cell of a run is an estimate with its certified interval, or an exact figure. The papers print no
intervals.
"""

import json
import math
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from adaptive_vtt.errors import InputError
from adaptive_vtt.results.outcomes import clopper_pearson
from adaptive_vtt.types import JsonObject
from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.tables import csv_text, latex

from ..program import show

Key = tuple[str, ...]
"""Names of a row or of a column, one per level."""
PAPER = " (paper)"
"""Suffix of the names of models whose figures are the paper's."""
FORMATS = {"csv": "csv", "latex": "tex", "markdown": "md"}
"""Format -> suffix of its files."""
SHARED = {"error"}
"""First levels whose rows are the same in the paper and in runs, which differ in their columns."""
SLACK = 1e-6
"""Part of the last digit that floating point may be off when a bound is rounded outward."""


class Cell(NamedTuple):
    """A figure of a run; ``lower`` and ``upper`` are NaN without an interval."""

    estimate: float
    lower: float = math.nan
    upper: float = math.nan

    @property
    def complement(self) -> "Cell":
        """1 minus the figure, such as the accuracy of an error rate."""
        return Cell(1 - self.estimate, 1 - self.upper, 1 - self.lower)

    def text(self, scale: float, digits: int, intervals: bool) -> str:
        """Return the figure as it is printed; its interval is rounded outward."""
        if math.isnan(self.estimate):
            return "–"
        estimate = f"{round(scale * self.estimate, digits) + 0.0:.{digits}f}"  # no minus zero
        if not intervals or not self.upper > self.lower:
            return estimate
        step = 10**digits
        low = math.floor(scale * self.lower * step + SLACK) / step
        high = math.ceil(scale * self.upper * step - SLACK) / step
        # a minus sign instead of a hyphen, which a spreadsheet would read as a formula
        return f"{estimate} ({low:.{digits}f} to {high:.{digits}f})".replace("-", "−")


def mean(cells: Iterable[Cell]) -> Cell:
    """Return the mean of figures; its interval holds if all those of the cells hold."""
    columns = zip(*cells, strict=True)
    return Cell(*(sum(column) / len(column) for column in map(list, columns)))


class Table:
    """A table of a paper with rows of runs above the published ones.

    Args:
        name: Name of its files, such as "medtest-17-18".
        content: Its "title"; "levels", the kinds of a row's names; "columns", the names of each
            column; "rows", the names and the printed figures of each row; and optionally "scale",
            the factor of all figures (100 for per cent), "digits", the number of decimals, and
            "tenths", the last names of columns with one decimal.
    """

    def __init__(self, name: str, content: JsonObject) -> None:
        self.name, self.title = name, content["title"]
        self.levels: Key = tuple(content["levels"])
        self.columns: list[Key] = [*map(tuple, content["columns"])]
        self.scale, self._digits = content.get("scale", 1), content.get("digits", 3)
        self._tenths = content.get("tenths", ())
        self.ours: dict[Key, dict[Key, Cell]] = {}
        self._published = {
            tuple(names): dict(zip(self.columns, map(self._cell_of, figures), strict=True))
            for names, figures in content["rows"]
        }

    def _cell_of(self, figure: float | list[int] | None) -> Cell:
        """Return the cell of a published figure, or of numbers of right answers and questions."""
        if isinstance(figure, list):
            right, asked = figure
            return Cell(right / asked, *map(float, clopper_pearson(right / asked, asked, 0.95)))
        return Cell(math.nan if figure is None else figure / self.scale)

    def printed(self, *names: str) -> dict[str, float]:
        """Return one published row as it is printed, by column."""
        row = self._published[names]
        return {", ".join(column): self.scale * cell.estimate for column, cell in row.items()}

    def published(self) -> pd.DataFrame:
        """Return the published figures as they are printed, indexed by the names of rows.

        Several names of a column are joined by ", ".
        """
        rows = [self.printed(*names) for names in self._published]
        return pd.DataFrame(rows, pd.MultiIndex.from_tuples(self._published, names=self.levels))

    def add(self, row: Key, column: Key, cell: Cell, folder: Path) -> None:
        """Set a cell of a run. Raise InputError if another run has set it."""
        cells = self.ours.setdefault(row, {})
        if column in cells:
            raise InputError(
                f"{folder}: {self.title}: another run has the cell {', '.join(row + column)} "
                "already; name one of them differently, as RUN=MODEL@SET"
            )
        cells[column] = cell

    def frame(self, intervals: bool = True) -> pd.DataFrame:
        """Return the table as text, a column per level of the rows first."""
        marked = self.levels.index("model") if "model" in self.levels else 0
        rows = dict(self.ours)
        for names, cells in self._published.items():
            if self.levels[0] not in SHARED:  # else a row of the paper is one of the run, too
                names = *names[:marked], names[marked] + PAPER, *names[marked + 1 :]
            rows[names] = {**cells, **rows.get(names, {})}
        columns = dict.fromkeys([*self.columns, *(c for row in rows.values() for c in row)])
        digits = {column: 1 if column[-1] in self._tenths else self._digits for column in columns}
        records = []
        for names, cells in rows.items():
            texts = (
                cells.get(at, Cell(math.nan)).text(self.scale, digits[at], intervals)
                for at in columns
            )
            records.append([*names, *texts])
        return pd.DataFrame(records, columns=[*self.levels, *map(", ".join, columns)])

    def text(self, form: str) -> str:
        """Return the table as "csv", "markdown", or "latex", which has estimates alone."""
        if form == "csv":
            return csv_text(self.frame())
        if form == "latex":
            return latex(self.frame(intervals=False), self.name, self.title)
        return _markdown(self.frame())

    def show(self) -> None:
        """Print the table to the terminal."""
        show(self.frame().set_index([*self.levels]), self.title, index=True)

    def write(self, folder: Path) -> None:
        """Write the table in every format to NAME.SUFFIX in ``folder``."""
        for form, suffix in FORMATS.items():
            write_text(folder / f"{self.name}.{suffix}", self.text(form))


def tables_of(paper: str) -> dict[str, Table]:
    """Return the tables of a paper by number, with the published rows alone (data/PAPER.json)."""
    text = files(__package__).joinpath(f"data/{paper}.json").read_text(encoding="utf-8")
    content: JsonObject = json.loads(text)
    del content["source"]
    return {number: Table(f"{paper}-{number}", table) for number, table in content.items()}


def _markdown(frame: pd.DataFrame) -> str:
    rows = [[*map(str, frame.columns)], ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
    lines = (" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows)
    return "".join(f"| {line} |\n" for line in lines)
