"""What was spent and what came back instead of answers, what took longest, how intervals shrank,
and what narrower ones would have cost.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...certify.further import Range
from ...certify.tracks import Counts
from ...engine.repeat_probes import repeated
from ...journal.facts import CertificateFacts
from ...journal.rows import EXCLUDED
from ...oracles.judge_findings import found_by_judge
from ...oracles.judge_models import JUDGED
from ...types import Floats
from .certified import words
from .evidence import Evidence, Standing, ordered
from .plots import chart, figure_of, upward
from .section import Section, aim, amount, fragment, money

# -- what was spent --------------------------------------------------------------------------------


SPENDING_CHECKPOINTS = 200
"""Moments at which the cost is shown, at most."""
KINDS = 12
"""Reasons that have a row of their own; the rest share one."""


READ = 8
"""Replies that a judge read, shown at most."""


@dataclass(frozen=True)
class Read:
    """A reply, what the judge said of it, and the verdicts of judge and rule in words."""

    reply: str
    said: str
    judge: str
    rule: str


@dataclass(frozen=True)
class Trouble:
    """``count`` of questions came back without an answer for one ``reason``."""

    reason: str
    count: int


def spending_section(evidence: Evidence) -> Section | None:
    """Cost over calls and time, failures by kind; None where nothing was asked, or all was free
    and all answered."""
    troubles, statistics = _troubles(evidence), evidence.facts.endpoint or {}
    again = repeated(evidence.sources, evidence.calls)
    if evidence.cost == 0 and not (troubles or statistics or again or evidence.facts.interrupted):
        return None
    views = {axis: _spending_figure(evidence, axis) for axis in ("calls", "seconds")}
    html = fragment(
        "spending.html",
        chart=chart("spending-chart", views, "Cost over calls") if evidence.cost else "",
        cost=evidence.cost,
        unconfirmed=evidence.unconfirmed,
        money=money,
        cap=evidence.facts.max_cost,
        lost=evidence.facts.interrupted,
        again=again,
        ratio=evidence.certificate is None or evidence.certificate.bets.ratio,
        judge=found_by_judge(evidence.judging, evidence.calls),
        judge_facts=evidence.facts.settings.oracle.judge,
        read=_read(evidence),
        excluded=len(evidence.table) - len(evidence.counted),
        calls=len(evidence.calls) + len(evidence.sources),
        troubles=troubles,
        asked=len(evidence.table),
        statistics=[(name.replace("_", " "), value) for name, value in _flat(statistics)],
    )
    return Section("What it cost, and what came back instead of answers", "spending", html)


def _read(evidence: Evidence) -> list[Read]:
    """What the judge was asked: where it and the rule disagree first."""
    words = {True: "right", False: "wrong", None: "no verdict"}
    answers = [a for c in evidence.calls for a in c.answers if JUDGED in (a.details or {})]
    told = [(a.said or "", (a.details or {})[JUDGED]) for a in answers]
    told.sort(key=lambda one: (one[1]["judge"] == one[1]["rule"], one[1]["rule"] is None))
    return [
        Read(reply, found["said"] or "nothing", words[found["judge"]], words[found["rule"]])
        for reply, found in told[:READ]
    ]


def _troubles(evidence: Evidence) -> list[Trouble]:
    """Why questions went unanswered, the commonest first."""
    counts = evidence.table["unanswered"].dropna().value_counts()
    found = [Trouble(str(r).removeprefix(EXCLUDED), int(n)) for r, n in counts.items()]
    rest = sum(t.count for t in found[KINDS:])
    return found[:KINDS] + ([Trouble("other reasons", rest)] if rest else [])


def _flat(statistics: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for name, value in statistics.items():
        if value is None:
            continue
        if isinstance(value, dict):
            rows += [(f"{name}: {key}", text) for key, text in _flat(value)]
        else:
            rows.append((name, amount(value) if isinstance(value, int | float) else str(value)))
    return rows


def _spending_figure(evidence: Evidence, axis: str) -> dict[str, Any]:
    paid = [(c.elapsed, c.cost) for c in evidence.calls]
    paid += [(s.elapsed, s.cost) for s in evidence.sources]
    seconds, costs = np.array([(0.0, 0.0), *sorted(paid)]).T
    cost = np.cumsum(costs)
    shown = np.unique(np.linspace(0, len(paid), SPENDING_CHECKPOINTS).round().astype(np.int64))
    x = shown if axis == "calls" else seconds[shown].round(2)
    line = {
        "x": x.tolist(),
        "y": cost[shown].tolist(),
        "name": "cost",
        "colour": "accent",
        "width": 2.5,
        "step": True,
    }
    title = "calls answered so far" if axis == "calls" else "seconds of audit"
    cap = evidence.facts.max_cost
    levels = [] if cap is None else [{"at": cap, "text": f"cap: {money(cap)}", "colour": "third"}]
    return figure_of({"title": title}, {"title": "cost"}, [line], levels)


# -- what took longest -----------------------------------------------------------------------------


def slowest_section(evidence: Evidence) -> Section | None:
    """Calls until each target was settled, longest first; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    calls = len(evidence.history[0].lower) - 1
    found = sorted(evidence.standings, key=lambda s: _slowest_first(s, calls))
    html = fragment(
        "cost.html",
        targets=found,
        calls=calls,
        asked=len(evidence.table),
        words=words(certificate),
        summary=_how_long(found, calls),
    )
    return Section("What took longest", "slowest", html)


