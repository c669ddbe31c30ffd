"""Calls to certify the accuracy of EndoBench's twelve tasks: adaptive against uniform.

The questions are EndoBench's by number (6,832 in twelve tasks, options and scenes apart); the
model is simulated: a question is answered rightly with the published accuracy of its task
(Table 2, with the lesion tasks' names corrected). Every task is certified to the same half-width,
with the same guarantee over all twelve, whatever the strategy; there is no question GP, as
simulated answers depend on nothing but the task. "covered" counts runs in which every
interval held the truth at every moment. Draws are without replacement, so 6,832 is a census;
small tasks have to be asked about nearly whole either way.
"""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.datasets import TableDataset
from adaptive_vtt.datasets.vqa.taxonomy import TASKS
from adaptive_vtt.engine.belief import Belief, Observation
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.oracles import MultipleChoice
from adaptive_vtt.results.report.endobench_beside import accuracies
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.strategies import get
from adaptive_vtt.types import UNKNOWN
from adaptive_vtt.utils.files import write_text

UNIFORM_EXPLORATION = 1e-9
STRATEGIES = {"uniform": "random", "adaptive": "certify"}


@dataclass(frozen=True)
class Task:
    """One run; ``setting`` is one of STRATEGIES."""

    model: str
    setting: str
    half_width: float
    seed: int


def space() -> QuestionSpace:
    """A sample per question; its task is its concept."""
    owner = np.repeat(np.arange(len(TASKS)), [task.questions for task in TASKS])
    truths = np.full((len(owner), len(TASKS)), UNKNOWN, np.int8)
    truths[np.arange(len(owner)), owner] = 1
    ids = [f"q{i}" for i in range(len(owner))]
    dataset = TableDataset(None, truths, ids, [task.name for task in TASKS], name="EndoBench")
    return QuestionSpace(dataset, oracle=MultipleChoice())


def run(task: Task) -> dict[str, Any]:
    """Asks until all twelve are certified; how many calls that took, and how it went."""
    import torch

    torch.set_num_threads(1)
    questions = space()
    rng = np.random.default_rng([task.seed, 3])
    rates = accuracies().loc[task.model, list(questions.concepts)].to_numpy(float)
    losses = (rng.random(questions.total).reshape(-1, len(rates)) >= rates).astype(float).ravel()
    selector = _selector(questions, task)
    certifier = selector.belief.certifying
    everything = questions.nth(np.arange(questions.size))
    inside = certifier.members(everything)
    truth = (inside @ losses[everything]) / inside.sum(axis=1)
    start, covered = time.perf_counter(), True
    asked = np.zeros(len(rates), int)
    while not certifier.certified.all() and (draw := selector.draw()) is not None:
        selector.take(np.array([draw.question]), draw.bet)
        selector.learn([Observation(draw.question, 1, float(losses[draw.question]))])
        sequences = certifier.sequences
        covered &= bool(((sequences.lower <= truth) & (truth <= sequences.upper)).all())
        asked[draw.question % len(rates)] += 1
    seconds = time.perf_counter() - start
    return {
        "model": task.model,
        "setting": task.setting,
        "half-width": task.half_width,
        "seed": task.seed,
        "calls": selector.draws,
        "covered": covered,
        "certified": bool(certifier.certified.all()),
        "seconds": seconds,
        **dict(zip(questions.concepts, asked.tolist(), strict=True)),
    }


def _selector(questions: QuestionSpace, task: Task) -> Selector:
    certifier = Certifier(
        questions,
        named_targets(questions, ["concepts"]),
        answers="one",
        half_width=task.half_width,
        confidence=0.95,
    )
    belief = Belief(questions, seed=task.seed, certifier=certifier)
    exploration = UNIFORM_EXPLORATION if task.setting == "uniform" else 0.2
    return Selector(
        questions,
        get(STRATEGIES[task.setting]),
        seed=task.seed,
        exploration=exploration,
        candidates=1024,
        answers="one",
        belief=belief,
    )


def table(
    models: Sequence[str], settings: Sequence[str], widths: Sequence[float], seeds: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per model, half-width and setting with mean calls; and calls by task."""
    tasks = [
        Task(m, s, w, seed)
        for m in models
        for w in widths
        for s in settings
        for seed in range(seeds)
    ]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        runs = pd.DataFrame(pool.map(run, tasks, chunksize=1))
    keys = ["model", "half-width", "setting"]
    groups = runs.groupby(keys, sort=False)
    frame = groups.agg(calls=("calls", "mean"), covered=("covered", "sum"), runs=("seed", "count"))
    frame["ms per call"] = (1000 * groups["seconds"].sum() / groups["calls"].sum()).round(1)
    frame = frame.reset_index()
    uniform = frame["calls"].where(frame["setting"] == "uniform")
    base = uniform.groupby([frame[key] for key in keys[:2]]).transform("max")
    frame.insert(4, "of uniform", (frame["calls"] / base).round(3))
    by_task = groups[[task.name for task in TASKS]].mean().round(0).astype(int).reset_index()
    return frame, by_task


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--quick", action="store_true", help="one model, one seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--half-widths", type=float, nargs="+", default=[0.05])
    parser.add_argument("--models", nargs="+", default=["GPT-4o", "Gemini-2.5-Pro"])
    parser.add_argument("--only", nargs="+", choices=list(STRATEGIES), default=list(STRATEGIES))
    options = parser.parse_args(arguments)
    models = options.models[-1:] if options.quick else options.models
    seeds = 1 if options.quick else options.seeds
    frame, by_task = table(models, options.only, options.half_widths, seeds)
    print(frame.to_string(index=False), flush=True)
    print(by_task.set_index(["model", "half-width", "setting"]).T.to_string(), flush=True)
    write_text(options.out / "endobench-tasks.csv", frame.to_csv(index=False))


if __name__ == "__main__":
    main()
