"""What a census tells: a map of errors, exact rates, and figures per perturbation and class."""

from typing import Any

import pandas as pd
from markupsafe import Markup

from ...utils.figures import shown
from ..census import CONFIDENCE, tables
from ..result import frame as targets_of
from .evidence import Evidence
from .plots import MAX_ROWS, frame, table
from .section import Section, data

MAP = "Error by relation and concept"
TITLES = {
    "rates": "Exact rates, and intervals for other images of the same kind",
    "perturbations": "Per perturbation",
    "classes": "Per perturbation and class",
    "confusion": "Confusion: images by true class (rows) and predicted class (columns)",
}
WHOLE = ["kappa", "auc", "f1", "dice", "iou"]
"""Figures that nobody gives in per cent."""
HIDDEN = ["kind", "concept", "side", "rate", "relation", "severity", "group", "value", "filter"]
"""Columns of the rates that their names say in words."""


def map_section(evidence: Evidence) -> Section | None:
    """Mean loss per relation and concept; None while nothing was judged."""
    if not len(evidence.counted):
        return None
    return Section(MAP, "census-map", _map(evidence.counted))


def section(evidence: Evidence) -> Section:
    """The tables; those of the run folder have every row and column."""
    rates = targets_of(evidence.statuses)
    found = tables(evidence.facts, evidence.table, rates, evidence.calls)
    lead = Markup(
        "<p>Rates are exact for the questions that were asked. The intervals ({}, each by itself) "
        "are for other images, of which these are a random sample. tables/ in the run folder has "
        "all rows as CSV.</p>"
    ).format(f"{CONFIDENCE:.0%}")
    parts = [
        Markup("<h4>{}</h4>").format(TITLES[n]) + _shown(TITLES[n], t) for n, t in found.items()
    ]
    return Section("Tables", "census", lead + Markup("").join(parts))


def _shown(title: str, found: pd.DataFrame) -> Markup:
    if "target" in found:
        found = found.drop(columns=[c for c in HIDDEN if c in found])
    found = found.head(MAX_ROWS)
    every = found.select_dtypes("float").columns
    figures = every.difference(WHOLE)
    percents = found.copy()
    percents[every] = found[every].round(4)
    percents[figures] = (100 * found[figures]).round(2)
    return table(title, percents.rename(columns={c: f"{c}, %" for c in figures}))


def _map(counted: pd.DataFrame) -> Markup:
    means = counted.groupby(["relation", "concept"], sort=False)["loss"].mean()
    grid = 100 * means.unstack("concept", sort=False)
    cells = [[None if value != value else value for value in row] for row in grid.to_numpy()]
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": [*map(shown, grid.columns)],
        "y": [*map(shown, grid.index)],
        "z": cells,
        "zmin": 0,
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": "%"}, "thickness": 12},
        "hovertemplate": "%{y}, %{x}: %{z:.1f} %<extra></extra>",
    }
    layout = {"xaxis": {"dtick": 1}, "yaxis": {"autorange": "reversed", "dtick": 1}}
    heads = ["relation", *map(str, grid.columns)]
    rows = [
        [str(name), *("–" if v is None else f"{v:.1f} %" for v in row)]
        for name, row in zip(grid.index, cells, strict=True)
    ]
    figure = {"data": [trace], "layout": layout}
    return frame("census-map-plot", MAP, heads, rows) + data(
        "census-map-plot-data", {"all": figure}
    )
