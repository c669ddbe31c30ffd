"""Figures of the page: Plotly's, drawn by plots.js in the page's colours, with their numbers.

A figure is what ``plotly.graph_objects.Figure`` takes: data and layout. Its colours are those of
``COLOURS``; plots.js puts those of the page, light or dark, in their place. Plotly renders some
HTML in names, titles and labels: whatever is not written here goes through ``shown``.
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
"""Of the table that stands for a figure, at most."""
NEAR_TOP = 0.9
"""A level above this share of the axis has its words below its line."""

Figure = JsonObject


def chart(id: str, views: Mapping[str, Figure], label: str) -> Markup:
    """A place for figures, one per view, with the first one's numbers as a table.

    ``<select data-view="ID">`` switches views; ``<select data-only="ID">`` shows, of the
    traces whose ``meta`` has an ``only``, those where that is the value chosen, "*" for all.
    """
    heads, rows, left = numbers(next(iter(views.values())))
    place = frame(id, label, heads, rows, left)
    return place + data(f"{id}-data", views)


def frame(
    id: str, label: str, heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 0
) -> Markup:
    """A place for a figure that a script of the page makes; ``rows`` are its numbers in words,
    and ``left`` says how many lines they leave out."""
    shown = pd.DataFrame([*rows], columns=[*heads]) if rows else None
    return fragment("plot.html", id=id, label=label, rows=shown, left=left)


def figure_of(
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]],
    levels: Sequence[Mapping[str, Any]] = (),
) -> Figure:
    """Lines over two axes.

    An axis has a ``title`` and may have ``range`` (two numbers), ``log`` and ``unit`` ("%" or
    "points": 0.1 is shown as 10 of it). A line has ``x``, ``y``, ``name`` and ``colour``, and may
    have ``width``, ``dash``, ``step`` and ``only``. A level is a dashed line across at ``at``, with
    ``text``.
    """
    times = 100 if "unit" in y else 1
    top = y["range"][1] if "range" in y else _highest(lines, levels)
    said = f"%{{y}}<br>%{{x}} {shown(x['title'])}"
    return {
        "data": [_trace(line, times, said) for line in lines],
        "layout": {
            "xaxis": {**_axis(x, 1), "rangemode": "tozero"},
            "yaxis": {**_axis(y, times), **({} if "range" in y else {"rangemode": "tozero"})},
            "shapes": [level_of(level, times, level["at"] > NEAR_TOP * top) for level in levels],
        },
    }


def upward(shares: Floats) -> list[float]:
    """Certified half-widths in hundredths of a point, rounded up, so that none is understated."""
    found: list[float] = (np.ceil(np.asarray(shares) * 1e4 - 1e-6) / 1e4).tolist()
    return found


def numbers(figure: Figure) -> tuple[list[str], list[list[str]], int]:
    """Some of a figure's points as a table, heads and rows, and how many lines it leaves out."""
    layout = figure["layout"]
    drawn = [t for t in figure["data"] if t.get("hoverinfo") != "skip" and t.get("x")]
    lines = sorted(drawn, key=lambda t: "only" in (t.get("meta") or {}))
    told, suffix = lines[:COLUMNS], layout["yaxis"].get("ticksuffix", "")
    known = [dict(zip(t["x"], t["y"], strict=True)) for t in told]
    places = sorted({x for at in known for x in at})
    chosen = np.unique(np.linspace(0, len(places) - 1, min(ROWS, len(places))).round().astype(int))
    heads = [layout["xaxis"]["title"]["text"], *(t["name"] for t in told)]
    rows = [
        [amount(places[k]), *(_told(at.get(places[k]), suffix) for at in known)]
        for k in chosen.tolist()
    ]
    return [unescape(head) for head in heads], rows, len(lines) - len(told)


def _told(value: float | None, suffix: str) -> str:
    if value is None or np.isnan(value):
        return "–"
    return f"{value:.2f}{suffix}" if suffix else amount(value)


def _axis(axis: Mapping[str, Any], times: float) -> JsonObject:
    found: JsonObject = {"title": {"text": shown(axis["title"])}}
    ends = [times * end for end in axis.get("range", ())]
    if axis.get("log"):
        found |= {"type": "log", "dtick": "D2"}
        ends = [float(np.log10(end)) for end in ends]
    if ends:
        found["range"] = ends
    if "unit" in axis:
        found |= {"ticksuffix": f"{THIN}{axis['unit']}", "hoverformat": ".2~f"}
    return found


def _trace(line: Mapping[str, Any], times: float, said: str) -> JsonObject:
    """A line; where it has one point or two, these are marked."""
    pen = {"color": COLOURS[line["colour"]], "width": line.get("width", 2)}
    pen |= {"dash": line["dash"]} if "dash" in line else {}
    pen |= {"shape": "hv"} if line.get("step") else {}
    found = {
        "type": "scatter",
        "mode": "lines" if len(line["x"]) > 2 else "lines+markers",
        "name": shown(line["name"]),
        "x": list(line["x"]),
        "y": [times * value for value in line["y"]],
        "line": pen,
        "hovertemplate": said,
    }
    if "only" in line:
        found["meta"] = {"only": line["only"]}
    return found


def level_of(level: Mapping[str, Any], times: float, below: bool) -> JsonObject:
    """A dashed line across, ``times`` as high as ``at`` says, its words above or ``below`` it."""
    height, colour = times * level["at"], COLOURS[level["colour"]]
    anchor = "top" if below else "bottom"
    words = {"text": shown(level["text"]), "textposition": "start", "yanchor": anchor}
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "line": {"color": colour, "dash": "dash", "width": 1.5},
        "label": {**words, "font": {"color": colour}},
    }


def _highest(lines: Sequence[Mapping[str, Any]], levels: Sequence[Mapping[str, Any]]) -> float:
    known = [float(value) for line in lines for value in line["y"]]
    return max([*known, *(level["at"] for level in levels)], default=1.0)
