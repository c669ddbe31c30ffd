"""Measure errors of estimates from the same draws: by the draws, by predictions, and by both.

    python -m adaptive_vtt.experiments.engine.estimates

Benchmarks are digits (``digits``, one target) with informative or shuffled proxies and features,
and the demo (16 targets, several per call). "draws" is the weighted mean of the pseudo-outcomes.
"predictions" uses the losses seen and the question GP's means for all other questions. "both" is
the estimate that an audit reports. Errors are root mean squares over seeds and targets.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from adaptive_vtt.audit import Audit, Progress
from adaptive_vtt.audit.everything import all_losses, means
from adaptive_vtt.certify import named_targets
from adaptive_vtt.config import DEMO
from adaptive_vtt.config.building import build_audit, build_parts
from adaptive_vtt.engine.estimates import guesses
from adaptive_vtt.experiments.engine.digits import Bench, proxy_bench, severity_bench
from adaptive_vtt.types import Floats

from ..program import options, save_table

MARKS = (20, 50, 100, 200, 400)
"""Numbers of calls after which estimates are compared with the truth."""
NEVER = 0.001
"""Half-width that no audit reaches here."""
Begin = Callable[[int, int], tuple[Audit, Floats]]
"""From a seed and a budget to an audit and the true means of its targets (K,)."""


def audit_of(
    bench: Callable[[], Bench], change: Callable[[Bench], Bench], seed: int, budget: int
) -> tuple[Audit, Floats]:
    """Begin an audit of digits, with one question per call."""
    changed = change(bench())
    audit = changed.audit(half_width=NEVER, budget=budget, seed=seed)
    return audit, np.array([changed.losses.mean()])


def demo_of(seed: int, budget: int) -> tuple[Audit, Floats]:
    """Begin an audit of the demo, with all concepts of an image per call."""
    audit = build_audit(DEMO, Path(), half_width=NEVER, budget=budget, seed=seed, stop=None)
    return audit, _truth_of_demo()


@cache
def _truth_of_demo() -> Floats:
    """Return the true means, from all 861,645 questions, which takes minutes."""
    space, model, _ = build_parts(DEMO, Path())
    targets = named_targets(space, DEMO.certify.targets)
    return means(space, targets, *all_losses(space, model))


def proxies(bench: Bench, *, count: int = 3, shuffle: bool = False) -> Bench:
    """Return the bench with its first ``count`` proxies, whose answers may be shuffled."""
    shape = bench.proxies.shape
    flat = bench.proxies.reshape(-1, shape[-1])
    if shuffle:
        flat = np.random.default_rng(9).permutation(flat)
    return replace(bench, proxies=flat.reshape(shape)[..., :count])


def other_features(bench: Bench) -> Bench:
    """Return the bench with shuffled features."""
    return replace(bench, features=np.random.default_rng(5).permutation(bench.features))


CASES: dict[str, Begin] = {
    "digits-severity": partial(audit_of, severity_bench, lambda bench: bench),
    "digits-severity, shuffled features": partial(audit_of, severity_bench, other_features),
    "digits-proxy, no proxy": partial(audit_of, proxy_bench, partial(proxies, count=0)),
    "digits-proxy, one proxy": partial(audit_of, proxy_bench, partial(proxies, count=1)),
    "digits-proxy": partial(audit_of, proxy_bench, proxies),
    "digits-proxy, shuffled proxies": partial(
        audit_of, proxy_bench, partial(proxies, shuffle=True)
    ),
    "demo": demo_of,
}


def errors(begin: Begin, seed: int, marks: Sequence[int]) -> dict[int, dict[str, Floats]]:
    """Return mark -> estimate -> errors (K,) in one audit."""
    audit, truth = begin(seed, max(marks))
    by_mark: dict[int, dict[str, Floats]] = {}

    def note(step: Progress) -> None:
        if step.state.calls in marks:
            by_mark[step.state.calls] = {k: v - truth for k, v in estimates(audit).items()}

    with audit:
        audit.run(note)
    return by_mark


def estimates(audit: Audit) -> dict[str, Floats]:
    """Return the current estimates of all targets, (K,) each, within their intervals."""
    selector = audit._loop.selector
    assert selector.certifier is not None
    both = guesses(selector, selector.certifier)
    return {"draws": both.draws, "predictions": both.predictions, "both": both.combined()}


def table(name: str, seeds: int, marks: Sequence[int]) -> pd.DataFrame:
    """Return a row per estimate, with the root mean square error at every mark."""
    runs = [errors(CASES[name], seed, marks) for seed in range(seeds)]
    rows = []
    for kind in ("draws", "predictions", "both"):
        row: dict[str, object] = {"benchmark": name, "estimate": kind, "seeds": seeds}
        for mark in marks:
            all_errors = np.concatenate([run[mark][kind] for run in runs])
            row[f"at {mark}"] = round(float(np.sqrt(np.mean(all_errors**2))), 4)
        rows.append(row)
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> pd.DataFrame:
    """Print, write and return the table."""
    cases = [name for name in CASES if name != "demo"]
    chosen = options(
        __doc__,
        arguments,
        quick={"only": cases, "seeds": 2, "marks": MARKS[:2]},
        only=CASES,
        seeds=20,
        marks=[*MARKS],
    )
    tables = [table(name, chosen.seeds, chosen.marks) for name in chosen.only]
    errors_of_all = pd.concat(tables, ignore_index=True)
    save_table(errors_of_all, chosen.out / "estimates.csv")
    return errors_of_all


if __name__ == "__main__":
    main()
