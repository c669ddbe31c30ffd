"""Tables of ``beliefs`` checkpoint by checkpoint, in the columns that figures are drawn of.

A trace of a figure is *bound* to such a table. Its ``meta`` holds the name of the table (``of``),
the groups shown (``at``) and the column of each of its attributes (``bind``). ``at`` has numbers of
rows of one moment, nested as the trace has its values, None if there is no such group. So a
figure of one moment can be turned to any other (``turned``); believed.js does the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...types import JsonObject
from ...utils.figures import percent, span
from ...utils.figures import shown as as_text
from ..outcomes import SURE
from .tables import TableName

SMALLEST, LARGEST = 5, 22
"""Diameters, in pixels, of a dot whose size shows a count."""


class Group(NamedTuple):
    """The questions of a row; None stands for all."""

    concept: str | None
    relation: str | None
    severity: int | None

    @property
    def words(self) -> str:
        return ", ".join(str(name) for name in self if name is not None)


@dataclass(frozen=True)
class Moments:
    """A table of beliefs, a moment after the other.

    Attributes:
        of: The name of the table.
        draws: Draws made by each moment.
        groups: The groups of each moment.
        columns: Column name -> per moment a value per group, None if it is not known. They are
            the columns of the table and some more. ``raw`` is the share of failures among questions
            asked, ``difference`` predicted - raw, ``fresh`` draws since the moment before.
            ``above`` and ``below`` are the reach of the 95 % band of the predicted loss, ``middle``
            and ``reach`` those of the certified interval. ``size`` and ``fresh_size`` are of dots,
            ``text`` has all of it in words.
    """

    of: TableName
    draws: list[int]
    groups: list[Group]
    columns: dict[str, list[list[Any]]]

    @classmethod
    def read(cls, of: TableName, table: pd.DataFrame, most: int | None = None) -> "Moments":
        """Return the moments of a table of ``beliefs``, evenly spread and with the last one, so
        that a column has ``most`` values at the most."""
        draws = table["draws"].drop_duplicates().tolist()
        count = len(table) // max(len(draws), 1)
        kept = len(draws) if most is None else max(1, min(len(draws), most // max(count, 1)))
        places = np.unique(np.linspace(len(draws) - 1, 0, kept).round().astype(int))
        chosen = [draws[k] for k in places]
        rows = _derived(table[table["draws"].isin(chosen)].reset_index(drop=True), count)
        # a copy: the arrays that pandas hands out may be read-only
        values = {str(name): np.array(rows[name], object) for name in rows}
        for column in values.values():
            column[pd.isna(column)] = None
        groups = zip(*(values.pop(name)[:count] for name in Group._fields), strict=True)
        values.pop("draws")
        columns = {n: v.reshape(-1, max(count, 1)).tolist() for n, v in values.items()}
        return cls(of, chosen, [Group(*names) for names in groups], columns)

    def last(self, column: str) -> list[Any]:
        """Return a column at the last moment; [] without any moment."""
        return self.columns[column][-1] if self.draws else []

    def late(self, column: str) -> list[Any]:
        """Return all known values of a column in the later half of the moments."""
        half = self.columns[column][len(self.draws) // 2 :]
        return [value for values in half for value in values if value is not None]

    @property
    def certifies(self) -> bool:
        """True if any group has a certified interval at the last moment."""
        return any(value is not None for value in self.last("middle"))

    @property
    def predicts(self) -> bool:
        """True if any loss is predicted."""
        return any(value is not None for values in self.columns["predicted"] for value in values)


Reader = Callable[[TableName], Moments]
"""Gives the moments of a table by its name."""


def reader(table: Callable[[TableName], pd.DataFrame], most: int | None = None) -> Reader:
    """Return a reader of tables, each read once.

    Args:
        table: Gives a table of ``beliefs`` by its name.
        most: Values of a column, at most; None for all.
    """
    return cache(lambda of: Moments.read(of, table(of), most))


def bound(trace: JsonObject, moments: Moments, at: Any, **bind: str) -> JsonObject:
    """Return a trace bound to ``moments``, which lacks the values that stand there. The keyword
    error_y__array stands for the attribute error_y.array."""
    paths = {path.replace("__", "."): column for path, column in bind.items()}
    meta = {**trace.get("meta", {}), "of": moments.of, "at": at, "bind": paths}
    return {**trace, "meta": meta}


def turned(trace: JsonObject, tables: Mapping[Any, Moments], k: int) -> JsonObject:
    """Return a trace with the values of moment ``k`` where it is bound to a table."""
    meta = trace.get("meta", {})
    for path, column in meta.get("bind", {}).items():
        moments = tables[meta["of"]].columns[column]
        values = values_at(moments[k] if moments else [], meta["at"])
        outer, dot, inner = path.partition(".")
        trace = {**trace, outer: {**trace.get(outer, {}), inner: values} if dot else values}
    return trace


def values_at(values: list[Any], at: Any) -> Any:
    """Return the values at a place, or at nested lists of places; None stays None."""
    if isinstance(at, list):
        return [values_at(values, place) for place in at]
    return None if at is None else values[at]


def predicted_text(row: Mapping[Any, Any], more: str = "") -> list[str]:
    """Return a prediction in words, followed by ``more``; [] if there is none."""
    if row["predicted"] is None:
        return []
    sd = "" if row["sd"] is None else f", sd {100 * row['sd']:.1f}"
    return [f"expected error {percent(row['predicted'])}{sd}{more}"]


def _derived(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return ``table``, moments of ``count`` rows one after the other, with all columns."""

    def sizes(counts: pd.Series) -> pd.Series:
        return (SMALLEST + 2 * np.sqrt(counts)).clip(upper=LARGEST).round(1).where(counts > 0, 0.0)

    raw = table["failed"] / table["asked"].where(table["asked"] > 0)
    predicted, band = table["predicted"], SURE * table["sd"]
    fresh = table["drawn"] - table["drawn"].shift(count, fill_value=0)
    derived = table.assign(
        raw=raw,
        difference=predicted - raw,
        above=(predicted + band).clip(0, 1) - predicted,
        below=predicted - (predicted - band).clip(0, 1),
        middle=(table["lower"] + table["upper"]) / 2,
        reach=(table["upper"] - table["lower"]) / 2,
        size=sizes(table["asked"]),
        fresh=fresh,
        fresh_size=sizes(fresh),
    )
    known = derived.astype(object).where(derived.notna(), None)
    return derived.assign(text=[_text(row) for row in known.to_dict("records")])


def _text(row: Mapping[Any, Any]) -> str:
    names = (row[name] for name in Group._fields)
    lines = [as_text(", ".join(str(name) for name in names if name is not None))]
    known = row["spread"] is not None
    lines += predicted_text(row, f"; single answers: sd {100 * row['spread']:.1f}" if known else "")
    raw = "" if row["raw"] is None else f" ({percent(row['raw'])})"
    lines.append(f"{row['failed']} of {row['asked']} questions asked failed{raw}")
    if row["difference"] is not None:
        lines.append(f"expected minus observed: {100 * row['difference']:+.1f} points")
    if row["lower"] is not None:
        lines.append(f"certified: {span(row['lower'], row['upper'])}")
    return "<br>".join(lines)
