"""How certain the answer GPs became, question by question (VTT, Figure 4)."""

import warnings
from typing import Any

import numpy as np

from ..types import Floats
from .evidence import Evidence
from .section import Section, chart, fragment, plot_text

AXES = {"questions": "questions asked so far", "calls": "calls answered so far"}
HOVER = "%{y:.3f} of the prior"


def section(evidence: Evidence) -> Section | None:
    """Mean, maximum, and one concept of choice. None for words."""
    if evidence.in_words:
        return None
    views = {view: _figure(evidence, view) for view in AXES}
    level = _over_sides(evidence.replay.uncertainty)[0]
    html = fragment(
        "uncertainty.html",
        concepts=evidence.concepts,
        rules=evidence.facts.stop,
        last=float(level[-1]),
        chart=chart("uncertainty-chart", views, "Uncertainty over questions asked"),
    )
    return Section("Uncertainty", "uncertainty", html)


def _figure(evidence: Evidence, view: str) -> dict[str, Any]:
    x = getattr(evidence.replay, view).tolist()
    layout = {
        "xaxis": {"title": {"text": AXES[view]}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "share of the prior"}, "range": [0, 1.06]},
        "shapes": [_line(*level) for level in evidence.facts.stop_levels],
        "annotations": [_label(*level) for level in evidence.facts.stop_levels],
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }
    return {"data": _traces(evidence, x), "layout": layout}


def _traces(evidence: Evidence, x: list[int]) -> list[dict[str, Any]]:
    sides = evidence.replay.uncertainty
    mean, widest = _over_sides(sides)
    per_concept = _quietly(np.nanmean, sides, 2)
    concepts = [
        _trace(x, per_concept[:, i], plot_text(name), "third", meta=str(i), width=2)
        for i, name in enumerate(evidence.concepts)
    ]
    return [
        *concepts,
        _trace(x, widest, "most uncertain side", "bad", dash="dot", width=2),
        _trace(x, mean, "mean", "accent", width=3),
    ]


def _over_sides(sides: Floats) -> tuple[Floats, Floats]:
    """Mean and maximum over all sides that can still be asked about, each (T,)."""
    return _quietly(np.nanmean, sides, (1, 2)), _quietly(np.nanmax, sides, (1, 2))


def _quietly(reduce: Any, values: Floats, axis: Any) -> Floats:
    """A NaN-skipping reduction; all NaN gives NaN without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(reduce(values, axis=axis))


def _trace(
    x: list[int],
    y: Floats,
    name: str,
    colour: str,
    *,
    width: int,
    dash: str = "solid",
    meta: str | None = None,
) -> dict[str, Any]:
    line = {"color": f"var(--{colour})", "width": width, "dash": dash}
    trace = {"x": x, "y": y.tolist(), "name": name, "line": line, "hovertemplate": HOVER}
    mode = {"type": "scatter", "mode": "lines+markers" if len(x) < 3 else "lines"}
    return trace | mode | ({} if meta is None else {"meta": meta, "visible": False})


def _line(over: str, tau: float) -> dict[str, Any]:
    pen = {"color": _colour(over), "width": 1, "dash": "dash"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": tau, "y1": tau, "line": pen}


def _label(over: str, tau: float) -> dict[str, Any]:
    return {
        "text": f"stops when the {over} is at most {tau:g}",
        "font": {"color": _colour(over)},
        "xref": "paper",
        "x": 0.01,
        "xanchor": "left",
        "y": tau,
        "yanchor": "top" if tau > 0.08 else "bottom",
        "showarrow": False,
    }


def _colour(over: str) -> str:
    return "var(--accent)" if over == "mean" else "var(--bad)"
