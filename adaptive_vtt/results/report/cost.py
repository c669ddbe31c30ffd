"""What was spent and what came back instead of answers, what took longest, how intervals shrank,
and what narrower ones would have cost.
"""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from ...certify.further import Range
from ...journal.rows import EXCLUDED
from ...oracles.findings import judge_findings
from ...oracles.judge_models import JUDGED
from ...types import Indices, JsonObject
from ...utils.figures import money, shorten
from .certified import words
from .evidence import Evidence, Standing, ordered
from .plots import Figure, chart, figure_of, upward
from .section import Section, aim, amount, percent

SPENDING_MOMENTS, WIDTH_MOMENTS = 200, 100
"""Moments at which the cost, and half-widths, are shown, at most."""
KINDS = 12
"""Reasons that have a row of their own; the rest share one."""
QUOTED = 160
"""Characters of a reply that the judge read, at most."""
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
    reasons = evidence.table["unanswered"].dropna().str.removeprefix(EXCLUDED).value_counts()
    again = evidence.run.repeat_probes
    if evidence.cost == 0 and not (len(reasons) or facts.endpoint or again or facts.interrupted):
        return None
    if len(reasons) > KINDS:
        reasons = pd.concat([reasons[:KINDS], pd.Series({"other reasons": reasons[KINDS:].sum()})])
    troubles = reasons.rename_axis("reason").reset_index(name="questions")
    shares = (troubles["questions"] / len(evidence.table)).map(percent)
    in_doubt = facts.money_in_doubt(evidence.unconfirmed)
    costs = bool(evidence.cost or in_doubt)
    return Section.of(
        evidence,
        "Spending and missing answers" if costs else "Missing answers",
        "spending",
        "spending.html",
        chart=_spending_chart(evidence) if evidence.cost else "",
        in_doubt=in_doubt,
        paid=evidence.cost or facts.worst or facts.endpoint,  # prices may be unknown
        again=again,
        judge=judge_findings(evidence.run.judging, evidence.calls),
        read=_read(evidence),
        excluded=len(evidence.table) - len(evidence.counted),
        calls=len(evidence.calls) + len(evidence.sources),
        troubles=troubles.assign(**{"share of those asked": shares}) if len(troubles) else None,
        statistics=_flat(facts.endpoint, facts.currency) if facts.endpoint else None,
    )


def _read(evidence: Evidence) -> pd.DataFrame | None:
    """Return what the judge was asked and said: where it and the rule disagree first."""
    rows = [(a.said or "", a.details) for a in evidence.answered.values() if a.details]
    read = [(said, details[JUDGED]) for said, details in rows if JUDGED in details]
    read.sort(key=lambda one: (one[1]["judge"] == one[1]["rule"], one[1]["rule"] is None))
    verdicts = {True: "right", False: "wrong", None: "no verdict"}
    table = [
        {
            "reply": shorten(reply, QUOTED),
            "the judge said": one["said"] or "nothing",
            "by judge": verdicts[one["judge"]],
            "by rule": verdicts[one["rule"]],
        }
        for reply, one in read[:READ]
    ]
    return pd.DataFrame(table) if table else None


def _flat(statistics: JsonObject, currency: str) -> pd.DataFrame:
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
    return pd.DataFrame(rows, columns=["figure", "value"])


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
        "Calls per target",
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
        line(widths[s.place], s.name, "accent" if s.settled else "muted", only=str(s.place))
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
        "Interval widths over calls",
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
        "Forecast for narrower intervals",
        "forecast",
        "forecast.html",
        rows=pd.DataFrame(
            {
                "half-width": [aim(width) for width, _ in rows],
                "calls in all": [needed.short for _, needed in rows],
                "more calls": [needed.after(-calls).short for _, needed in rows],
                **({"cost in all": [_paid(evidence, n, each) for _, n in rows]} if each else {}),
            }
        ),
        half_width=widest,
        calls=calls,
        plannable=not evidence.spec.startswith("--"),  # 'avtt plan' has no --demo
        chart=chart("forecast-chart", views, "Half-width by calls, and on"),
    )


def _paid(evidence: Evidence, calls: Range, each: float) -> str:
    least, most = (evidence.facts.money(n * each) for n in (calls.least, calls.most))
    return f"{least} to {most}"


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
