"""What was spent and what came back instead of answers, what took longest, how intervals shrank,
and what narrower ones would have cost.
"""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from ...journal.rows import EXCLUDED
from ...oracles.findings import judge_findings
from ...oracles.judge_models import JUDGED
from ...types import Indices, JsonObject
from ...utils.figures import money
from .certified import words
from .evidence import Evidence, Standing, ordered
from .plots import Figure, chart, figure_of, upward
from .section import Section, aim, amount

SPENDING_MOMENTS, WIDTH_MOMENTS = 200, 100
"""Moments at which the cost, and half-widths, are shown, at most."""
KINDS = 12
"""Reasons that have a row of their own; the rest share one."""
READ = 8
"""Replies that a judge read, shown at most."""
MANY = 40
"""With more targets than this only the widest is shown at first."""
WIDTHS = (0.2, 0.15, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01)
"""Half-widths that are forecast, the first few of those that are not reached."""
FORECASTS = 5
POINTS = 30
"""Of the curve of a forecast."""


# -- what was spent ------------------------------------------------------------------------------


def spending_section(evidence: Evidence) -> Section | None:
    """Show cost over calls and time, failures by kind; None where nothing was asked, or all was
    free and all answered."""
    facts = evidence.facts
    troubles, statistics = _troubles(evidence), facts.endpoint or {}
    again = evidence.run.repeat_probes
    if evidence.cost == 0 and not (troubles or statistics or again or facts.interrupted):
        return None
    in_doubt = facts.money_in_doubt(evidence.unconfirmed)
    costs = bool(evidence.cost or in_doubt)
    return Section.of(
        evidence,
        f"{'What it cost, and what' if costs else 'What'} came back instead of answers",
        "spending",
        "spending.html",
        chart=_spending_chart(evidence) if evidence.cost else "",
        in_doubt=in_doubt,
        paid=evidence.cost or facts.worst or statistics,  # prices may be unknown
        again=again,
        judge=judge_findings(evidence.run.judging, evidence.calls),
        read=_read(evidence),
        excluded=len(evidence.table) - len(evidence.counted),
        calls=len(evidence.calls) + len(evidence.sources),
        troubles=troubles,
        statistics=_flat(statistics, facts.currency) if statistics else [],
    )


def _read(evidence: Evidence) -> list[tuple[str, JsonObject]]:
    """Return what the judge was asked and said: where it and the rule disagree first."""
    rows = [(a.said or "", a.details) for a in evidence.answered.values() if a.details]
    read = [(said, details[JUDGED]) for said, details in rows if JUDGED in details]
    read.sort(key=lambda one: (one[1]["judge"] == one[1]["rule"], one[1]["rule"] is None))
    return read[:READ]


def _troubles(evidence: Evidence) -> list[tuple[str, int]]:
    counts = evidence.table["unanswered"].dropna().value_counts()
    reasons = [(str(reason).removeprefix(EXCLUDED), int(n)) for reason, n in counts.items()]
    rest = sum(n for _, n in reasons[KINDS:])
    return reasons[:KINDS] + ([("other reasons", rest)] if rest else [])


def _flat(statistics: JsonObject, currency: str) -> list[tuple[str, str]]:
    """Return what the endpoint counted, in words; names of what is nested have what it is nested
    in."""
    rows = []
    for name, value in pd.json_normalize(statistics, sep=": ").iloc[0].items():
        shown = str(value)
        if isinstance(value, Real):  # whole numbers are NumPy's, as pandas gives them
            number, is_cost = float(value), "cost" in str(name).split(": ")[-1]
            shown = money(number, currency) if is_cost else amount(number)
        if value is not None:
            rows.append((str(name).replace("_", " "), shown))
    return rows


def _spending_chart(evidence: Evidence) -> Any:
    paid = [(row.elapsed, row.cost) for row in evidence.calls]
    paid += [(row.elapsed, row.cost) for row in evidence.sources]
    seconds, costs = np.array([(0.0, 0.0), *sorted(paid)]).T
    moments = _moments(len(paid), SPENDING_MOMENTS)
    line = {"y": np.cumsum(costs)[moments].tolist(), "name": "cost", "colour": "accent"}
    line |= {"width": 2.5, "step": True}
    axes = {
        "calls": ("calls answered so far", moments.tolist()),
        "seconds": ("seconds of audit", seconds[moments].round(2).tolist()),
    }
    cap, levels = evidence.facts.max_cost, []
    if cap is not None:
        levels = [{"at": cap, "text": f"cap: {evidence.facts.money(cap)}", "colour": "third"}]
    views = {
        name: figure_of({"title": title}, {"title": "cost"}, [{**line, "x": x}], levels)
        for name, (title, x) in axes.items()
    }
    return chart("spending-chart", views, "Cost over calls")


def _moments(calls: int, most: int) -> Indices:
    """Return so many numbers of calls, at most, 0 and all of them included."""
    return np.unique(np.linspace(0, calls, most).round().astype(np.int64))


# -- what took longest ---------------------------------------------------------------------------


