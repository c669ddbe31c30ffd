"""The paper's strategies (b), (c) and (d): weights of 0 and 1.

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019),
section 2.2, equation 4 and Algorithm 1; unpredictability as in Geman et al. (PNAS 2015).

Where the paper is silent: a side of a concept with no candidate left is passed over for
the next most uncertain; all sides equally uncertain are candidates together; where nobody
lies within ``epsilon`` of 1/2, those nearest to it are.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from adaptive_vtt.belief import Belief
    from adaptive_vtt.pool import Candidates

TIE = 1e-9
"""Uncertainties and probabilities closer than this are equal but for rounding."""

EPSILON = 0.15
"""Half-width of "unpredictable"; the paper names no value, Geman et al. used this one."""


class Unpredictability:
    """(b): candidates whose answer the history leaves open, |p - 1/2| < epsilon."""

    def __init__(self, epsilon: float = EPSILON) -> None:
        self.epsilon = epsilon

    def weights(self, candidates: "Candidates", belief: "Belief") -> Tensor:
        everything = torch.arange(len(candidates))
        return _ones_at(_unpredictable(everything, candidates, belief, self.epsilon), candidates)


class Uncertainty:
    """(c): the concept and side where the answer GP is most uncertain, any candidate of it."""

    def weights(self, candidates: "Candidates", belief: "Belief") -> Tensor:
        return _ones_at(_most_uncertain(candidates, belief), candidates)


class Combined:
    """(d): of the most uncertain side's candidates, those that are unpredictable."""

    def __init__(self, epsilon: float = EPSILON) -> None:
        self.epsilon = epsilon

    def weights(self, candidates: "Candidates", belief: "Belief") -> Tensor:
        side = _most_uncertain(candidates, belief)
        return _ones_at(_unpredictable(side, candidates, belief, self.epsilon), candidates)


def _most_uncertain(candidates: "Candidates", belief: "Belief") -> Tensor:
    """Places of the candidates on the most uncertain side that has any (equation 4)."""
    uncertainty = belief.uncertainty().view(-1)[candidates.cell]
    return (uncertainty >= uncertainty.max() - TIE).nonzero().squeeze(1)


def _unpredictable(
    places: Tensor, candidates: "Candidates", belief: "Belief", epsilon: float
) -> Tensor:
    """Those of ``places`` with |p - 1/2| < epsilon, or else the nearest to 1/2."""
    image, concept = candidates.image[places], candidates.concept[places]
    distance = (belief.predictability.probability(image, concept) - 0.5).abs()
    within = distance < epsilon
    if not within.any():
        within = distance <= distance.min() + TIE
    return places[within]


def _ones_at(places: Tensor, candidates: "Candidates") -> Tensor:
    weights = torch.zeros(len(candidates), dtype=torch.float64)
    weights[places] = 1.0
    return weights
