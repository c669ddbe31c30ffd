"""Measure the worth of self-taught nets: variance explained, and calls until certification.

    python -m adaptive_vtt.experiments.engine.self_taught

On digits-severity, the nets are trained on the labels of the 600 test images that the audit asks
about. In "wrong labels", 20 % of the images have another label, for nets and audit alike. In
"shuffled", only the nets are trained on shuffled labels, so they know nothing. ``ablation`` has the
same for the demo.

"explained at n" is the share of uniform sampling's variance that sampling by the predictions saves,
after n random answers. "ratio" is calls over those of uniform draws without predictions.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from adaptive_vtt.audit import Audit
from adaptive_vtt.benchmark.runs import UNIFORM, Job, certified_run
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.base import adapted_dataset
from adaptive_vtt.models import SelfTaught
from adaptive_vtt.surrogates import sample_features
from adaptive_vtt.types import Floats
from adaptive_vtt.utils.random_streams import generator

from ..program import Row, options, save_table, show
from .digits import TEST, Bench, explained, severity_bench

WRONG = 0.2
"""Share of the sources with a wrong label."""
ADAPTIVE = "certify"


def nets_of(bench: Bench, digits: Floats) -> SelfTaught:
    """Return nets trained on these labels (N,) of the sources."""
    labels = pd.DataFrame(np.eye(10, dtype=int)[digits.astype(int)], columns=list("0123456789"))
    return SelfTaught.of(from_table(list(pictures(bench.images)), labels))


def taught_losses(bench: Bench, digits: Floats) -> Floats:
    """Return the losses, N x V, that nets trained on these labels (N,) of the sources predict."""
    count, variants, _ = bench.shown.shape
    sample = np.repeat(np.arange(count), variants)
    p = nets_of(bench, digits).predict(pictures(bench.shown.reshape(-1, 64)), sample)
    return 1 - p[np.arange(len(sample)), bench.digits.astype(int)[sample]].reshape(count, -1)


def pictures(digits: Floats) -> Any:
    """Return images (n, 8, 8, 1) uint8 of digits (n, 64) from 0 to 16."""
    return (digits.clip(0, 16) * (255 / 16)).round().astype(np.uint8).reshape(-1, 8, 8, 1)


@cache
def benches() -> dict[tuple[str, str], Bench]:
    """Return (benchmark, predictor) -> bench, whose ``proxies`` are those of the predictor."""
    right = severity_bench()
    rng = generator(0, "wrong labels")
    hit = rng.random(len(right.digits)) < WRONG
    other = (right.digits + rng.integers(1, 10, len(right.digits))) % 10
    wrong = right.labelled(np.where(hit, other, right.digits))
    shuffled = rng.permutation(right.digits)
    return {
        ("digits-severity", "question GP"): right,
        ("digits-severity", "self-taught"): _with(right, right.digits),
        ("digits-severity", "shuffled"): _with(right, shuffled),
        ("wrong labels", "question GP"): wrong,
        ("wrong labels", "self-taught"): _with(wrong, wrong.digits),
    }


def _with(bench: Bench, digits: Floats) -> Bench:
    return replace(bench, proxies=taught_losses(bench, digits)[..., None])


def explained_at(bench: Bench, count: int, seed: int) -> float:
    """Return the share of variance that the question GP explains after ``count`` random answers."""
    order = torch.from_numpy(generator(seed, "digits").permutation(bench.losses.size))
    seen, unseen = bench.judged(order[:count]), bench.judged(order[count : count + TEST])
    gp = bench.gp(
        shared=True,
        features=sample_features(adapted_dataset(bench.dataset()), seed),
        proxies=bench.proxy_losses if bench.proxies.shape[-1] else None,
    )
    gp.observe(seen)
    return explained(unseen.loss, gp.posterior(unseen).mean)


def _calls(begin: Callable[..., Audit], strategy: str, truth: Any, seeds: int) -> tuple[float, str]:
    """Return mean calls until certification, and in how many runs every interval always held."""
    runs = [certified_run(Job(begin, strategy, seed, truth=truth)) for seed in range(seeds)]
    held = sum(not run["missed"] for run in runs)
    return float(np.mean([run["calls"] for run in runs])), f"{held}/{len(runs)}"


def digits_table(widths: Sequence[float], answers: Sequence[int], seeds: int) -> pd.DataFrame:
    """Return a row per benchmark and predictor."""
    rows: list[Row] = []
    uniform: dict[tuple[str, float], float] = {}
    for (name, predictor), bench in benches().items():
        row: Row = {"benchmark": name, "predictor": predictor}
        for n in answers:
            shares = [explained_at(bench, n, seed) for seed in range(seeds)]
            row[f"explained at {n}"] = round(float(np.mean(shares)), 3)
        for width in widths:
            begin, truth = partial(bench.audit, half_width=width), (float(bench.losses.mean()),)
            if (name, width) not in uniform:
                uniform[name, width] = _calls(begin, UNIFORM, truth, seeds)[0]
            calls, held = _calls(begin, ADAPTIVE, truth, seeds)
            row[f"calls to {width}"] = round(calls, 1)
            row[f"ratio at {width}"] = round(calls / uniform[name, width], 3)
            row[f"covered at {width}"] = held
        rows.append(row)
        show(row)
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"seeds": 1, "half_widths": [0.1], "answers": [100]},
        seeds=3,
        half_widths=[0.05, 0.03],
        answers=[20, 100, 200, 400, 800],
    )
    table = digits_table(chosen.half_widths, chosen.answers, chosen.seeds)
    save_table(table, chosen.out / "self_taught_digits.csv")


if __name__ == "__main__":
    main()
