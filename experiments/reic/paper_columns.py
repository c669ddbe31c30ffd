"""Add the paper's figures to REIC's tables on drawn scenes."""

from collections.abc import Mapping, Sequence

import pandas as pd

from ..tables.layout import tables_of

COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "I": (("level", "relation"), ("precision", "recall", "F1")),
    "II": (("method",), ("eligible", "follow-ups", "violations")),
    "III": (("relation", "setting"), ("ambiguous", "disappeared", "retained", "reported")),
    "IV": (("relation", "setting"), ("distinct objects", "distinct images")),
    "V": (("relation", "oracle"), ("F1",)),
    "VI": (("error",), ("crop", "stretch", "rotate")),
}
"""Table -> the columns that identify a row, and the figures of the paper that are added."""


def with_paper(number: str, ours: pd.DataFrame) -> pd.DataFrame:
    """Return our table with a column "paper: ..." for each figure.

    A cell has the range over the paper's captioners and sets of images, and "" without figures.
    """
    keys, figures = COLUMNS[number]
    table = ours.copy()
    for figure in figures:
        ranges = _ranges(_published(number), keys, figure)
        rows = ours[list(keys)].itertuples(index=False, name=None)
        table[f"paper: {figure}"] = [ranges.get(row, "") for row in rows]
    return table


def _published(number: str) -> pd.DataFrame:
    """Return the paper's table with a row per captioner and row of ours."""
    paper = tables_of("reic")[number].published()
    if number != "VI":
        return paper.reset_index()
    paper.columns = pd.MultiIndex.from_tuples([tuple(str(name).split(", ")) for name in paper])
    return paper.stack(level=0, future_stack=True).reset_index()


def _ranges(paper: pd.DataFrame, keys: Sequence[str], figure: str) -> dict[tuple[object, ...], str]:
    """Return row -> the range of a figure over the paper's rows."""
    grouped = paper.groupby(list(keys))[figure].agg(["min", "max"])
    return {
        key if isinstance(key, tuple) else (key,): f"{low:g}"
        if low == high
        else f"{low:g}-{high:g}"
        for key, low, high in zip(grouped.index, grouped["min"], grouped["max"], strict=True)
    }
