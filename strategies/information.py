"""Information gain about the question GP: BALD and integrated posterior variance.

``bald``: Houlsby, Huszar, Ghahramani & Lengyel, Bayesian Active Learning for Classification
(arXiv:1112.5745, 2011). It is the mutual information of a loss and the latent f,

    I = h(E[f]) - E[h(f)],    h(p) = - p ln p - (1 - p) ln(1 - p),

with f normal by the question GP, clipped to [0, 1], and expectations by Gauss-Hermite quadrature.
BoTorch's qBayesianActiveLearningByDisagreement measures something else: the information about the
hyper-parameters of a fully Bayesian GP with Gaussian noise. Here hyper-parameters are fixed and
losses are 0 or 1.

``nipv``: Seo, Wallat, Graepel & Obermayer (IJCNN 2000); Binois, Huang, Gramacy & Ludkovski
(Technometrics 61, 2019). It is BoTorch's qNegIntegratedPosteriorVariance at every candidate, in a
Gaussian model of the losses. Its value without any question is subtracted. So the weight is the
fall of the mean posterior variance of f, which is never negative.

Concepts are independent given the kernel, so the engine may add up the scores of a call's
questions. The proposal is proportional to the scores (no softmax), and ``power`` sharpens them.
Only a random sub-sample is scored, to bound the cost. The other candidates have the weight 0, and
exploration keeps them in the proposal.
"""

from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.types import Candidates
from adaptive_vtt.utils.options import Option

from .base import BeliefView
from .common import Power, per_call, per_question, points, question_gp, sharpened, some_calls

NODES = 40
"""Nodes of the quadrature."""

ROUNDING = 1e-12
"""Largest information that counts as rounding, in nats."""

Scored = Annotated[int, Option("approximate number of candidates to score", ge=1)]


class Bald:
    """Questions whose loss has the largest mutual information with the question GP.

    Each scored candidate costs a triangular solve over all units seen.
    """

    def __init__(self, scored: Scored = 1024, power: Power = 1.0) -> None:
        self.scored = scored
        self.power = power

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        gp = question_gp(belief, "bald")
        places = some_calls(candidates, self.scored, len(gp))
        f = belief.model().posterior(points(candidates, places))
        scores = information(f.mean.flatten(), f.variance.flatten())
        return weights_of(candidates, places, scores, self.power)


class Nipv:
    """Questions that reduce the question GP's mean variance most (BoTorch).

    A draw costs one joint posterior of the scored candidates and of those that the variance is
    averaged over.
    """

    def __init__(
        self,
        scored: Scored = 256,
        points: Annotated[
            int, Option("approximate number of candidates to average the variance over", ge=1)
        ] = 256,
        power: Power = 1.0,
    ) -> None:
        self.scored = scored
        self.points = points
        self.power = power

    def weights(self, candidates: Candidates, belief: BeliefView) -> Tensor:
        from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance

        gp = question_gp(belief, "nipv")
        places = some_calls(candidates, self.scored, len(gp), 0)
        over = points(candidates, some_calls(candidates, self.points, len(gp), 1))[:, 0]
        model = belief.model()
        with torch.no_grad():
            acquisition = qNegIntegratedPosteriorVariance(model, mc_points=over)
            after = acquisition(points(candidates, places))
            scores = (after + model.posterior(over).variance.mean()).clamp(min=0)
        return weights_of(candidates, places, scores, self.power)


def information(mean: Tensor, variance: Tensor) -> Tensor:
    """Return the mutual information (n,) in nats for f ~ N(mean, variance) clipped to [0, 1]."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
    z, share = torch.from_numpy(nodes), torch.from_numpy(shares / shares.sum())
    f = (mean[:, None] + variance.clamp(min=0).sqrt()[:, None] * z).clamp(0, 1)
    # both terms use the same quadrature, so only rounding makes their difference negative
    information = _entropy(f @ share) - _entropy(f) @ share
    return torch.where(information > ROUNDING, information, 0.0)


def weights_of(candidates: Candidates, places: Tensor, scores: Tensor, power: float) -> Tensor:
    """Return weights (n,) from the scores of the candidates at ``places``, 0 for the others."""
    weights = torch.zeros(len(candidates), dtype=torch.float64)
    weights[places] = scores.double()
    if power == 1 and bool((weights > 0).any()):
        return weights / weights.max()
    return per_question(candidates, sharpened(per_call(candidates, weights), power))


def _entropy(p: Tensor) -> Tensor:
    return torch.special.entr(p) + torch.special.entr(1 - p)
