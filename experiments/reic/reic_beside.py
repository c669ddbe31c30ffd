"""REIC's tables on drawn scenes beside the paper's."""

from collections.abc import Mapping, Sequence
from functools import cache

import pandas as pd

from adaptive_vtt.errors import unknown
from adaptive_vtt.results.report.published import published_tables

SHOWN: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "I": (("level", "relation"), ("precision", "recall", "F1")),
    "II": (("method",), ("eligible", "follow-ups", "violations")),
    "III": (("relation", "setting"), ("ambiguous", "disappeared", "retained", "reported")),
    "IV": (("relation", "setting"), ("distinct objects", "distinct images")),
    "V": (("relation", "oracle"), ("F1",)),
    "VI": (("error",), ("crop", "stretch", "rotate")),
}
"""Table -> the columns that say what a row is about, and the figures of the paper's shown."""


NUMBERS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")


@cache
def table(number: str) -> pd.DataFrame:
    """A table of the paper, a row per figure or group of figures; relations by our names.

    Kept: never write to it. Raises InputError for a number that is none of NUMBERS.
    """
    if number not in NUMBERS:
        raise unknown("table", number, NUMBERS, "REIC's published tables")
    found = published_tables("reic")[number]
    return pd.DataFrame(found["rows"], columns=found["columns"])


def beside(number: str, ours: pd.DataFrame) -> pd.DataFrame:
    """Ours with a column "paper: ..." for each figure: the least and the most of its captioners
    and sets of images, "" where it has none."""
    keys, figures = SHOWN[number]
    found = ours.copy()
    for figure in figures:
        ranges = _ranges(_published(number), keys, figure)
        rows = ours[list(keys)].itertuples(index=False, name=None)
        found[f"paper: {figure}"] = [ranges.get(row, "") for row in rows]
    return found


def _published(number: str) -> pd.DataFrame:
    """A row per captioner and whatever ours has a row for."""
    paper = table(number)
    if number != "VI":
        return paper
    wide = paper.pivot(index=["captioner", "error"], columns="relation", values="count")
    return wide.reset_index()


def _ranges(paper: pd.DataFrame, keys: Sequence[str], figure: str) -> dict[tuple[object, ...], str]:
    grouped = paper.groupby(list(keys))[figure].agg(["min", "max"])
    return {
        key if isinstance(key, tuple) else (key,): f"{low:g}"
        if low == high
        else f"{low:g}-{high:g}"
        for key, low, high in zip(grouped.index, grouped["min"], grouped["max"], strict=True)
    }
