"""How the intervals shrank, call by call."""

from typing import Any

import numpy as np

from ..certify.tracks import Counts
from ..journal.facts import CertificateFacts
from ..types import Floats
from .evidence import Evidence
from .section import Section, chart, fragment, plot_text
from .target_status import Standing, ordered

CHECKPOINTS = 100
"""Widths are shown at most so often."""
MANY = 40
"""With more targets than this only the widest is shown at first."""


def section(evidence: Evidence) -> Section | None:
    """Half-width of each target over calls; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    found = [s for _, part in ordered(evidence.standings) for s in part]
    views = {view: _figure(evidence, certificate, found, view) for view in ("linear", "log")}
    html = fragment(
        "widths.html",
        certificate=certificate,
        targets=found,
        all=1 < len(found) <= MANY,
        chart=chart("widths-chart", views, "Half-width of each interval over calls"),
    )
    return Section("Width over calls", "widths", html)


def _figure(
    evidence: Evidence, certificate: CertificateFacts, found: list[Standing], scale: str
) -> dict[str, Any]:
    calls = len(evidence.history[0].lower) - 1
    moments = np.unique(np.linspace(0, calls, CHECKPOINTS).round().astype(np.int64))
    widths = np.stack([t.half_width[moments] for t in evidence.history])
    axis: dict[str, Any] = {"title": {"text": "half-width"}, "type": scale}
    if scale == "linear":
        axis["range"] = [0, 0.53]
    else:
        axis |= {"tickvals": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5], "dtick": None}
        axis["range"] = [float(np.log10(max(widths.min(), 1e-3) / 1.15)), float(np.log10(0.56))]
    layout = {
        "xaxis": {"title": {"text": "calls answered so far"}, "rangemode": "tozero"},
        "yaxis": axis,
        "shapes": [_line(certificate.aim)],
        "annotations": [_label(certificate, scale)],
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    }
    return {"data": _traces(moments, widths, found), "layout": layout}


def _traces(moments: Counts, widths: Floats, found: list[Standing]) -> list[dict[str, Any]]:
    x = moments.tolist()
    widest = _trace(x, widths.max(axis=0), "widest of all" if len(found) > 1 else "half-width")
    return [*(_one(x, widths[s.place], s) for s in found if len(found) > 1), widest]


def _one(x: list[int], y: Floats, standing: Standing) -> dict[str, Any]:
    """The curve of one target, which shows when it is chosen."""
    trace = _trace(x, y, plot_text(standing.name))
    colour = "var(--accent)" if standing.settled else "var(--bad)"
    hover = plot_text(standing.name).replace("%", "&#37;") + ": ±%{y:.3f}<extra></extra>"
    chosen = {"meta": str(standing.place), "visible": False, "hovertemplate": hover}
    return trace | chosen | {"line": {"color": colour, "width": 2}}


def _trace(x: list[int], y: Floats, name: str) -> dict[str, Any]:
    mode = "lines+markers" if len(x) < 3 else "lines"
    line = {"color": "var(--text)", "width": 3}
    hover = "%{x} calls: ±%{y:.3f}"
    return {
        "type": "scatter",
        "mode": mode,
        "x": x,
        "y": y.tolist(),
        "name": name,
        "line": line,
        "hovertemplate": hover,
    }


def _line(aim: float) -> dict[str, Any]:
    pen = {"color": "var(--third)", "width": 1.5, "dash": "dash"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": aim, "y1": aim, "line": pen}


def _label(certificate: CertificateFacts, scale: str) -> dict[str, Any]:
    aim, stops = certificate.aim, certificate.half_width is not None
    return {
        "text": f"asked for: ±{aim:g}" if stops else f"bets aim at ±{aim:g}",
        "font": {"color": "var(--third)"},
        "xref": "paper",
        "x": 0.01,
        "xanchor": "left",
        "y": aim if scale == "linear" else float(np.log10(aim)),
        "bgcolor": "var(--surface)",
        "opacity": 0.85,
        "yanchor": "top" if aim > 0.05 else "bottom",
        "showarrow": False,
    }