def slowest_section(evidence: Evidence) -> Section | None:
    """Show calls until each target was settled, longest first; None where nothing is certified."""
    certificate, standings = evidence.certificate, evidence.standings
    if certificate is None:
        return None
    calls = len(evidence.history[0].lower) - 1

    def slowest_first(standing: Standing) -> tuple[float, float]:
        moment = calls + 1 if standing.settled_at is None else standing.settled_at
        return -moment, -standing.half_width  # open ones first, the widest of them on top

    return Section.of(
        evidence,
        "What took longest",
        "slowest",
        "cost.html",
        targets=sorted(standings, key=slowest_first),
        calls=calls,
        words=words(certificate),
        open=sum(not s.settled for s in standings),
        moments=sorted(s.settled_at or 0 for s in standings),
    )


# -- how the intervals shrank --------------------------------------------------------------------


def widths_section(evidence: Evidence) -> Section | None:
    """Show the half-width of each target over calls: curves tell when each is chosen; None where
    nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    targets = [s for _, part in ordered(evidence.standings) for s in part]
    several = len(targets) > 1
    moments = _moments(len(evidence.history[0].lower) - 1, WIDTH_MOMENTS)
    widths = np.stack([t.half_width[moments] for t in evidence.history])

    def line(y: Any, name: str, colour: str, **more: Any) -> JsonObject:
        return {"x": moments.tolist(), "y": upward(y), "name": name, "colour": colour, **more}

    lines = [
        line(widths[s.place], s.name, "accent" if s.settled else "bad", only=str(s.place))
        for s in targets
        if several
    ]
    name = "widest of all" if several else "half-width"
    lines.append(line(widths.max(axis=0), name, "text", width=3))
    asked = "bets aim at " if certificate.half_width is None else "asked for: "
    level = {"at": certificate.aim, "text": asked + aim(certificate.aim), "colour": "third"}
    linear: JsonObject = {"title": "half-width", "range": [0, 0.515], "unit": "points"}
    least = max(float(widths.min()), 1e-3) / 1.15
    axes = {"linear": linear, "log": {**linear, "log": True, "range": [least, 0.515]}}
    views = {
        scale: figure_of({"title": "calls answered so far"}, axis, lines, [level])
        for scale, axis in axes.items()
    }
    return Section.of(
        evidence,
        "How the intervals shrank",
        "widths",
        "widths.html",
        targets=targets,
        all=1 < len(targets) <= MANY,
        chart=chart("widths-chart", views, "Half-width of each interval over calls"),
    )


# -- what more would have cost -------------------------------------------------------------------


def forecast_section(evidence: Evidence) -> Section | None:
    """Show the widest half-width over calls, and on from there; None where nothing is certified,
    decisions alone were asked for, or nothing can be forecast."""
    certificate = evidence.certificate
    if certificate is None or certificate.half_width is None:
        return None
    calls, widest = len(evidence.widest) - 1, float(evidence.widest[-1])
    narrower = [width for width in WIDTHS if width < widest][:FORECASTS]
    forecasts = [(width, evidence.calls_to(width)) for width in narrower]
    rows = [(width, needed) for width, needed in forecasts if needed is not None]
    if not rows:
        return None
    each = evidence.cost / max(calls, 1)
    ahead = _ahead(evidence, rows[-1][0])
    views = {"calls": _foreseen(evidence, ahead, 1.0, "calls answered")}
    if each:
        views["money"] = _foreseen(evidence, ahead, each, "cost")
    return Section.of(
        evidence,
        "What more would have cost",
        "forecast",
        "forecast.html",
        rows=[(width, needed, needed.after(-calls)) for width, needed in rows],
        each=each,
        half_width=widest,
        calls=calls,
        plannable=not evidence.spec.startswith("--"),  # 'avtt plan' has no --demo
        chart=chart("forecast-chart", views, "Half-width by calls, and on"),
    )


def _ahead(evidence: Evidence, half_width: float) -> list[tuple[float, float]]:
    """Return calls and half-width from where the audit ended to a narrower ``half_width``."""
    widest = float(evidence.widest[-1])
    widths = np.geomspace(widest, half_width, POINTS).tolist()[1:]
    needed = [(evidence.calls_to(width), width) for width in widths]
    made = len(evidence.widest) - 1
    return [(made, widest), *((calls.likely, width) for calls, width in needed if calls)]


def _foreseen(
    evidence: Evidence, ahead: list[tuple[float, float]], each: float, title: str
) -> Figure:
    """Draw the half-width so far and the forecast. ``each``: what a call counts for on the axis."""
    widths = evidence.widest
    moments = _moments(len(widths) - 1, WIDTH_MOMENTS)
    so_far = {"x": (moments * each).tolist(), "y": upward(widths[moments]), "width": 2.5}
    so_far |= {"name": "half-width so far", "colour": "accent"}
    forecast: JsonObject = {
        "x": [calls * each for calls, _ in ahead],
        "y": [width for _, width in ahead],
    }
    forecast |= {"name": "forecast", "colour": "third", "dash": "dash"}
    axis = {"title": "", "range": [0, 0.515], "unit": "points"}
    return figure_of({"title": title}, axis, [so_far, forecast])
