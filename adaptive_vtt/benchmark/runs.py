"""The audits of a comparison, each in memory, in parallel processes.

In addition to the certified intervals, a run has other estimates from the same draws
(``estimators``), to show why they should not be used.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..audit import Audit
from ..audit import Progress as Step
from ..audit.everything import calls_of
from ..certify import Bet
from ..errors import InputError
from ..results.outcomes import outcomes
from ..results.result import Result
from ..strategies import Strategy, get
from ..types import Bools, Floats, Indices, JsonObject
from ..utils.threads import one_thread
from .estimators import lure, plug_in, running_means

Run = JsonObject

UNIFORM = "uniform"
"""The baseline: every unseen call is equally likely, and nothing is predicted."""
PLAIN = 1e-6
"""Exploration must be above 0 to certify, and this changes no draw noticeably."""
BASELINES: dict[str, JsonObject] = {
    UNIFORM: {"strategy": "random", "surrogate": False, "exploration": PLAIN},
    "stratified": {"strategy": "stratified", "surrogate": False, "exploration": PLAIN},
    "prediction-powered": {"strategy": "random", "surrogate": True, "exploration": PLAIN},
    "argmax": {"strategy": "bald", "surrogate": True, "exploration": PLAIN},
    "nipv": {"strategy": "nipv", "surrogate": True},
}
"""Names and options of audits that strategies are compared with.

- "prediction-powered" has uniform draws and the question GP's predictions.
- "argmax" always draws the call that is most informative about the question GP (``bald`` without
  randomness). Its intervals hold but stay wide, and people use the raw mean of its draws instead.
- "nipv" is an acquisition of BoTorch's, with the question GP that it needs.
"""
CLASSICS = (
    *BASELINES,
    "random",
    "unpredictability",
    "uncertainty",
    "uncertainty+unpredictability",
    "lure",
    "certify",
)
"""The baselines, the paper's four strategies, active testing's, and ours."""
SHARPEST = 1e18
"""Power that excludes all but the best calls, even if scores differ by rounding alone."""
MAX_ARGMAX = 1000
"""Calls of an argmax run without a budget, which would never end."""
LEVELS = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Half-widths on the way to the goal."""
MARKS = (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200)
"""Calls at which estimates are compared with the truth."""
ROUNDING = 1e-9
"""Distance outside an interval at which the truth still counts as inside."""


