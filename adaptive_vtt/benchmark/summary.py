"""Tables of runs, one row per strategy or per strategy and estimator, and a conclusion."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..results.advice import rounded
from ..stopping import WIDEST
from ..strategies import REGISTRY
from ..types import Floats
from ..utils.figures import outward, points
from .runs import CLASSICS, MARKS, UNIFORM, Run

UNCERTAINTIES = (0.75, 0.5, 0.25, 0.1)
"""Mean uncertainties, as shares of the prior, that calls are counted to."""
RATIO = "times uniform's calls"
"""Title of the column of calls as a multiple of those of uniform questioning."""
WIDEST_AT, MEAN_AT = "widest half-width at ", "mean half-width at "
"""Titles of the columns of half-widths over the targets, before a number of calls."""
CALLS_TO = "calls to "
"""Title of the columns of calls, before a half-width or an uncertainty."""
MAX_MARKS = 3
"""Largest number of columns of RMSE in the table: the last marks that every run reached."""
TOGETHER = 0.05
"""Largest probability of a wrong comparison among all pairs of strategies."""
MOST_REPEATS = 100
"""Largest number of repeats that is proposed; beyond it strategies are nearly equal."""
FEW_REPEATS = 4
"""Least number of repeats that shows the spread; with fewer, strategies are not compared."""


def uncertainty_summary(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row per strategy: median calls to each level (NA if not reached), and end state."""
    rows = []
    for run in runs:
        levels, made = np.array(run["uncertainty"]), np.array(run["at"])
        reached = {level: min(made[levels <= level], default=math.inf) for level in UNCERTAINTIES}
        calls = {f"{CALLS_TO}{level:g}": count for level, count in reached.items()}
        ends = {"uncertainty at end": levels[-1], "seconds per call": run["seconds"]}
        rows.append({"strategy": run["strategy"], **calls, "calls": run["calls"], **ends})
    groups = pd.DataFrame(rows).groupby("strategy", sort=False)
    return _tidy(groups.median(), groups.size())


def certified_summary(runs: Sequence[Run], truth: Sequence[float] | None = None) -> pd.DataFrame:
    """Return a row per strategy: median calls to each half-width, ratio to uniform, coverage.

    - "times uniform's calls": median, over seeds, of its calls to the last half-width divided by
      those of uniform.
    - "widest half-width at N" and "mean half-width at N": over the targets after N calls, the most
      after which every run has a record.
    - "coverage": share of repeats in which every interval held the truth at the stop.
    - "ever missed": share in which any interval did not, at any moment.

    Cells are NA if a level was not reached, or the truth is not known.
    """
    calls = calls_to_goal(runs)
    uniform = calls.get(UNIFORM, pd.Series(np.nan, calls.index)).replace(np.inf, np.nan)
    common = max(set.intersection(*(set(run["at"]) for run in runs)), default=None)
    rows = [
        {
            "strategy": run["strategy"],
            **{f"{CALLS_TO}{level:g}": _calls(reached) for level, reached in run["calls_to"]},
            RATIO: _calls(run["calls_to"][-1][1]) / uniform[run["seed"]],
            **({} if common is None else _widths_after(common, run)),
            "stopped at": run["calls"],
            "RMSE at stop": np.nan,
            "coverage": run.get("held"),
            "ever missed": run.get("missed"),
            "variance ratio": run["variance_ratio"],
            "seconds per draw": run["seconds"],
        }
        for run in runs
    ]
    frame = pd.DataFrame(rows).astype({"coverage": float, "ever missed": float})
    groups = frame.groupby("strategy", sort=False)
    table = groups.median()
    table[RATIO] = groups[RATIO].agg(lambda ratios: ratios.median(skipna=False))
    shares = ["coverage", "ever missed"]
    table[shares] = groups[shares].mean()
    if truth is None:
        return _tidy(table.drop(columns="RMSE at stop"), groups.size())
    errors = estimator_summary(runs, truth).set_index(["estimator", "strategy"])
    table["RMSE at stop"] = errors.loc["certified"]["RMSE at stop"]
    return _tidy(table, groups.size())


