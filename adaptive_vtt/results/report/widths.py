"""How the intervals shrank, call by call."""

from typing import Any

import numpy as np

from ...certify.tracks import Counts
from ...journal.facts import CertificateFacts
from ...types import Floats
from .evidence import Evidence
from .plots import chart, figure_of, upward
from .section import Section, aim, fragment
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
    return Section("How the intervals shrank", "widths", html)


def _figure(
    evidence: Evidence, certificate: CertificateFacts, found: list[Standing], scale: str
) -> dict[str, Any]:
    calls = len(evidence.history[0].lower) - 1
    moments = np.unique(np.linspace(0, calls, CHECKPOINTS).round().astype(np.int64))
    widths = np.stack([t.half_width[moments] for t in evidence.history])
    axis: dict[str, Any] = {"title": "half-width", "range": [0, 0.515], "percent": True}
    if scale == "log":
        axis |= {"log": True, "range": [max(float(widths.min()), 1e-3) / 1.15, 0.515]}
    lines = [_line(moments, widths[s.place], s) for s in found if len(found) > 1]
    widest = {
        "x": moments.tolist(),
        "y": upward(widths.max(axis=0)),
        "name": "widest of all" if len(found) > 1 else "half-width",
        "colour": "text",
        "width": 3,
    }
    stops = certificate.half_width is not None
    level = {
        "at": certificate.aim,
        "text": ("asked for: " if stops else "bets aim at ") + aim(certificate.aim),
        "colour": "third",
    }
    return figure_of({"title": "calls answered so far"}, axis, [*lines, widest], [level])


def _line(moments: Counts, widths: Floats, standing: Standing) -> dict[str, Any]:
    """The curve of one target, which shows when it is chosen."""
    return {
        "x": moments.tolist(),
        "y": upward(widths),
        "name": standing.name,
        "colour": "accent" if standing.settled else "bad",
        "only": str(standing.place),
    }
