"""BoTorch's integrated posterior variance for questions, which have no coordinates.

The model is a finite Gaussian vector, one entry per question, given by its covariance; a
"point" in BoTorch's sense is a question's place in it. Fantasies condition it on one question
each, in closed form for all candidates at once.
Imported only when needed: importing BoTorch takes seconds.
"""

from typing import Any

import gpytorch
import torch
from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from linear_operator.operators import DiagLinearOperator
from torch import Tensor


def reduction(covariance: Tensor, noise: Tensor, candidates: Tensor, points: Tensor) -> Tensor:
    """(n,) >= 0: by how much each candidate lowers the mean variance over the points.

    ``covariance`` m x m and ``noise`` (m,) of m questions; ``candidates`` (n,) and
    ``points`` (p,) are places among them.
    """
    model = Gaussian(covariance, noise)
    acquisition = qNegIntegratedPosteriorVariance(model, mc_points=points[:, None].double())
    with torch.no_grad():
        after = acquisition(candidates[:, None, None].double())
    before = covariance.diagonal()[points].mean()
    return (after + before).clamp(min=0)


class Gaussian(Model):  # type: ignore[misc]
    """m jointly normal numbers of mean 0; observed ones carry independent noise."""

    num_outputs = 1
    batch_shape = torch.Size([])

    def __init__(self, covariance: Tensor, noise: Tensor) -> None:
        super().__init__()
        self.covariance = covariance
        self.noise = noise

    def posterior(self, X: Tensor, *_: Any, **__: Any) -> GPyTorchPosterior:
        """The marginal variances at places X (... x q x 1)."""
        return _independent(self.covariance.diagonal()[_places(X)])

    def fantasize(self, X: Tensor, *_: Any, **__: Any) -> "Conditioned":
        """n models, each of which has seen the one question of X (n x 1 x 1)."""
        if X.shape[-2] != 1:
            raise ValueError("one question at a time")
        return Conditioned(self.covariance, self.noise, _places(X)[:, 0])


class Conditioned(Model):  # type: ignore[misc]
    """n copies of a Gaussian, each conditioned on one of its entries."""

    num_outputs = 1

    def __init__(self, covariance: Tensor, noise: Tensor, seen: Tensor) -> None:
        super().__init__()
        self.covariance = covariance
        self.noise = noise
        self.seen = seen

    def posterior(self, X: Tensor, *_: Any, **__: Any) -> GPyTorchPosterior:
        """1 x n x p variances at places X (... x p x 1): S_rr - S_rx^2 / (S_xx + noise_x)."""
        points = _places(X).flatten()
        prior = self.covariance.diagonal()
        across = self.covariance[self.seen][:, points]
        gain = across.square() / (prior + self.noise)[self.seen][:, None]
        return _independent((prior[points] - gain).clamp(min=0)[None])


def _independent(variance: Tensor) -> GPyTorchPosterior:
    """A posterior of which only the variances (... x q) are to be read."""
    mean = torch.zeros_like(variance)
    normal = gpytorch.distributions.MultivariateNormal(mean, DiagLinearOperator(variance))
    return GPyTorchPosterior(normal)


def _places(X: Tensor) -> Tensor:
    """Places are handed through BoTorch as one coordinate of a point."""
    return X[..., 0].round().long()
