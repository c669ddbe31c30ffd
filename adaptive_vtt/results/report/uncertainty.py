"""How certain the answer GPs became, question by question (VTT, Figure 4)."""

import warnings
from typing import Any

import numpy as np

from ...types import Floats
from .evidence import Evidence
from .plots import chart, figure_of
from .section import Section, exact, fragment

AXES = {"questions": "questions asked so far", "calls": "calls answered so far"}


def section(evidence: Evidence) -> Section | None:
    """Mean, maximum, and one concept of choice. None for words."""
    if evidence.in_words:
        return None
    views = {view: _figure(evidence, view) for view in AXES}
    level = _over_sides(evidence.replay.uncertainty)[0]
    html = fragment(
        "uncertainty.html",
        concepts=evidence.concepts,
        rules=evidence.rules,
        all=evidence.certificate is None,
        last=float(level[-1]),
        chart=chart("uncertainty-chart", views, "Uncertainty over questions asked"),
    )
    return Section("Uncertainty of the answer GPs", "uncertainty", html)


def _figure(evidence: Evidence, view: str) -> dict[str, Any]:
    x = getattr(evidence.replay, view).tolist()
    levels = [
        {
            "at": tau,
            "text": f"stops when the {over} is at most {exact(tau)}",
            "colour": "accent" if over == "mean" else "bad",
        }
        for over, tau in evidence.facts.stop_levels
    ]
    axis = {"title": "share of the prior", "range": [0, 1.06], "percent": True}
    return figure_of({"title": AXES[view]}, axis, _lines(evidence, x), levels)


def _lines(evidence: Evidence, x: list[int]) -> list[dict[str, Any]]:
    sides = evidence.replay.uncertainty
    mean, widest = _over_sides(sides)
    per_concept = _quietly(np.nanmean, sides, 2)
    concepts = [
        {
            "x": x,
            "y": per_concept[:, i].tolist(),
            "name": name,
            "colour": "third",
            "only": str(i),
        }
        for i, name in enumerate(evidence.concepts)
    ]
    most = {"name": "most uncertain side", "colour": "bad", "dash": "dot"}
    return [
        *concepts,
        {"x": x, "y": widest.tolist(), **most},
        {"x": x, "y": mean.tolist(), "name": "mean", "colour": "accent", "width": 3},
    ]


def _over_sides(sides: Floats) -> tuple[Floats, Floats]:
    """Mean and maximum over all sides that can still be asked about, each (T,)."""
    return _quietly(np.nanmean, sides, (1, 2)), _quietly(np.nanmax, sides, (1, 2))


def _quietly(reduce: Any, values: Floats, axis: Any) -> Floats:
    """A NaN-skipping reduction; all NaN gives NaN without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(reduce(values, axis=axis))
