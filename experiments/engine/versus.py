"""Count the calls of two models until it is decided which one is wrong less often.

    python -m adaptive_vtt.experiments.engine.versus --only sign,non-inferior,known --seeds 4

Model A is the MLP of digits-severity. Model B is trained with a weight decay of .15; it is wrong
less often by .034, and the two disagree on 8 % of all questions. Every run uses the engine's
Selector without a journal. "covered" counts runs in which the interval of the difference held the
truth at every moment.

``--only coverage``: coverage of comparisons on simulated pools (``versus_coverage``).
``--only moments``: coverage with question GPs and these two models, up to a number of calls.
``--only apart``: a separate audit of each model, which takes many minutes a run.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt.certify.decisions import MAX_AIM, Comparison
from adaptive_vtt.certify.rules import Rules
from adaptive_vtt.certify.sequences import BETS
from adaptive_vtt.engine.belief import Observation
from adaptive_vtt.engine.options import FINE_CELL
from adaptive_vtt.oracles.paired import Paired, difference
from adaptive_vtt.surrogates.difference_gp import DifferenceGP
from adaptive_vtt.types import Floats, Indices

from ..program import Row, in_processes, options, save_table, show
from . import digits, versus_coverage
from .certificates import UNIFORM_EXPLORATION, selector_of

ALPHA = 0.05
DECAY = 0.15
"""Weight decay of model B, 1,500 times that of model A."""
NON_INFERIOR = -0.02
"""Difference of error rates down to which model B counts as not inferior."""
EARLIER = 400
"""Number of questions of model A's earlier audit."""


@dataclass(frozen=True)
class Task:
    """One comparison.

    It ends once it is decided whether the difference lies above ``limit``: by the interval if
    ``limit`` is 0 or each model has its own audit, else by a claim (``Comparison.at_least``).

    Attributes:
        way: "paired", "apart" (an audit of each, in turns), "known" (all answers of A are known)
            or "condition" (A's answers to EARLIER questions are known).
        adaptive: True for predictions and a proposal by needs, False for uniform draws.
        limit: Difference of error rates that is decided against.
        seed: Its seed.
        most: Most calls.
        continues: True to continue after the decision until ``most`` calls are made.
    """

    way: str
    adaptive: bool
    limit: float
    seed: int
    most: int = 16_000
    continues: bool = False

    @property
    def name(self) -> str:
        goal = "sign" if self.limit == 0 else f"above {self.limit:g}"
        return f"{goal}: {self.way}, {'adaptive' if self.adaptive else 'uniform'}"


@cache
def benches() -> tuple[digits.Bench, digits.Bench]:
    """Return the benches of models A and B, with answers to the same pictures."""
    return digits.severity_bench(), digits.severity_bench(decay=DECAY)


class Half:
    """One of the one or two audits of a task."""

    def __init__(self, task: Task, way: str, compare: Comparison | None, alpha: float) -> None:
        bench_a, bench_b = benches()
        bench = bench_a if way == "a" else bench_b
        self.way, space = way, bench.space()
        self.known = _earlier(task, len(bench.losses) * len(bench.relation))
        if way == "paired":
            known = self.known if task.way == "condition" else None
            space = space.judged_by(Paired(space.oracle, known))
        self.oracle = space.oracle
        aim = MAX_AIM if compare is not None else max(abs(_true() - task.limit) / 2, 0.005)
        self.selector = selector_of(
            space,
            ["overall"],
            Rules(aim, alpha, bets=replace(BETS, cell=FINE_CELL), compare=compare),
            "certify" if task.adaptive else "random",
            f"{task.seed} {way}",
            losses=_predictor(task, way, bench) if task.adaptive else None,
            exploration=0.2 if task.adaptive else UNIFORM_EXPLORATION,
        )

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper end of the interval."""
        sequences = self.selector.belief.certifying.sequences
        return float(sequences.lower[0]), float(sequences.upper[0])

    def step(self) -> int:
        """Ask one question. Return how many calls it took."""
        draw = self.selector.draw(1)
        if draw is None:
            return 0
        self.selector.take(np.array([draw.question]), draw.bet)
        self.selector.learn([self._learnt(draw.question)])
        if isinstance(self.oracle, Paired):
            return int(self.oracle.models_asked(np.array([draw.question]))[0])
        return 1

    def _learnt(self, question: int) -> Observation:
        a, b = (
            {"loss": float(m.losses.flat[question]), "margin": float(m.margins.flat[question])}
            for m in benches()
        )
        if self.way == "paired":
            y = difference(a["loss"], b["loss"])
            return Observation(question, 1, y, details={"a": a, "b": b})
        own = a if self.way == "a" else b
        return Observation(question, 1, own["loss"], margin=own["margin"])


def run(task: Task) -> Row:
    """Ask until the task is decided, or ``most`` calls are made."""
    halves, calls, held, start = _halves(task), 0, True, time.perf_counter()
    truth, decided = _true(), "open"
    while calls < task.most and (decided == "open" or task.continues):
        made = sum(half.step() for half in halves)
        if not made:
            break
        calls += made
        lower, upper = _difference(task, halves)
        held &= lower - 1e-9 <= truth <= upper + 1e-9
        if decided == "open":
            decided = _decided(task, halves, lower, upper)
    milliseconds = 1000 * (time.perf_counter() - start) / calls
    row = {"comparison": task.name, "calls": calls, "decided": decided != "open"}
    return {**row, "covered": held, "ms per call": milliseconds}


def _decided(task: Task, halves: list[Half], lower: float, upper: float) -> str:
    certifier = halves[0].selector.belief.certifying
    if certifier.decisions is not None and certifier.rules.compare is not None:
        (verdict,) = certifier.rules.compare.claimed(certifier.decisions)
        return {"holds": "above", "fails": "below"}.get(verdict, "open")
    return "above" if lower > task.limit else "below" if upper < task.limit else "open"


def _halves(task: Task) -> list[Half]:
    if task.way == "apart":
        return [Half(task, side, None, ALPHA / 2) for side in ("a", "b")]
    claim = task.limit or None
    if task.way == "known":
        compare = Comparison((float(benches()[0].losses.mean()),), -1.0, at_least=claim)
        return [Half(task, "b", compare, ALPHA)]
    return [Half(task, "paired", Comparison(at_least=claim), ALPHA)]


def _difference(task: Task, halves: list[Half]) -> tuple[float, float]:
    """Return the interval of R_A - R_B."""
    if task.way == "apart":
        (low_a, high_a), (low_b, high_b) = (half.ends for half in halves)
        return low_a - high_b, high_a - low_b
    compare = halves[0].selector.belief.certifying.rules.compare or Comparison()
    low, high = (np.array([end]) for end in halves[0].ends)
    least, most = compare.differences(low, high)
    return float(least[0]), float(most[0])


def _true() -> float:
    a, b = benches()
    return float(a.losses.mean() - b.losses.mean())


def _earlier(task: Task, questions: int) -> Indices:
    """Return the questions of model A's earlier audit."""
    rng = np.random.default_rng([task.seed, 11])
    return np.sort(rng.choice(questions, EARLIER, replace=False))


