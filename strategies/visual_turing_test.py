"""The paper's strategies (b), (c) and (d): weights of 0 and 1.

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019),
section 2.2, equation 4 and Algorithm 1; unpredictability as in Geman et al. (PNAS 2015).

Where the paper is silent: a side of a concept with no candidate left is passed over for
the next most uncertain; all sides equally uncertain are candidates together; where nobody
lies within ``epsilon`` of 1/2, those nearest to it are.
"""

from typing import Annotated

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.options import Option

from .base import BeliefView

TIE = 1e-9
"""Uncertainties and probabilities closer than this are equal but for rounding."""

EPSILON = 0.15
"""Half-width of "unpredictable"; the paper names no value, Geman et al. used this one."""
Epsilon = Annotated[
    float, Option("an answer is left open where P(yes) is nearer to 1/2 than this", ge=0)
]


Reasons = dict[str, float | int]


class Unpredictability:
    """(b) of the paper: any candidate whose answer the history leaves open, |p - 1/2| < epsilon."""

    def __init__(self, epsilon: Epsilon = EPSILON) -> None:
        self.epsilon = epsilon

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return self.open(candidates, belief).double()

    def open(
        self, candidates: Candidates, belief: BeliefView, among: Tensor | None = None
    ) -> Tensor:
        """Which candidates (n,), of those ``among``, are open, or else the nearest to 1/2."""
        p = belief.predictability.probability(candidates.image, candidates.concept)
        distance = (p - 0.5).abs_()
        if among is not None:
            distance.masked_fill_(~among, torch.inf)
        nearest = float(distance.min())
        return distance < self.epsilon if nearest < self.epsilon else distance <= nearest + TIE

    def reasons(self, candidates: Candidates, belief: BeliefView, place: int) -> Reasons:
        """``predicted_yes``: p of the question's image and concept."""
        here = slice(place, place + 1)
        p = belief.predictability.probability(candidates.image[here], candidates.concept[here])
        return {"predicted_yes": round(float(p[0]), 6)}


class Uncertainty:
    """(c) of the paper: any candidate of the concept and side whose answer GP is most uncertain."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return self.most(candidates, belief).double()

    def most(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        """Which candidates (n,) are on the most uncertain side that has any (equation 4)."""
        uncertainty = belief.uncertainty().view(-1).index_select(0, candidates.cell)
        return uncertainty >= uncertainty.max() - TIE

    def reasons(self, candidates: Candidates, belief: BeliefView, place: int) -> Reasons:
        """``uncertainty`` of the question's side, as a share of its prior."""
        level = belief.uncertainty().view(-1)[candidates.cell[place]]
        return {"uncertainty": round(float(level), 6)}


class Combined:
    """(d) of the paper, its Algorithm 1: of (c)'s candidates, those that (b) would take.

    In an audit that certifies the engine mixes these weights with even exploration, as any
    strategy's, which keeps the intervals valid. ``certify`` is the strategy made for that.
    """

    def __init__(self, epsilon: Epsilon = EPSILON) -> None:
        self.epsilon = epsilon
        self._b, self._c = Unpredictability(epsilon), Uncertainty()

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return self._b.open(candidates, belief, self._c.most(candidates, belief)).double()

    def reasons(self, candidates: Candidates, belief: BeliefView, place: int) -> Reasons:
        """Those of (b) and of (c)."""
        reasons = self._c.reasons(candidates, belief, place)
        return reasons | self._b.reasons(candidates, belief, place)
