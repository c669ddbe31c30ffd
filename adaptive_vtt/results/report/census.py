"""What a census tells: a map of errors, exact rates, and figures per perturbation and class."""

import pandas as pd
from markupsafe import Markup

from ...utils.figures import ERRORS, shown
from ..census import CONFIDENCE, tables
from ..result import frame as targets_of
from .evidence import Evidence
from .plots import frame
from .section import MAX_ROWS, Section, data, table

MAP = "Error by relation and concept"
TITLES = {
    "rates": "Exact rates",
    "perturbations": "By image change",
    "classes": "By image change and class",
    "confusion": "Confusion matrix: true classes by row, predicted classes by column",
}
WHOLE = ["kappa", "auc", "f1", "dice", "iou"]
"""Figures that nobody gives in per cent."""
HIDDEN = ["kind", "concept", "side", "rate", "relation", "severity", "group", "value", "filter"]
"""Columns of the rates that their names say in words."""


def map_section(evidence: Evidence) -> Section | None:
    """Show mean loss per relation and concept; None while nothing was judged."""
    if not len(evidence.counted):
        return None
    means = evidence.counted.groupby(["relation", "concept"], sort=False)["loss"].mean()
    grid = 100 * means.unstack("concept", sort=False)
    cells = [[None if value != value else value for value in row] for row in grid.to_numpy()]
    trace = {
        "type": "heatmap",
        "x": [*map(shown, grid.columns)],
        "y": [*map(shown, grid.index)],
        "z": cells,
        "zmin": 0,
        "colorscale": ERRORS,
        "colorbar": {"title": {"text": "%"}, "thickness": 12},
        "hovertemplate": "%{y}, %{x}: %{z:.1f} %<extra></extra>",
    }
    layout = {"xaxis": {"dtick": 1}, "yaxis": {"autorange": "reversed", "dtick": 1}}
    heads = ["relation", *map(str, grid.columns)]
    rows = [
        [str(name), *("–" if v is None else f"{v:.1f} %" for v in row)]
        for name, row in zip(grid.index, cells, strict=True)
    ]
    drawn = data("census-map-plot-data", {"all": {"data": [trace], "layout": layout}})
    return Section(MAP, "census-map", frame("census-map-plot", MAP, heads, rows) + drawn)


def section(evidence: Evidence) -> Section:
    """Show the tables; those of the run folder have every row and column."""
    rates = targets_of(evidence.run.statuses)
    made = tables(evidence.facts, evidence.table, rates, evidence.calls)
    parts = [(TITLES[name], _shown(TITLES[name], rows)) for name, rows in made.items()]
    sure = f"{CONFIDENCE:.0%}"
    return Section.of(evidence, "Tables", "census", "census.html", parts=parts, confidence=sure)


def _shown(title: str, rows: pd.DataFrame) -> Markup:
    if "target" in rows:
        rows = rows.drop(columns=[c for c in HIDDEN if c in rows])
    rows = rows.head(MAX_ROWS)
    every = rows.select_dtypes("float").columns
    figures = every.difference(WHOLE)
    percents = rows.copy()
    percents[every] = rows[every].round(4)
    percents[figures] = (100 * rows[figures]).round(2)
    return table(title, percents.rename(columns={c: f"{c}, %" for c in figures}))