def _predictor(task: Task, way: str, bench: digits.Bench) -> Any:
    a = benches()[0]
    if way == "paired":
        known = partial(_known, _earlier(task, a.losses.size)) if task.way == "condition" else None
        return bench.gp(DifferenceGP, known=known, **bench.inputs())
    hints = None
    if task.way == "known":
        hints = replace(bench, proxies=a.losses[..., None]).proxy_losses
    return bench.gp(proxies=hints, **bench.inputs())


def _known(earlier: Indices, sample: Indices, variant: Indices, concept: Indices) -> Floats:
    losses = benches()[0].losses
    question = sample * losses.shape[1] + variant
    return np.where(np.isin(question, earlier), losses[sample, variant], np.nan)


def suites(seeds: int, first: int = 0) -> dict[str, list[Task]]:
    """Return the tasks of every table, with ``seeds`` seeds from ``first`` on."""
    limits = (0.0, NON_INFERIOR)
    # way, adaptive, limit, most calls
    kinds = {
        "sign": [("paired", True, 0.0, 16_000), ("paired", False, 0.0, 16_000)],
        "non-inferior": [
            ("paired", True, NON_INFERIOR, 16_000),
            ("paired", False, NON_INFERIOR, 16_000),
        ],
        "known": [
            *(("known", True, limit, 5_000) for limit in limits),
            ("condition", True, 0.0, 16_000),
        ],
        "apart": [
            ("apart", adaptive, limit, most)
            for limit in limits
            for adaptive, most in ((False, 24_000), (True, 5_000))
        ],
        "moments": [("known", True, 0.0, 450), ("condition", True, 0.0, 600)],
    }
    tasks: dict[str, list[Task]] = {name: [] for name in kinds}
    for name, rows in kinds.items():
        for way, adaptive, limit, most in rows:
            for seed in range(first, first + seeds):
                continues = name == "moments"
                tasks[name].append(Task(way, adaptive, limit, seed, most, continues))
    return tasks


def table(tasks: Sequence[Task], workers: int, executor: str = "processes") -> pd.DataFrame:
    """Return a row per way: calls, decisions, coverage."""
    return decisions(in_processes(run, tasks, workers, executor), "comparison").reset_index()


def decisions(rows: Sequence[Row], by: str) -> pd.DataFrame:
    """Return means of calls and of their time, and how many runs were decided and covered."""
    groups = pd.DataFrame(rows).groupby(by, sort=False)
    counts = groups[["decided", "covered"]].sum()
    means = groups.mean().assign(**counts, runs=groups.size())
    return means.round(1)


def main(arguments: Sequence[str] | None = None) -> None:
    names = dict.fromkeys([*suites(0), "coverage"])
    chosen = options(
        __doc__,
        arguments,
        quick={"only": ["known", "coverage"], "seeds": 1},
        only=names,
        seeds=20,
        first=0,
        workers=2,
        executor="processes",
    )
    a, b = benches()
    apart = float((a.losses != b.losses).mean())
    show(f"error {a.losses.mean():.4f} and {b.losses.mean():.4f}, disagreement {apart:.3f}")
    tasks = suites(chosen.seeds, chosen.first)
    for name in chosen.only:
        if name == "coverage":
            frame = versus_coverage.table(chosen.seeds, chosen.workers, chosen.executor)
        else:
            frame = table(tasks[name], chosen.workers, chosen.executor)
        save_table(frame, chosen.out / f"versus-{name}.csv")


if __name__ == "__main__":
    main()
