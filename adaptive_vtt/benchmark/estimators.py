"""What else the same draws could have been made into, to see why it should not be done."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ..types import Bools, Floats

TINY = 1e-9
MIN = 30
"""The peeking analyst does not look before a target has so many answers."""


@dataclass(frozen=True)
class Peeking:
    """Where an analyst who looks at normal intervals after every call ends.

    ``calls`` until all are narrow enough (None: not within the run), whether all ``held``
    the truth then, and whether any ``missed`` it at any look of the run.
    """

    calls: int | None
    held: bool | None
    missed: bool


def running_means(inside: Bools, losses: Floats, draw: npt.NDArray[np.int64], at: int) -> Floats:
    """(K,): the plain mean loss of each target's questions among the first ``at`` draws.

    ``inside`` K x n, ``losses`` and ``draw`` (n,) in draw order; NaN before any answer.
    """
    here = int(np.searchsorted(draw, at))
    count = inside[:, :here].sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((inside[:, :here] @ losses[:here]) / count)


def plug_in(
    least: Floats, waiting: Floats, sizes: Floats, inside: Bools, predictions: Floats
) -> Floats:
    """(K,): losses seen, and for the unseen the mean prediction over the candidates.

    NaN for a target that no candidate belongs to and that has unseen questions.
    """
    with np.errstate(invalid="ignore"):
        foreseen = (inside @ predictions) / inside.sum(axis=1)
    rest = np.where(waiting > 0, waiting * foreseen, 0.0)
    return np.asarray((least + rest) / sizes)


def lure(
    losses: Floats, hit: Bools, *, scale: Floats, even: Floats, calls: Floats, sizes: Floats
) -> Floats:
    """(K, T): each target's mean loss by active testing after every of T draws; NaN before any.

    Farquhar, Gal & Rainforth (ICLR 2021), R_LURE: losses weigh 1/q, nothing is predicted. A
    target sees the draws that ``hit`` it (K, T), at their probability given that they do.
    ``losses`` (K, T) are sums over the questions of a draw; ``scale`` and ``even`` are what 1/q
    becomes by the proposal and by an even proposal within the target (Bet's ``scale``,
    ``uniform``); ``calls`` and ``sizes`` (K,) are the target's at the start.
    """
    left = calls[:, None] - np.cumsum(hit, axis=1) + hit  # calls unseen before the draw
    inverse = np.divide(scale * left, even, out=np.zeros_like(scale), where=hit)
    outcome = np.cumsum(losses, axis=1) - losses + inverse * losses
    # what the paper's weights come to; with the last call everything is known
    weight = hit / np.maximum(left * (left - 1), TINY)
    total = np.cumsum(weight, axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.cumsum(weight * outcome, axis=1) / total / sizes[:, None])


def peek(
    inside: Bools,
    losses: Floats,
    draw: npt.NDArray[np.int64],
    *,
    truth: Floats,
    sizes: Floats,
    goal: float,
    alpha: float,
) -> Peeking:
    """Mean +- z sd / sqrt(n) of every target after every call, all K at level ``alpha`` / K."""
    z = NormalDist().inv_cdf(1 - alpha / (2 * len(inside)))
    ends = np.flatnonzero(np.diff(draw, append=draw[-1] + 1))  # after each call
    count, total, squares = (
        np.cumsum(inside * values, axis=1)[:, ends]
        for values in (np.ones_like(losses), losses, losses**2)
    )
    safe = np.maximum(count, 1)
    mean = total / safe
    variance = np.maximum(squares - count * mean**2, 0) / np.maximum(count - 1, 1)
    half = z * np.sqrt(variance / safe)
    looked = count >= np.minimum(MIN, sizes)[:, None]
    half = np.where(count >= sizes[:, None], 0.0, half)  # everything is known
    off = looked & (np.abs(mean - truth[:, None]) > half + 1e-9)
    done = np.flatnonzero((looked & (half <= goal)).all(axis=0))
    missed = bool(off.any())
    if not len(done):
        return Peeking(None, None, missed)
    stop = int(done[0])
    return Peeking(int(draw[ends[stop]]) + 1, not bool(off[:, stop].any()), missed)
