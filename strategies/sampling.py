"""Classical designs: uniform, stratified, Neyman's allocation, and LURE.

``random``: equal weights, strategy (a) of Concept-centric VTT.

``stratified``: draws allocated to strata by size and standard deviation, evenly within. Sources:
Neyman, On the Two Different Aspects of the Representative Method (Journal of the Royal Statistical
Society 97, 1934); Cochran, Sampling Techniques (3rd ed., 1977), chapter 5. Stratum h, with N_h
candidates and standard deviation S_h, gets this share of the next draws:

    N_h S_h / sum over g of N_g S_g        S_h = sqrt(p_h (1 - p_h))

p_h is the mean loss so far in h after Laplace, (losses + 1) / (answers + 2). Before any answer all
S_h are equal, which is proportional allocation. Strata are relation x severity. Where a call asks
one question, they are also divided by concept x truth. Losses are not predicted.

Textbooks fix the number of draws of each stratum. Here each draw picks its stratum at random, since
every draw must be unbiased for all targets. So proportional allocation is uniform sampling, and
only unequal standard deviations save draws.

``neyman``: the same rule with predicted losses. The standard deviation of a 0/1 loss of mean f is
sqrt(f (1 - f)), per question or as one value per stratum (variant x concept side).

``lure``: draws in proportion to the expected loss. Sources: Farquhar, Gal & Rainforth, On
Statistical Bias in Active Learning (ICLR 2021); Kossen, Farquhar, Gal & Rainforth, Active Testing
(ICML 2021), equation 8. With known losses, this minimises the variance of an estimate that weights
losses by 1/q and subtracts no prediction. With predicted 0/1 losses, E[loss^2] = f, so sqrt(f)
would be best for such an estimate; the papers use f for accuracy. Certificates here do subtract
predictions, and for those ``neyman`` is closer to the best proposal.
"""

from typing import Annotated

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates, Floats
from adaptive_vtt.utils.options import Option

from .base import BeliefView
from .common import expected_losses, once_per_call, per_call, per_question, sharpened


class Random:
    """Uniform weights; an audit still predicts losses, and draws open targets more often.

    This is strategy (a) of the paper. Predictions, and the half of exploration that goes to open
    targets, belong to audits that certify.
    """

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return torch.ones(len(candidates), dtype=torch.float64)


class Everything(Random):
    """Every question once, in order, which gives exact rates (``avtt census``).

    An audit with this strategy uses no weights.
    """


class Stratified:
    """Relation x severity (x concept side) by the spread of their past losses, evenly within."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        received, wrong = belief.tally[..., 0], belief.tally[..., 1]
        if len(candidates.call) == len(candidates):
            return _spread(received, wrong)[
                candidates.concept, candidates.truth, candidates.variant
            ]
        spread = _spread(received.sum(axis=(0, 1)), wrong.sum(axis=(0, 1)))
        return once_per_call(candidates, spread[candidates.variant])


def _spread(received: Floats, wrong: Floats) -> Tensor:
    """Return the standard deviation of a 0/1 loss in each stratum, in the shape of the counts."""
    p = torch.from_numpy((wrong + 1) / (received + 2)).double()
    return (p * (1 - p)).sqrt()


class Neyman:
    """Calls in proportion to the predicted standard deviation of the loss, sqrt(f (1 - f)).

    For a call with several questions it is sqrt(sum of f (1 - f)). Without a question GP, f is the
    mean of a question's targets.
    """

    def __init__(
        self,
        stratified: Annotated[
            bool,
            Option(
                "give each question the mean of f (1 - f) over those of its relation, severity, "
                "concept and truth"
            ),
        ] = False,
    ) -> None:
        self.stratified = bool(stratified)

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        f = expected_losses(candidates, belief, "neyman").clamp(0, 1)
        variance = f * (1 - f)
        if self.stratified:
            cells = int(candidates.cell.max()) + 1
            keys = candidates.variant * cells + candidates.cell
            _, stratum = torch.unique(keys, return_inverse=True)
            variance = (torch.bincount(stratum, variance) / torch.bincount(stratum))[stratum]
        return per_question(candidates, sharpened(per_call(candidates, variance), 0.5))


class Lure:
    """Calls in proportion to the expected loss, the sum of f over a call's questions."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        f = expected_losses(candidates, belief, "lure").clamp(0, 1)
        return sharpened(f, 1.0)