def _slowest_first(standing: Standing, calls: int) -> tuple[float, float]:
    """Open ones first, the widest of them on top; then the last to be settled."""
    moment = calls + 1 if standing.settled_at is None else standing.settled_at
    return (-moment, -standing.half_width)


def _how_long(found: list[Standing], calls: int) -> str:
    """How much of the audit went into the targets that took longest."""
    open_ = sum(not s.settled for s in found)
    if open_:
        return f"{amount(open_)} of {amount(len(found))} targets are still open."
    moments = sorted((s.settled_at or 0 for s in found), reverse=True)
    if len(moments) < 2:
        return f"It took {amount(moments[0])} calls."
    half = sorted(moments)[(len(moments) - 1) // 2]
    return (
        f"Half of the targets were done after {amount(half)} calls, the last one after "
        f"{amount(moments[0])}."
    )


# -- how intervals shrank --------------------------------------------------------------------------


CHECKPOINTS = 100
"""Widths are shown at most so often."""
MANY = 40
"""With more targets than this only the widest is shown at first."""


def widths_section(evidence: Evidence) -> Section | None:
    """Half-width of each target over calls; None where nothing is certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    found = [s for _, part in ordered(evidence.standings) for s in part]
    views = {view: _widths_figure(evidence, certificate, found, view) for view in ("linear", "log")}
    html = fragment(
        "widths.html",
        certificate=certificate,
        targets=found,
        all=1 < len(found) <= MANY,
        chart=chart("widths-chart", views, "Half-width of each interval over calls"),
    )
    return Section("How the intervals shrank", "widths", html)


def _widths_figure(
    evidence: Evidence, certificate: CertificateFacts, found: list[Standing], scale: str
) -> dict[str, Any]:
    calls = len(evidence.history[0].lower) - 1
    moments = np.unique(np.linspace(0, calls, CHECKPOINTS).round().astype(np.int64))
    widths = np.stack([t.half_width[moments] for t in evidence.history])
    axis: dict[str, Any] = {"title": "half-width", "range": [0, 0.515], "percent": True}
    if scale == "log":
        axis |= {"log": True, "range": [max(float(widths.min()), 1e-3) / 1.15, 0.515]}
    lines = [_width_line(moments, widths[s.place], s) for s in found if len(found) > 1]
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


def _width_line(moments: Counts, widths: Floats, standing: Standing) -> dict[str, Any]:
    """The curve of one target, which shows when it is chosen."""
    return {
        "x": moments.tolist(),
        "y": upward(widths),
        "name": standing.name,
        "colour": "accent" if standing.settled else "bad",
        "only": str(standing.place),
    }


# -- what more would have cost ---------------------------------------------------------------------


WIDTHS = (0.2, 0.15, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01)
MAX_WIDTHS = 5
"""Half-widths that are told of, at most."""
FORECAST_CHECKPOINTS = 100
MAX_POINTS = 30
"""Of either curve, at most."""


@dataclass(frozen=True)
class Forecast:
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


def forecast_section(evidence: Evidence) -> Section | None:
    """The widest half-width over calls, and on from there; None where nothing is certified,
    decisions alone were asked for, or nothing can be forecast."""
    certificate = evidence.certificate
    if certificate is None or certificate.half_width is None:
        return None
    calls, widest = len(evidence.widest) - 1, float(evidence.widest[-1])
    each = evidence.cost / max(calls, 1)
    found = [(w, evidence.calls_to(w)) for w in [w for w in WIDTHS if w < widest][:MAX_WIDTHS]]
    rows = [Forecast(w, n, n.after(-calls), each) for w, n in found if n is not None]
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
        chart=chart(
            "forecast-chart", _forecast_views(evidence, rows[-1]), "Half-width by calls, and on"
        ),
    )
    return Section("What more would have cost", "forecast", html)


def _forecast_views(evidence: Evidence, last: Forecast) -> dict[str, dict[str, Any]]:
    """By calls, and where they cost something by money."""
    views: dict[str, dict[str, Any]] = {
        "calls": _forecast_figure(evidence, last, 1.0, "calls answered")
    }
    if last.each:
        views["money"] = _forecast_figure(evidence, last, last.each, "cost")
    return views


def _forecast_figure(evidence: Evidence, last: Forecast, each: float, title: str) -> dict[str, Any]:
    """``each``: what a call counts for on the axis."""
    widths = evidence.widest
    calls = len(widths) - 1
    moments = np.unique(np.linspace(0, calls, FORECAST_CHECKPOINTS).round().astype(np.int64))
    ahead = np.geomspace(float(widths[-1]), last.half_width, MAX_POINTS).tolist()
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
