"""Tables of ``beliefs`` moment by moment, in the columns that figures are drawn of.

A trace of a figure is *bound* to such a table: its ``meta`` names the table (``of``), the groups
that it shows (``at``: numbers of rows of one moment, nested as the trace has its values, None
where there is no such group) and the column that each of its attributes is taken from (``bind``).
So a figure of one moment can be turned to any other (``turned``); believed.js does the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...types import JsonObject
from ...utils.figures import percent, span
from ...utils.figures import shown as as_text
from ..outcomes import SURE

SMALLEST, LARGEST = 5, 22
"""Of a dot whose size tells of a count, in pixels."""


class Group(NamedTuple):
    """Which questions are told of; None: all."""

    concept: str | None
    relation: str | None
    severity: int | None

    @property
    def words(self) -> str:
        return ", ".join(str(name) for name in self if name is not None)


@dataclass(frozen=True)
class Moments:
    """``draws``: the moments. ``groups``: those of each. ``columns``: by name, per moment a value
    per group, None where it is not known.

    Beside those of the table: ``raw``, the share of failures among those asked; ``difference``,
    predicted - raw; ``above`` and ``below``, how far the 95 % band of the predicted loss reaches;
    ``middle`` and ``reach`` of the certified interval; ``fresh``, draws since the moment before;
    ``size`` and ``fresh_size`` of dots; ``said``, all of it in words.
    """

    draws: list[int]
    groups: list[Group]
    columns: dict[str, list[list[Any]]]

    @classmethod
    def of(cls, table: pd.DataFrame, most: int | None = None) -> "Moments":
        """``table``: of ``beliefs``; ``most``: values of a column, at most: moments are left out,
        as evenly as can be, but never the last."""
        draws = table["draws"].drop_duplicates().tolist()
        count = len(table) // max(len(draws), 1)
        kept = len(draws) if most is None else max(1, min(len(draws), most // max(count, 1)))
        places = np.unique(np.linspace(len(draws) - 1, 0, kept).round().astype(int))
        chosen = [draws[k] for k in places]
        told = _derived(table[table["draws"].isin(chosen)].reset_index(drop=True), count)
        names = told[["concept", "relation", "severity"]].head(count).to_numpy(object).tolist()
        groups = [Group(*(None if pd.isna(name) else name for name in row)) for row in names]
        columns = {
            str(name): _plain(values).reshape(-1, max(count, 1)).tolist()
            for name, values in told.items()
            if name not in (*Group._fields, "draws")
        }
        return cls(chosen, groups, columns)

    def known(self, column: str, k: int = -1) -> list[Any]:
        """What is known of a column at moment ``k``."""
        return [value for value in self.columns[column][k] if value is not None]

    @cached_property
    def certifies(self) -> bool:
        """Whether any group has a certified interval in the end."""
        return bool(self.known("middle"))

    @cached_property
    def predicts(self) -> bool:
        """Whether losses are predicted at all."""
        return any(value is not None for values in self.columns["predicted"] for value in values)


def bound(trace: JsonObject, moments: Moments, of: str, at: Any, **bind: str) -> JsonObject:
    """The trace, bound, with its values of the last moment. In ``bind`` error_y__array stands for
    the attribute error_y.array."""
    paths = {path.replace("__", "."): column for path, column in bind.items()}
    meta = {**trace.get("meta", {}), "of": of, "at": at, "bind": paths}
    return turned({**trace, "meta": meta}, {of: moments}, -1)


def turned(trace: JsonObject, tables: Mapping[str, Moments], k: int) -> JsonObject:
    """A bound trace at moment ``k``."""
    meta = trace["meta"]
    for path, column in meta["bind"].items():
        values = tables[meta["of"]].columns[column]
        taken = _taken(values[k] if values else [], meta["at"])
        outer, dot, inner = path.partition(".")
        trace = {**trace, outer: {**trace.get(outer, {}), inner: taken} if dot else taken}
    return trace


def unbound(trace: JsonObject) -> JsonObject:
    """The trace without the values that its tables have."""
    paths = trace["meta"]["bind"]
    outer = {path.split(".")[0] for path in paths if "." in path}
    parts = {
        name: {k: v for k, v in trace[name].items() if f"{name}.{k}" not in paths} for name in outer
    }
    return {name: v for name, v in (trace | parts).items() if name not in paths}


def _taken(values: list[Any], at: Any) -> Any:
    if isinstance(at, list):
        return [_taken(values, one) for one in at]
    return None if at is None else values[at]


def _derived(table: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return ``table``, moments of ``count`` rows one after the other, with the columns of
    ``Moments``."""
    raw = table["failed"] / table["asked"].where(table["asked"] > 0)
    predicted, sd = table["predicted"], table["sd"]
    fresh = table["drawn"] - table["drawn"].shift(count, fill_value=0)
    derived = table.assign(
        raw=raw,
        difference=predicted - raw,
        above=(predicted + SURE * sd).clip(0, 1) - predicted,
        below=predicted - (predicted - SURE * sd).clip(0, 1),
        middle=(table["lower"] + table["upper"]) / 2,
        reach=(table["upper"] - table["lower"]) / 2,
        size=_sizes(table["asked"]),
        fresh=fresh,
        fresh_size=_sizes(fresh),
    )
    return derived.assign(said=[_words(row) for row in derived.to_dict("records")])


def _sizes(counts: pd.Series) -> pd.Series:
    """Return diameters of dots, in pixels; none, 0, where there is nothing."""
    return (SMALLEST + 2 * np.sqrt(counts)).clip(upper=LARGEST).round(1).where(counts > 0, 0.0)


def predicted_words(row: Mapping[Any, Any], more: str = "") -> list[str]:
    """Return what is predicted in words, then ``more``; nothing where nothing is."""
    if row["predicted"] != row["predicted"]:
        return []
    sd = "" if row["sd"] != row["sd"] else f", sd {100 * row['sd']:.1f}"
    return [f"expected error {percent(row['predicted'])}{sd}{more}"]


def _words(row: Mapping[Any, Any]) -> str:
    names = [row[name] for name in Group._fields]
    lines = [as_text(Group(*(None if pd.isna(name) else name for name in names)).words)]
    lines += predicted_words(row, f"; single answers: sd {100 * row['spread']:.1f}")
    raw = "" if row["raw"] != row["raw"] else f" ({percent(row['raw'])})"
    lines.append(f"{row['failed']} of {row['asked']} questions asked failed{raw}")
    if row["difference"] == row["difference"]:
        lines.append(f"expected minus observed: {100 * row['difference']:+.1f} points")
    if row["lower"] == row["lower"]:
        lines.append(f"certified: {span(row['lower'], row['upper'])}")
    return "<br>".join(lines)


def _plain(values: Any) -> Any:
    """(n,) of objects, as Python has them, None for what is not known."""
    objects = np.array(values, object)  # a copy: what pandas hands out may be read-only
    objects[pd.isna(objects)] = None
    return objects
