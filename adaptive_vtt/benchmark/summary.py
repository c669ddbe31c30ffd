"""Runs to tables and a page: one row per strategy, and one per strategy and estimator."""

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ..errors import some
from ..results.report.plots import COLOURS as ROLES
from ..results.report.plots import Figure, chart, figure_page, frame, level_of, table
from ..results.report.section import amount, data
from ..results.way_on import rounded_up
from ..stopping import WIDEST
from ..strategies import REGISTRY
from ..types import Floats, JsonObject
from ..utils.figures import on_page, outward, points, shown
from .runs import BY_CHANCE, CLASSICS, MARKS, UNIFORM, Run

# -- tables ----------------------------------------------------------------------------------------


UNCERTAINTIES = (0.75, 0.5, 0.25, 0.1)
"""Mean uncertainties, as shares of the prior, to which calls are counted."""
RATIO = "times uniform's calls"
"""Heads the column of calls as a multiple of those of uniform questioning."""
MAX_MARKS = 3
"""Columns of RMSE in the table: the last ones that every run reached."""


def uncertainty_summary(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per strategy: median calls to each level (None: not reached), end state."""
    rows = []
    for name, mine in by_strategy(runs).items():
        row: JsonObject = {"strategy": name, "repeats": len(mine)}
        for level in UNCERTAINTIES:
            row[f"calls to {level:g}"] = _median([_first_below(run, level) for run in mine])
        row["calls"] = _median([run["calls"] for run in mine])
        ends = [run["uncertainty"][-1] for run in mine]
        row["uncertainty at end"] = round(float(np.median(ends)), 4)
        row["seconds per call"] = round(float(np.median([run["seconds"] for run in mine])), 5)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def certified_summary(runs: Sequence[Run], truth: Sequence[float] | None = None) -> pd.DataFrame:
    """One row per strategy: median calls to each half-width, against uniform; coverage.

    ``times uniform's calls``: the median, over seeds, of its calls to the last half-width divided
    by those of uniform.
    ``coverage``: share of repeats in which every interval held the truth at the stop;
    ``ever missed``: in which any did not, at any moment. None: not reached, or not known.
    """
    grouped = by_strategy(runs)
    goals = [level for level, _ in runs[0]["calls_to"]]
    rows = []
    for name, mine in grouped.items():
        row: JsonObject = {"strategy": name, "repeats": len(mine)}
        for place, level in enumerate(goals):
            row[f"calls to {level:g}"] = _median([_calls(r["calls_to"][place][1]) for r in mine])
        ratio = _median(_ratios(grouped, name, UNIFORM))
        row[RATIO] = None if ratio is None else round(ratio, 3)
        row["stopped at"] = _median([run["calls"] for run in mine])
        if truth is not None:
            row["RMSE at stop"] = _rmse([_errors(run, "certified", truth, -1) for run in mine])
        row["coverage"] = _mean([run.get("held") for run in mine])
        row["ever missed"] = _mean([run.get("missed") for run in mine])
        row["variance ratio"] = round(float(np.median([r["variance_ratio"] for r in mine])), 3)
        row["seconds per draw"] = round(float(np.median([run["seconds"] for run in mine])), 5)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def calls_told(table: pd.DataFrame, levels: Sequence[str]) -> pd.DataFrame:
    """The table of ``certified_summary`` with the calls in these columns as they are told: whole
    ones, and >200 where half the repeats or more had not got there when they stopped, at 200."""
    told = {
        level: [
            f">{math.floor(stopped)}" if pd.isna(calls) else math.ceil(calls)
            for calls, stopped in zip(table[level], table["stopped at"], strict=True)
        ]
        for level in levels
    }
    return table.assign(**told)


TOGETHER = 0.05
"""How probable a wrong comparison is, at most, among all pairs of strategies that there are."""
MOST_REPEATS = 100
"""More are not proposed: by then strategies are as good as alike."""
FEW_REPEATS = 4
"""From fewer nobody knows the spread: no range is told, nor how many would tell."""


def conclusion(runs: Sequence[Run]) -> list[str]:
    """What runs that certify say, a sentence each: how many times the calls of uniform questioning
    every other strategy needed, the best one first; how the best one and the user's own compare
    with those that needed more; and what cannot be told apart.

    Strategies are compared by the ratios of their calls at the same seeds: Student's interval of
    the mean log ratio, as wide as it takes for all pairs together (Bonferroni), from FEW_REPEATS
    repeats on. Where that holds 1, so many repeats "would" tell as make it end there if mean and
    spread stay as they are. One that did not reach the last half-width with every seed is
    named, beside what others needed at most, and not compared: the budget that would do is reckoned
    from its widest interval, whose square goes with 1 / calls.
    """
    grouped = by_strategy(runs)
    short = [name for name, mine in grouped.items() if np.isinf(_to_goal(mine)).any()]
    others = [name for name in grouped if name != UNIFORM and name not in short]
    others.sort(key=lambda name: float(np.median(_to_goal(grouped[name]))))
    mine = own(runs)
    rivals = {
        name: [o for o in others[k + 1 :] if not k or mine & {name, o}]
        for k, name in enumerate(others)
    }
    if UNIFORM in grouped and UNIFORM not in short:
        rivals = {name: [UNIFORM, *found] for name, found in rivals.items()}
    repeats = f"{runs[-1]['seed'] + 1} repeat{'s' * (runs[-1]['seed'] > 0)}"
    yet = "yet " if runs[-1]["seed"] + 1 < FEW_REPEATS else ""
    needed: list[str] = []
    unclear: list[str] = []
    for name, found in rivals.items():
        alike = []
        for other in found:
            ratios = _ratios(grouped, name, other)
            between = _between(ratios, len(grouped))
            if between is None:
                alike.append(f"{other}{_would_tell(ratios, len(grouped))}")
            else:
                low, high = outward(*between)
                told = f"{low:g} to {high:g} times the calls ({repeats})"
                needed.append(f"Against {other}, {name} needed {told}")
        if alike:
            unclear.append(
                f"{repeats} cannot tell {yet}whether {name} needs fewer calls than "
                f"{' or '.join(alike)}"
            )
    if unclear and yet:
        unclear.append(f"{FEW_REPEATS} repeats or more give a range, or say how many would tell")
    return [*needed, *unclear, *_in_time(grouped, short, mine), *_too_small(grouped, short)]


def own(runs: Sequence[Run]) -> set[str]:
    """The names of rows that are no built-in strategy as it comes."""
    return {run["strategy"] for run in runs} - {*CLASSICS, *REGISTRY.built_in}


def _in_time(
    grouped: Mapping[str, Sequence[Run]], short: Sequence[str], mine: Set[str]
) -> list[str]:
    """What the best of those that got there with every seed needed at most, and the user's own, and
    which of the strategies ``short`` were not there after as many calls or more."""
    reached = [name for name in grouped if name not in short]
    reached.sort(key=lambda name: float(np.median(_to_goal(grouped[name]))))
    found = []
    for name in reached[:1] + [name for name in reached[1:] if name in mine]:
        most = int(_to_goal(grouped[name]).max())
        for other in short:
            runs = grouped[other]
            late = [r["calls"] for r in runs if r["calls_to"][-1][1] is None and r["calls"] >= most]
            if late:
                repeats = f"{len(late)} of {len(runs)} repeat{'s' * (len(runs) > 1)}"
                behind = f"{other} had not got there after {min(late):,} in {repeats}"
                found.append(f"At most {most:,} calls were needed by {name}; {behind}")
    return found


def _too_small(grouped: Mapping[str, Sequence[Run]], short: Sequence[str]) -> list[str]:
    """That not every repeat of the strategies ``short`` got there, and what budget may do."""
    if not short:
        return []
    late = [run for name in short for run in grouped[name]]
    goal, most = late[0]["calls_to"][-1][0], max(run["calls"] for run in late)
    names = some(short, len(short))
    said = (
        f"The budget was too small for {names}: in some repeats not all targets were within "
        f"{points(goal)} after {most:,} calls"
    )
    late = [run for run in late if run["calls_to"][-1][1] is None]
    if any(run["half_width"][-1] >= WIDEST for run in late):
        return [said]  # no interval says yet how fast it shrinks
    budget = max(run["calls"] * (run["half_width"][-1] / goal) ** 2 for run in late)
    budget, everything = math.ceil(rounded_up(budget)), late[0]["all_calls"]
    if budget >= everything:
        return [f"{said}; a budget of {everything:,} calls would do, which are all that there are"]
    return [f"{said}; a budget of about {budget:,} calls would do"]


def by_chance(runs: Sequence[Run]) -> str:
    """Which strategies choose by chance, which of them have predictions, and which draws more often
    from open targets: random, by the exploration that it has like every audit."""
    mine = {run["strategy"]: run["predicts"] for run in runs if run["strategy"] in BY_CHANCE}
    more = {"random": ", more often from open targets"}
    names = [
        f"{name} ({'with' if predicts else 'without'} predictions{more.get(name, '')})"
        for name, predicts in mine.items()
    ]
    return f"strategies that draw questions by chance alone: {', '.join(names)}"


def _to_goal(runs: Sequence[Run]) -> Floats:
    return np.array([_calls(run["calls_to"][-1][1]) for run in runs])


def _ratios(grouped: Mapping[str, Sequence[Run]], name: str, other: str) -> Floats:
    """(repeats,): per seed, the calls of a strategy as a share of another's; infinite where it
    fell short, NaN where the other did."""
    theirs = _to_goal(grouped[other])
    return np.asarray(_to_goal(grouped[name]) / np.where(np.isinf(theirs), np.nan, theirs))


def _between(ratios: Floats, strategies: int) -> tuple[float, float] | None:
    """What the typical ratio lies between; None where that may be 1, and where too few show the
    spread, as two that are equal by chance seem to have none."""
    if len(ratios) < FEW_REPEATS:
        return None
    middle, error = np.log(ratios).mean(), _error(ratios, strategies, len(ratios))
    low, high = np.exp(middle - error), np.exp(middle + error)
    return None if low <= 1 <= high else (float(low), float(high))


def _error(ratios: Floats, strategies: int, repeats: int) -> float:
    """Half of Student's interval of the mean log ratio, of so many repeats with this spread."""
    from scipy.stats import t

    pairs = strategies * (strategies - 1) / 2
    spread = np.log(ratios).std(ddof=1) / math.sqrt(repeats)
    return float(spread * t.isf(TOGETHER / pairs / 2, repeats - 1))


def _would_tell(ratios: Floats, strategies: int) -> str:
    """How many repeats would tell them apart, in brackets; "" where too few show the spread."""
    if len(ratios) < FEW_REPEATS:
        return ""
    for repeats in range(len(ratios) + 1, MOST_REPEATS + 1):
        error = _error(ratios, strategies, repeats)
        if error < abs(np.log(ratios).mean()):
            return f" (about {repeats} repeats would)"
    return f" ({MOST_REPEATS} repeats would not either)"


def estimator_summary(runs: Sequence[Run], truth: Sequence[float]) -> pd.DataFrame:
    """One row per strategy and estimator: RMSE over targets and repeats at the marks that
    every repeat of every strategy reached, RMSE and mean error at the stop."""
    marks = shared_marks(runs)
    rows = []
    for name, mine in by_strategy(runs).items():
        for estimator in mine[0]["estimates"]:
            row: JsonObject = {"strategy": name, "estimator": estimator}
            for mark in marks:
                found = [_errors(run, estimator, truth, run["at"].index(mark)) for run in mine]
                row[f"RMSE at {mark}"] = _rmse(found)
            ends = [_errors(run, estimator, truth, -1) for run in mine]
            row["RMSE at stop"] = _rmse(ends)
            row["bias at stop"] = _mean(ends)
            rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def peeking_summary(runs: Sequence[Run]) -> JsonObject | None:
    """What came of looking at normal intervals after every uniform call; None: not known."""
    peeks = [run["peeking"] for run in runs if "peeking" in run]
    if not peeks:
        return None
    return {
        "repeats": len(peeks),
        "calls": _median([_calls(p["calls"]) for p in peeks]),
        "coverage": _mean([p["held"] for p in peeks if p["held"] is not None]),
        "ever missed": _mean([p["missed"] for p in peeks]),
    }


def by_strategy(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each strategy, in order."""
    names = dict.fromkeys(run["strategy"] for run in runs)
    return {name: [run for run in runs if run["strategy"] == name] for name in names}


def shared_marks(runs: Sequence[Run]) -> list[int]:
    """The marks that every run reached: RMSEs over other sets of runs cannot be compared."""
    return [mark for mark in MARKS if all(mark in run["at"] for run in runs)][-MAX_MARKS:]


def _errors(run: Run, estimator: str, truth: Sequence[float], place: int) -> Floats:
    """(K,): estimate less truth; NaN where there was no estimate."""
    return np.array(run["estimates"][estimator][place], float) - np.array(truth)


def _rmse(errors: Sequence[Floats]) -> float | None:
    known = _known(errors)
    return round(float(np.sqrt(np.mean(known**2))), 4) if len(known) else None


def _mean(values: Sequence[Floats] | Sequence[bool | None]) -> float | None:
    known = _known(values)
    return round(float(np.mean(known)), 4) if len(known) else None


def _known(values: Sequence[Floats] | Sequence[bool | None]) -> Floats:
    table = np.array(values, float)  # None becomes NaN
    return np.asarray(table[~np.isnan(table)])


def _calls(calls: int | None) -> float:
    return float("inf") if calls is None else float(calls)


def _median(values: Sequence[float] | Floats) -> float | None:
    """The median; None where that was not reached."""
    middle = float(np.median(values)) if len(values) else float("inf")
    return None if np.isinf(middle) or np.isnan(middle) else middle


def _first_below(run: Run, level: float) -> float:
    below = np.flatnonzero(np.array(run["uncertainty"]) <= level)
    return float(run["at"][below[0]]) if len(below) else float("inf")


# -- the page: Plotly figures and tables, in one file that needs no network ------------------------


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, told apart by colour-blind readers too."""
INKS = ("#fefefe", "#111111", "#111111", "#111111", "#111111", "#111111", ROLES["surface"])
"""Words on these colours; black is light in the dark."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
POINTS = 160
BAR = 36
"""Pixels of height per bar, with the space below it."""
HALF_WIDTHS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)


def figures(runs: Sequence[Run], goal: float | None) -> dict[str, Figure]:
    """What the page draws, by name: "widths" and "calls", or where nothing is certified
    "uncertainty"."""
    if goal is None:
        return {"uncertainty": _uncertainty(runs)}
    return {"widths": _widths(runs, goal), "calls": _calls_bars(runs, _bars(runs))}


def uncertainty_page(runs: Sequence[Run]) -> str:
    """Mean uncertainty over calls."""
    label = "Uncertainty of the answer GPs over calls"
    figure = chart("uncertainty", {"all": _uncertainty(runs)}, label)
    lead = "Seed 0 is strong, the other repeats are faint."
    return figure_page("Strategies compared", lead, [(label, figure)])


def _uncertainty(runs: Sequence[Run]) -> Figure:
    """A faint line per run, a strong one per strategy."""
    lines = [
        {
            **_line(number, name, run["at"], run["uncertainty"]),
            "showlegend": run["seed"] == 0,
            "opacity": 1.0 if run["seed"] == 0 else 0.35,
        }
        for number, (name, mine) in enumerate(by_strategy(runs).items())
        for run in mine
    ]
    layout = {
        "xaxis": {"title": {"text": "calls"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "mean uncertainty, share of prior"}, "range": [0, 1.02]},
        "showlegend": True,
    }
    return {"data": lines, "layout": layout}


def certified_page(
    runs: Sequence[Run], goal: float, confidence: float, tables: dict[str, pd.DataFrame]
) -> str:
    """Widest interval over calls, calls to the goal, and the tables."""
    bars, drawn = _bars(runs), figures(runs, goal)
    calls, within = "Calls until every target is within", on_page(points(goal))
    rows = [[str(name), said] for name, said in zip(bars["y"], bars["text"], strict=True)]
    place = frame("calls", f"{calls} {within}", ["strategy", "calls (median)"], rows)
    parts = [
        (
            "Widest interval over calls (median; band: all repeats)",
            chart("widths", {"all": drawn["widths"]}, "Widest half-width over calls"),
        ),
        (
            f"{calls} {within} (median; dots: repeats)",
            place + data("calls-data", {"all": drawn["calls"]}),
        ),
        *((title, table(title, found)) for title, found in tables.items()),
    ]
    told = [Markup("<li>{}.</li>").format(on_page(sentence)) for sentence in conclusion(runs)]
    if told:
        parts.insert(0, ("Conclusion", Markup("<ul>{}</ul>").format(Markup("").join(told))))
    lead = f"All intervals hold at all times with probability {confidence:g}; {by_chance(runs)}."
    return figure_page("Strategies compared", lead, parts)


def _widths(runs: Sequence[Run], goal: float) -> Figure:
    """A line for the median and a band from least to most; a run that stopped stays there."""
    bands, lines = [], []
    for number, (name, mine) in enumerate(by_strategy(runs).items()):
        last = max(run["at"][-1] for run in mine)
        grid = np.unique(np.geomspace(1, last, POINTS).round())
        curves = np.array([_at(run, grid) for run in mine])
        low, middle, high = curves.min(axis=0), np.median(curves, axis=0), curves.max(axis=0)
        bands.append(
            {
                "type": "scatter",
                "name": f"{shown(name)}: all repeats",
                "x": [*grid.tolist(), *grid[::-1].tolist()],
                "y": [*high.tolist(), *low[::-1].tolist()],
                "fill": "toself",
                "fillcolor": _faint(_colour(number)),
                "line": {"width": 0},
                "hoverinfo": "skip",
                "legendgroup": shown(name),
                "showlegend": False,
            }
        )
        lines.append(_line(number, name, grid.tolist(), middle.tolist()))
    layout = {**_log_axes(goal, max(run["at"][-1] for run in runs)), "showlegend": True}
    words = {"at": goal, "text": f"stop: ±{goal:g}", "colour": "muted"}
    return {"data": [*bands, *lines], "layout": {**layout, "shapes": [level_of(words, 1, False)]}}


def _log_axes(goal: float, last: int) -> JsonObject:
    calls = [base * 10**power for power in range(7) for base in (1, 2, 5)]
    return {
        "xaxis": {
            "title": {"text": "calls"},
            "type": "log",
            "tickvals": calls,
            "ticktext": [f"{c:,}" for c in calls],
            "range": [0, float(np.log10(last * 1.05))],
        },
        "yaxis": {
            "title": {"text": "widest half-width"},
            "type": "log",
            "tickvals": list(HALF_WIDTHS),
            "ticktext": [f"{w:g}" for w in HALF_WIDTHS],
            "range": [float(np.log10(0.9 * goal)), float(np.log10(0.56))],
        },
    }


def _at(run: Run, grid: Floats) -> Floats:
    place = np.searchsorted(run["at"], grid, side="right") - 1
    return np.array(run["half_width"])[np.maximum(place, 0)]


def _bars(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Per strategy the median of calls, at least those made where it did not get there."""
    found: dict[str, list[Any]] = {
        name: [] for name in ("y", "x", "text", "colour", "ink", "pattern")
    }
    for number, (name, mine) in enumerate(by_strategy(runs).items()):
        reached = [run["calls_to"][-1][1] for run in mine]
        middle = float(np.median([np.inf if calls is None else calls for calls in reached]))
        short = bool(np.isinf(middle))
        height = max(run["calls"] for run in mine) if short else middle
        found["y"].append(name)
        found["x"].append(height)
        found["text"].append(f"more than {amount(height)}" if short else amount(math.ceil(height)))
        found["colour"].append(_faint(_colour(number)) if short else _colour(number))
        found["ink"].append(ROLES["text"] if short else INKS[number % len(INKS)])
        found["pattern"].append("/" if short else "")
    return found


def _calls_bars(runs: Sequence[Run], bars: dict[str, list[Any]]) -> Figure:
    """The median as a bar, the repeats as dots; no dots for those that did not get there. Medians
    that were not reached are a series of their own, whose name says so in its CSV file, too."""
    dots = [
        (calls, shown(name))
        for name, mine in by_strategy(runs).items()
        for run in mine
        if (calls := run["calls_to"][-1][1]) is not None
    ]
    names = [shown(name) for name in bars["y"]]
    medians = []
    for title, pattern in (("median", ""), ("median more than", "/")):
        rows = [k for k, each in enumerate(bars["pattern"]) if each == pattern]
        medians.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": title,
                "x": [bars["x"][k] for k in rows],
                "y": [names[k] for k in rows],
                "text": [bars["text"][k] for k in rows],
                "textposition": "inside",
                "constraintext": "none",
                "insidetextanchor": "start",
                "insidetextfont": {"color": [bars["ink"][k] for k in rows]},
                "marker": {
                    "color": [bars["colour"][k] for k in rows],
                    "pattern": {"shape": pattern},
                },
                "hovertemplate": "%{y}: %{text}<extra></extra>",
            }
        )
    repeats = {
        "type": "scatter",
        "mode": "markers",
        "name": "repeats",
        "x": [calls for calls, _ in dots],
        "y": [name for _, name in dots],
        "marker": {"color": ROLES["text"], "size": 7, "symbol": "circle-open"},
        "hovertemplate": "%{y}: %{x} calls<extra></extra>",
    }
    layout = {
        "height": 110 + BAR * len(bars["y"]),
        "showlegend": False,
        "barmode": "overlay",
        "xaxis": {"title": {"text": "calls"}, "rangemode": "tozero"},
        "yaxis": {
            "type": "category",
            "categoryarray": names,
            "autorange": "reversed",
            "showgrid": False,
        },
    }
    shown_medians = [each for each in medians if each["y"]]
    return {"data": [*shown_medians, repeats], "layout": layout}


def _line(number: int, name: str, x: Sequence[float], y: Sequence[float]) -> JsonObject:
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": shown(name),
        "legendgroup": shown(name),
        "x": list(x),
        "y": list(y),
        "line": {"color": _colour(number), "dash": dash, "width": 2.5},
        "hovertemplate": "%{y:.3~g}<br>%{x} calls",
    }


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"
