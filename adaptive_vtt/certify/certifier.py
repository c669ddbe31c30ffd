"""Pseudo-outcomes: from a draw, its law and its losses to one unbiased number per target.

A target is N questions whose losses are fixed; R is their mean. Before draw t the past
fixes M, how many calls are unseen; S, the sum of the target's losses seen; |U|, its
questions unseen; and c, a constant. Then m candidate calls are drawn uniformly from the M;
predictions f and a law q > 0 over the candidates are chosen, freely; one call I is drawn
from q. With n, F and L the number, predicted and true losses of the target's questions
within a call,

    N a = S + |U| c + (M/m) ( sum over candidates of (F - n c)  +  (L_I - F_I) / q(I) )

has E[a | past] = R, whatever c, f and q are: the mean over I turns the bracket into the sum
of (L - n c) over the candidates, and the mean over the candidates turns that into the sum
over U. Every draw moves every target; a call outside a target has n = F = L = 0 there.
(Conditioning on the draw falling into the target would not be exact where candidates are
a random subset: the law's mass on a target and the target's mean among the candidates go
together.)

Bets must not depend on the candidates either, so what bounds a is taken from earlier
draws. Where a draw would pass those bounds, its c and f are shrunk: towards 0 for a+,
which bets upwards, and towards 1 for a-. At 0, N a+ is at least S; at 1, N a- is at most
S + |U|: there they cannot pass. Unanswered losses count as 0 in a+ and as 1 in a- where
the policy is "both".
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..datasets.base import Indices
from ..space import QuestionSpace
from .sequences import Sequences
from .targets import Target, member, size

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CLIP = 0.02
"""Predictions stay within [CLIP, 1 - CLIP]."""
ROOM = 1.25
"""A draw may reach this much further than the furthest of late."""
FADE = 0.9
"""The furthest reach is forgotten at this rate per draw."""
FIRST_REACH = 2.0
"""How far the first draw may reach, as a share of |U|."""


@dataclass(frozen=True)
class Move:
    """What a draw fixes for K targets before its call is sent; arrays are (K,).

    ``unseen`` is |U|. ``low_base`` and ``high_base`` are N a - S for a+ and a- without the
    last term, ``low_predicted`` and ``high_predicted`` are F_I, ``scale`` is M / (m q(I)).
    ``lo`` <= N a+ - S and N a- - S <= ``hi``; ``foreseen`` is the likely variance of N a.
    """

    unseen: Floats
    low_base: Floats
    high_base: Floats
    low_predicted: Floats
    high_predicted: Floats
    scale: float
    lo: Floats
    hi: Floats
    foreseen: Floats


class Certifier:
    """Keeps S, U and the confidence sequence of every target.

    ``half_width`` is what is aimed at; with probability ``confidence`` all intervals hold
    at all times.
    """

    def __init__(
        self, space: QuestionSpace, targets: list[Target], *, half_width: float, confidence: float
    ) -> None:
        count = len(targets)
        self.space = space
        self.targets = targets
        self.half_width = half_width
        self.sizes = np.array([size(space, t) for t in targets], float)
        self.sequences = Sequences(np.full(count, half_width), (1 - confidence) / count)
        self.unseen = self.sizes.copy()  # by what was drawn; answers may be on their way
        self.waiting = self.sizes.copy()  # by what was answered
        self.least = np.zeros(count)  # S, unanswered losses as 0
        self.most = np.zeros(count)  # S, unanswered losses as 1
        self._reach_down = np.full(count, FIRST_REACH)
        self._reach_up = np.full(count, FIRST_REACH)
        self._foreseen: Floats | None = None

    @property
    def certified(self) -> Bools:
        """(K,): whether each interval is as narrow as asked."""
        return self.sequences.half_width <= self.half_width

    def members(self, questions: Indices) -> Bools:
        """K x n: which targets each question belongs to."""
        sample, variant, concept = self.space.parts(questions)
        truth = self.space.dataset.truth(sample, concept)
        return member(self.space, self.targets, sample, variant, concept, truth)

    def foresee(
        self,
        inside: Bools,
        unit: Indices,
        predictions: Floats | None,
        law: Floats,
        drawn: int,
        population: int,
    ) -> Move:
        """What the draw of the call at place ``drawn`` of ``law`` fixes.

        ``inside`` K x n: membership of the n candidate questions; ``unit`` (n,): the place
        0..m-1 of each one's call; ``predictions`` (n,) of their losses, or None for c;
        ``law`` (m,); ``population`` M.
        """
        ratio = population / len(law)
        constant = np.clip(np.nan_to_num(self.sequences.estimate, nan=0.5), CLIP, 1 - CLIP)
        count = per_unit(inside, unit, len(law))
        if predictions is None:
            predicted = count * constant[:, None]
        else:
            predicted = per_unit(inside * np.clip(predictions, CLIP, 1 - CLIP), unit, len(law))
        low = _Side(self.unseen, constant, count, predicted, law, ratio)
        high = _Side(self.unseen, 1 - constant, count, count - predicted, law, ratio)
        shrink_low = low.shrink(self._reach_down)
        shrink_high = high.shrink(self._reach_up)
        foreseen = self._foreseen
        if foreseen is None:  # a fair coin per question, drawn uniformly
            foreseen = 0.25 * self.sizes * population
        move = Move(
            unseen=self.unseen.copy(),
            low_base=shrink_low * low.base,
            high_base=self.unseen - shrink_high * high.base,
            low_predicted=shrink_low * predicted[:, drawn],
            high_predicted=count[:, drawn] - shrink_high * (count - predicted)[:, drawn],
            scale=ratio / float(law[drawn]),
            lo=-self._reach_down * self.unseen,
            hi=(1 + self._reach_up) * self.unseen,
            foreseen=foreseen,
        )
        self._reach_down = np.maximum(FADE * self._reach_down, ROOM * low.reach)
        self._reach_up = np.maximum(FADE * self._reach_up, ROOM * high.reach)
        likely = predicted * (1 - predicted / np.maximum(count, 1))
        self._foreseen = ratio**2 * (likely / law).sum(axis=1)
        self.unseen -= count[:, drawn]
        return move

    def learn(self, move: Move, inside: Bools, least: Floats, most: Floats) -> None:
        """The losses of the draw's questions: ``inside`` K x n, ``least`` and ``most`` (n,).

        The two differ where a question is unanswered and the policy is "both". Draws must
        be learnt from in the order of their moves.
        """
        low, high = inside @ least, inside @ most
        a_low = self.least + move.low_base + move.scale * (low - move.low_predicted)
        a_high = self.most + move.high_base + move.scale * (high - move.high_predicted)
        self.sequences.move(
            a_low / self.sizes,
            a_high / self.sizes,
            (self.least + move.lo) / self.sizes,
            (self.most + move.hi) / self.sizes,
            move.foreseen / self.sizes**2,
        )
        self.least += low
        self.most += high
        self.waiting -= inside.sum(axis=1)
        self.sequences.bound(self.least / self.sizes, (self.most + self.waiting) / self.sizes)


class _Side:
    """N a - S of one side, before shrinking: its base, and how far below 0 it may reach.

    The other side is the same for the losses 1 - l.
    """

    def __init__(
        self, unseen: Floats, constant: Floats, count: Floats, predicted: Floats, law: Floats,
        ratio: float,
    ) -> None:  # fmt: skip
        drift = predicted.sum(axis=1) - constant * count.sum(axis=1)
        self.base = unseen * constant + ratio * drift
        lowest = self.base - ratio * (predicted / law).max(axis=1)
        self.reach = np.maximum(-lowest, 0) / np.maximum(unseen, 1)

    def shrink(self, allowed: Floats) -> Floats:
        """(K,): what to multiply c and f by so that the reach is at most ``allowed``."""
        return np.minimum(1.0, allowed / np.maximum(self.reach, 1e-300))


def per_unit(values: npt.NDArray[np.generic], unit: Indices, units: int) -> Floats:
    """K x m: the sums of K x n values over the questions of each call."""
    if len(unit) == units:  # one question per call, in order
        return values.astype(float)
    sums = np.zeros((len(values), units))
    np.add.at(sums, (slice(None), unit), values)
    return sums
