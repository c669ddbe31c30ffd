"""What narrower intervals would have cost, as far as this journal tells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...certify.further import Range
from .evidence import Evidence
from .plots import chart, figure_of, upward
from .section import Section, fragment, money

WIDTHS = (0.2, 0.15, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01)
ROWS = 5
"""Half-widths that are told of, at most."""
CHECKPOINTS = 100
POINTS = 30
"""Of either curve, at most."""


@dataclass(frozen=True)
class Row:
    """A half-width, the calls until all targets are that narrow, those made included, and what all
    of them cost, by what a call cost so far."""

    half_width: float
    calls: Range
    more: Range
    each: float

    @property
    def cost(self) -> str:
        least, most = self.calls.least * self.each, self.calls.most * self.each
        return f"{money(least)} to {money(most)}"


def section(evidence: Evidence) -> Section | None:
    """The widest half-width over calls, and on from there; None where nothing is certified,
    decisions alone were asked for, or nothing can be forecast."""
    certificate = evidence.certificate
    if certificate is None or certificate.half_width is None:
        return None
    calls, widest = len(evidence.widest) - 1, float(evidence.widest[-1])
    each = evidence.cost / max(calls, 1)
    found = [(w, evidence.calls_to(w)) for w in [w for w in WIDTHS if w < widest][:ROWS]]
    rows = [Row(w, n, n.after(-calls), each) for w, n in found if n is not None]
    if not rows:
        return None
    html = fragment(
        "forecast.html",
        rows=rows,
        half_width=widest,
        calls=calls,
        cost=evidence.cost,
        total=evidence.facts.all_calls,
        money=money,
        several=len(certificate.targets) > 1,
        chart=chart("forecast-chart", _views(evidence, rows[-1]), "Half-width by calls, and on"),
    )
    return Section("What more would have cost", "forecast", html)


def _views(evidence: Evidence, last: Row) -> dict[str, dict[str, Any]]:
    """By calls, and where they cost something by money."""
    views: dict[str, dict[str, Any]] = {"calls": _figure(evidence, last, 1.0, "calls answered")}
    if last.each:
        views["money"] = _figure(evidence, last, last.each, "cost")
    return views


def _figure(evidence: Evidence, last: Row, each: float, title: str) -> dict[str, Any]:
    """``each``: what a call counts for on the axis."""
    widths = evidence.widest
    calls = len(widths) - 1
    moments = np.unique(np.linspace(0, calls, CHECKPOINTS).round().astype(np.int64))
    ahead = np.geomspace(float(widths[-1]), last.half_width, POINTS).tolist()
    found = [(w, evidence.calls_to(w)) for w in ahead[1:]]
    known = [(w, n.likely) for w, n in found if n is not None]
    so_far = {
        "x": (moments * each).tolist(),
        "y": upward(widths[moments]),
        "name": "half-width so far",
        "colour": "accent",
        "width": 2.5,
    }
    forecast = {
        "x": [calls * each, *(n * each for _, n in known)],
        "y": [ahead[0], *(w for w, _ in known)],
        "name": "forecast",
        "colour": "third",
        "dash": "dash",
    }
    axis = {"title": "", "range": [0, 0.515], "percent": True}
    return figure_of({"title": title}, axis, [so_far, forecast])
