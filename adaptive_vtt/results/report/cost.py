"""What was spent and what came back instead of answers, what took longest, how intervals shrank,
and what narrower ones would have cost.
"""

from numbers import Real

import numpy as np
import pandas as pd

from ...engine.repeat_probes import repeated
from ...journal.rows import EXCLUDED
from ...oracles.findings import found_by_judge
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
    """Cost over calls and time, failures by kind; None where nothing was asked, or all was free
    and all answered."""
    troubles, statistics = _troubles(evidence), evidence.facts.endpoint or {}
    again = repeated(evidence.sources, evidence.calls)
    if evidence.cost == 0 and not (troubles or statistics or again or evidence.facts.interrupted):
        return None
    views = {axis: _spent(evidence, axis) for axis in ("calls", "seconds")}
    in_doubt = evidence.facts.money_in_doubt(evidence.unconfirmed)
    costs = bool(evidence.cost or in_doubt)
    return Section.of(
        f"{'What it cost, and what' if costs else 'What'} came back instead of answers",
        "spending",
        "spending.html",
        chart=chart("spending-chart", views, "Cost over calls") if evidence.cost else "",
        cost=evidence.cost,
        unconfirmed=evidence.unconfirmed,
        in_doubt=in_doubt,
        money=evidence.facts.money,
        cap=evidence.facts.max_cost,
        lost=evidence.facts.interrupted,
        paid=evidence.cost or evidence.facts.worst or statistics,  # prices may be unknown
        again=again,
        ratio=evidence.certificate is None or evidence.certificate.bets.ratio,
        judge=found_by_judge(evidence.judging, evidence.calls),
        judge_facts=evidence.facts.settings.oracle.judge,
        read=_read(evidence),
        excluded=len(evidence.table) - len(evidence.counted),
        calls=len(evidence.calls) + len(evidence.sources),
        troubles=troubles,
        asked=len(evidence.table),
        statistics=_flat(statistics, evidence.facts.currency) if statistics else [],
    )


def _read(evidence: Evidence) -> list[tuple[str, JsonObject]]:
    """What the judge was asked and said: where it and the rule disagree first."""
    answers = [a for c in evidence.calls for a in c.answers if JUDGED in (a.details or {})]
    told = [(a.said or "", (a.details or {})[JUDGED]) for a in answers]
    told.sort(key=lambda one: (one[1]["judge"] == one[1]["rule"], one[1]["rule"] is None))
    return told[:READ]


def _troubles(evidence: Evidence) -> list[tuple[str, int]]:
    counts = evidence.table["unanswered"].dropna().value_counts()
    found = [(str(reason).removeprefix(EXCLUDED), int(n)) for reason, n in counts.items()]
    rest = sum(n for _, n in found[KINDS:])
    return found[:KINDS] + ([("other reasons", rest)] if rest else [])


def _flat(statistics: JsonObject, currency: str) -> list[tuple[str, str]]:
    """What the endpoint counted, in words; names of what is nested have what it is nested in."""
    rows = []
    for name, value in pd.json_normalize(statistics, sep=": ").iloc[0].items():
        said = str(value)
        if isinstance(value, Real):  # whole numbers are NumPy's, as pandas gives them
            number, is_cost = float(value), "cost" in str(name).split(": ")[-1]
            said = money(number, currency) if is_cost else amount(number)
        if value is not None:
            rows.append((str(name).replace("_", " "), said))
    return rows


def _spent(evidence: Evidence, axis: str) -> Figure:
    paid = [(row.elapsed, row.cost) for row in evidence.calls]
    paid += [(row.elapsed, row.cost) for row in evidence.sources]
    seconds, costs = np.array([(0.0, 0.0), *sorted(paid)]).T
    shown = _moments(len(paid), SPENDING_MOMENTS)
    x = shown if axis == "calls" else seconds[shown].round(2)
    line = {
        "x": x.tolist(),
        "y": np.cumsum(costs)[shown].tolist(),
        "name": "cost",
        "colour": "accent",
        "width": 2.5,
        "step": True,
    }
    title = "calls answered so far" if axis == "calls" else "seconds of audit"
    cap = evidence.facts.max_cost
    levels = (
        []
        if cap is None
        else [{"at": cap, "text": f"cap: {evidence.facts.money(cap)}", "colour": "third"}]
    )
    return figure_of({"title": title}, {"title": "cost"}, [line], levels)


def _moments(calls: int, most: int) -> Indices:
    """So many numbers of calls, at most, 0 and all of them included."""
    return np.unique(np.linspace(0, calls, most).round().astype(np.int64))


# -- what took longest ---------------------------------------------------------------------------


