"""Figures of the page: Plotly's, drawn by plots.js in the page's colours, with their numbers.

A figure is what ``plotly.graph_objects.Figure`` takes: data and layout. Its colours are those of
``COLOURS``; plots.js puts those of the page, light or dark, in their place. Plotly renders some
HTML in names, titles and labels: text that is not written here is escaped by ``shown``.
"""

from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...types import Floats, JsonObject
from ...utils.figures import COLOURS, shown
from .section import THIN, amount, data, fragment

ROWS, COLUMNS = 10, 6
"""Size of the table that stands for a figure, at most."""
NEAR_TOP = 0.9
"""A level above this share of the axis has its words below its line."""

Figure = JsonObject


def chart(id: str, views: Mapping[str, Figure], label: str) -> Markup:
    """Return a place for figures, one per view, with the first one's numbers as a table.

    ``<select data-view="ID">`` switches views; ``<select data-only="ID">`` shows, of the
    traces whose ``meta`` has an ``only``, those where that is the value chosen, "*" for all.
    """
    heads, rows, left = numbers(next(iter(views.values())))
    return frame(id, label, heads, rows, left=left) + data(f"{id}-data", views)


def frame(
    id: str,
    label: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int | None = None,
    left: int = 0,
) -> Markup:
    """Return a place for a figure that a script of the page makes.

    Args:
        id: Its anchor.
        label: What it shows.
        heads: Columns of the table of its numbers.
        rows: The numbers in words; [] for no table.
        most: Rows that are shown, at most.
        left: Lines of the figure that the rows leave out.
    """
    left += 0 if most is None else len(rows[most:])
    table = pd.DataFrame(rows[:most], columns=[*heads]) if rows else None
    return fragment("plot.html", id=id, label=label, rows=table, left=left)


def figure_of(
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]],
    levels: Sequence[Mapping[str, Any]] = (),
) -> Figure:
    """Return a figure of lines over two axes; those of one point or two are marked.

    An axis has a ``title`` and may have ``range`` (two numbers), ``log`` and ``unit`` ("%" or
    "points": 0.1 is shown as 10 of it). A line has ``x``, ``y``, ``name`` and ``colour``, and may
    have ``width``, ``dash``, ``step`` and ``only``. A level is a dashed line across at ``at``, with
    ``text``.
    """
    times = 100 if "unit" in y else 1
    heights = [value for line in lines for value in line["y"]] + [level["at"] for level in levels]
    top = y["range"][1] if "range" in y else max(heights, default=1.0)
    traces = []
    for line in lines:
        pen = {"color": COLOURS[line["colour"]], "width": line.get("width", 2)}
        pen |= {"dash": line["dash"]} if "dash" in line else {}
        pen |= {"shape": "hv"} if line.get("step") else {}
        mode = "lines" if len(line["x"]) > 2 else "lines+markers"
        trace: Figure = {"type": "scatter", "mode": mode, "name": shown(line["name"]), "line": pen}
        trace |= {"x": list(line["x"]), "y": [times * value for value in line["y"]]}
        trace |= {"hovertemplate": f"%{{y}}<br>%{{x}} {shown(x['title'])}"}
        traces.append(trace | ({"meta": {"only": line["only"]}} if "only" in line else {}))
    from_zero = {} if "range" in y else {"rangemode": "tozero"}
    layout = {
        "xaxis": {**_axis(x, 1), "rangemode": "tozero"},
        "yaxis": {**_axis(y, times), **from_zero},
        "shapes": [level_of(level, times, level["at"] > NEAR_TOP * top) for level in levels],
    }
    return {"data": traces, "layout": layout}


def upward(shares: Floats) -> list[float]:
    """Return certified half-widths to hundredths of a point, rounded up, so that none is
    understated."""
    rounded: list[float] = (np.ceil(np.asarray(shares) * 1e4 - 1e-6) / 1e4).tolist()
    return rounded


def numbers(figure: Figure) -> tuple[list[str], list[list[str]], int]:
    """Return some points of a figure as a table, heads and rows, and how many lines it leaves
    out."""
    layout = figure["layout"]
    suffix = layout["yaxis"].get("ticksuffix", "")
    drawn = [t for t in figure["data"] if t.get("hoverinfo") != "skip" and t.get("x")]
    lines = sorted(drawn, key=lambda t: "only" in (t.get("meta") or {}))
    kept = lines[:COLUMNS]
    known = [dict(zip(t["x"], t["y"], strict=True)) for t in kept]
    places = sorted({x for at in known for x in at})
    chosen = np.unique(np.linspace(0, len(places) - 1, min(ROWS, len(places))).round().astype(int))

    def cell(value: float | None) -> str:
        if value is None or np.isnan(value):
            return "–"
        return f"{value:.2f}{suffix}" if suffix else amount(value)

    heads = [layout["xaxis"]["title"]["text"], *(t["name"] for t in kept)]
    at = [places[k] for k in chosen.tolist()]
    rows = [[amount(x), *(cell(values.get(x)) for values in known)] for x in at]
    return [unescape(head) for head in heads], rows, len(lines) - len(kept)


def level_of(level: Mapping[str, Any], times: float, below: bool) -> JsonObject:
    """Return a dashed line across, ``times`` as high as ``at``, its words above or ``below`` it."""
    height, colour = times * level["at"], COLOURS[level["colour"]]
    label = {"text": shown(level["text"]), "textposition": "start", "font": {"color": colour}}
    label["yanchor"] = "top" if below else "bottom"
    line = {"color": colour, "dash": "dash", "width": 1.5}
    ends = {"x0": 0, "x1": 1, "y0": height, "y1": height}
    return {"type": "line", "xref": "paper", **ends, "line": line, "label": label}


def _axis(axis: Mapping[str, Any], times: float) -> JsonObject:
    made: JsonObject = {"title": {"text": shown(axis["title"])}}
    ends = [times * end for end in axis.get("range", ())]
    if axis.get("log"):
        made |= {"type": "log", "dtick": "D2"}
        ends = [float(np.log10(end)) for end in ends]
    if ends:
        made["range"] = ends
    if "unit" in axis:
        made |= {"ticksuffix": f"{THIN}{axis['unit']}", "hoverformat": ".2~f"}
    return made
