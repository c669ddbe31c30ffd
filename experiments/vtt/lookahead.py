"""Count the questions of one-step lookahead in Figure 4's panels, compared with two bounds.

    python -m adaptive_vtt.experiments.vtt.lookahead

The figures are median questions until the average uncertainty is within 10 % of its final value (as
``figure4`` defines it), for "random", the paper's two best strategies and ``expected-reduction``.
Two strategies with knowledge that no audit has are their bounds:

oracle    knows every answer in advance and asks the question that reduces uncertainty most
informed  knows the answers left on each side of each concept, but not their questions; it is about
          the best possible one-step lookahead where questions on a side look the same, as here

Both are greedy, so slightly fewer questions may be possible. "best" is the paper's better strategy
of the panel, and the aim is half of its questions. In these panels an answer depends only on its
concept and side, so a strategy can only choose a side. No strategy reaches below ``informed``
towards ``oracle``. The difference between "best" and ``informed`` is the value of a perfect
prediction of the answers on each side. Other priors, pools and smoothings of ``expected-reduction``
(on repeats from 100 on) change its counts by up to a tenth, in both directions.

Writes lookahead.csv.
"""

import os
from collections.abc import Sequence
from itertools import compress

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from adaptive_vtt.experiments.program import in_processes, options, save_table, show
from adaptive_vtt.experiments.vtt.figure4 import (
    LABEL_SETS,
    QUICK_SAMPLES,
    SAMPLES,
    Job,
    all_jobs,
    answers_of,
    ask,
    questions_needed,
)
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.strategies import Strategy, get
from adaptive_vtt.strategies.base import BeliefView
from adaptive_vtt.types import Candidates, Floats

SHARE = 0.10
PAPER = ("uncertainty", "uncertainty+unpredictability")
OURS = "expected-reduction"
NAMED = ("random", *PAPER, OURS)
BOUNDS = ("informed", "oracle")
AIM = 0.5
"""Aim: largest ratio of questions to those of the paper's best strategy."""
TIE = 1e-9


class Oracle:
    """Ask the question whose answer reduces uncertainty most; ``coordinates`` (questions,)."""

    def __init__(self, coordinates: Floats) -> None:
        self._coordinates = torch.from_numpy(coordinates)

    def falls(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        """Return the true reduction of total uncertainty by each candidate's answer, (n,)."""
        bins = belief.answers.bin_of(self._coordinates[candidates.question])
        return belief.answers.reductions()[candidates.concept, bins]

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        falls = self.falls(candidates, belief)
        return (falls >= falls.max() - TIE).double()


class Informed(Oracle):
    """Ask any question of the side whose remaining answers reduce uncertainty most on average."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        cells = candidates.cell
        total = torch.bincount(cells, self.falls(candidates, belief))
        mean = (total / torch.bincount(cells).clamp(min=1))[cells]
        return (mean >= mean.max() - TIE).double()


def run(job: Job) -> dict[str, Floats]:
    """Return the curve (questions + 1,) of each strategy and bound, with the same answers."""
    dataset = LABEL_SETS[job.labels](job.samples)
    space, answers = QuestionSpace(dataset), answers_of(job.model, dataset, job.repeat)
    coordinates = (answers.ravel() + space.truth(np.arange(space.total))) / 2
    chosen: dict[str, Strategy] = {name: get(name) for name in NAMED}
    chosen |= {"informed": Informed(coordinates), "oracle": Oracle(coordinates)}
    return {name: ask(space, s, answers, seed=job.repeat)[1] for name, s in chosen.items()}


def summary(jobs: Sequence[Job], curves: Sequence[dict[str, Floats]]) -> pd.DataFrame:
    """Return one row per panel, with median questions and their ratios."""
    rows = []
    for labels, model in dict.fromkeys((job.labels, job.model) for job in jobs):
        panel = [(j.labels, j.model) == (labels, model) for j in jobs]
        of_panel = list(compress(curves, panel))
        needed = {name: _needed(of_panel, name) for name in (*NAMED, *BOUNDS)}
        best = min(needed[name] for name in PAPER)
        rows.append(
            {
                "label set": labels,
                "model": model,
                **needed,
                "ours / best": needed[OURS] / best,
                "informed / best": needed["informed"] / best,
                "oracle / best": needed["oracle"] / best,
                "ours / oracle": needed[OURS] / needed["oracle"],
                "half": "yes" if needed[OURS] <= AIM * best else "no",
            }
        )
    return pd.DataFrame(rows)


def _needed(curves: Sequence[dict[str, Floats]], name: str) -> float:
    return float(np.median(questions_needed(np.array([c[name] for c in curves]), SHARE)))


def note(table: pd.DataFrame) -> str:
    """Return a sentence on whether the aim was reached."""
    reached = int((table["half"] == "yes").sum())
    possible = int((table["informed / best"] <= AIM).sum())
    known = int((table["oracle / best"] <= AIM).sum())
    return (
        f"{OURS} needs at most half the questions of the paper's best strategy in {reached} of "
        f"{len(table)} panels. Knowing the answers left on each side would do so in {possible}, "
        f"knowing every answer in {known}."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__,
        arguments,
        quick={"repeats": 1, "workers": 1},
        repeats=10,
        workers=os.cpu_count() or 1,
    )
    jobs = all_jobs(QUICK_SAMPLES if chosen.quick else SAMPLES, chosen.repeats)
    table = summary(jobs, in_processes(run, jobs, chosen.workers))
    save_table(table, chosen.out / "lookahead.csv")
    show(note(table))


if __name__ == "__main__":
    main()
