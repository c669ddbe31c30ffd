"""Stratified sampling: draws shared out among strata by size and spread, evenly within.

Source: Neyman, On the Two Different Aspects of the Representative Method (Journal of the Royal
Statistical Society 97, 1934); Cochran, Sampling Techniques (3rd ed., 1977), chapter 5. Of the
next draws stratum h, with N_h candidates and standard deviation S_h, gets the share

    N_h S_h / sum over g of N_g S_g        S_h = sqrt(p_h (1 - p_h))

p_h is the mean loss so far in h, after Laplace: (losses + 1) / (heard + 2). Before
any answer all S_h are alike, which is proportional allocation. Strata are relation x severity,
and, where one question is asked per call, concept x truth too. There is no model of the losses.

Textbooks fix how many draws each stratum gets; here every draw is shared out at random, as each
must be an unbiased look at all targets. So proportional allocation is plain uniform sampling,
and what can be gained is what unequal spreads give.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from adaptive_vtt.types import Candidates

from .base import BeliefView
from .common import once_per_call

Counts = npt.NDArray[np.float64]


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


def _spread(received: Counts, wrong: Counts) -> Tensor:
    """The standard deviation of a 0/1 loss in each stratum; the counts' shape."""
    p = torch.from_numpy((wrong + 1) / (received + 2)).double()
    return (p * (1 - p)).sqrt()
