"""Count the calls that certify the accuracy of EndoBench's twelve tasks, in 3.5 minutes.

    python -m adaptive_vtt.experiments.endobench.endobench_tasks

There are as many questions per task as in EndoBench, 6,832 in all, without its options and scenes.
The model is simulated: it is right with the published accuracy of the task (Table 2, with corrected
names of the lesion tasks). Adaptive and uniform draws certify each task to the same half-width,
with the same guarantee over all twelve. There is no question GP, as simulated answers depend only
on the task. "covered" counts runs in which every interval held the truth at every moment. Draws are
without replacement, so 6,832 calls are a census, and any strategy has to ask nearly all questions
of a small task.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.datasets import TableDataset
from adaptive_vtt.datasets.vqa.taxonomy import TASKS
from adaptive_vtt.engine.belief import Observation
from adaptive_vtt.oracles import MultipleChoice
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import UNKNOWN

from ..engine.certificates import UNIFORM_EXPLORATION, selector_of
from ..program import Row, in_processes, options, save_table
from ..tables.layout import tables_of

STRATEGIES = {"uniform": "random", "adaptive": "certify"}


@dataclass(frozen=True)
class Task:
    """The settings of a run; ``setting`` is one of STRATEGIES."""

    model: str
    setting: str
    half_width: float
    seed: int


def space() -> QuestionSpace:
    """Return a space with a sample per question, whose concept is its task."""
    owner = np.repeat(np.arange(len(TASKS)), [task.questions for task in TASKS])
    truths = np.full((len(owner), len(TASKS)), UNKNOWN, np.int8)
    truths[np.arange(len(owner)), owner] = 1
    ids = [f"q{i}" for i in range(len(owner))]
    dataset = TableDataset(None, truths, ids, tuple(task.name for task in TASKS), name="EndoBench")
    return QuestionSpace(dataset, oracle=MultipleChoice())


def run(task: Task) -> Row:
    """Ask until all twelve tasks are certified, and return the calls, coverage and seconds."""
    questions = space()
    rng = np.random.default_rng([task.seed, 3])
    printed = tables_of("endobench")["2"].printed(task.model, "EndoBench")
    rates = np.array([printed[each.short] / 100 for each in TASKS])
    losses = (rng.random(questions.total).reshape(-1, len(rates)) >= rates).astype(float).ravel()
    selector = selector_of(
        questions,
        ["concepts"],
        Rules(task.half_width, 0.05),
        STRATEGIES[task.setting],
        task.seed,
        exploration=UNIFORM_EXPLORATION if task.setting == "uniform" else 0.2,
    )
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


def table(
    models: Sequence[str], settings: Sequence[str], widths: Sequence[float], seeds: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return mean calls per model, half-width and setting, and the same by task."""
    tasks = [
        Task(m, s, w, seed)
        for m in models
        for w in widths
        for s in settings
        for seed in range(seeds)
    ]
    runs = pd.DataFrame(in_processes(run, tasks))
    keys = ["model", "half-width", "setting"]
    groups = runs.groupby(keys, sort=False)
    frame = groups.agg(calls=("calls", "mean"), covered=("covered", "sum"), runs=("seed", "count"))
    frame["ms per call"] = (1000 * groups["seconds"].sum() / groups["calls"].sum()).round(1)
    frame = frame.reset_index()
    uniform = frame["calls"].where(frame["setting"] == "uniform")
    base = uniform.groupby([frame[key] for key in keys[:2]]).transform("max")
    frame.insert(4, "of uniform", (frame["calls"] / base).round(3))
    by_task = groups[[task.name for task in TASKS]].mean().round(0).astype(int).T
    by_task.columns = [
        f"{model}, {how}, +-{width}"
        for model, width, how in frame[keys].itertuples(index=False, name=None)
    ]
    return frame, by_task.rename_axis("task")


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"models": ["Gemini-2.5-Pro"], "seeds": 1},
        models=["GPT-4o", "Gemini-2.5-Pro"],
        only=STRATEGIES,
        half_widths=[0.05],
        seeds=3,
    )
    frame, by_task = table(chosen.models, chosen.only, chosen.half_widths, chosen.seeds)
    save_table(by_task, chosen.out / "endobench-calls.csv", index=True)
    save_table(frame, chosen.out / "endobench-tasks.csv")


if __name__ == "__main__":
    main()
