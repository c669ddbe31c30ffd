"""Count the calls that an earlier audit saves in the audit of the next version (``--after``).

    python -m adaptive_vtt.experiments.engine.after

On digits-severity, the earlier audit is of its MLP. The next version is trained with a weight decay
of .15 and is wrong less often by .034, as in ``versus``. It is audited alone, after the earlier
audit, and by uniform questions, with different seeds. Answers are right or wrong; with ``--soft``
they are the probability of the right digit against the likeliest other one. "covered" counts runs
whose final interval holds the truth.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt.benchmark.runs import BASELINES
from adaptive_vtt.models import Recorded

from ..program import Row, options, save_table, show
from .digits import CONCEPT, Bench, severity_bench
from .versus import DECAY

EARLIER = 1000
"""First seed of earlier audits."""
MIN = 1e-9
"""Distance outside an interval at which the truth still counts as inside."""


def audited(bench: Bench, marks: Sequence[int] = (), **options: Any) -> Row:
    """Audit the overall label error. Return calls, coverage, and squared errors after ``marks``."""
    truth, errors = float(bench.losses.mean()), {}
    with bench.audit(**options) as audit:

        def note(step: Any) -> None:
            if step.state.calls in marks:
                (status,) = audit.statuses()
                errors[f"rmse {step.state.calls}"] = (status.estimate - truth) ** 2

        result = audit.run(note)
    (row,) = result.targets.to_dict("records")
    held = row["lower"] - MIN <= truth <= row["upper"] + MIN
    return {"calls": result.calls, "covered": held, **errors}


def softened(bench: Bench) -> Recorded:
    """Return a model of the probability of the right digit against the likeliest other one."""
    digits = bench.digits.astype(int)[:, None, None]
    right = np.take_along_axis(bench.probable, digits, axis=2)[..., 0]
    others = bench.probable.copy()
    np.put_along_axis(others, digits, 0.0, axis=2)
    p = right / (right + others.max(axis=2))
    wrong = bench.losses > 0  # ties are decided as the model's argmax does
    p = np.where(wrong, p.clip(max=0.499), p.clip(min=0.5))
    table = bench.questions().assign(**{CONCEPT: p.ravel()})
    return Recorded(table, name=f"{bench.name}, soft")


def rows(half_width: float, seed: int, soft: bool) -> list[Row]:
    """Return a row for an earlier audit, and one for each audit of the next version."""
    before, now = severity_bench(), severity_bench(decay=DECAY)

    def run(bench: Bench, **options: Any) -> Row:
        model = softened(bench) if soft else None
        return audited(bench, model=model, half_width=half_width, **options)

    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.db"
        runs = {"earlier version": run(before, seed=EARLIER + seed, journal=journal)}
        runs["alone"] = run(now, seed=seed)
        runs["after"] = run(now, seed=seed, prior_journal=journal)
        runs["uniform"] = run(now, seed=seed, **BASELINES["uniform"])
    return [{"half-width": half_width, "how": how, **row} for how, row in runs.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"half_widths": [0.1], "seeds": 1}
    chosen = options(__doc__, arguments, quick=quick, half_widths=[0.05, 0.03], seeds=3, soft=False)
    runs = []
    for width in chosen.half_widths:
        for seed in range(chosen.seeds):
            runs += rows(width, seed, chosen.soft)
            show(pd.DataFrame(runs[-4:]), f"seed {seed}")
    table = spread(pd.DataFrame(runs), ["half-width", "how"]).round(1)
    save_table(table, chosen.out / ("after_soft.csv" if chosen.soft else "after.csv"), index=True)


def spread(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return calls of runs, and how many of them were covered, by group."""
    return runs.groupby(list(by), sort=False).agg(
        calls=("calls", "mean"),
        least=("calls", "min"),
        most=("calls", "max"),
        covered=("covered", "sum"),
        runs=("calls", "size"),
    )


if __name__ == "__main__":
    main()
