"""Spending and missing answers, and half-widths: so far, and of more calls."""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from ...journal.rows import EXCLUDED
from ...oracles.findings import judge_findings
from ...oracles.judge_models import JUDGED
from ...types import Floats, Indices, JsonObject
from ...utils.figures import money, shorten
from .evidence import QUOTED, Evidence, ordered
from .plots import chart, figure_of, upward
from .section import Section, aim, amount, percent

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
"""Points of the curve of a forecast."""
TALLEST = 0.515
"""Where axes of half-widths end."""


def moments_of(calls: int, most: int) -> Indices:
    """Return ``most`` numbers of calls, or fewer, 0 and all of them included."""
    return np.unique(np.linspace(0, calls, most).round().astype(np.int64))


def spending_section(evidence: Evidence) -> Section | None:
    """Show cost over calls and time, failures by kind; None if nothing was asked, or all was
    free and all answered."""
    facts, again = evidence.facts, evidence.run.repeat_probes
    reasons = evidence.table["unanswered"].dropna().str.removeprefix(EXCLUDED).value_counts()
    if evidence.cost == 0 and not (len(reasons) or facts.endpoint or again or facts.interrupted):
        return None
    if len(reasons) > KINDS:
        reasons = pd.concat([reasons[:KINDS], pd.Series({"other reasons": reasons[KINDS:].sum()})])
    troubles = reasons.rename_axis("reason").reset_index(name="questions")
    shares = (troubles["questions"] / len(evidence.table)).map(percent)
    in_doubt = facts.money_in_doubt(evidence.unconfirmed)
    costs = bool(evidence.cost or in_doubt)
    return evidence.section(
        "Spending and missing answers" if costs else "Missing answers",
        "spending",
        chart=_spending_chart(evidence) if evidence.cost else "",
        in_doubt=in_doubt,
        paid=evidence.cost or facts.worst or facts.endpoint,  # prices may be unknown
        again=again,
        judge=judge_findings(evidence.run.judging, evidence.calls),
        read=_read_by_judge(evidence),
        excluded=len(evidence.table) - len(evidence.counted),
        calls=len(evidence.calls) + len(evidence.sources),
        troubles=troubles.assign(**{"share of those asked": shares}) if len(troubles) else None,
        statistics=_flat(facts.endpoint, facts.currency) if facts.endpoint else None,
    )


def _read_by_judge(evidence: Evidence) -> pd.DataFrame | None:
    """Return replies that the judge was asked about, those where it and the rule disagree first."""
    rows = [(a.answer_text or "", a.details) for a in evidence.answered.values() if a.details]
    read = [(reply, details[JUDGED]) for reply, details in rows if JUDGED in details]
    read.sort(key=lambda row: (row[1]["judge"] == row[1]["rule"], row[1]["rule"] is None))
    verdicts = {True: "right", False: "wrong", None: "no verdict"}
    table = [
        {
            "reply": shorten(reply, QUOTED),
            "reply of the judge": judged["reply"] or "nothing",
            "by judge": verdicts[judged["judge"]],
            "by rule": verdicts[judged["rule"]],
        }
        for reply, judged in read[:READ]
    ]
    return pd.DataFrame(table) if table else None


def _flat(statistics: JsonObject, currency: str) -> pd.DataFrame:
    """Return the counts of an endpoint in words, named by their whole path."""
    rows = []
    for name, value in pd.json_normalize(statistics, sep=": ").iloc[0].items():
        text = str(value)
        if isinstance(value, Real):  # whole numbers are NumPy's, as pandas gives them
            is_cost = "cost" in str(name).split(": ")[-1]
            text = money(float(value), currency) if is_cost else amount(float(value))
        if value is not None:
            rows.append((str(name).replace("_", " "), text))
    return pd.DataFrame(rows, columns=["figure", "value"])


