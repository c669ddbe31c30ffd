"""What the difference of two models' losses is likely to be: a question GP for each of them.

Two GPs beat one on the differences: what makes questions hard for one model mostly makes them hard
for the other, and that cancels only once each is known.
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
from .question_gp import Looked, QuestionGP, Questions

FEW = 20.0
"""Questions that the first guesses of slope and correlation, 0, count as."""
MIN = 1e-4
"""The smallest variance of a difference that is believed."""
RECENT = 0.99
"""Factor per question by which what is known of slope and correlation fades."""


class DifferenceGP:
    """Predicts y = (1 + L_A - L_B) / 2 for any question; the arguments are QuestionGP's.

    The mean is (1 + b (f_A - f_B)) / 2 with b in [0, 1], the slope of the differences so far on
    those predicted; the variance (v_A + v_B - 2 rho sqrt(v_A v_B)) / 4 with v = f (1 - f) and rho
    the correlation of the residuals so far. Learns from ``Losses.halves``. ``known``: (sample,
    variant, concept) (n,) each, as NumPy arrays -> (n,), A's losses where they are known
    beforehand, NaN elsewhere; there f_A is that loss, and its variance 0.
    """

    def __init__(
        self,
        *args: Any,
        known: Callable[[Indices, Indices, Indices], Floats] | None = None,
        **kwargs: Any,
    ) -> None:
        self._known = known
        self.a, self.b = QuestionGP(*args, **kwargs), QuestionGP(*args, **kwargs)
        self._slope = (0.0, FEW / 100)  # sum of products, and of squares, of differences
        self._residuals = torch.zeros(3, dtype=torch.float64)  # of a and b: products, squares

    def __len__(self) -> int:
        return len(self.a)

    @property
    def slope(self) -> float:
        """b in [0, 1]: how far predicted differences are to be believed."""
        products, squares = self._slope
        return min(1.0, max(0.0, products / squares))

    @property
    def correlation(self) -> float:
        """rho in [-1, 1] of the two models' residuals."""
        products, of_a, of_b = self._residuals.tolist()
        scale = (of_a + FEW / 100) * (of_b + FEW / 100)
        return float(min(1.0, max(-1.0, products / scale**0.5)))

    def observe(self, losses: Losses) -> None:
        """Learns from n judged questions, each as A and as B lost it."""
        if losses.halves is None or len(losses.sample) == 0:
            return
        a, b = losses.halves
        self._compare(losses, a.loss, b.loss)
        self.a.observe(a)
        self.b.observe(b)

    def posterior(self, candidates: Questions, *, latent: bool = False) -> Posterior:
        """Mean and variance of y, (n,) each; with ``latent`` the variance of the mean itself, the
        errors of both GPs taken for independent."""
        if latent:
            of_a, of_b = (gp.posterior(candidates, latent=True).variance for gp in (self.a, self.b))
            of_a = of_a * self._known_losses(candidates).isnan()
            mean = self.posterior(candidates).mean
            return Posterior(mean, (of_a + of_b) * self.slope**2 / 4)
        a, b = self._of_a(candidates), self.b.posterior(candidates)
        mean = (1 + self.slope * (a.mean - b.mean)) / 2
        together = self.correlation * (a.variance * b.variance).sqrt()
        variance = (a.variance + b.variance - 2 * together) / 4
        return Posterior(mean.clamp(0, 1), variance.clamp(min=MIN))

    def joint(self, candidates: Questions) -> Tensor:
        """m x m covariance of the mean of y between m candidates, as ``posterior`` has it."""
        open_ = self._known_losses(candidates).isnan().double()
        of_a = self.a.joint(candidates) * open_[:, None] * open_
        return (of_a + self.b.joint(candidates)) * (self.slope**2 / 4)

    def look(self, candidates: Questions) -> Looked:
        """The questions as all methods take them, too; both GPs look at the same of them."""
        return self.a.look(candidates)

    def features(self, samples: Tensor) -> Tensor:
        """(n, d) features of samples (n,)."""
        return self.a.features(samples)

    def _known_losses(self, asked: Questions) -> Tensor:
        """(n,): A's losses where they are known beforehand, NaN elsewhere."""
        if self._known is None:
            return torch.full_like(asked.sample, torch.nan, dtype=torch.float64)
        parts = (part.cpu().numpy() for part in (asked.sample, asked.variant, asked.concept))
        return torch.from_numpy(self._known(*parts)).to(asked.sample.device)

    def _of_a(self, asked: Questions) -> Posterior:
        """What is expected of A's losses, (n,) each: known ones are certain."""
        posterior, known = self.a.posterior(asked), self._known_losses(asked)
        known = known.to(posterior.mean)
        there = ~known.isnan()
        mean = torch.where(there, known, posterior.mean)
        return Posterior(mean, torch.where(there, 0.0, posterior.variance))

    def _compare(self, asked: Losses, lost_a: Tensor, lost_b: Tensor) -> None:
        """Notes how far what was foreseen of these questions was right, before they are learnt."""
        questions = replace(asked, margin=None, halves=None)
        a, b = self._of_a(questions).mean, self.b.posterior(questions).mean
        foreseen, difference = (a - b).double(), (lost_a - lost_b).double()
        of_a, of_b = (lost_a - a).double(), (lost_b - b).double()
        fade = RECENT ** len(difference)
        products, squares = self._slope
        self._slope = (
            fade * products + float(foreseen @ difference),
            fade * squares + float(foreseen @ foreseen),
        )
        squares_now = torch.stack([of_a @ of_b, of_a @ of_a, of_b @ of_b]).cpu()
        self._residuals = fade * self._residuals + squares_now


class DropGP(DifferenceGP):
    """Predicts y = (1 + L_changed - L_original) / 2; the arguments are QuestionGP's.

    Once an original image was asked about, its losses are known for all of its changes. Model A of
    ``DifferenceGP`` is the original here, so that its figure is 1 - y.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, known=self._original, **kwargs)
        self._concepts = int(kwargs["concepts"])
        self._places, self._losses = np.zeros(0, np.int64), np.zeros(0)  # ascending

    def observe(self, losses: Losses) -> None:
        if losses.halves is None or len(losses.sample) == 0:
            return
        changed, original = losses.halves
        super().observe(replace(losses, halves=(original, changed)))
        places = (losses.sample * self._concepts + losses.concept).cpu().numpy()
        lost = np.concatenate([self._losses, original.loss.double().cpu().numpy()])
        every = np.concatenate([self._places, places])
        self._places, first = np.unique(every, return_index=True)
        self._losses = lost[first]

    def posterior(self, candidates: Questions, *, latent: bool = False) -> Posterior:
        posterior = super().posterior(candidates, latent=latent)
        if latent:  # whose mean is this method's own
            return posterior
        return Posterior(1 - posterior.mean, posterior.variance)

    def _original(self, sample: Indices, variant: Indices, concept: Indices) -> Floats:
        """(n,): the losses of original images, NaN where they are not known."""
        wanted = sample * self._concepts + concept
        if not len(self._places):
            return np.full(len(wanted), np.nan)
        near = np.searchsorted(self._places, wanted).clip(max=len(self._places) - 1)
        return np.where(self._places[near] == wanted, self._losses[near], np.nan)
