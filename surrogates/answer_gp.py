"""Answer GPs: the paper's performance model, one Gaussian process per concept over the answer.

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019), section 2.1
(model, equations 1 and 2) and 2.2 (uncertainty, equation 3).

Observations lie on a grid of bins, so the exact posterior over the grid is updated in place. An
observation in bin b changes its concept's covariance S by the rank-one downdate
S - S[:, b] S[b, :] / (S[b, b] + noise). With counts y the mean is S y / noise.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Literal

import gpytorch
import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.utils.devices import pick

from .base import BINS, Form, Posterior

BLOCK = 64
"""Concepts per step of a look-ahead, which bounds memory to BLOCK x bins x bins numbers."""


@dataclass(frozen=True)
class AnswerPoints:
    """n answers, the observations of answer GPs.

    Attributes:
        concept: (n,) int64, from 0 to C - 1.
        coordinate: (n,) float64, a in [0, 1].
    """

    concept: Tensor
    coordinate: Tensor


class AnswerGP:
    """C independent GPs over a = (f + truth) / 2 that observe counts of answers per bin.

    Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019), section 2.1,
    whose values are the defaults.

    Args:
        concepts: Number of concepts C.
        lengthscale: Lengthscale of the RBF kernel, in units of a.
        signal_variance: Variance of the latent function before any answer.
        noise_variance: Noise variance of an observation.
        bins: Number of bins of a; with 101 they are .01 wide and include 0 and 1.
        form: Uncertainty as the area of the 95 % region (4 standard deviations, "std"), as in the
            paper's text, or as the integral of the kernel in its formula ("variance"). Both are 2
            per side before any question.
        repeats: With "bins" a bin is one observation however often it is hit, as in the paper;
            with "questions" every answer is one.
        device: Device of all tensors: "cpu", "cuda" or "auto".
    """

    def __init__(
        self,
        concepts: int,
        *,
        lengthscale: float = 0.1,
        signal_variance: float = 1.0,
        noise_variance: float = 0.025,
        bins: int = BINS,
        form: Form = "std",
        repeats: Literal["bins", "questions"] = "bins",
        device: str = "auto",
    ) -> None:
        self.device = pick(device)
        self.form = form
        self.repeats = repeats
        self.noise_variance = noise_variance
        self.signal_variance = signal_variance
        self.grid, correlation = _correlation(bins, lengthscale, self.device)
        prior = signal_variance * correlation
        self.covariance = prior.repeat(concepts, 1, 1)
        # on the host, because a bin that was hit before needs no computation on the device
        self._counts = np.zeros((concepts, bins))
        self._area = _half_areas(self.grid)
        self._uncertainty = self._measure(self.covariance)
        self._reductions = torch.zeros(concepts, bins, dtype=torch.float64, device=self.device)
        self._outdated = set(range(concepts))

    @property
    def concepts(self) -> int:
        return len(self._counts)

    @property
    def counts(self) -> Tensor:
        """C x bins: answers in each bin."""
        return torch.tensor(self._counts, device=self.device)

    @property
    def prior_uncertainty(self) -> float:
        """u- (and u+) before any question: 4 * integral over one half; 2 by default."""
        scale = self.signal_variance**0.5 if self.form == "std" else self.signal_variance
        return 2.0 * scale

    def observe(self, observations: AnswerPoints) -> None:
        """Learn n answers."""
        bins = self.bin_of(observations.coordinate).tolist()
        # rounds in which no concept occurs twice, since a downdate changes what the next one reads
        rounds: list[tuple[list[int], list[int]]] = []
        turns: Counter[int] = Counter()
        for concept, place in zip(observations.concept.tolist(), bins, strict=True):
            if self.repeats == "questions" or self._counts[concept, place] == 0:
                if turns[concept] == len(rounds):
                    rounds.append(([], []))
                concepts, places = rounds[turns[concept]]
                concepts.append(concept)
                places.append(place)
                turns[concept] += 1
                self._outdated.add(concept)
            self._counts[concept, place] += 1
        for concepts, places in rounds:
            self._downdate(concepts, places)

    def bin_of(self, coordinates: Tensor) -> Tensor:
        """Return the bin (n,) nearest to each coordinate (n,)."""
        return (coordinates.to(self.device) * (len(self.grid) - 1)).round().long()

    def uncertainty(self) -> Tensor:
        """Return u- and u+, the area of the 95 % region over each half (equation 3), C x 2."""
        return self._uncertainty

    def reductions(self) -> Tensor:
        """Return the fall of a concept's u- + u+ after an answer in each bin, C x bins.

        An answer at b leaves exactly the variance S_ii - S_ib^2 / (S_bb + noise) at i, for any
        answer. Only concepts whose covariance changed since the last call are computed. Do not
        write to the result.
        """
        outdated = sorted(self._outdated)
        for start in range(0, len(outdated), BLOCK):
            concepts = outdated[start : start + BLOCK]
            covariance = self.covariance[concepts]
            height = covariance.diagonal(dim1=1, dim2=2)
            pivot = (height + self.noise_variance)[:, :, None]
            after = (height[:, None, :] - covariance.square() / pivot).clamp_(min=0.0)
            total = (after.sqrt_() if self.form == "std" else after) @ self._area.sum(1)
            fall = (self._uncertainty[concepts].sum(1, keepdim=True) - total).clamp_(min=0.0)
            if self.repeats == "bins":  # another answer in such a bin is no observation
                fall[torch.from_numpy(self._counts[concepts] > 0).to(self.device)] = 0.0
            self._reductions[concepts] = fall
        self._outdated.clear()
        return self._reductions

    def posterior(self, candidates: AnswerPoints) -> Posterior:
        """Return mean and latent variance of the counts at n points, (n,) each, by their bins."""
        bins = self.bin_of(candidates.coordinate)
        concept = candidates.concept.to(self.device)
        return Posterior(self.mean()[concept, bins], self.variance()[concept, bins])

    def mean(self) -> Tensor:
        """Return the posterior mean of the counts, C x bins."""
        return torch.linalg.vecdot(self.covariance, self.counts[:, None, :]) / self.noise_variance

    def variance(self) -> Tensor:
        """Return the posterior variance of the latent function, without noise, C x bins."""
        return self.covariance.diagonal(dim1=1, dim2=2).clamp(min=0.0)

    def _downdate(self, concepts: list[int], places: list[int]) -> None:
        """Learn one observation of each of k different concepts."""
        if len(concepts) == 1:
            # by far the most frequent case: a slice is a view, which copies nothing
            rows = slice(concepts[0], concepts[0] + 1)
            covariance = self.covariance[rows]
            column = covariance[:, :, places[0]]
            pivot = column[:, places[0], None] + self.noise_variance
            covariance -= column[:, :, None] * (column / pivot)[:, None, :]
            self._uncertainty[rows] = self._measure(covariance)
        else:
            covariance = self.covariance[concepts]
            column = covariance[range(len(places)), :, places]
            pivot = column[range(len(places)), places, None] + self.noise_variance
            covariance -= column[:, :, None] * (column / pivot)[:, None, :]
            self.covariance[concepts] = covariance
            self._uncertainty[concepts] = self._measure(covariance)

    def _measure(self, covariance: Tensor) -> Tensor:
        height = covariance.diagonal(dim1=1, dim2=2).clamp(min=0.0)
        return (height.sqrt() if self.form == "std" else height) @ self._area


@cache
def lowest_with_hard_answers(form: Form = "std") -> float:
    """Return the share of its prior below which no u- or u+ falls while every P(yes) is 0 or 1.

    Such answers lie at a = 0, 1/2 and 1, and a bin counts once however often it is hit. So only the
    two ends of a side are ever observed, five lengthscales l apart, which is too far to influence
    each other. With the signal variance s and the noise variance v let
    k(x) = exp(-x^2 / l^2) s / (s + v). Each end then takes away the share

        (1 / side) * integral over x >= 0 of 1 - sqrt(1 - k(x))        form "std"

        (1 / side) * integral over x >= 0 of k(x)                      form "variance"

    where side = 1/2. These are 0.119 and 0.173, so both ends leave 0.763 and 0.654. The function
    computes that with the GP itself.

    Args:
        form: Measure of uncertainty, as in ``AnswerGP``.
    """
    gp = AnswerGP(1, form=form, device="cpu")
    ends = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    gp.observe(AnswerPoints(torch.zeros(3, dtype=torch.int64), ends))
    return float(gp.uncertainty().min()) / gp.prior_uncertainty


@cache
def _correlation(bins: int, lengthscale: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return n points from 0 to 1, and exp(-|a - b|^2 / (2 lengthscale^2)) of each pair, n x n,
    computed by GPyTorch."""
    points = torch.linspace(0, 1, bins, dtype=torch.float64, device=device)[:, None]
    kernel = gpytorch.kernels.RBFKernel().double().to(points.device)
    # as a plain float, gpytorch would round it to 32 bits
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    with torch.no_grad():
        # forward: calling the kernel gives the same, and imports sympy (torch.broadcast_shapes)
        return points[:, 0], kernel.forward(points, points)


def _half_areas(grid: Tensor) -> Tensor:
    """Return 4 times the trapezoid weights of the halves [0, .5] and [.5, 1], bins x 2."""
    middle = (len(grid) - 1) // 2
    width = float(grid[1] - grid[0])
    area = torch.zeros(len(grid), 2, dtype=grid.dtype, device=grid.device)
    area[: middle + 1, 0] = width
    area[middle:, 1] = width
    area[[0, middle], 0] /= 2
    area[[middle, -1], 1] /= 2
    return 4 * area
