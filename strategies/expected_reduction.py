"""Looking one answer ahead: the question that will probably take away most uncertainty.

Concept-centric VTT (Fountoukidou & Sznitman, MICCAI 2019, equation 4) asks where the
answer GPs are most uncertain now; this asks where they will be least uncertain afterwards,
as in Cohn, Ghahramani & Jordan, Active Learning with Statistical Models (JAIR 4, 1996), and
MacKay, Information-Based Objective Functions (Neural Computation 4, 1992). With U the sum of
u- and u+ over the concepts, a question on side s of concept c is worth

    E[U - U'] = sum over bins b of p(b | c, s) * (fall of u_c with an answer in b)

The fall is exact, for all bins at once (``AnswerGP.reductions``); it is 0 in bins that were
hit already, so a side whose answers keep falling where others fell is left alone, however
uncertain it still is. What is predicted is p, from the answers n_cs (51 counts) so far,

    p(. | c, s) = (K n_cs + pool * p(. | s) + prior / 51) / (sum(n_cs) + pool + prior)

the mean of a Dirichlet proposal, with p(. | s) the same from all concepts together (pool = 0)
and K a Gaussian kernel normalised within the side. With ``variant_weight`` > 0 the answers
to one variant are kept apart, and held to p(. | c, s) by that many pseudo-answers.

Where one call answers all concepts, a call is worth the sum over its questions: concepts
have GPs of their own, so that too is exact. All calls within TIE of the best weigh alike.
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
"""Expected falls closer than this are equal but for rounding."""


class ExpectedReduction:
    """The calls that will probably lower the answer GPs' total uncertainty most.

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
                "pseudo-answers that hold what is predicted of one variant to what is predicted of "
                "all; 0 does not tell variants apart",
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
        """C x 2 x V: E[U - U'] of a question; V is 1 where variants are not kept apart."""
        fall = belief.answers.reductions().cpu()
        half = belief.received.shape[-1]
        # bins of the side of "no", then of "yes"; both have the middle one
        sides = torch.stack([fall[:, :half], fall[:, half - 1 :]], 1)
        return (self.predicted(belief) * sides[:, :, None]).sum(-1)

    def predicted(self, belief: BeliefView) -> Tensor:
        """C x 2 x V x 51: p(bin) of the next answer, within its side's half."""
        apart = torch.from_numpy(belief.received)
        kernel = _kernel(apart.shape[-1], self.smoothing)
        received = apart.sum(2).double() @ kernel
        pooled = self._mean(received.sum(0), None)
        side = self._mean(received, pooled)[:, :, None]
        if not self.variant_weight or apart.shape[2] == 1:
            return side
        own = apart.double() @ kernel
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
    """bins x bins: how one answer is spread over the bins of its side; rows sum to one."""
    if smoothing == 0:
        return torch.eye(bins, dtype=torch.float64)
    place = torch.linspace(0, 0.5, bins, dtype=torch.float64)
    kernel = torch.exp(-0.5 * ((place[:, None] - place) / smoothing) ** 2)
    return kernel / kernel.sum(1, keepdim=True)
