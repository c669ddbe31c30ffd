"""Calls that other models' answers save in the audit of the next model (``Audit(cohort=)``).

Twelve classifiers (``cohort_models``) answer digits-severity. Each is audited to +-.05 with the
other eleven as cohort, whose answers are all known ("after all") or come from an audit of 300 calls
each ("after journals", with --journals). It is also audited alone and by uniform questions.
--unlike audits models unlike their cohort: the first model's losses moved to other questions,
inverted, and constant. "rmse N" is the error of the estimate after N calls, over models and seeds.
"covered" counts runs whose final interval holds the truth. --bound makes no audit: it prints the
share of a uniform draw's variance that is left if the best weights of the other models are known.
"""

import argparse
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt import Cohort
from adaptive_vtt.benchmark.runs import BASELINES
from adaptive_vtt.surrogates.cohort import logits
from adaptive_vtt.types import Floats, Indices

from ..program import Row, options, save_table, show
from .after import EARLIER, audited, spread
from .cohort_models import population
from .digits import Bench

MARKS = (20, 50, 100, 200)
"""Numbers of calls after which estimates are compared with the truth."""
MAX = 1500
"""Most calls of an audit; one that ends there counts with this number."""


def losses_of(benches: Mapping[str, Bench], left_out: str) -> pd.DataFrame:
    """Return the losses of all models but one, item x model."""
    others = {name: b.losses.ravel() for name, b in benches.items() if name != left_out}
    return benches[left_out].questions().assign(**others)


def unlike(bench: Bench) -> dict[str, Bench]:
    """Return models that the cohort does not predict."""
    losses = bench.losses
    turned = np.roll(losses.ravel(), losses.size // 2 + 17).reshape(losses.shape)
    kinds = {"turned": turned, "inverted": 1 - losses, "constant": np.ones_like(losses)}
    return {name: replace(bench, losses=changed, name=name) for name, changed in kinds.items()}


def journals(
    benches: Mapping[str, Bench], half_width: float, calls: int, folder: Path
) -> dict[str, Path]:
    """An audit of so many ``calls`` of every model."""
    found = {}
    for number, (name, bench) in enumerate(benches.items()):
        path = folder / f"{name}.db"
        options: dict[str, Any] = {"seed": EARLIER + number, "budget": calls}
        audited(bench, half_width=half_width / 10, journal=path, **options)
        found[name] = path
    return found


def ways(cohort: Cohort, asked: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Options of an audit, by what it knows; ``asked``: the journals of the other models."""
    found: dict[str, dict[str, Any]] = {"after all": {"cohort": cohort}}
    if asked:
        found["after journals"] = {"cohort": Cohort.from_runs(*asked)}
    return {**found, "alone": {}, "uniform": dict(BASELINES["uniform"])}


def rows(
    name: str, bench: Bench, options: Mapping[str, dict[str, Any]], width: float, seeds: int
) -> Iterable[Row]:
    for how, given in options.items():
        for seed in range(seeds):
            found = audited(bench, MARKS, half_width=width, budget=MAX, seed=seed, **given)
            yield {"model": name, "how": how, **found}


def table_of(found: Sequence[Row], by: Sequence[str]) -> pd.DataFrame:
    """Means over runs: calls, covered, and root mean squared errors."""
    frame = pd.DataFrame(found)
    errors = [f"rmse {mark}" for mark in MARKS if f"rmse {mark}" in frame]
    root = frame.groupby(list(by), sort=False)[errors].mean().pow(0.5)
    return spread(frame, by).join(root).round(3)


def bounds(benches: Mapping[str, Bench]) -> pd.DataFrame:
    """By model: the variance of a draw, as a share of a uniform one's, with the best proposal for
    what a logistic regression on the others' mean, one on each of them, and boosted trees foretell
    once they have learnt from all of its answers to other thirds of the questions."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    found = {}
    for name, bench in benches.items():
        lost = (bench.losses.ravel() > 0.5).astype(int)
        others = np.stack([b.losses.ravel() for n, b in benches.items() if n != name], 1)
        told = np.column_stack([logits(others.mean(axis=1)), others])
        ways = {
            "mean of the others": (LogisticRegression(), told[:, :1]),
            "each of them": (LogisticRegression(max_iter=500), told),
            "trees": (HistGradientBoostingClassifier(max_iter=120, random_state=0), told),
        }
        found[name] = {
            how: _left(lost, cross_val_predict(way, seen, lost, cv=3, method="predict_proba")[:, 1])
            for how, (way, seen) in ways.items()
        }
    return pd.DataFrame(found).T


def _left(lost: Indices, foretold: Floats) -> float:
    """Of n questions, .1 of the proposal being even, as in audits."""
    likely = foretold.clip(0.005, 0.995)
    weight = np.sqrt(likely * (1 - likely))
    proposal = 0.9 * weight / weight.sum() + 0.1 / len(lost)
    return float(((lost - likely) ** 2 / proposal).mean() / len(lost) / lost.var())


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"models": 1, "seeds": 1, "half_width": 0.15, "journal_calls": 60},
        models=12,
        seeds=2,
        half_width=0.05,
        journals=False,
        journal_calls=300,
        unlike=False,
        bound=False,
    )
    benches = population()
    if chosen.bound:
        left = bounds(benches)
        show(pd.concat([left, left.mean().to_frame("mean").T]).round(3), index=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = _measured(benches, chosen, Path(folder))
    if not chosen.unlike:
        show(table_of(found, ["how"]), "all models", index=True)
    name = "cohort_unlike.csv" if chosen.unlike else "cohort.csv"
    save_table(table_of(found, ["model", "how"]), chosen.out / name, index=True)


def _measured(benches: Mapping[str, Bench], options: argparse.Namespace, folder: Path) -> list[Row]:
    earlier = options.half_width, options.journal_calls, folder
    asked = journals(benches, *earlier) if options.journals else {}
    count = 1 if options.unlike else options.models
    chosen = list(benches)[:: len(benches) // count][:count]
    found: list[Row] = []
    for name in chosen:
        others = [path for other, path in asked.items() if other != name]
        known = ways(Cohort.from_table(losses_of(benches, name)), others)
        mine = unlike(benches[name]) if options.unlike else {name: benches[name]}
        for label, bench in mine.items():
            new = list(rows(label, bench, known, options.half_width, options.seeds))
            show(table_of(new, ["how"]), label, index=True)
            found += new
    return found


if __name__ == "__main__":
    main()
