"""One-step look-ahead: the questions with the largest expected fall of uncertainty.

Concept-centric VTT (Fountoukidou & Sznitman, MICCAI 2019, equation 4) asks where the answer GPs are
most uncertain now. This strategy asks where an answer will reduce that most.

Sources: Cohn, Ghahramani & Jordan, Active Learning with Statistical Models (JAIR 4, 1996); MacKay,
Information-Based Objective Functions (Neural Computation 4, 1992).

Let U be the sum of u- and u+ over the concepts. A question on side s of concept c is worth

    E[U - U'] = sum over bins b of p(b | c, s) * (fall of u_c with an answer in b)

``AnswerGP.reductions`` computes the fall exactly, for all bins at once. It is 0 in bins that were
hit before. So a side whose answers repeat is not asked about, even if it is still uncertain. The
prediction p follows from the answers n_cs (51 counts) so far:

    p(. | c, s) = (K n_cs + pool * p(. | s) + prior / 51) / (sum(n_cs) + pool + prior)

It is the mean of a Dirichlet distribution. p(. | s) is the same formula for all concepts together
(pool = 0), and K is a Gaussian kernel normalised within the side. With ``variant_weight`` > 0 each
variant's answers are counted separately, and p(. | c, s) counts as that many pseudo-answers.

Where one call asks about all concepts, its worth is the sum over its questions. That is exact,
because every concept has another GP. All calls within TIE of the best have the same weight.
"""

from functools import lru_cache
from typing import Annotated

import torch
from torch import Tensor

from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.options import Option

from .base import BeliefView
from .common import per_call, per_question

TIE = 1e-9
"""Largest difference of expected falls that counts as rounding."""


class ExpectedReduction:
    """Calls that are expected to reduce the answer GPs' total uncertainty most.

    By default the kernel's standard deviation is half the answer GP's lengthscale.
    """

    def __init__(
        self,
        prior: Annotated[
            float, Option("pseudo-answers spread evenly over a side's bins", ge=0)
        ] = 2.0,
        pool: Annotated[
            float, Option("pseudo-answers that all concepts' answers on that side count for", ge=0)
        ] = 1.0,
        smoothing: Annotated[
            float,
            Option(
                "standard deviation of the smoothing kernel, in units of the answer coordinate; "
                "0: none",
                ge=0,
            ),
        ] = 0.05,
        variant_weight: Annotated[
            float,
            Option(
                "pseudo-answers that shrink each variant's prediction to that of all variants; 0 "
                "treats variants alike",
                ge=0,
            ),
        ] = 0.0,
    ) -> None:
        self.prior = prior
        self.pool = pool
        self.smoothing = smoothing
        self.variant_weight = variant_weight

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        value = self.expected(belief)
        variant = candidates.variant if value.shape[2] > 1 else torch.zeros_like(candidates.variant)
        worth = per_call(candidates, value[candidates.concept, candidates.truth, variant])
        return per_question(candidates, (worth >= worth.max() - TIE).double())

    def expected(self, belief: BeliefView) -> Tensor:
        """Return E[U - U'] of a question, C x 2 x V; V is 1 unless variants are separate."""
        fall = belief.answers.reductions().cpu()
        half = belief.received.shape[-1]
        # bins of the side of No, then of Yes; both contain the middle one
        sides = torch.stack([fall[:, :half], fall[:, half - 1 :]], 1)
        return (self.predicted(belief) * sides[:, :, None]).sum(-1)

    def predicted(self, belief: BeliefView) -> Tensor:
        """Return p(bin) of the next answer within its side's half, C x 2 x V x 51."""
        by_variant = torch.from_numpy(belief.received)
        kernel = _kernel(by_variant.shape[-1], self.smoothing)
        received = by_variant.sum(2).double() @ kernel
        pooled = self._mean(received.sum(0), None)
        side = self._mean(received, pooled)[:, :, None]
        if not self.variant_weight or by_variant.shape[2] == 1:
            return side
        own = by_variant.double() @ kernel
        weight = self.variant_weight
        return (own + weight * side) / (own.sum(-1, keepdim=True) + weight)

    def _mean(self, received: Tensor, pooled: Tensor | None) -> Tensor:
        bins = received.shape[-1]
        total = received + self.prior / bins
        if pooled is not None:
            total = total + self.pool * pooled
        return total / total.sum(-1, keepdim=True)


@lru_cache(maxsize=8)
def _kernel(bins: int, smoothing: float) -> Tensor:
    """Return how an answer in each bin is spread over its side, bins x bins; rows sum to 1."""
    if smoothing == 0:
        return torch.eye(bins, dtype=torch.float64)
    place = torch.linspace(0, 0.5, bins, dtype=torch.float64)
    kernel = torch.exp(-0.5 * ((place[:, None] - place) / smoothing) ** 2)
    return kernel / kernel.sum(1, keepdim=True)
