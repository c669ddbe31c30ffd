"""Other estimators of the mean loss from an audit's draws, to compare with the certified one.

None of them comes with a guarantee: the plain mean, the plug-in estimate and active testing's.
"""

import numpy as np

from ..types import Bools, Floats, Indices

TINY = 1e-9
"""Least divisor, so that 0 / 0 stays 0."""


def running_means(inside: Bools, losses: Floats, draw: Indices, at: int) -> Floats:
    """Return the plain mean loss (K,) of each target's questions among the first draws.

    Args:
        inside: (K, n), the questions of each target.
        losses: (n,) losses in draw order.
        draw: (n,) draw numbers, ascending.
        at: Number of draws.

    Returns:
        Means, NaN before any answer.
    """
    here = int(np.searchsorted(draw, at))
    count = inside[:, :here].sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((inside[:, :here] @ losses[:here]) / count)


def plug_in(
    least: Floats, waiting: Floats, sizes: Floats, inside: Bools, predictions: Floats
) -> Floats:
    """Return estimates (K,) from the losses seen and, for unseen questions, the mean prediction.

    The mean is over the candidates. A target with unseen questions and no candidate is NaN.
    """
    with np.errstate(invalid="ignore"):
        predicted = (inside @ predictions) / inside.sum(axis=1)
    unseen = np.where(waiting > 0, waiting * predicted, 0.0)
    return np.asarray((least + unseen) / sizes)


def lure(
    losses: Floats, hit: Bools, *, scale: Floats, even: Floats, calls: Floats, sizes: Floats
) -> Floats:
    """Return the mean loss (K, T) of each target by active testing after each of T draws.

    This is R_LURE of Farquhar, Gal & Rainforth (ICLR 2021): losses weigh 1/q, and nothing is
    predicted. A target sees the draws that hit it, at their probability given that they do.

    Args:
        losses: (K, T), sums over the questions of a draw.
        hit: (K, T), True for draws that hit a target.
        scale: 1/q by the proposal within the target, Bet's ``scale``.
        even: 1/q by a uniform proposal within the target, Bet's ``uniform``.
        calls: (K,), number of calls of each target at the start.
        sizes: (K,), number of its questions at the start.

    Returns:
        Estimates, NaN before any draw.
    """
    left = calls[:, None] - np.cumsum(hit, axis=1) + hit  # calls unseen before the draw
    inverse = np.divide(scale * left, even, out=np.zeros_like(scale), where=hit)
    outcome = np.cumsum(losses, axis=1) - losses + inverse * losses
    # the paper's weights; with the last call everything is known
    weight = hit / np.maximum(left * (left - 1), TINY)
    total = np.cumsum(weight, axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.cumsum(weight * outcome, axis=1) / total / sizes[:, None])
