"""Measure time per draw and peak memory, over sizes of space, candidates and observations.

    python -m adaptive_vtt.experiments.engine.speed

One draw is all that the engine does between two answers, without journal and model: sample
candidates, predict their losses, weigh them, draw, fix the bet, and learn from 14 answers. Refits
of the question GP are included. For the demo, a second table has CPU seconds from the start of
Python to the first call, and CPU per draw with images, nets and model. With ``--beliefs`` it only
measures the share of the CPU of ``avtt audit --demo`` that snapshots of the belief take.
"""

import resource
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from adaptive_vtt.cli.main import main as avtt
from adaptive_vtt.config import DEMO
from adaptive_vtt.config.building import build_audit
from adaptive_vtt.engine.belief import Observation
from adaptive_vtt.engine.checkpoints import Checkpoints
from adaptive_vtt.engine.options import Certify
from adaptive_vtt.engine.predictors import fresh_belief
from adaptive_vtt.engine.proxies import Proxies
from adaptive_vtt.engine.selector import Selector
from adaptive_vtt.experiments.engine.tiled import TiledDataset
from adaptive_vtt.oracles.labels import margin
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.strategies import get

from ..program import Row, in_own_process, options, save_table, show
from .digits import RecordedRelation

CONCEPTS, TILE = 14, 23
SIZES = (10**4, 10**6, 10**9, 10**12)


def space_of(size: int) -> QuestionSpace:
    """Return a space of about ``size`` questions: samples x 31 variants x 14 concepts."""
    changes = (RecordedRelation(f"r{i}", (1, 2, 3, 4, 5)) for i in range(6))
    relations = [RecordedRelation("identity", (0,)), *changes]
    truths = (np.random.default_rng(0).random((TILE, CONCEPTS)) < 0.3).astype(np.int8)
    return QuestionSpace(TiledDataset(truths, max(TILE, size // (31 * CONCEPTS))), relations)


def measure(size: int, candidates: int, calls: int, device: str) -> Row:
    """Return milliseconds of CPU per draw, over the last tenth of ``calls`` and over all."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    space = space_of(size)
    certify = Certify(0.001, None, 0.95, ("concepts", "relations"), None, "loss")
    belief = fresh_belief(certify, space, "all", seed=0, device=device, proxies=Proxies(space, {}))
    selector = Selector(
        space,
        get("certify"),
        exploration=0.2,
        candidates=candidates,
        answers="all",
        belief=belief,
    )
    rng, times = np.random.default_rng(1), []
    for _ in range(calls):
        start = time.process_time()
        draw = selector.draw()
        if draw is None:
            break
        questions = np.arange(draw.call * CONCEPTS, (draw.call + 1) * CONCEPTS)
        selector.take(questions, draw.bet)
        selector.learn(answers(space, questions, rng))
        times.append(time.process_time() - start)
    tail = times[-max(1, len(times) // 10) :]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "questions": f"{space.size:.0e}",
        "candidates": candidates,
        "calls": len(times),
        "device": device,
        "ms per draw, median of last tenth": round(1000 * float(np.median(tail)), 2),
        "ms per draw, all calls": round(1000 * float(np.mean(times)), 2),
        "peak MB added": round((peak - before) / 1024),
    }


def answers(space: QuestionSpace, questions: Any, rng: np.random.Generator) -> list[Observation]:
    """Return answers to these questions, a fifth of them wrong."""
    truth = space.truth(questions)
    wrong = rng.random(len(questions)) < 0.2
    right = np.where(wrong, 0, 0.5) + rng.random(len(questions)) / 2
    p_yes = np.where(truth, right, 1 - right)
    rows = zip(questions.tolist(), truth.tolist(), wrong.tolist(), p_yes.tolist(), strict=True)
    return [
        Observation(q, t, float(w), a, (a + t) / 2, margin=margin(t, (a + t) / 2, None))
        for q, t, w, a in rows
    ]


def demo(calls: int) -> Row:
    """Return the CPU that the demo's audit takes; run it in a new process."""
    with build_audit(DEMO, Path(), seed=0, budget=calls) as audit:
        audit.take_back(audit.ask(1))
        first = time.process_time()  # since Python began
        count = audit.run().calls
    per_draw = 1000 * (time.process_time() - first) / count
    return {
        "calls": count,
        "CPU s to first call": round(first, 1),
        "CPU ms per draw": round(per_draw, 1),
    }


def keeping_beliefs() -> Row:
    """Return CPU seconds of the demo with its comparison, and of its checkpoints in this thread."""
    seconds: list[float] = []

    def timed(work: Callable[..., None]) -> Callable[..., None]:
        def called(*arguments: Any) -> None:
            start = time.thread_time()
            work(*arguments)
            seconds.append(time.thread_time() - start)

        return called

    names = ("learnt", "after_answers", "on_end")
    methods: Any = {name: timed(getattr(Checkpoints, name)) for name in names}
    start = time.process_time()
    with TemporaryDirectory() as out, patch.multiple(Checkpoints, **methods), suppress(SystemExit):
        avtt(["audit", "--demo", "--half-width", "0.1", "--seed", "0", "--out", f"{out}/run"])
    total, beliefs = time.process_time() - start, sum(seconds)
    figures = {"demo, s": total, "beliefs, s": beliefs, "beliefs, %": 100 * beliefs / total}
    return {name: round(value, 2) for name, value in figures.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(
        __doc__, arguments, quick={"calls": 60}, calls=1000, device="cpu", beliefs=False
    )
    if chosen.beliefs:
        show(keeping_beliefs())
        return
    jobs = [(size, 4096, chosen.calls) for size in SIZES[1:]]
    jobs.append((SIZES[0], 4096, min(chosen.calls, 700)))
    if chosen.device != "cpu":
        jobs += [(SIZES[3], c, n) for c in (4096, 65_536, 10**6) for n in (1000, 5000)]
    rows = []
    for job in jobs:
        rows.append(in_own_process(measure, *job, chosen.device))
        show(rows[-1])
    save_table(rows, chosen.out / "speed.csv")
    save_table([in_own_process(demo, min(chosen.calls, 300))], chosen.out / "speed_demo.csv")


if __name__ == "__main__":
    main()
