"""What a question would teach the question GP: BALD and integrated posterior variance.

``bald``: Houlsby, Huszar, Ghahramani & Lengyel, Bayesian Active Learning for Classification
(arXiv:1112.5745, 2011). The information that a loss and the latent f carry about each other,

    I = h(E[f]) - E[h(f)],    h(p) = - p ln p - (1 - p) ln(1 - p),

with f normal by the question GP, held to [0, 1], and expectations by Gauss-Hermite
quadrature. BoTorch's qBayesianActiveLearningByDisagreement is about something else: what an
observation carries about the *hyper-parameters* of a fully Bayesian GP with Gaussian noise.
Here there is one set of hyper-parameters and losses are 0 or 1, so the formula is its own.

``nipv``: Seo, Wallat, Graepel & Obermayer (IJCNN 2000); Binois, Huang, Gramacy & Ludkovski
(Technometrics 61, 2019). BoTorch's qNegIntegratedPosteriorVariance at every candidate, in
a Gaussian model of the losses; its value without any question is subtracted, so that the
weight is by how much the mean posterior variance of f would fall, which is never negative.

Where a call answers all concepts, concepts are independent given the kernel, so scores of a
call's questions add up; the engine adds them. The proposal is proportional to the
scores (no softmax); ``power`` sharpens them. Only a random sub-sample is scored, as large as is
affordable, and the rest has weight 0: exploration keeps those in the proposal.
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
"""Less information than this is rounding."""

Scored = Annotated[int, Option("candidates that are scored, at most, about", ge=1)]


class Bald:
    """How much the next loss informs the question GP: their mutual information.

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
    """What lowers the question GP's mean variance over unseen questions most (BoTorch).

    A draw costs one joint posterior of the candidates that are scored and of those that the
    variance is averaged over.
    """

    def __init__(
        self,
        scored: Scored = 256,
        points: Annotated[
            int, Option("candidates that the variance is averaged over, about", ge=1)
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
    """(n,) in nats, for f ~ N(mean, variance) held to [0, 1]."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
    z, share = torch.from_numpy(nodes), torch.from_numpy(shares / shares.sum())
    f = (mean[:, None] + variance.clamp(min=0).sqrt()[:, None] * z).clamp(0, 1)
    # the same quadrature for both terms: their difference is negative by rounding alone
    information = _entropy(f @ share) - _entropy(f) @ share
    return torch.where(information > ROUNDING, information, 0.0)


def weights_of(candidates: Candidates, places: Tensor, scores: Tensor, power: float) -> Tensor:
    """Weights (n,) from the scores of the candidates at ``places``; the others have 0."""
    every = torch.zeros(len(candidates), dtype=torch.float64)
    every[places] = scores.double()
    if power == 1 and bool((every > 0).any()):
        return every / every.max()
    return per_question(candidates, sharpened(per_call(candidates, every), power))


def _entropy(p: Tensor) -> Tensor:
    return torch.special.entr(p) + torch.special.entr(1 - p)
