"""The audits of a comparison, each in memory, in parallel processes."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..audit import Audit
from ..audit import Progress as Step
from ..results import outcomes
from ..spec import Spec, build_audit
from .estimators import peek, plug_in, running_means

Floats = npt.NDArray[np.float64]
Run = dict[str, Any]

UNIFORM = "uniform"
"""The baseline: every unseen call equally likely, no predictions."""
BASELINE: dict[str, Any] = {"strategy": "random", "surrogate": False, "floor": 1e-6}
LEVELS = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Half-widths on the way to the goal."""
MARKS = (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200)
"""Calls at which estimates are compared with the truth."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Job:
    """One audit: of what, how, with which seed; ``truth`` (K,) where it is known."""

    spec: Spec
    base: Path
    strategy: str
    seed: int
    truth: tuple[float, ...] | None = None


def levels_to(goal: float) -> list[float]:
    """The half-widths calls are counted to: those coarser than the goal, and the goal."""
    return [level for level in LEVELS if level > goal] + [goal]


def is_checkpoint(calls: int) -> bool:
    """Some 24 counts per factor of ten, and the marks."""
    return calls in MARKS or calls <= 10 or math.floor(24 * math.log10(calls)) > math.floor(
        24 * math.log10(calls - 1)
    )  # fmt: skip


def run_all(
    work: Callable[[Job], Run], jobs: Sequence[Job], advance: Callable[[], object]
) -> list[Run]:
    """All runs, in the order of the jobs. The first that fails ends the rest."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(work, job) for job in jobs]
        try:
            for future in as_completed(futures):
                future.result()
                advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def uncertainty_run(job: Job) -> Run:
    """One audit without certificates: its mean uncertainty after every call."""
    _one_thread()
    at, level = [0], [1.0]

    def note(step: Step) -> None:
        at.append(step.state.calls)
        level.append(round(step.state.mean, 5))

    with build_audit(job.spec, job.base, strategy=job.strategy, seed=job.seed) as audit:
        result = audit.run(note)
        seconds = audit.state().elapsed / max(result.calls, 1)
    return {
        "strategy": job.strategy, "seed": job.seed, "calls": result.calls,
        "reason": result.reason, "at": at, "uncertainty": level, "seconds": seconds,
    }  # fmt: skip


def certified_run(job: Job) -> Run:
    """One audit with certificates: how its intervals shrink, and what came of the estimates."""
    _one_thread()
    options = BASELINE if job.strategy == UNIFORM else {"strategy": job.strategy}
    with build_audit(job.spec, job.base, seed=job.seed, stop=None, **options) as audit:
        trace = Trace(audit, job)
        result = audit.run(trace.note)
        seconds = audit.state().elapsed / max(result.calls, 1)
        return {
            "strategy": job.strategy, "seed": job.seed, "calls": result.calls,
            "reason": result.reason, "seconds": seconds, **trace.finish(),
        }  # fmt: skip


class Trace:
    """Watches one audit that certifies."""

    def __init__(self, audit: Audit, job: Job) -> None:
        goal = job.spec.certify.half_width
        belief = audit._questioner.belief
        assert goal is not None
        assert belief.certifier is not None
        self.goal = goal
        self._audit, self._belief, self._certifier = audit, belief, belief.certifier
        self._truth = None if job.truth is None else np.array(job.truth)
        self._uniform = job.strategy == UNIFORM
        self._alpha = 1 - job.spec.certify.confidence
        self._calls_to: dict[float, int | None] = dict.fromkeys(levels_to(goal))
        self._missed = False
        self._at: list[int] = []
        self._widths: list[float] = []
        self._estimates: list[Floats] = []
        self._plug_in: list[Floats] = []

    def note(self, step: Step) -> None:
        """After every call."""
        sequences = self._certifier.sequences
        calls, widest = step.state.calls, float(sequences.half_width.max())
        for level, reached in self._calls_to.items():
            if reached is None and widest <= level:
                self._calls_to[level] = calls
        self._missed |= not self._holds()
        if is_checkpoint(calls) or self._audit.stopped:
            self._at.append(calls)
            self._widths.append(widest)
            self._estimates.append(np.nan_to_num(sequences.estimate, nan=0.5))
            self._plug_in.append(self._plugged_in())

    def finish(self) -> Run:
        """What was seen, for JSON."""
        table = self._certifier.table()
        run: Run = {
            "calls_to": [[level, calls] for level, calls in self._calls_to.items()],
            "at": self._at,
            "half_width": [round(w, 5) for w in self._widths],
            "certified": [bool(row["certified"]) for row in table],
            "variance_ratio": float(np.mean([row["variance_ratio"] for row in table])),
            "estimates": {"certified": _listed(self._estimates)},
        }
        return run if self._truth is None else {**run, **self._judged(run["estimates"])}

    def _judged(self, estimates: dict[str, Any]) -> Run:
        """What takes the truth to say."""
        assert self._truth is not None
        table = outcomes(self._audit.journal)
        inside = self._certifier.members(table["question"].to_numpy())
        losses, draw = table["loss"].to_numpy(float), table["draw"].to_numpy()
        raw = [running_means(inside, losses, draw, at) for at in self._at]
        found = {**estimates, "raw mean": _listed(raw)}
        if self._belief.losses is not None:
            found["GP plug-in"] = _listed(self._plug_in)
        run: Run = {"held": self._holds(), "missed": self._missed, "estimates": found}
        if self._uniform:
            run["peeking"] = asdict(
                peek(
                    inside, losses, draw, truth=self._truth, sizes=self._certifier.sizes,
                    goal=self.goal, alpha=self._alpha,
                )
            )  # fmt: skip
        return run

    def _holds(self) -> bool:
        if self._truth is None:
            return True
        sequences = self._certifier.sequences
        above = self._truth >= sequences.lower - ROUNDING
        return bool((above & (self._truth <= sequences.upper + ROUNDING)).all())

    def _plugged_in(self) -> Floats:
        certifier, predictions = self._certifier, self._belief.predictions
        if predictions is None:
            return np.full(len(certifier.sizes), np.nan)
        return plug_in(
            certifier.least, certifier.waiting, certifier.sizes, self._belief.inside,
            predictions.cpu().numpy(),
        )  # fmt: skip


def _listed(rows: Sequence[Floats]) -> list[list[float | None]]:
    """For JSON, which knows no NaN."""
    return [[None if math.isnan(v) else round(v, 6) for v in row.tolist()] for row in rows]


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