def slowest_section(evidence: Evidence) -> Section | None:
    """Calls until each target was settled, longest first; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    calls = len(evidence.history[0].lower) - 1

    def slowest_first(standing: Standing) -> tuple[float, float]:
        moment = calls + 1 if standing.settled_at is None else standing.settled_at
        return -moment, -standing.half_width  # open ones first, the widest of them on top

    return Section.of(
        "What took longest",
        "slowest",
        "cost.html",
        targets=sorted(evidence.standings, key=slowest_first),
        calls=calls,
        asked=len(evidence.table),
        words=words(certificate),
        summary=_summary(evidence.standings),
    )


def _summary(found: list[Standing]) -> str:
    open_ = sum(not s.settled for s in found)
    if open_:
        return f"{amount(open_)} of {amount(len(found))} targets are still open."
    moments = sorted(s.settled_at or 0 for s in found)
    if len(moments) < 2:
        return f"It took {amount(moments[0])} calls."
    half = moments[(len(moments) - 1) // 2]
    return (
        f"Half of the targets were done after {amount(half)} calls, the last one after "
        f"{amount(moments[-1])}."
    )


# -- how the intervals shrank --------------------------------------------------------------------


def widths_section(evidence: Evidence) -> Section | None:
    """Half-width of each target over calls; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    found = [s for _, part in ordered(evidence.standings) for s in part]
    views = {view: _shrinking(evidence, found, view) for view in ("linear", "log")}
    return Section.of(
        "How the intervals shrank",
        "widths",
        "widths.html",
        certificate=certificate,
        targets=found,
        all=1 < len(found) <= MANY,
        chart=chart("widths-chart", views, "Half-width of each interval over calls"),
    )


def _shrinking(evidence: Evidence, found: list[Standing], scale: str) -> Figure:
    """The curve of each target, which shows when it is chosen, and that of the widest."""
    certificate = evidence.certificate
    assert certificate is not None
    moments = _moments(len(evidence.history[0].lower) - 1, WIDTH_MOMENTS)
    widths = np.stack([t.half_width[moments] for t in evidence.history])
    axis: JsonObject = {"title": "half-width", "range": [0, 0.515], "unit": "points"}
    if scale == "log":
        axis |= {"log": True, "range": [max(float(widths.min()), 1e-3) / 1.15, 0.515]}
    several, x = len(found) > 1, moments.tolist()
    lines = [
        {
            "x": x,
            "y": upward(widths[s.place]),
            "name": s.name,
            "colour": "accent" if s.settled else "bad",
            "only": str(s.place),
        }
        for s in found
        if several
    ]
    name = "widest of all" if several else "half-width"
    widest = {"x": x, "y": upward(widths.max(axis=0)), "name": name, "colour": "text", "width": 3}
    said = "bets aim at " if certificate.half_width is None else "asked for: "
    level = {"at": certificate.aim, "text": said + aim(certificate.aim), "colour": "third"}
    return figure_of({"title": "calls answered so far"}, axis, [*lines, widest], [level])


# -- what more would have cost -------------------------------------------------------------------


def forecast_section(evidence: Evidence) -> Section | None:
    """The widest half-width over calls, and on from there; None where nothing is certified,
    decisions alone were asked for, or nothing can be forecast."""
    certificate = evidence.certificate
    if certificate is None or certificate.half_width is None:
        return None
    calls, widest = len(evidence.widest) - 1, float(evidence.widest[-1])
    narrower = [width for width in WIDTHS if width < widest][:FORECASTS]
    found = [(width, evidence.calls_to(width)) for width in narrower]
    rows = [(width, needed) for width, needed in found if needed is not None]
    if not rows:
        return None
    each = evidence.cost / max(calls, 1)
    last = rows[-1][0]
    views = {"calls": _foreseen(evidence, last, 1.0, "calls answered")}
    if each:
        views["money"] = _foreseen(evidence, last, each, "cost")
    return Section.of(
        "What more would have cost",
        "forecast",
        "forecast.html",
        rows=[(width, needed, needed.after(-calls)) for width, needed in rows],
        each=each,
        half_width=widest,
        calls=calls,
        cost=evidence.cost,
        total=evidence.facts.all_calls,
        money=evidence.facts.money,
        several=len(certificate.targets) > 1,
        folder=evidence.folder,
        spec=evidence.spec,
        plannable=not evidence.spec.startswith("--"),  # 'avtt plan' has no --demo
        chart=chart("forecast-chart", views, "Half-width by calls, and on"),
    )


def _foreseen(evidence: Evidence, half_width: float, each: float, title: str) -> Figure:
    """``each``: what a call counts for on the axis."""
    widths = evidence.widest
    calls = len(widths) - 1
    moments = _moments(calls, WIDTH_MOMENTS)
    ahead = np.geomspace(float(widths[-1]), half_width, POINTS).tolist()
    found = [(width, evidence.calls_to(width)) for width in ahead[1:]]
    known = [(width, needed.likely) for width, needed in found if needed is not None]
    so_far = {
        "x": (moments * each).tolist(),
        "y": upward(widths[moments]),
        "name": "half-width so far",
        "colour": "accent",
        "width": 2.5,
    }
    forecast = {
        "x": [calls * each, *(needed * each for _, needed in known)],
        "y": [ahead[0], *(width for width, _ in known)],
        "name": "forecast",
        "colour": "third",
        "dash": "dash",
    }
    axis = {"title": "", "range": [0, 0.515], "unit": "points"}
    return figure_of({"title": title}, axis, [so_far, forecast])
