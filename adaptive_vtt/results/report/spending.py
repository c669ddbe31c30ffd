"""What was spent over time, and what came back instead of answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...engine.repeat_probes import repeated
from ...journal.rows import EXCLUDED
from ...oracles.judge_findings import found_by_judge
from ...oracles.judge_models import JUDGED
from .evidence import Evidence
from .plots import chart, figure_of
from .section import Section, amount, fragment, money

CHECKPOINTS = 200
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


def section(evidence: Evidence) -> Section | None:
    """Cost over calls and time, failures by kind; None where nothing was asked, or all was free
    and all answered."""
    troubles, statistics = _troubles(evidence), evidence.facts.endpoint or {}
    again = repeated(evidence.sources, evidence.calls)
    if evidence.cost == 0 and not (troubles or statistics or again or evidence.facts.interrupted):
        return None
    views = {axis: _figure(evidence, axis) for axis in ("calls", "seconds")}
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


def _figure(evidence: Evidence, axis: str) -> dict[str, Any]:
    paid = [(c.elapsed, c.cost) for c in evidence.calls]
    paid += [(s.elapsed, s.cost) for s in evidence.sources]
    seconds, costs = np.array([(0.0, 0.0), *sorted(paid)]).T
    cost = np.cumsum(costs)
    shown = np.unique(np.linspace(0, len(paid), CHECKPOINTS).round().astype(np.int64))
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
