"""The performance model: one Gaussian process per concept over the answer coordinate.

Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019),
section 2.1 (model, equations 1 and 2) and 2.2 (uncertainty, equation 3).

Observations lie on a grid of bins, so the exact posterior over the grid can be carried
along: a new bin b changes every concept's covariance S by the rank-one downdate
S - S[:, b] S[b, :] / (S[b, b] + noise), and with counts y the mean is S y / noise.
All concepts are updated together; nothing is ever refactorised.
"""

from collections.abc import Iterable
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
"""Concepts looked ahead for at a time: bounds memory to BLOCK x bins x bins numbers."""


@dataclass(frozen=True)
class AnswerPoints:
    """n answers as the answer GPs take them.

    Attributes:
        concept: (n,) int64, from 0 to C - 1.
        coordinate: (n,) float64, a in [0, 1].
    """

    concept: Tensor
    coordinate: Tensor


class AnswerGP:
    """C independent GPs over a = (f + truth) / 2; counts of answers per bin are observed.

    Source: Fountoukidou & Sznitman, Concept-centric Visual Turing Tests (MICCAI 2019), section 2.1,
    whose values are the defaults.

    Args:
        concepts: Their number C.
        lengthscale: Of the RBF kernel, in units of a.
        signal_variance: Of f before any answer.
        noise_variance: Of an observation.
        bins: Number of bins of a; with 101 they are .01 wide and include 0 and 1.
        form: Uncertainty as the area of the 95 % region (4 standard deviations, "std"), as the
            paper's text has it, or as its integral of the kernel ("variance"). Both are 2 per side
            before any question.
        repeats: With "bins" a bin is one observation however often it is hit, as in the paper;
            with "questions" every answer is one.
        device: Where the GPs live: "cpu", "cuda" or "auto".
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
        self.grid = torch.linspace(0, 1, bins, dtype=torch.float64, device=self.device)
        prior = signal_variance * _correlation(self.grid[:, None], lengthscale)
        self.covariance = prior.repeat(concepts, 1, 1)
        # on the host: whether a bin is new decides if there is anything to compute at all
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
        """C x bins: how many answers fell into each bin."""
        return torch.tensor(self._counts, device=self.device)

    @property
    def prior_uncertainty(self) -> float:
        """u- (and u+) before any question: 4 * integral over one half; 2 by default."""
        scale = self.signal_variance**0.5 if self.form == "std" else self.signal_variance
        return 2.0 * scale

    def observe(self, observations: AnswerPoints) -> None:
        """Adds answers: (n,) concepts and (n,) coordinates."""
        bins = self.bin_of(observations.coordinate).tolist()
        fresh = []
        for concept, place in zip(observations.concept.tolist(), bins, strict=True):
            if self.repeats == "questions" or self._counts[concept, place] == 0:
                fresh.append((concept, place))
                self._outdated.add(concept)
            self._counts[concept, place] += 1
        for concepts, places in _rounds(fresh):
            self._downdate(concepts, places)

    def bin_of(self, coordinates: Tensor) -> Tensor:
        """The bin (n,) each coordinate (n,) falls into, by rounding."""
        return (coordinates.to(self.device) * (len(self.grid) - 1)).round().long()

    def uncertainty(self) -> Tensor:
        """C x 2: u- and u+, the area of the 95 % region over each half (equation 3)."""
        return self._uncertainty

    def reductions(self) -> Tensor:
        """C x bins: by how much u- + u+ of a concept would fall with an answer in each bin.

        An answer at b leaves the variance S_ii - S_ib^2 / (S_bb + noise) at i: exact, and the
        same whatever the answer adds to the count. Only concepts whose covariance has changed
        since the last call are computed anew. Treat as read-only.
        """
        outdated = sorted(self._outdated)
        for start in range(0, len(outdated), BLOCK):
            concepts = outdated[start : start + BLOCK]
            self._reductions[concepts] = self._lookahead(concepts)
        self._outdated.clear()
        return self._reductions

    def posterior(self, candidates: AnswerPoints) -> Posterior:
        """Mean and latent variance of the counts at n points, each (n,); points are binned."""
        bins = self.bin_of(candidates.coordinate)
        concept = candidates.concept.to(self.device)
        return Posterior(self.mean()[concept, bins], self.variance()[concept, bins])

    def mean(self) -> Tensor:
        """C x bins: posterior mean of the counts."""
        return torch.linalg.vecdot(self.covariance, self.counts[:, None, :]) / self.noise_variance

    def variance(self) -> Tensor:
        """C x bins: posterior variance of the latent function (without noise)."""
        return self.covariance.diagonal(dim1=1, dim2=2).clamp(min=0.0)

    def _downdate(self, concepts: list[int], places: list[int]) -> None:
        """One observation for each of k different concepts."""
        if len(concepts) == 1:
            # by far the most frequent case: a slice gives a view, so nothing is copied
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

    def _lookahead(self, concepts: list[int]) -> Tensor:
        """k x bins: the fall of u- + u+ of these concepts, for an answer in every bin."""
        covariance = self.covariance[concepts]
        height = covariance.diagonal(dim1=1, dim2=2)
        after = (
            height[:, None, :] - covariance.square() / (height + self.noise_variance)[:, :, None]
        )
        after = after.clamp_(min=0.0)
        total = (after.sqrt_() if self.form == "std" else after) @ self._area.sum(1)
        fall = (self._uncertainty[concepts].sum(1, keepdim=True) - total).clamp_(min=0.0)
        if self.repeats == "bins":
            fall[torch.from_numpy(self._counts[concepts] > 0).to(self.device)] = 0.0
        return fall

    def _measure(self, covariance: Tensor) -> Tensor:
        height = covariance.diagonal(dim1=1, dim2=2).clamp(min=0.0)
        return (height.sqrt() if self.form == "std" else height) @ self._area


@cache
def lowest_with_hard_answers(form: Form = "std") -> float:
    """Return the share of its prior below which no u- or u+ falls while every P(yes) is 0 or 1.

    Such answers lie at a = 0, 1/2 and 1 alone, and a bin counts once however often it is hit. So
    all that is ever seen of a side are its two ends, five lengthscales l apart: with s the signal
    and v the noise variance, k(x) = exp(-x^2 / l^2) s / (s + v), and ends too far apart to matter
    to each other, each end takes away the share

        (1 / side) * integral over x >= 0 of 1 - sqrt(1 - k(x))        side = 1/2, form "std"
        (1 / side) * integral over x >= 0 of k(x)                      form "variance"

    which is 0.119 and 0.173; both ends leave 0.763 and 0.654. The GP itself computes it.
    """
    gp = AnswerGP(1, form=form, device="cpu")
    ends = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    gp.observe(AnswerPoints(torch.zeros(3, dtype=torch.int64), ends))
    return float(gp.uncertainty().min()) / gp.prior_uncertainty


def _correlation(points: Tensor, lengthscale: float) -> Tensor:
    """n x n: exp(-|a - b|^2 / (2 lengthscale^2)) of n x 1 points, as gpytorch works it out."""
    kernel = gpytorch.kernels.RBFKernel().double().to(points.device)
    # as a plain float, gpytorch would round it to 32 bits
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    with torch.no_grad():
        # forward: calling the kernel gives the same, and imports sympy (torch.broadcast_shapes)
        return kernel.forward(points, points)


def _half_areas(grid: Tensor) -> Tensor:
    """bins x 2: trapezoid weights, times 4, of the halves [0, .5] and [.5, 1]."""
    middle = (len(grid) - 1) // 2
    width = float(grid[1] - grid[0])
    area = torch.zeros(len(grid), 2, dtype=grid.dtype, device=grid.device)
    area[: middle + 1, 0] = width
    area[middle:, 1] = width
    area[[0, middle], 0] /= 2
    area[[middle, -1], 1] /= 2
    return 4 * area


def _rounds(observed: Iterable[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """Splits (concept, bin) pairs so that no concept stands twice in one part, order kept."""
    parts: list[tuple[list[int], list[int]]] = []
    turns: dict[int, int] = {}
    for concept, place in observed:
        turn = turns.get(concept, 0)
        turns[concept] = turn + 1
        if turn == len(parts):
            parts.append(([], []))
        parts[turn][0].append(concept)
        parts[turn][1].append(place)
    return parts
