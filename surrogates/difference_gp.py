"""Prediction of the difference of two models' losses, by a question GP for each model.

Two GPs predict better than one on the differences. Questions that are hard for one model are mostly
hard for the other. That cancels in the difference, and only predicting both models captures it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.types import Floats, Indices

from .base import Posterior
from .loss_mean import Losses
from .question_gp import Prepared, QuestionGP, Questions

FEW = 20.0
"""Questions that the first guesses of slope and correlation, 0, count as."""
MIN = 1e-4
"""Least variance of a difference."""
RECENT = 0.99
"""Factor per question by which old sums for slope and correlation fade."""


class DifferenceGP:
    """Surrogate that predicts y = (1 + L_A - L_B) / 2 for any question, from ``Losses.halves``.

    The mean is (1 + b (f_A - f_B)) / 2, where b in [0, 1] is the slope of past differences on
    predicted ones. The variance is (v_A + v_B - 2 rho sqrt(v_A v_B)) / 4, where v = f (1 - f) and
    rho is the correlation of past residuals.

    Args:
        *args: Arguments of ``QuestionGP``.
        known: Function from sample, variant and concept, NumPy arrays (n,), to model A's losses
            (n,) where they are known beforehand, NaN elsewhere. A known loss is f_A with the
            variance 0. None: no loss is known.
        **kwargs: Arguments of ``QuestionGP``.
    """

    def __init__(
        self,
        *args: Any,
        known: Callable[[Indices, Indices, Indices], Floats] | None = None,
        **kwargs: Any,
    ) -> None:
        self._known = known
        self.a, self.b = QuestionGP(*args, **kwargs), QuestionGP(*args, **kwargs)
        self._slope = (0.0, FEW / 100)  # sums of predicted x true and of predicted^2 differences
        self._residuals = torch.zeros(3, dtype=torch.float64)  # sums of a b, a^2 and b^2

    def __len__(self) -> int:
        return len(self.a)

    @property
    def slope(self) -> float:
        """b in [0, 1], the slope of true differences on predicted ones."""
        products, squares = self._slope
        return min(1.0, max(0.0, products / squares))

    @property
    def correlation(self) -> float:
        """rho in [-1, 1], the correlation of the two models' residuals."""
        products, squares_a, squares_b = self._residuals.tolist()
        scale = (squares_a + FEW / 100) * (squares_b + FEW / 100)
        return float(min(1.0, max(-1.0, products / scale**0.5)))

    def observe(self, losses: Losses) -> None:
        """Learn from n questions judged for both models."""
        if losses.halves is None or len(losses.sample) == 0:
            return
        a, b = losses.halves
        # compare the losses with predictions made before they are learnt
        questions = replace(losses, margin=None, halves=None)
        mean_a, mean_b = self._posterior_of_a(questions).mean, self.b.posterior(questions).mean
        predicted, difference = (mean_a - mean_b).double(), (a.loss - b.loss).double()
        residual_a, residual_b = (a.loss - mean_a).double(), (b.loss - mean_b).double()
        fade = RECENT ** len(difference)
        products, squares = self._slope
        self._slope = (
            fade * products + float(predicted @ difference),
            fade * squares + float(predicted @ predicted),
        )
        sums = [residual_a @ residual_b, residual_a @ residual_a, residual_b @ residual_b]
        self._residuals = fade * self._residuals + torch.stack(sums).cpu()
        self.a.observe(a)
        self.b.observe(b)

    def posterior(self, candidates: Questions, *, latent: bool = False) -> Posterior:
        """Return mean and variance of y, (n,) each.

        Args:
            candidates: n questions.
            latent: Whether the variance is that of the mean itself, with independent errors of the
                two GPs.
        """
        if latent:
            variances = [gp.posterior(candidates, latent=True).variance for gp in (self.a, self.b)]
            variances[0] = variances[0] * self._known_losses(candidates).isnan()
            mean = self.posterior(candidates).mean
            return Posterior(mean, (variances[0] + variances[1]) * self.slope**2 / 4)
        a, b = self._posterior_of_a(candidates), self.b.posterior(candidates)
        mean = (1 + self.slope * (a.mean - b.mean)) / 2
        covariance = self.correlation * (a.variance * b.variance).sqrt()
        variance = (a.variance + b.variance - 2 * covariance) / 4
        return Posterior(mean.clamp(0, 1), variance.clamp(min=MIN))

    def joint(self, candidates: Questions) -> Tensor:
        """Return the covariance of the mean of y between m candidates, m x m."""
        unknown = self._known_losses(candidates).isnan().double()
        covariance = self.a.joint(candidates) * unknown[:, None] * unknown
        return (covariance + self.b.joint(candidates)) * (self.slope**2 / 4)

    def prepare(self, candidates: Questions) -> Prepared:
        """Compute all inputs of questions that no answer changes; they are the same for both."""
        return self.a.prepare(candidates)

    def features(self, samples: Tensor) -> Tensor:
        """Return the features (n, d) of samples (n,)."""
        return self.a.features(samples)

    def _known_losses(self, queries: Questions) -> Tensor:
        """Return A's losses (n,) where they are known beforehand, NaN elsewhere."""
        if self._known is None:
            return torch.full_like(queries.sample, torch.nan, dtype=torch.float64)
        parts = (part.cpu().numpy() for part in (queries.sample, queries.variant, queries.concept))
        return torch.from_numpy(self._known(*parts)).to(queries.sample.device)

    def _posterior_of_a(self, queries: Questions) -> Posterior:
        """Return the prediction of model A's losses; known ones have the variance 0."""
        posterior, losses = self.a.posterior(queries), self._known_losses(queries)
        losses = losses.to(posterior.mean)
        known = ~losses.isnan()
        mean = torch.where(known, losses, posterior.mean)
        return Posterior(mean, torch.where(known, 0.0, posterior.variance))


class DropGP(DifferenceGP):
    """Surrogate that predicts y = (1 + L_changed - L_original) / 2, with QuestionGP's arguments.

    Once an original image was asked about, its losses are known for all of its changes. The
    original is model A of ``DifferenceGP``, whose prediction is therefore 1 - y.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, known=self._original, **kwargs)
        self._concepts = int(kwargs["concepts"])
        # losses of original images by sample * concepts + concept, ascending
        self._places, self._losses = np.zeros(0, np.int64), np.zeros(0)

    def observe(self, losses: Losses) -> None:
        if losses.halves is None or len(losses.sample) == 0:
            return
        changed, original = losses.halves
        super().observe(replace(losses, halves=(original, changed)))
        places = (losses.sample * self._concepts + losses.concept).cpu().numpy()
        places = np.concatenate([self._places, places])
        known = np.concatenate([self._losses, original.loss.double().cpu().numpy()])
        self._places, first = np.unique(places, return_index=True)
        self._losses = known[first]

    def posterior(self, candidates: Questions, *, latent: bool = False) -> Posterior:
        posterior = super().posterior(candidates, latent=latent)
        if latent:  # its mean is already the result of this method
            return posterior
        return Posterior(1 - posterior.mean, posterior.variance)

    def _original(self, sample: Indices, variant: Indices, concept: Indices) -> Floats:
        """Return the losses of original images (n,), NaN where they are unknown."""
        wanted = sample * self._concepts + concept
        if not len(self._places):
            return np.full(len(wanted), np.nan)
        near = np.searchsorted(self._places, wanted).clip(max=len(self._places) - 1)
        return np.where(self._places[near] == wanted, self._losses[near], np.nan)
