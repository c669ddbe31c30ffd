"""A census as a page: what it is of, its tables, and error by relation and concept as a figure."""

from collections.abc import Mapping

import pandas as pd
from markupsafe import Markup

from ...results.report.plots import figure_page, frame, table
from ...results.report.section import data
from ...utils.figures import shown

MAP = "Error by relation and concept"
TITLES = {
    "rates": "Exact rates, and intervals for other images of the same kind",
    "perturbations": "Per perturbation",
    "classes": "Per perturbation and class",
    "derived": "What follows from the rates",
    "beside-medtest": "Beside MedTest (error rates)",
    "beside-medmnistc": "Beside MedMNIST-C, Table 2",
    "beside-reic": "Beside REIC, Table I",
    "beside-endobench": "Beside EndoBench, Tables 2, 3, 5 and 6 (accuracies)",
}
"""In the order of the page."""
WHOLE = ["kappa", "auc", "f1", "value"]
"""Figures that nobody gives in per cent."""
MAX_ROWS = 400
"""Rows of a table that the page shows; the files have all."""
SHOWN = ["target", "exact", "questions", "unanswered", "images", "lower", "upper"]
"""Of the rates; the files have what every target is about as well."""


def page(name: str, lead: str, tables: Mapping[str, pd.DataFrame], outcomes: pd.DataFrame) -> str:
    """One HTML file that needs no network; ``tables`` and ``outcomes`` as of a CensusResult."""
    there = {title: tables[name] for name, title in TITLES.items() if name in tables}
    parts = [(title, _shown(title, found)) for title, found in there.items()]
    return figure_page(f"Census: {name}", lead, [(MAP, _map(outcomes)), *parts])


def _shown(title: str, found: pd.DataFrame) -> Markup:
    columns = SHOWN if {*SHOWN} <= {*found} else [*found]
    found = found[columns].head(MAX_ROWS)
    figures = found.select_dtypes("float").columns.difference(WHOLE)
    percents = found.copy()
    percents[figures] = (100 * found[figures]).round(2)
    return table(title, percents.rename(columns={c: f"{c}, %" for c in figures}))


def _map(outcomes: pd.DataFrame) -> Markup:
    """Mean loss per relation and concept."""
    means = outcomes.groupby(["relation", "concept"], observed=True)["loss"].mean()
    grid = 100 * means.unstack()
    cells = [[None if value != value else value for value in row] for row in grid.to_numpy()]
    figure = {
        "data": [
            {
                "type": "heatmap",
                "x": [*map(shown, grid.columns)],
                "y": [*map(shown, grid.index)],
                "z": cells,
                "zmin": 0,
                "colorscale": "Viridis",
                "colorbar": {"title": {"text": "%"}, "thickness": 12},
                "hovertemplate": "%{y}, %{x}: %{z:.1f} %<extra></extra>",
            }
        ],
        "layout": {"yaxis": {"autorange": "reversed"}},
    }
    heads = ["relation", *map(str, grid.columns)]
    rows = [
        [str(name), *("–" if v is None else f"{v:.1f} %" for v in row)]
        for name, row in zip(grid.index, cells, strict=True)
    ]
    return frame("map", MAP, heads, rows) + data("map-data", {"all": figure})
