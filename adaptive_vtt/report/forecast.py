"""What narrower intervals would have cost, as far as this journal tells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certify.narrowing import Narrowing
from ..types import Floats
from .evidence import Evidence
from .section import Section, chart, figure_of, fragment, money

WIDTHS = (0.2, 0.15, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01)
ROWS = 5
"""Half-widths that are told of, at most."""
CHECKPOINTS = 100
POINTS = 30
"""Of either curve, at most."""


@dataclass(frozen=True)
class Row:
    """A half-width, the calls until all targets are that narrow, those made included, and what all
    of them cost."""

    half_width: float
    calls: int
    cost: float


def section(evidence: Evidence) -> Section | None:
    """The widest half-width over calls, and on from there; None where nothing is certified, or
    decisions alone were asked for."""
    certificate = evidence.certificate
    if certificate is None or certificate.half_width is None:
        return None
    widths, total = evidence.widest, evidence.facts.all_calls
    calls = len(widths) - 1
    found = Narrowing.of(widths, total)
    if found is None or not _narrower(found):
        return None
    each = evidence.cost / max(calls, 1)
    rows = [Row(w, n, n * each) for w in _narrower(found) for n in [found.calls_to(w)]]
    html = fragment(
        "forecast.html",
        rows=rows,
        now=Row(found.widest, calls, evidence.cost),
        total=total,
        money=money,
        several=len(certificate.targets) > 1,
        chart=chart("forecast-chart", _views(widths, found, each), "Half-width by calls, and on"),
    )
    return Section("What more would have cost", "forecast", html)


def _narrower(found: Narrowing) -> list[float]:
    return [width for width in WIDTHS if width < found.widest][:ROWS]


def _views(widths: Floats, found: Narrowing, each: float) -> dict[str, dict[str, Any]]:
    """By calls, and where they cost something by money."""
    views: dict[str, dict[str, Any]] = {"calls": _figure(widths, found, 1.0, "calls answered")}
    if each:
        views["money"] = _figure(widths, found, each, "cost")
    return views


def _figure(widths: Floats, found: Narrowing, each: float, title: str) -> dict[str, Any]:
    """``each``: what a call counts for on the axis."""
    moments = np.unique(np.linspace(0, found.calls, CHECKPOINTS).round().astype(np.int64))
    ahead = np.geomspace(found.widest, _narrower(found)[-1], POINTS)
    so_far = {
        "x": (moments * each).tolist(),
        "y": widths[moments].tolist(),
        "name": "half-width so far",
        "colour": "accent",
        "width": 2.5,
    }
    forecast = {
        "x": [found.calls_to(float(w)) * each for w in ahead],
        "y": ahead.tolist(),
        "name": "forecast",
        "colour": "third",
        "dash": "dash",
    }
    axis = {"title": "", "range": [0, 0.5], "percent": True}
    return figure_of({"title": title}, axis, [so_far, forecast])
