"""Count the calls that other models' answers save in the audit of the next (``Audit(cohort=)``).

    python -m adaptive_vtt.experiments.engine.cohort --seeds 2

Twelve classifiers (``cohort_models``) answer digits-severity. Each is audited to +-.05 with the
other eleven as cohort, whose answers are all known ("after all") or come from an audit of 300 calls
each ("after journals", with ``--journals``). It is also audited alone and by uniform questions.
"rmse N" is the error of the estimate after N calls, over models and seeds, and "covered" counts
runs whose final interval holds the truth.

``--unlike`` audits three models that their cohort does not predict. ``--bound`` makes no audit. It
prints the variance of a draw by the best predictions from the other models, as a share of that of a
uniform draw.
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
    """Return models that the cohort does not predict.

    They have the losses of other questions, inverted losses, or always a loss of 1.
    """
    losses = bench.losses
    turned = np.roll(losses.ravel(), losses.size // 2 + 17).reshape(losses.shape)
    kinds = {"turned": turned, "inverted": 1 - losses, "constant": np.ones_like(losses)}
    return {name: replace(bench, losses=changed, name=name) for name, changed in kinds.items()}


def journals(
    benches: Mapping[str, Bench], half_width: float, calls: int, folder: Path
) -> dict[str, Path]:
    """Audit every model with this number of calls, and return the paths of the journals."""
    paths = {}
    for number, (name, bench) in enumerate(benches.items()):
        path = folder / f"{name}.db"
        options: dict[str, Any] = {"seed": EARLIER + number, "budget": calls}
        audited(bench, half_width=half_width / 10, journal=path, **options)
        paths[name] = path
    return paths


def ways(cohort: Cohort, asked: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return options of audits by name; ``asked`` are the journals of the other models."""
    options: dict[str, dict[str, Any]] = {"after all": {"cohort": cohort}}
    if asked:
        options["after journals"] = {"cohort": Cohort.from_runs(*asked)}
    return {**options, "alone": {}, "uniform": dict(BASELINES["uniform"])}


def rows(
    name: str, bench: Bench, options: Mapping[str, dict[str, Any]], width: float, seeds: int
) -> Iterable[Row]:
    """Yield the result of each audit of one model."""
    for how, chosen in options.items():
        for seed in range(seeds):
            result = audited(bench, MARKS, half_width=width, budget=MAX, seed=seed, **chosen)
            yield {"model": name, "how": how, **result}


def table_of(runs: Sequence[Row], by: Sequence[str]) -> pd.DataFrame:
    """Return means over runs, by group: calls, covered, and root mean squared errors."""
    frame = pd.DataFrame(runs)
    errors = [f"rmse {mark}" for mark in MARKS if f"rmse {mark}" in frame]
    root = frame.groupby(list(by), sort=False)[errors].mean().pow(0.5)
    return spread(frame, by).join(root).round(3)


def bounds(benches: Mapping[str, Bench]) -> pd.DataFrame:
    """Return the variance of a draw as a share of a uniform one's, by model and predictor.

    Predictors are logistic regressions on the mean of the others and on each of them, and boosted
    trees. They learn from the model's answers to two thirds of the questions, and predict the rest.
    The proposal is the best one for the predictions.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    table = {}
    for name, bench in benches.items():
        lost = (bench.losses.ravel() > 0.5).astype(int)
        others = np.stack([b.losses.ravel() for n, b in benches.items() if n != name], 1)
        inputs = np.column_stack([logits(others.mean(axis=1)), others])
        predictors = {
            "mean of the others": (LogisticRegression(), inputs[:, :1]),
            "each of them": (LogisticRegression(max_iter=500), inputs),
            "trees": (HistGradientBoostingClassifier(max_iter=120, random_state=0), inputs),
        }
        table[name] = {
            kind: _variance(lost, cross_val_predict(p, x, lost, cv=3, method="predict_proba")[:, 1])
            for kind, (p, x) in predictors.items()
        }
    return pd.DataFrame(table).T


def _variance(lost: Indices, predicted: Floats) -> float:
    """Return the variance of a draw as a share of a uniform one's, with an exploration of .1."""
    likely = predicted.clip(0.005, 0.995)
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
        table = bounds(benches)
        show(pd.concat([table, table.mean().to_frame("mean").T]).round(3), index=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = _measured(benches, chosen, Path(folder))
    if not chosen.unlike:
        show(table_of(runs, ["how"]), "all models", index=True)
    name = "cohort_unlike.csv" if chosen.unlike else "cohort.csv"
    save_table(table_of(runs, ["model", "how"]), chosen.out / name, index=True)


def _measured(benches: Mapping[str, Bench], options: argparse.Namespace, folder: Path) -> list[Row]:
    """Run all audits, and print the figures of each model."""
    earlier = options.half_width, options.journal_calls, folder
    asked = journals(benches, *earlier) if options.journals else {}
    count = 1 if options.unlike else options.models
    chosen = list(benches)[:: len(benches) // count][:count]
    runs: list[Row] = []
    for name in chosen:
        others = [path for other, path in asked.items() if other != name]
        known = ways(Cohort.from_table(losses_of(benches, name)), others)
        models = unlike(benches[name]) if options.unlike else {name: benches[name]}
        for label, bench in models.items():
            new = list(rows(label, bench, known, options.half_width, options.seeds))
            show(table_of(new, ["how"]), label, index=True)
            runs += new
    return runs


if __name__ == "__main__":
    main()