def _spending_chart(evidence: Evidence) -> Any:
    rows: list[Any] = [*evidence.calls, *evidence.sources]
    seconds, costs = np.array([(0.0, 0.0), *sorted((r.elapsed, r.cost) for r in rows)]).T
    moments = moments_of(len(rows), SPENDING_MOMENTS)
    line: JsonObject = {"name": "cost", "colour": "accent", "width": 2.5, "step": True}
    line["y"] = np.cumsum(costs)[moments].tolist()
    cap, levels = evidence.facts.max_cost, []
    if cap is not None:
        levels = [{"at": cap, "text": f"cap: {evidence.facts.money(cap)}", "colour": "third"}]
    views = {}
    for name, title, x in (
        ("calls", "calls answered so far", moments),
        ("seconds", "seconds of audit", seconds[moments].round(2)),
    ):
        drawn = {**line, "x": x.tolist()}
        views[name] = figure_of({"title": title}, {"title": "cost"}, [drawn], levels)
    return chart("spending-chart", views, "Cost over calls")


def widths_section(evidence: Evidence) -> Section | None:
    """Show the half-width of each target over calls, of the chosen ones; None if nothing is
    certified."""
    certificate = evidence.certificate
    if certificate is None:
        return None
    targets = [s for _, part in ordered(evidence.standings) for s in part]
    history, several = evidence.run.history, len(targets) > 1
    moments = moments_of(len(history[0].lower) - 1, WIDTH_MOMENTS)
    widths = np.stack([t.half_width[moments] for t in history])

    def line(y: Floats, name: str, colour: str, **more: Any) -> JsonObject:
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
    linear: JsonObject = {"title": "half-width", "range": [0, TALLEST], "unit": "points"}
    least = max(float(widths.min()), 1e-3) / 1.15
    axes = {"linear": linear, "log": {**linear, "log": True, "range": [least, TALLEST]}}
    x = {"title": "calls answered so far"}
    views = {scale: figure_of(x, axis, lines, [level]) for scale, axis in axes.items()}
    return evidence.section(
        "Interval widths over calls",
        "widths",
        targets=targets,
        all=1 < len(targets) <= MANY,
        chart=chart("widths-chart", views, "Half-width of each interval over calls"),
    )


def forecast_section(evidence: Evidence) -> Section | None:
    """Show the widest half-width over calls, and of more calls; None if nothing is certified,
    decisions alone were asked for, or nothing can be forecast."""
    certificate = evidence.certificate
    if certificate is None or certificate.half_width is None:
        return None
    widths, facts = evidence.widest, evidence.facts
    calls, widest = len(widths) - 1, float(widths[-1])
    narrower = [width for width in WIDTHS if width < widest][:FORECASTS]
    forecasts = [(width, evidence.calls_to(width)) for width in narrower]
    rows = [(width, needed) for width, needed in forecasts if needed is not None]
    if not rows:
        return None
    table = {
        "half-width": [aim(width) for width, _ in rows],
        "calls in all": [needed.short for _, needed in rows],
        "more calls": [needed.after(-calls).short for _, needed in rows],
    }
    views, axes = {}, {"calls": (1.0, "calls answered")}
    if each := evidence.cost / max(calls, 1):
        ends = [[facts.money(end * each) for end in (n.least, n.most)] for _, n in rows]
        table["cost in all"] = [" to ".join(pair) for pair in ends]
        axes["money"] = (each, "cost")
    moments = moments_of(calls, WIDTH_MOMENTS)
    further = [
        (width, evidence.calls_to(width))
        for width in np.geomspace(widest, rows[-1][0], POINTS).tolist()[1:]
    ]
    ahead = [(widest, calls), *((width, needed.likely) for width, needed in further if needed)]
    so_far = {"y": upward(widths[moments]), "name": "half-width so far", "colour": "accent"}
    forecast = {"y": [width for width, _ in ahead], "name": "forecast", "colour": "third"}
    axis = {"title": "", "range": [0, TALLEST], "unit": "points"}
    for name, (times, title) in axes.items():
        lines = [
            {**so_far, "x": (moments * times).tolist(), "width": 2.5},
            {**forecast, "x": [made * times for _, made in ahead], "dash": "dash"},
        ]
        views[name] = figure_of({"title": title}, axis, lines)
    return evidence.section(
        "Forecast for narrower intervals",
        "forecast",
        rows=pd.DataFrame(table),
        half_width=widest,
        calls=calls,
        plannable=not evidence.spec.startswith("--"),  # 'avtt plan' has no --demo
        chart=chart("forecast-chart", views, "Half-width by calls, and further"),
    )
