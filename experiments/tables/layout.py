"""A table of a paper: its rows from runs, the published rows below, and the forms it is printed in.

A cell of a run is an estimate with its certified interval, or an exact figure. The papers print no
intervals.
"""

import json
import math
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from adaptive_vtt.errors import InputError
from adaptive_vtt.types import JsonObject
from adaptive_vtt.utils.files import write_text
from adaptive_vtt.utils.tables import csv_text, latex

from ..program import show

Key = tuple[str, ...]
"""Names of a row or of a column, one per level."""
PAPER = " (paper)"
"""After the name of a model whose figures are the paper's."""
FORMATS = {"csv": "csv", "latex": "tex", "markdown": "md"}
"""Format -> suffix of its files."""
SLACK = 1e-6
"""Part of the last digit that floating point may be off when a bound is rounded outward."""


@cache
def published(paper: str) -> JsonObject:
    """Return the figures of a paper as it prints them, from data/PAPER.json. Do not change it."""
    text = files(__package__).joinpath(f"data/{paper}.json").read_text(encoding="utf-8")
    figures: JsonObject = json.loads(text)
    return figures


class Cell(NamedTuple):
    """A figure of a run; ``lower`` and ``upper`` are NaN where it has no interval."""

    estimate: float
    lower: float = math.nan
    upper: float = math.nan

    @property
    def complement(self) -> "Cell":
        """1 less the figure: the accuracy of an error rate."""
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
    """Return the mean of figures; its interval holds where those of the cells hold together."""
    columns = zip(*cells, strict=True)
    return Cell(*(sum(column) / len(column) for column in map(list, columns)))


class Table:
    """A table of a paper with rows of runs above the published ones.

    Args:
        name: What its files are called, as "medtest-17-18".
        title: What it shows, and which tables of the paper it follows.
        levels: What the names of a row are of, as ("model", "set").
        scale: Factor of every figure, 100 for per cent.
        digits: Decimals of every figure.
        tenths: Columns, by their last name, whose figures have one decimal instead.
        marked: The level whose name says in published rows that they are the paper's; by default
            "model", or else the first. None: rows of the paper and of runs are the same.
    """

    def __init__(
        self,
        name: str,
        title: str,
        levels: Key,
        *,
        scale: float = 1,
        digits: int = 3,
        tenths: Sequence[str] = (),
        marked: str | None = "",
    ) -> None:
        self.name, self.title, self.levels = name, title, levels
        self.scale, self._digits, self._tenths = scale, digits, tenths
        self._marked = marked or ("model" if "model" in levels else levels[0])
        if marked is None:
            self._marked = ""
        self.ours: dict[Key, dict[Key, Cell]] = {}
        self._published: dict[Key, dict[Key, Cell]] = {}

    def add(self, row: Key, column: Key, cell: Cell, folder: Path) -> None:
        """Set a cell of a run. Raise InputError where another run has set it."""
        cells = self.ours.setdefault(row, {})
        if column in cells:
            raise InputError(
                f"{folder}: {self.title}: another run has the cell {', '.join(row + column)} "
                "already; name one of them differently, as RUN=MODEL@SET"
            )
        cells[column] = cell

    def publish(self, row: Key, columns: Sequence[Key], values: Sequence[float | None]) -> None:
        """Set a row of the paper; its figures are ``scale`` times those of cells."""
        cells = {
            column: Cell(math.nan if value is None else value / self.scale)
            for column, value in zip(columns, values, strict=True)
        }
        self._published.setdefault(self._of_paper(row), {}).update(cells)

    def published_cell(self, row: Key, column: Key, cell: Cell) -> None:
        """Set one cell of the paper that has an interval."""
        self._published.setdefault(self._of_paper(row), {})[column] = cell

    def _of_paper(self, row: Key) -> Key:
        named = zip(self.levels, row, strict=True)
        return tuple(name + PAPER * (level == self._marked) for level, name in named)

    def frame(self, intervals: bool = True) -> pd.DataFrame:
        """Return the table as text, a column per level of the rows first."""
        tables = self._published, self.ours
        columns = dict.fromkeys(c for table in tables for cells in table.values() for c in cells)
        digits = {column: 1 if column[-1] in self._tenths else self._digits for column in columns}
        records = []
        for row in dict.fromkeys([*self.ours, *self._published]):
            cells = self._published.get(row, {}) | self.ours.get(row, {})
            shown = {column: cells.get(column, Cell(math.nan)) for column in columns}
            texts = (c.text(self.scale, digits[at], intervals) for at, c in shown.items())
            records.append([*row, *texts])
        return pd.DataFrame(records, columns=[*self.levels, *map(", ".join, columns)])

    def text(self, form: str) -> str:
        """Return the table as "csv", "latex" (estimates alone, as papers print them) or
        "markdown"."""
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


def _markdown(frame: pd.DataFrame) -> str:
    rows = [[*map(str, frame.columns)], ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
    lines = (" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows)
    return "".join(f"| {line} |\n" for line in lines)
