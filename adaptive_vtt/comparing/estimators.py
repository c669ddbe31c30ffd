"""What else the same draws could have been made into, to see why it should not be done."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LEAST = 30
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
    looked = count >= np.minimum(LEAST, sizes)[:, None]
    half = np.where(count >= sizes[:, None], 0.0, half)  # everything is known
    off = looked & (np.abs(mean - truth[:, None]) > half + 1e-9)
    done = np.flatnonzero((looked & (half <= goal)).all(axis=0))
    missed = bool(off.any())
    if not len(done):
        return Peeking(None, None, missed)
    stop = int(done[0])
    return Peeking(int(draw[ends[stop]]) + 1, not bool(off[:, stop].any()), missed)
