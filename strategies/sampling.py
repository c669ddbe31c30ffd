"""Classical designs: uniform, stratified, Neyman's allocation, and LURE.

``random``: every candidate alike, strategy (a) of Concept-centric VTT.

``stratified``: draws shared out among strata by size and spread, evenly within. Neyman, On the Two
Different Aspects of the Representative Method (Journal of the Royal Statistical Society 97, 1934);
Cochran, Sampling Techniques (3rd ed., 1977), chapter 5. Of the next draws stratum h, with N_h
candidates and standard deviation S_h, gets the share

    N_h S_h / sum over g of N_g S_g        S_h = sqrt(p_h (1 - p_h))

p_h is the mean loss so far in h, after Laplace: (losses + 1) / (answers + 2). Before
any answer all S_h are alike, which is proportional allocation. Strata are relation x severity,
and, where one question is asked per call, concept x truth too. There is no model of the losses.

Textbooks fix how many draws each stratum gets; here each draw picks its stratum at random, as it
must be an unbiased look at all targets. So proportional allocation is plain uniform sampling, and
only unequal spreads bring a gain.

``neyman``: as Neyman has it, by what is predicted of the loss. A stratum's share of the draws goes
with the standard deviation of the loss in it; for a 0/1 loss of mean f that is sqrt(f (1 - f)).
Taken per question, or with one value for each stratum (variant x concept side).

``lure``: Farquhar, Gal & Rainforth, On Statistical Bias in Active Learning (ICLR 2021), and
Kossen, Farquhar, Gal & Rainforth, Active Testing (ICML 2021), equation 8: draw in proportion
to the expected loss. That minimises the variance of an estimate that weighs losses by 1/q
and subtracts no prediction, where the losses are known. For a 0/1 loss that is only
foreseen, E[loss^2] = f, so sqrt(f) would be best for such an estimate; f is what the papers
use for accuracy. Certificates here do subtract predictions; for those ``neyman`` is nearer to
the best proposal.
"""

from typing import Annotated

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates, Floats
from adaptive_vtt.utils.options import Option

from .base import BeliefView
from .common import expected_losses, once_per_call, per_call, per_question, sharpened


class Random:
    """Uniform weights; the audit predicts, and draws open targets more often; (a) of the paper.

    Predictions, and the half of exploration that goes to open targets, are the audit's. Without
    certificates there are none.
    """

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        return torch.ones(len(candidates), dtype=torch.float64)


class Everything(Random):
    """Every question once, in order: nothing is drawn, rates are exact (``avtt census``).

    Where it is the strategy of an audit, the audit asks for no weights.
    """


class Stratified:
    """Relation x severity (x concept side) by the spread of their losses so far, evenly within."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        received, wrong = belief.tally[..., 0], belief.tally[..., 1]
        if len(candidates.call) == len(candidates):
            return _spread(received, wrong)[
                candidates.concept, candidates.truth, candidates.variant
            ]
        spread = _spread(received.sum(axis=(0, 1)), wrong.sum(axis=(0, 1)))
        return once_per_call(candidates, spread[candidates.variant])


def _spread(received: Floats, wrong: Floats) -> Tensor:
    """The standard deviation of a 0/1 loss in each stratum; the counts' shape."""
    p = torch.from_numpy((wrong + 1) / (received + 2)).double()
    return (p * (1 - p)).sqrt()


class Neyman:
    """In proportion to the predicted standard deviation of the loss, sqrt(f (1 - f)).

    For a call that answers several questions, sqrt(sum of f (1 - f)).

    f comes from the question GP, or is the mean of a question's targets where there is none.
    """

    def __init__(
        self,
        stratified: Annotated[
            bool,
            Option(
                "every question gets the mean of f (1 - f) over all of its relation, severity, "
                "concept and truth"
            ),
        ] = False,
    ) -> None:
        self.stratified = bool(stratified)

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        f = expected_losses(candidates, belief, "neyman").clamp(0, 1)
        variance = f * (1 - f)
        if self.stratified:
            variance = _stratum_means(candidates, variance)
        return per_question(candidates, sharpened(per_call(candidates, variance), 0.5))


class Lure:
    """In proportion to the expected loss f, of a call the sum of its questions'."""

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        f = expected_losses(candidates, belief, "lure").clamp(0, 1)
        return sharpened(f, 1.0)


def _stratum_means(candidates: Candidates, values: Tensor) -> Tensor:
    """(n,): the mean of ``values`` over the candidates of the same variant and concept side."""
    cells = int(candidates.cell.max()) + 1
    _, stratum = torch.unique(candidates.variant * cells + candidates.cell, return_inverse=True)
    total = torch.bincount(stratum, values)
    return (total / torch.bincount(stratum))[stratum]
