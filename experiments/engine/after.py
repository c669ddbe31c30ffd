"""What an earlier audit's answers save the audit of the next version: ``avtt audit --after``.

digits-severity: the earlier audit is of its MLP, the next version the same trained with a weight
decay of .15, wrong less often by .034 (as in ``experiments.engine.versus``). The next version is
audited alone, after the earlier one, and by uniform questions; every audit has a seed of its own.
Answers are right or wrong; with --soft they are probabilities: that of the right digit, of it and
the likeliest other one. "covered" counts runs whose interval holds the truth in the end.
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
"""Seeds of earlier audits begin here."""
MIN = 1e-9


def audited(bench: Bench, marks: Sequence[int] = (), **options: Any) -> Row:
    """An audit of the overall label error, and its squared errors after ``marks``."""
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
    """Says how likely the right digit is beside the likeliest other: above 1/2 where it is."""
    right = bench.digits.astype(int)[:, None, None]
    mine = np.take_along_axis(bench.probable, right, axis=2)[..., 0]
    others = bench.probable.copy()
    np.put_along_axis(others, right, 0.0, axis=2)
    likely = mine / (mine + others.max(axis=2))
    wrong = bench.losses > 0  # equal ones go as the model's argmax does
    likely = np.where(wrong, likely.clip(max=0.499), likely.clip(min=0.5))
    table = bench.questions().assign(**{CONCEPT: likely.ravel()})
    return Recorded(table, name=f"{bench.name}, soft")


def rows(half_width: float, seed: int, soft: bool) -> list[Row]:
    """One earlier audit, and what comes after it."""
    before, now = severity_bench(), severity_bench(decay=DECAY)

    def run(bench: Bench, **options: Any) -> Row:
        model = softened(bench) if soft else None
        return audited(bench, model=model, half_width=half_width, **options)

    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.db"
        found = {"earlier version": run(before, seed=EARLIER + seed, journal=journal)}
        found["alone"] = run(now, seed=seed)
        found["after"] = run(now, seed=seed, prior_journal=journal)
        found["uniform"] = run(now, seed=seed, **BASELINES["uniform"])
    return [{"half-width": half_width, "how": how, **row} for how, row in found.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    quick = {"half_widths": [0.1], "seeds": 1}
    chosen = options(__doc__, arguments, quick=quick, half_widths=[0.05, 0.03], seeds=3, soft=False)
    found = []
    for width in chosen.half_widths:
        for seed in range(chosen.seeds):
            found += rows(width, seed, chosen.soft)
            show(pd.DataFrame(found[-4:]), f"seed {seed}")
    table = spread(pd.DataFrame(found), ["half-width", "how"]).round(1)
    save_table(table, chosen.out / ("after_soft.csv" if chosen.soft else "after.csv"), index=True)


def spread(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Calls of runs, and how many of them were covered, per group."""
    return runs.groupby(list(by), sort=False).agg(
        calls=("calls", "mean"),
        least=("calls", "min"),
        most=("calls", "max"),
        covered=("covered", "sum"),
        runs=("calls", "size"),
    )


if __name__ == "__main__":
    main()