def _widths_after(calls: int, run: Run) -> dict[str, float]:
    """Return the cells of widest and mean half-width after this number of calls."""
    widths = run["half_widths"][run["at"].index(calls)]
    return {f"{WIDEST_AT}{calls}": max(widths), f"{MEAN_AT}{calls}": float(np.mean(widths))}


def _tidy(table: pd.DataFrame, repeats: "pd.Series[int]") -> pd.DataFrame:
    """Return the table with its repeats first, rounded, with NA in place of infinity."""
    table.insert(0, "repeats", repeats)
    digits = {RATIO: 3, "variance ratio": 3, "seconds per draw": 5, "seconds per call": 5}
    finite = table.replace(np.inf, np.nan).round(dict.fromkeys(table, 4) | digits)
    return finite.reset_index().convert_dtypes()


def estimator_summary(runs: Sequence[Run], truth: Sequence[float]) -> pd.DataFrame:
    """Return a row per strategy and estimator with its errors over targets and repeats.

    Columns are RMSE at the marks, RMSE at the stop, and mean error at the stop. Marks are those
    that every run reached, as RMSEs over different runs cannot be compared.
    """
    marks = [mark for mark in MARKS if all(mark in run["at"] for run in runs)][-MAX_MARKS:]
    columns = [*(f"RMSE at {mark}" for mark in marks), "RMSE at stop"]
    parts = []
    for run in runs:
        places = [*(run["at"].index(mark) for mark in marks), -1]
        for name, estimates in run["estimates"].items():
            errors = np.array([estimates[place] for place in places], float) - np.array(truth)
            part = pd.DataFrame(errors.T, columns=columns)
            parts.append(part.assign(strategy=run["strategy"], estimator=name))
    errors = pd.concat(parts).set_index(["strategy", "estimator"])
    names = ["strategy", "estimator"]
    table = (errors**2).groupby(names, sort=False).mean() ** 0.5
    table["bias at stop"] = errors["RMSE at stop"].groupby(names, sort=False).mean()
    return table.round(4).reset_index().convert_dtypes()


