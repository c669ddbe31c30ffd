"""What an earlier audit's answers save the audit of the next version: ``avtt audit --after``.

digits-severity: the earlier audit is of its MLP, the next version the same trained with a weight
decay of .15, wrong less often by .034 (as in ``experiments.engine.versus``). The next version is
audited alone, after the earlier one, and by uniform questions; every audit has a seed of its own.
Answers are right or wrong; with --soft they are probabilities: that of the right digit, of it and
the likeliest other one. "covered" counts runs whose interval holds the truth in the end.

    python -m adaptive_vtt.experiments.engine.after [--seeds 3] [--half-widths 0.05 0.03] [--soft]
"""

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from adaptive_vtt.audit import Audit
from adaptive_vtt.benchmark.runs import BASELINES
from adaptive_vtt.models import Recorded
from adaptive_vtt.utils.files import write_text

from .digits import CONCEPT, Bench, severity_bench
from .versus import DECAY

EARLIER = 1000
"""Seeds of earlier audits begin here."""
MIN = 1e-9


def audited(bench: Bench, half_width: float, soft: bool, **options: Any) -> dict[str, Any]:
    """An audit of the overall error, from begin to end."""
    given = {"half_width": half_width, "targets": ["overall"], **options}
    model = softened(bench) if soft else bench.model()
    with Audit(bench.space(), model, **given) as audit:
        result = audit.run()
    (row,) = result.targets.to_dict("records")
    truth = float(bench.losses.mean())
    held = row["lower"] - MIN <= truth <= row["upper"] + MIN
    return {"calls": result.calls, "covered": held}


def softened(bench: Bench) -> Recorded:
    """Says how likely the right digit is beside the likeliest other: above 1/2 where it is."""
    right = bench.digits.astype(int)[:, None, None]
    mine = np.take_along_axis(bench.probable, right, axis=2)[..., 0]
    others = bench.probable.copy()
    np.put_along_axis(others, right, 0.0, axis=2)
    told = mine / (mine + others.max(axis=2))
    wrong = bench.losses > 0  # equal ones go as the model's argmax does
    told = np.where(wrong, told.clip(max=0.499), told.clip(min=0.5))
    sample, variant = np.divmod(np.arange(told.size), told.shape[1])
    table = {
        "sample": sample.astype(str),
        "relation": [bench.names[bench.relation[v]] for v in variant],
        "severity": np.array(bench.severity)[variant],
        CONCEPT: told.ravel(),
    }
    return Recorded(pd.DataFrame(table), name=f"{bench.name}, soft")


def rows(half_width: float, seed: int, soft: bool) -> list[dict[str, Any]]:
    """One earlier audit, and what comes after it."""
    before, now = severity_bench(), severity_bench(decay=DECAY)
    run = partial(audited, half_width=half_width, soft=soft)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.db"
        found = {"earlier version": run(before, seed=EARLIER + seed, journal=journal)}
        found["alone"] = run(now, seed=seed)
        found["after"] = run(now, seed=seed, prior_journal=journal)
        found["uniform"] = run(now, seed=seed, **BASELINES["uniform"])
    return [{"half-width": half_width, "how": how, **row} for how, row in found.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--half-widths", type=float, nargs="+", default=(0.05, 0.03))
    parser.add_argument("--quick", action="store_true", help="one seed, a wide interval")
    parser.add_argument("--soft", action="store_true", help="answers are probabilities")
    options = parser.parse_args(arguments)
    widths, seeds = ((0.1,), 1) if options.quick else (options.half_widths, options.seeds)
    torch.set_num_threads(1)
    found = []
    for width in widths:
        for seed in range(seeds):
            found += rows(width, seed, options.soft)
            print(pd.DataFrame(found[-4:]).to_string(index=False, header=not seed), flush=True)
    frame = pd.DataFrame(found)
    table = frame.groupby(["half-width", "how"], sort=False).agg(
        calls=("calls", "mean"),
        least=("calls", "min"),
        most=("calls", "max"),
        covered=("covered", "sum"),
        runs=("calls", "size"),
    )
    print(table.round(1).to_string())
    name = "after_soft.csv" if options.soft else "after.csv"
    write_text(options.out / name, table.round(1).to_csv())


if __name__ == "__main__":
    main()
