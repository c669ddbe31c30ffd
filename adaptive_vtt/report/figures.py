"""The page's charts as Plotly figures, by name, in the page's light colours.

Those that page.js draws whole from their JSON are read from the sections that hold them, so that a
section's chart needs no second place. What scripts of their own draw is not among them.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from ..journal import Journal
from .evidence import Evidence
from .page import HERE, SECTIONS

_CHART = re.compile(
    r'<script type="application/json" id="([\w-]+?)(?:-chart)?-data">(.*?)</script>'
)


def figures(journal: Journal) -> dict[str, dict[str, Any]]:
    """Name -> figure (data, layout), as ``plotly.graph_objects.Figure`` takes it.

    A chart with several views is there once for each, "widths linear" and "widths log", say.
    Raises JournalError for a journal that holds no audit.
    """
    evidence, colours = Evidence.of(journal), _colours()
    found = dict(_charts(evidence))
    return {name: _painted(figure, colours) for name, figure in found.items()}


def _charts(evidence: Evidence) -> Iterator[tuple[str, dict[str, Any]]]:
    for make in SECTIONS:
        section = make(evidence)
        for name, text in _CHART.findall("" if section is None else str(section.html)):
            views = json.loads(text)
            if not isinstance(views, dict) or not all(map(_is_figure, views.values())):
                continue  # what a script of its own draws
            for view, figure in views.items():
                yield (name if len(views) == 1 else f"{name} {view}"), _whole(figure)


def _is_figure(value: Any) -> bool:
    return isinstance(value, dict) and {"data", "layout"} <= set(value)


def _whole(figure: dict[str, Any]) -> dict[str, Any]:
    """On white; traces that the page shows when chosen stand in the legend, to be clicked."""
    data = [
        {**trace, "visible": "legendonly"} if trace.get("visible") is False else trace
        for trace in figure["data"]
    ]
    return {"data": data, "layout": {"template": "plotly_white", **figure["layout"]}}


def _colours() -> dict[str, str]:
    """The variables of page.css by name: the first value of each, which is the light one."""
    text = (HERE / "page.css").read_text(encoding="utf-8")
    found = re.findall(r"(--[\w-]+):\s*([^;]+);", text)
    return {name: value.strip() for name, value in reversed(found)}


def _painted(value: Any, colours: dict[str, str]) -> Any:
    """``value`` with every variable of the page replaced by its colour."""
    if isinstance(value, list):
        return [_painted(v, colours) for v in value]
    if isinstance(value, dict):
        return {k: _painted(v, colours) for k, v in value.items()}
    if isinstance(value, str) and value.startswith("var("):
        return colours.get(value[4:-1], value)
    return value