def in_points(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of certified audits to read: half-widths and errors in percentage points."""
    shares = [c for c in map(str, table) if c.startswith((WIDEST_AT, MEAN_AT, "RMSE ", "bias "))]
    heads = {name: f"{name}, points" for name in shares}
    for name in table.columns[table.columns.str.startswith(CALLS_TO)]:
        heads[name] = f"{CALLS_TO}±{100 * float(name.removeprefix(CALLS_TO)):g} points"
    return table.assign(**(100 * table[shares]).round(2)).rename(columns=heads)


def to_read(table: pd.DataFrame, levels: Sequence[str], others: Sequence[str]) -> pd.DataFrame:
    """Return columns of ``certified_summary`` to read: whole calls in those of ``levels``, points.

    A cell is >200 if half the repeats or more stopped at 200 calls before they reached the level.
    """
    columns = {
        level: [
            f">{math.floor(stopped)}" if pd.isna(calls) else math.ceil(calls)
            for calls, stopped in zip(table[level], table["stopped at"], strict=True)
        ]
        for level in levels
    }
    return in_points(table.assign(**columns)[["strategy", *levels, *others]])


def calls_to_goal(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the calls to the last half-width by seed (rows) and strategy, infinity if not
    reached."""
    keys = {(run["seed"], run["strategy"]): _calls(run["calls_to"][-1][1]) for run in runs}
    names = dict.fromkeys(run["strategy"] for run in runs)
    return pd.Series(keys).unstack()[[*names]]


def _calls(calls: int | None) -> float:
    return math.inf if calls is None else float(calls)


def users_own(runs: Sequence[Run]) -> set[str]:
    """Return the names of rows that are not built-in strategies without options."""
    return {run["strategy"] for run in runs} - {*CLASSICS, *REGISTRY.built_in}


def conclusion(runs: Sequence[Run]) -> list[str]:
    """Return which strategies need fewer calls, a sentence each, for runs that certify.

    Every strategy is compared with uniform questioning. The best one and the user's own are also
    compared with those that needed more calls. A comparison is about the ratios of calls at the
    same seeds. It has Student's interval of the mean log ratio, as wide as all pairs together
    require (Bonferroni), and needs FEW_REPEATS repeats.

    If the interval contains 1, the sentence has the number of repeats that would exclude 1 with the
    same mean and spread. A strategy that did not reach the last half-width with every seed is not
    compared; its sentence has a sufficient budget.
    """
    calls = calls_to_goal(runs)
    late = [name for name in map(str, calls) if np.isinf(calls[name]).any()]
    reached = calls.drop(columns=late)
    order = [*reached.median().sort_values(kind="stable").index]
    too_late = [_too_late(name, runs, reached[order[:1]]) for name in late]
    repeats = len(calls)
    if repeats < FEW_REPEATS:
        few = f"Too few repeats to compare: expected {FEW_REPEATS} or more, got {repeats}"
        return [few, *too_late]
    pairs = len(calls.columns) * (len(calls.columns) - 1) / 2
    decided, undecided = [], []
    others = [name for name in order if name != UNIFORM]  # the best one first
    for place, name in enumerate(others):
        rivals = [UNIFORM] if UNIFORM in reached else []
        for worse in others[place + 1 :]:
            if place == 0 or users_own(runs) & {name, worse}:
                rivals.append(worse)
        alike = []
        for rival in rivals:
            logs = np.log(reached[name] / reached[rival]).to_numpy()
            mean, error = logs.mean(), _error(logs, pairs, repeats)
            if abs(mean) > error:
                low, high = outward(math.exp(mean - error), math.exp(mean + error))
                ratio = f"{low:g} to {high:g} times the calls ({repeats} repeats)"
                decided.append(f"Against {rival}, {name} needed {ratio}")
            else:
                alike.append(f"{rival} ({_repeats_needed(logs, pairs)})")
        if alike:
            whether = f"whether {name} needs fewer calls than {' or '.join(alike)}"
            undecided.append(f"{repeats} repeats cannot decide {whether}")
    return [*decided, *undecided, *too_late]


def _error(logs: Floats, pairs: float, repeats: int) -> float:
    """Return half of Student's interval of the mean of ``repeats`` with this spread."""
    from scipy.stats import t

    spread = logs.std(ddof=1) / math.sqrt(repeats)
    return float(spread * t.isf(TOGETHER / pairs / 2, repeats - 1))


def _repeats_needed(logs: Floats, pairs: float) -> str:
    """Return how many repeats with this mean and spread would decide a comparison, in words."""
    for repeats in range(len(logs) + 1, MOST_REPEATS + 1):
        if _error(logs, pairs, repeats) < abs(logs.mean()):
            return f"about {repeats} repeats would"
    return f"{MOST_REPEATS} repeats would not either"


def _too_late(name: str, runs: Sequence[Run], best: pd.DataFrame) -> str:
    """Return the sentence that a strategy did not reach the last half-width with every seed.

    It has the most calls that the ``best`` strategy needed, and a sufficient budget.
    """
    own_runs = [run for run in runs if run["strategy"] == name]
    late = [run for run in own_runs if run["calls_to"][-1][1] is None]
    goal, stopped = late[0]["calls_to"][-1][0], min(run["calls"] for run in late)
    sentence = (
        f"The budget was too small for {name}: not all targets were within {points(goal)} after "
        f"{stopped:,} calls in {len(late)} of {len(own_runs)} repeats"
    )
    for leader, most in best.max().items():
        if most <= stopped:
            sentence += f", while {leader} needed at most {most:,.0f}"
    budget = sufficient_budget(late)
    remedy = "" if budget is None else f"; a budget of about {budget:,} calls would do"
    return sentence + remedy


def sufficient_budget(runs: Sequence[Run]) -> int | None:
    """Return the budget with which all runs would reach the last half-width.

    The square of a half-width is proportional to 1 / calls. The result is None if all runs reached
    it, or if an interval has not shrunk yet.
    """
    late = [run for run in runs if run["calls_to"][-1][1] is None]
    if not late or any(run["half_width"][-1] >= WIDEST for run in late):
        return None
    goal = late[0]["calls_to"][-1][0]
    budget = max(run["calls"] * (run["half_width"][-1] / goal) ** 2 for run in late)
    return int(min(math.ceil(rounded(budget)), late[0]["all_calls"]))
