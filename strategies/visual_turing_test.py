"""Strategies (b), (c) and (d) of Concept-centric VTT, with weights of 0 and 1.

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019), section 2.2,
equation 4 and Algorithm 1; unpredictability as in Geman et al. (PNAS 2015).

The paper leaves three cases open. A concept's side without candidates is skipped for the next most
uncertain one. Sides that are equally uncertain are chosen together. If no answer lies within
``epsilon`` of 1/2, the nearest ones are chosen.
"""

from typing import Annotated

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.options import Option

from .base import BeliefView

TIE = 1e-9
"""Largest difference of uncertainties or probabilities that counts as rounding."""

EPSILON = 0.15
"""Half-width of "unpredictable", from Geman et al.; the VTT paper gives no value."""
Epsilon = Annotated[
    float, Option("an answer is unpredictable if P(yes) is nearer to 1/2 than this", ge=0)
]

Reasons = dict[str, float | int]


class Unpredictability:
    """Strategy (b) of the paper: any unpredictable candidate, |p - 1/2| < epsilon."""

    def __init__(self, epsilon: Epsilon = EPSILON) -> None:
        self.epsilon = epsilon

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return self.open(candidates, belief).double()

    def open(
        self, candidates: Candidates, belief: BeliefView, among: Tensor | None = None
    ) -> Tensor:
        """Return which candidates (n,) are unpredictable, or else nearest to 1/2.

        ``among`` (n,): the candidates to choose from; None: all.
        """
        p = belief.predictability.probability(candidates.image, candidates.concept)
        distance = (p - 0.5).abs_()
        if among is not None:
            distance.masked_fill_(~among, torch.inf)
        nearest = float(distance.min())
        return distance < self.epsilon if nearest < self.epsilon else distance <= nearest + TIE

    def reasons(self, candidates: Candidates, belief: BeliefView, place: int) -> Reasons:
        """Return ``predicted_yes``, p of the question."""
        drawn = slice(place, place + 1)
        p = belief.predictability.probability(candidates.image[drawn], candidates.concept[drawn])
        return {"predicted_yes": round(float(p[0]), 6)}


class Uncertainty:
    """Strategy (c) of the paper: any candidate of the most uncertain concept and side."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return self.most(candidates, belief).double()

    def most(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        """Return which candidates (n,) are on the most uncertain side that has any (equation 4)."""
        uncertainty = belief.uncertainty().view(-1).index_select(0, candidates.cell)
        return uncertainty >= uncertainty.max() - TIE

    def reasons(self, candidates: Candidates, belief: BeliefView, place: int) -> Reasons:
        """Return ``uncertainty``, that of the question's side as a share of its prior value."""
        level = belief.uncertainty().view(-1)[candidates.cell[place]]
        return {"uncertainty": round(float(level), 6)}


class Combined:
    """Strategy (d) of the paper, Algorithm 1: the unpredictable ones among (c)'s candidates.

    In an audit that certifies, the engine mixes the weights of any strategy with even exploration,
    so intervals stay valid. ``certify`` is the strategy made for such audits.
    """

    def __init__(self, epsilon: Epsilon = EPSILON) -> None:
        self.epsilon = epsilon
        self._unpredictability, self._uncertainty = Unpredictability(epsilon), Uncertainty()

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        most_uncertain = self._uncertainty.most(candidates, belief)
        return self._unpredictability.open(candidates, belief, most_uncertain).double()

    def reasons(self, candidates: Candidates, belief: BeliefView, place: int) -> Reasons:
        """Return the reasons of (b) and of (c)."""
        reasons = self._uncertainty.reasons(candidates, belief, place)
        return reasons | self._unpredictability.reasons(candidates, belief, place)
