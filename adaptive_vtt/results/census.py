"""A census in its folder: what its files tell, and its page, made of census.json alone.

``avtt census`` writes the page; ``avtt report`` and ``avtt view`` make it anew. Nothing that stands
in the folder is executed, and no image or label is needed.
"""

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
from markupsafe import Markup
from pydantic import BaseModel, Field, NonNegativeInt

from ..errors import JournalError
from ..journal.files import JOURNAL, RECORD, connect_to_read
from ..types import JsonObject
from ..utils.figures import shown
from ..utils.files import write_text
from .report.plots import MAX_ROWS, figure_page, frame, table
from .report.section import data

TOLD, PAGE = "census.json", "census.html"
"""What a finished census is called, for programs and for people."""
CONFIDENCE = 0.95
"""Of an interval for other images, each by itself."""
MAP = "Error by relation and concept"
TITLES = {
    "perturbations": "Per perturbation",
    "rates": "Exact rates, and intervals for others of the same kind",
    "classes": "Per perturbation and class",
    "derived": "What follows from the rates",
}
"""In the order of the page."""
WHOLE = ["kappa", "auc", "f1", "value"]
"""Figures that nobody gives in per cent."""
SHOWN = ["target", "exact", "questions", "unanswered", "images", "lower", "upper"]
"""Of the rates; the files have what every target is about as well."""


class _Rate(BaseModel):
    exact: Annotated[float, Field(ge=0, le=1)] | None


class _Told(BaseModel):
    census: str
    model: str
    head: str
    calls: NonNegativeInt
    questions: NonNegativeInt
    rates: list[_Rate]
    classes: list[JsonObject]


class Kept(NamedTuple):
    """What stands in a record: what the census is of, batches, and the last seal, "" of none."""

    facts: JsonObject
    batches: int
    head: str


def holds_census(folder: Path) -> bool:
    """Whether the record of a census stands there, and no audit."""
    return (folder / RECORD).is_file() and not (folder / JOURNAL).exists()


def kept(folder: Path) -> Kept:
    """The record of a census, which may be under way; seals are not verified."""
    with closing(connect_to_read(folder / RECORD)) as record:
        facts = {name: json.loads(value) for name, value in record.execute("SELECT * FROM fact")}
        seals = record.execute("SELECT seal FROM batch ORDER BY number").fetchall()
    return Kept(facts, len(seals), str(seals[-1][0]) if seals else "")


def way(folder: Path) -> str:
    """The command that goes on with it."""
    return f"'avtt census SPEC.toml --out {shlex.quote(str(folder))}'"


def told(folder: Path) -> JsonObject:
    """What census.json holds. Raises JournalError unless it is about all that was answered."""
    try:
        found: JsonObject = json.loads((folder / TOLD).read_text())
        if _Told.model_validate(found).head == kept(folder).head:
            return found
    except (OSError, ValueError, sqlite3.Error):
        pass
    raise JournalError(
        f"{folder / TOLD}: expected the tables of what {RECORD} holds, which a finished census "
        f"writes; {way(folder)} does so, and asks nothing twice"
    )


def write_page(folder: Path) -> Path:
    """Writes census.html of census.json; gives its path. Raises JournalError as ``told`` does."""
    write_text(folder / PAGE, page(told(folder)))
    return folder / PAGE


def page(census: JsonObject) -> str:
    """One HTML file that needs no network, of what census.json holds."""
    lead = (
        f"{census['model']}: every one of {census['questions']:,} questions was asked, in "
        f"{census['calls']:,} calls. Rates are exact for what was asked about. Intervals "
        f"({CONFIDENCE:.0%}, each by itself) are for others, of which these are a random sample. "
        "All tables are in tables/, for spreadsheets and for LaTeX."
    )
    tables = {title: pd.DataFrame(census[name]) for name, title in TITLES.items() if name in census}
    parts = [(title, _shown(title, found)) for title, found in tables.items()]
    chart = _map(pd.DataFrame(census["classes"]))
    return figure_page(f"Census: {census['census']}", lead, [(MAP, chart), *parts])


def _shown(title: str, found: pd.DataFrame) -> Markup:
    columns = SHOWN if {*SHOWN} <= {*found} else [*found]
    found = found[columns].head(MAX_ROWS)
    every = found.select_dtypes("float").columns
    figures = every.difference(WHOLE)
    percents = found.copy()
    percents[every] = found[every].round(4)
    percents[figures] = (100 * found[figures]).round(2)
    return table(title, percents.rename(columns={c: f"{c}, %" for c in figures}))


def _map(classes: pd.DataFrame) -> Markup:
    """Mean loss per relation and concept, from those of every severity."""
    found = classes.reindex(columns=["relation", "concept", "questions", "error"])
    found["lost"] = found["error"].astype(float) * found["questions"]
    of: dict[str, Any] = {"index": "relation", "columns": "concept", "aggfunc": "sum"}
    of["sort"] = False
    grid = 100 * found.pivot_table("lost", **of) / found.pivot_table("questions", **of)
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
        "layout": {"xaxis": {"dtick": 1}, "yaxis": {"autorange": "reversed", "dtick": 1}},
    }
    heads = ["relation", *map(str, grid.columns)]
    rows = [
        [str(name), *("–" if v is None else f"{v:.1f} %" for v in row)]
        for name, row in zip(grid.index, cells, strict=True)
    ]
    return frame("map", MAP, heads, rows) + data("map-data", {"all": figure})
