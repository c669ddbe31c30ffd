"""The split of alpha, the probability that something certified is wrong.

It is split among targets, and within a target between the two ends of its interval. Both are fixed
before the first bet. ``Rules`` keeps them, and makes each target's alpha of them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, unknown
from ..families import TargetId
from ..population import Population
from ..types import CallMode, Floats
from .targets import Target, calls, largest

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts

MIN_SHARE = 0.1
"""Part of alpha that is spread evenly over all targets."""

THETA, RARE = 0.25, 0.25
"""``THETA`` is the weight of bets on larger rates where the predicted mean loss is below ``RARE``.

It leaves 3/4 of alpha for the upper end of the interval, which is the last to come near a small
rate. For rates nearer to 1/2 both ends decide, and 1/4 for one end costs more calls than 3/4 for
the other saves (``experiments.engine.bets``)."""


def alpha_shares(
    space: Population,
    targets: Sequence[Target],
    answers: CallMode,
    weights: Mapping[str, float] | None,
    begun: "CertificateFacts | None",
    *,
    even: bool,
) -> tuple[float, ...] | None:
    """Return every target's share of alpha (K,), where all intervals hold at once; None: even.

    Args:
        space: All questions.
        targets: The K targets that an audit begins with.
        answers: "one" where a call is one question, "all" where it is one image.
        weights: The user's, as in ``by_weight``. None: as journaled, or by the targets' sizes.
        begun: The certificate of the journal that is resumed; None: a new audit.
        even: True if shares are even in a new audit without weights.
    """
    if len(targets) == 1:
        return None
    if weights:
        return by_weight(weights, [target.id for target in targets])
    if begun is not None:
        return begun.weights
    if even:
        return None
    return by_size(
        np.array([calls(space, t, answers) for t in targets], float),
        np.array([largest(space, t, answers) for t in targets], float),
        space.size if answers == "one" else len(space.dataset) * len(space.variants),
    )


def by_weight(weights: Mapping[str, float], targets: Sequence[TargetId]) -> tuple[float, ...]:
    """Return shares of alpha (K,) by the user's weights, in the targets' order; they sum to 1.

    Args:
        weights: Name or handle of a target -> its weight, 0 or more; 1 for all others.
        targets: The targets.

    Raises:
        InputError: A target is unknown, a weight is no number of 0 or more, or all are 0.
    """
    chosen = [1.0] * len(targets)
    for name, weight in weights.items():
        places = [k for k, target in enumerate(targets) if target.is_named(name)]
        if not places:
            raise unknown("target", name, [target.name for target in targets], "weights")
        if not 0 <= weight < float("inf"):
            raise InputError(f"weights: {name!r}: expected a number of 0 or more, got {weight}")
        for place in places:
            chosen[place] = float(weight)
    if sum(chosen) <= 0:
        raise InputError("weights: expected at least one target with a weight above 0, got none")
    return tuple(weight / sum(chosen) for weight in chosen)


def by_size(calls: Floats, largest: Floats, total: int) -> tuple[float, ...]:
    """Return shares of alpha (K,) by the targets' numbers of calls; they sum to 1.

    Where calls serve several targets, an audit waits longest for a target that few calls touch.
    One that most calls touch is done early with any share. A call with many questions of a target
    varies less per question, but not as little as if they were independent: hence the root. Every
    target gets at least a tenth of an even share. Shares are even where no call need touch two
    targets.

    Args:
        calls: (K,) calls that touch each target.
        largest: (K,) the most questions of a target that one call asks.
        total: Calls in all.
    """
    need = (1 - calls / total) ** 2 / np.sqrt(largest)
    if calls.sum() <= total or not need.any():
        need = np.ones_like(need)
    share = (1 - MIN_SHARE) * need / need.sum() + MIN_SHARE / len(need)
    return tuple((share / share.sum()).tolist())


def theta_for(means: Floats) -> tuple[float, ...]:
    """Return ``Rules.theta`` from the predicted mean losses (K,), NaN where nothing is known."""
    rare, frequent = means < RARE, means > 1 - RARE
    return tuple(np.select([rare, frequent], [THETA, 1 - THETA], 0.5).tolist())