@dataclass(frozen=True)
class Job:
    """One audit of a comparison.

    Attributes:
        audit_of: Function that begins it with options that override those of an Audit; it can be
            sent to another process.
        strategy: One of BASELINES, or a strategy as an Audit takes it.
        seed: Its seed.
        budget: Its budget in calls.
        truth: True mean losses (K,) of the targets, None if unknown.
        options: Options of this Audit alone.
        name: Its name in tables (default: its strategy).
    """

    audit_of: Callable[..., Audit]
    strategy: str | Strategy
    seed: int
    budget: int | None = None
    truth: tuple[float, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


def levels_to(goal: float) -> list[float]:
    """Return the half-widths that calls are counted to: coarser ones, and the goal."""
    return [level for level in LEVELS if level > goal] + [goal]


def is_checkpoint(calls: int) -> bool:
    """Return whether to record estimates after so many calls: 24 times per decade, and at MARKS."""
    if calls in MARKS or calls <= 10:
        return True
    return math.floor(24 * math.log10(calls)) > math.floor(24 * math.log10(calls - 1))


def begun(job: Job, *, certifies: bool) -> Audit:
    """Return the audit of a job, before any question."""
    if certifies:
        return job.audit_of(seed=job.seed, stop=None, goal=None, **options_of(job))
    return job.audit_of(strategy=job.strategy, seed=job.seed, **job.options)


@one_thread(models=True)
def uncertainty_run(job: Job) -> Run:
    """Run one audit without certificates and return its mean uncertainty after every call."""
    at, level = [0], [1.0]

    def note(step: Step) -> None:
        at.append(step.state.calls)
        level.append(round(step.state.mean, 5))

    with begun(job, certifies=False) as audit:
        run = _finished(job, audit, audit.run(note))
    return {**run, "at": at, "uncertainty": level}


@one_thread(models=True)
def certified_run(job: Job) -> Run:
    """Run one audit with certificates and return its intervals and estimates."""
    with begun(job, certifies=True) as audit:
        trace = Trace(audit, job)
        run = _finished(job, audit, audit.run(trace.note))
        return {**run, **trace.finish()}


def _finished(job: Job, audit: Audit, result: Result) -> Run:
    """Return the fields of every run; ``seconds`` is per call."""
    return {
        "strategy": job.name or str(job.strategy),
        "seed": job.seed,
        "calls": result.calls,
        "reason": result.reason,
        "seconds": audit.state().elapsed / max(result.calls, 1),
    }


def options_of(job: Job) -> dict[str, Any]:
    """Return the options of the job's audit that override those of its spec."""
    name = job.strategy if isinstance(job.strategy, str) else ""
    options = {**BASELINES.get(name, {"strategy": job.strategy}), **job.options}
    if job.strategy != "argmax":
        return options
    budget = job.budget or MAX_ARGMAX
    return {**options, "strategy": get(options["strategy"], power=SHARPEST), "budget": budget}


class Trace:
    """Recorder of the intervals and estimates of one audit that certifies."""

    def __init__(self, audit: Audit, job: Job) -> None:
        if audit.certify.half_width is None:
            raise InputError("compare: expected an audit with half_width, got one without")
        self.goal = audit.certify.half_width
        self._audit, self._belief, self._certifier = audit, audit.belief, audit.belief.certifying
        self._truth = None if job.truth is None else np.array(job.truth)
        self._calls_to: dict[float, int | None] = dict.fromkeys(levels_to(self.goal))
        self._missed = False
        self._at: list[int] = []
        self._draws: list[int] = []  # fewer than calls if source images are asked about
        self._widths: list[Floats] = []  # (K,) each
        self._estimates: list[Floats] = []
        self._drawn: list[Floats] = []
        self._plug_in: list[Floats] = []

    def note(self, step: Step) -> None:
        """Record the state after a call."""
        sequences = self._certifier.sequences
        calls, widest = step.state.calls, float(sequences.half_width.max())
        for level, reached in self._calls_to.items():
            if reached is None and widest <= level:
                self._calls_to[level] = calls
        self._missed |= not self._holds()
        if is_checkpoint(calls) or self._audit.stopped:
            self._at.append(calls)
            self._draws.append(sequences.moves)
            self._widths.append(sequences.half_width.copy())
            rows = self._audit.statuses()
            self._estimates.append(np.array([row.estimate for row in rows]))
            self._drawn.append(np.array([row.drawn for row in rows]))
            self._plug_in.append(self._plugged_in())

    def finish(self) -> Run:
        """Return the records for JSON."""
        table = self._certifier.table()
        run: Run = {
            "calls_to": [[level, calls] for level, calls in self._calls_to.items()],
            "at": self._at,
            "half_width": [round(float(widths.max()), 5) for widths in self._widths],
            "half_widths": [widths.round(5).tolist() for widths in self._widths],
            "certified": [row.certified for row in table],
            "variance_ratio": float(np.mean([row.variance_ratio for row in table])),
            "all_calls": calls_of(self._audit.space, self._audit.model),
            "estimates": {
                "certified": _listed(self._estimates),
                "pseudo-outcomes": _listed(self._drawn),
            },
        }
        if self._truth is None:
            return run
        return {**run, **self._judged(run["estimates"], self._truth)}

    def _judged(self, estimates: JsonObject, truth: Floats) -> Run:
        """Return the fields that need the ``truth`` (K,)."""
        table = outcomes(self._audit.journal)
        inside = self._certifier.members(table["question"].to_numpy())
        losses, draw = table["loss"].to_numpy(float), table["draw"].to_numpy()
        raw = [running_means(inside, losses, draw, number) for number in self._draws]
        estimates |= {"LURE": self._lure(inside, losses, draw), "raw mean": _listed(raw)}
        if self._belief.losses is not None:
            estimates["GP plug-in"] = _listed(self._plug_in)
        return {"held": self._holds(), "missed": self._missed, "estimates": estimates}

    def _lure(self, inside: Bools, losses: Floats, draw: Indices) -> list[list[float | None]]:
        """Return the estimates at ``at`` from draws without predictions."""
        bets = [Bet.of(row.moves) for row in self._audit.journal.draws(proposals=False)]
        count = np.array([np.bincount(draw, own, len(bets)) for own in inside.astype(float)])
        sums = np.array([np.bincount(draw, own, len(bets)) for own in inside * losses])
        scale = np.stack([bet.scale for bet in bets], axis=1)
        even = np.stack([bet.uniform for bet in bets], axis=1)
        calls, sizes = self._certifier.first_calls, self._certifier.sizes
        means = lure(sums, count > 0, scale=scale, even=even, calls=calls, sizes=sizes)
        before_any = np.full((len(means), 1), np.nan)
        return _listed(np.hstack([before_any, means])[:, self._draws].T)

    def _holds(self) -> bool:
        """Return whether every interval holds the truth now; True if the truth is not known."""
        if self._truth is None:
            return True
        sequences = self._certifier.sequences
        above = self._truth >= sequences.lower - ROUNDING
        return bool((above & (self._truth <= sequences.upper + ROUNDING)).all())

    def _plugged_in(self) -> Floats:
        """Return the plug-in estimates (K,) of now; NaN without predictions."""
        certifier, predictions = self._certifier, self._belief.predictions
        if predictions is None:
            return np.full(len(certifier.sizes), np.nan)
        inside, f = self._belief.inside, predictions.cpu().numpy()
        return plug_in(certifier.least, certifier.waiting, certifier.sizes, inside, f)


def _listed(rows: Iterable[Floats]) -> list[list[float | None]]:
    """Return rows for JSON, which has no NaN."""
    return [[None if math.isnan(v) else round(v, 6) for v in row.tolist()] for row in rows]
