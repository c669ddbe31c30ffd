"""Runs to tables: one row per strategy, and one per strategy and estimator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..types import Floats
from .runs import MARKS, UNIFORM, Run

UNCERTAINTIES = (0.75, 0.5, 0.25, 0.1)
"""Mean uncertainties, as shares of the prior, to which calls are counted."""
MAX_MARKS = 3
"""Columns of RMSE in the table: the last ones that every run reached."""


def uncertainty_summary(runs: Sequence[Run]) -> pd.DataFrame:
    """One row per strategy: median calls to each level (None: not reached), end state."""
    rows = []
    for name, mine in by_strategy(runs).items():
        row: dict[str, Any] = {"strategy": name, "repeats": len(mine)}
        for level in UNCERTAINTIES:
            row[f"calls to {level:g}"] = _median([_first_below(run, level) for run in mine])
        row["calls"] = _median([run["calls"] for run in mine])
        row["uncertainty at end"] = round(
            float(np.median([run["uncertainty"][-1] for run in mine])), 4
        )
        row["seconds per call"] = round(float(np.median([run["seconds"] for run in mine])), 5)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def certified_summary(runs: Sequence[Run], truth: Sequence[float] | None = None) -> pd.DataFrame:
    """One row per strategy: median calls to each half-width, against uniform; coverage.

    ``coverage``: share of repeats in which every interval held the truth at the stop;
    ``ever missed``: in which any did not, at any moment. None: not reached, or not known.
    """
    grouped = by_strategy(runs)
    goals = [level for level, _ in runs[0]["calls_to"]]
    base = _median([_calls_to_goal(run) for run in grouped[UNIFORM]])
    rows = []
    for name, mine in grouped.items():
        row: dict[str, Any] = {"strategy": name, "repeats": len(mine)}
        for place, level in enumerate(goals):
            row[f"calls to {level:g}"] = _median([_calls(r["calls_to"][place][1]) for r in mine])
        ours = row[f"calls to {goals[-1]:g}"]
        row["of uniform"] = round(ours / base, 3) if ours and base else None
        row["stopped at"] = _median([run["calls"] for run in mine])
        if truth is not None:
            row["RMSE at stop"] = _rmse([_errors(run, "certified", truth, -1) for run in mine])
        row["coverage"] = _share([run.get("held") for run in mine])
        row["ever missed"] = _share([run.get("missed") for run in mine])
        row["variance ratio"] = round(float(np.median([r["variance_ratio"] for r in mine])), 3)
        row["seconds per draw"] = round(float(np.median([run["seconds"] for run in mine])), 5)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def estimator_summary(runs: Sequence[Run], truth: Sequence[float]) -> pd.DataFrame:
    """One row per strategy and estimator: RMSE over targets and repeats at the marks that
    every repeat of every strategy reached, RMSE and mean error at the stop."""
    marks = shared_marks(runs)
    rows = []
    for name, mine in by_strategy(runs).items():
        for estimator in mine[0]["estimates"]:
            row: dict[str, Any] = {"strategy": name, "estimator": estimator}
            for mark in marks:
                found = [_errors(run, estimator, truth, run["at"].index(mark)) for run in mine]
                row[f"RMSE at {mark}"] = _rmse(found)
            ends = [_errors(run, estimator, truth, -1) for run in mine]
            row["RMSE at stop"] = _rmse(ends)
            row["bias at stop"] = _bias(ends)
            rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def peeking_summary(runs: Sequence[Run]) -> dict[str, Any] | None:
    """What came of looking at normal intervals after every uniform call; None: not known."""
    peeks = [run["peeking"] for run in runs if "peeking" in run]
    if not peeks:
        return None
    return {
        "repeats": len(peeks),
        "calls": _median([_calls(p["calls"]) for p in peeks]),
        "coverage": _share([p["held"] for p in peeks if p["held"] is not None]),
        "ever missed": _share([p["missed"] for p in peeks]),
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


def _bias(errors: Sequence[Floats]) -> float | None:
    known = _known(errors)
    return round(float(np.mean(known)), 4) if len(known) else None


def _known(errors: Sequence[Floats]) -> Floats:
    values = np.concatenate([np.ravel(e) for e in errors])
    return np.asarray(values[~np.isnan(values)])


def _share(values: Sequence[bool | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(float(np.mean(known)), 4) if known else None


def _calls_to_goal(run: Run) -> float:
    return _calls(run["calls_to"][-1][1])


def _calls(calls: int | None) -> float:
    return float("inf") if calls is None else float(calls)


def _median(values: Sequence[float]) -> float | None:
    """The median; None where that was not reached."""
    middle = float(np.median(values)) if len(values) else float("inf")
    return None if np.isinf(middle) or np.isnan(middle) else middle


def _first_below(run: Run, level: float) -> float:
    below = np.flatnonzero(np.array(run["uncertainty"]) <= level)
    return float(run["at"][below[0]]) if len(below) else float("inf")
