"""The paper's strategies (b), (c) and (d): weights of 0 and 1.

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019),
section 2.2, equation 4 and Algorithm 1; unpredictability as in Geman et al. (PNAS 2015).

Where the paper is silent: a side of a concept with no candidate left is passed over for
the next most uncertain; all sides equally uncertain are candidates together; where nobody
lies within ``epsilon`` of 1/2, those nearest to it are.
"""

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates

from .base import BeliefView

TIE = 1e-9
"""Uncertainties and probabilities closer than this are equal but for rounding."""

EPSILON = 0.15
"""Half-width of "unpredictable"; the paper names no value, Geman et al. used this one."""


class Unpredictability:
    """(b): candidates whose answer the history leaves open, |p - 1/2| < epsilon."""

    def __init__(self, epsilon: float = EPSILON) -> None:
        self.epsilon = epsilon

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return _open(candidates, belief, self.epsilon).double()


class Uncertainty:
    """(c): the concept and side where the answer GP is most uncertain, any candidate of it."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return _most_uncertain(candidates, belief).double()


class Combined:
    """(d): of the most uncertain side's candidates, those that are unpredictable.

    In an audit that certifies, the same two criteria in their exact form: uncertainty picks
    the targets that are still open, unpredictability the questions whose loss is least
    foreseeable. The law that makes the widest interval shrink fastest has weights
    sqrt(stakes), and sqrt(stakes / cost) where calls differ in cost; see ``Certifier.stakes``.
    """

    def __init__(self, epsilon: float = EPSILON) -> None:
        self.epsilon = epsilon

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        if belief.certifier is not None:
            return _by_variance(candidates, belief)
        side = _most_uncertain(candidates, belief)
        return _open(candidates, belief, self.epsilon, among=side).double()


def _by_variance(candidates: Candidates, belief: BeliefView) -> Tensor:
    """Each call's sqrt(stakes / cost), in equal parts on its questions (n,)."""
    stakes = belief.stakes(candidates)
    if not bool((stakes > 0).any()):  # all that is open lies outside these candidates
        return torch.ones(len(candidates), dtype=torch.float64)
    share = torch.bincount(candidates.unit, minlength=len(stakes))
    return ((stakes / belief.costs(candidates)).sqrt() / share)[candidates.unit]


def _most_uncertain(candidates: Candidates, belief: BeliefView) -> Tensor:
    """Which candidates (n,) are on the most uncertain side that has any (equation 4)."""
    uncertainty = belief.uncertainty().view(-1).index_select(0, candidates.cell)
    return uncertainty >= uncertainty.max() - TIE


def _open(
    candidates: Candidates, belief: BeliefView, epsilon: float, among: Tensor | None = None
) -> Tensor:
    """Which candidates (n,), of those ``among``, have |p - 1/2| < epsilon, or else the nearest."""
    p = belief.predictability.probability(candidates.image, candidates.concept)
    distance = (p - 0.5).abs_()
    if among is not None:
        distance.masked_fill_(~among, torch.inf)
    nearest = float(distance.min())
    return distance < epsilon if nearest < epsilon else distance <= nearest + TIE
