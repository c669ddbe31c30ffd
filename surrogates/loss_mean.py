"""How often questions of a kind fail: the mean under the question GP.

A penalised logistic regression, logit F = c + a[variant] + b[concept, truth] + x'beta. The
Gaussian priors of a and b tie together what belongs together (severities of a relation, the
sides of a concept); x are the logits of what cheaper models would lose. Effects start at 0
(F = .5) and move as far as the answers carry them. The variances of a, b and beta are
estimated along with them by expectation-maximisation (MacKay, Neural Computation 4, 1992),
so that proxies which tell nothing, or relations which do not differ, are shrunk to nothing. Before
any answer beta is ``TOLD`` in all: what a cheaper model gets wrong is likelier to be got wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

LOWEST, HIGHEST = 0.02, 0.98
"""Bounds of an expected loss F: no answer is ever taken for certain."""

SIDES = 3
"""Truth 0, 1, and unknown (-1, kept as the third)."""

SCALES = (1.0, 1.0, 0.25)
"""First guesses of the variances of a, b and beta; each counts as one observation."""

OVERALL = 1.5
"""Standard deviation of the overall logit: the larger, the faster first answers move F off .5."""

ROUNDS = 5
"""Rounds of expectation-maximisation per fit; the next fit goes on from there."""

TOLD = 0.6
"""What the weights of the proxies' logits come to together, before any answer."""

CAUTION = 4.0
"""Number of pseudo-answers that draw F to .5: without them early estimates are too sure."""


@dataclass(frozen=True)
class Losses:
    """n judged questions as a surrogate learns from them.

    Attributes:
        sample: (n,) int64, by number.
        variant: (n,) int64, relation and severity by number.
        concept: (n,) int64, by number.
        truth: (n,) int64, 0 or 1.
        loss: (n,), in [0, 1].
        margin: (n,), by how much the answer was right, on any scale; NaN where unknown. None: it is
            unknown everywhere.
        halves: The losses of each model in a comparison. None: one model is audited.
    """

    sample: Tensor
    variant: Tensor
    concept: Tensor
    truth: Tensor
    loss: Tensor
    margin: Tensor | None = None
    halves: "tuple[Losses, ...] | None" = None


@dataclass(frozen=True)
class Judged:
    """n judged questions as they are kept, (n,) each: the unit they belong to (-1: forgotten),
    their variant, column and side (concept * 3 + truth), whole numbers of 32 or 64 bits; the
    loss, margin, and proxies' features."""

    unit: Tensor
    variant: Tensor
    column: Tensor
    side: Tensor
    loss: Tensor
    margin: Tensor
    features: Tensor

    def __getitem__(self, rows: Any) -> "Judged":
        return Judged(*(column[rows] for column in vars(self).values()))

    def moved(self, unit: Tensor) -> "Judged":
        """The same, belonging to other units."""
        return replace(self, unit=unit)


class Mean(Protocol):
    """F in [.02, .98] of any question; see ``LossMean``."""

    device: torch.device

    def fit(self, judged: Judged) -> None: ...
    def features(self, proxies: Tensor) -> Tensor: ...
    def expected(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor: ...
    def variant_rates(self) -> Tensor: ...
    def logits(self, judged: Judged) -> Tensor: ...
    def left_out(self, judged: Judged) -> Tensor: ...


@dataclass(frozen=True)
class EffectsPrior:
    """What is known of the regression before any answer: ``mean`` and ``variance`` (1 + D,) of the
    intercept and of the weights of the first D features; ``cells``: first guesses of the variances
    of the effects of variants and of sides, each of which counts as one observation."""

    mean: Tensor
    variance: Tensor
    cells: tuple[float, float]


class LossMean:
    """F(variant, concept, truth, features) in [.02, .98], from n judged questions.

    ``relation`` and ``severity`` (V each) describe the variants.
    ``given``: what is known beforehand, of other models; then nothing draws F to .5.
    """

    def __init__(
        self,
        relation: Sequence[int],
        severity: Sequence[int],
        concepts: int,
        *,
        given: EffectsPrior | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.device = torch.device(device)
        relations = torch.tensor(list(relation), device=self.device)
        severities = torch.tensor(list(severity), dtype=torch.float64, device=self.device)
        self._variants = len(relations)
        self._sides = concepts * SIDES
        self._blocks = [
            torch.linalg.inv(_variant_prior(relations, severities)),
            torch.linalg.inv(_side_prior(concepts, self.device)),
        ]
        of: Any = {"dtype": torch.float64, "device": self.device}
        self._caution = CAUTION if given is None else 0.0
        if given is None:
            given = EffectsPrior(torch.zeros(1), torch.tensor([OVERALL**2]), SCALES[:2])
        self._known = given.mean.to(**of), given.variance.to(**of)
        self._guesses = (*given.cells, SCALES[2])
        self._scales = list(self._guesses)
        self._count = 0
        self._offset = torch.zeros((), **of)
        cells = self._variants + self._sides
        self._centre = torch.cat([torch.zeros(cells, **of), self._known[0]])  # prior mean
        self._effects = self._centre
        self._weight = torch.ones(self._sides, **of)
        self._inverse = torch.eye(len(self._effects), **of)

    @property
    def beta(self) -> Tensor:
        """The weight of each feature; before the first fit, of those that are ``given`` alone."""
        return self._effects[self._variants + self._sides + 1 :]

    @property
    def cell_variances(self) -> tuple[float, float]:
        """Of the effects of variants, and of sides."""
        return self._scales[0], self._scales[1]

    def fit(self, judged: Judged) -> None:
        """Learns from all judged questions."""
        self._count = len(judged.loss)
        self._weight = torch.bincount(judged.side, minlength=self._sides).double()
        new = judged.features.shape[1] - len(self.beta)
        if new:
            first = self._effects.new_full((new,), TOLD / new)
            self._effects = torch.cat([self._effects, first])
            self._centre = torch.cat([self._centre, first])
            self._blocks.append(torch.eye(new, dtype=torch.float64, device=self.device))
        design = _Design.of(judged, self._variants, self._sides)
        for _ in range(ROUNDS):
            self._inverse = self._newton(design, judged.loss)
            self._rescale(self._inverse)
        if len(self.beta):
            self._offset = (judged.features @ self.beta).mean()

    def _rescale(self, inverse: Tensor) -> None:
        """Expectation-maximisation of the effects' variances."""
        start, away = 0, self._effects - self._centre
        for number, block in enumerate(self._blocks):
            stop = start + len(block)
            effects = away[start:stop]
            second = effects @ block @ effects + (block * inverse[start:stop, start:stop]).sum()
            scale = (float(second) + self._guesses[number]) / (len(block) + 1)
            self._scales[number] = min(max(scale, 1e-3), 4.0)
            start = stop + (number == 1) * len(self._known[0])

    def features(self, proxies: Tensor) -> Tensor:
        """(n, P'): logits of the proxies' losses (n, P), and of their mean."""
        if proxies.shape[1] > 1:
            proxies = torch.cat([proxies, proxies.mean(1, keepdim=True)], 1)
        return torch.logit(proxies.clamp(LOWEST, HIGHEST))

    def expected(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor:
        """F (n,) of n questions; ``side`` = concept * 3 + truth (unknown: 2)."""
        return self._cautious(torch.sigmoid(self._logits(variant, side, features)))

    def variant_rates(self) -> Tensor:
        """(V,): F of each variant, over the sides asked about, where proxies say the usual."""
        effects = self._effects
        a, b = effects[: self._variants], effects[self._variants :][: self._sides]
        a = a + effects[self._variants + self._sides] + self._offset
        rates = torch.sigmoid(a[:, None] + b)
        weight = self._weight + 1e-9
        return self._cautious(rates @ (weight / weight.sum()))

    def logits(self, judged: Judged) -> Tensor:
        """logit F (n,) of n questions, without caution."""
        return self._logits(judged.variant, judged.side, judged.features)

    def left_out(self, judged: Judged) -> Tensor:
        """logit F (n,) of questions that F was fitted on, as if each had not been among them.

        One Newton step from the mode: eta - h (l - F) / (1 - h F (1 - F)) with leverage h.
        """
        eta = self.logits(judged)
        rate, leverage = torch.sigmoid(eta), self._leverage(judged)
        rest = 1 - (leverage * rate * (1 - rate)).clamp(max=0.9)
        return eta - leverage * (judged.loss - rate) / rest

    def _leverage(self, judged: Judged) -> Tensor:
        """(n,): x' H^-1 x for rows x of the design matrix."""
        inverse, variant, side = self._inverse, judged.variant, self._variants + judged.side
        tail = self._variants + self._sides
        dense = torch.cat([torch.ones_like(judged.loss)[:, None], judged.features], 1)
        cells = inverse[variant, variant] + inverse[side, side] + 2 * inverse[variant, side]
        across = inverse[:, tail:][variant] + inverse[:, tail:][side]
        return cells + ((2 * across + dense @ inverse[tail:, tail:]) * dense).sum(1)

    def _cautious(self, rates: Tensor) -> Tensor:
        if self._caution:
            share = self._count / (self._count + self._caution)
            rates = share * rates + (1 - share) / 2
        return rates.clamp(LOWEST, HIGHEST)

    def _logits(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor:
        effects, sides = self._effects, self._variants
        cells = effects[variant] + effects[sides + side] + effects[sides + self._sides]
        known = len(self.beta)
        return cells + features[:, :known] @ self.beta if known else cells

    def _newton(self, design: "_Design", loss: Tensor) -> Tensor:
        """Goes to the mode; returns the inverse Hessian there."""
        variance = self._known[1]
        parts = [block / scale for block, scale in zip(self._blocks, self._scales, strict=False)]
        block_diagonal: Any = torch.block_diag
        precision = block_diagonal(*parts[:2], (1 / variance).diag(), *parts[2:])
        for _ in range(8):
            rate = torch.sigmoid(design.times(self._effects))
            slope = design.collect(loss - rate) - precision @ (self._effects - self._centre)
            hessian = design.curvature(rate * (1 - rate)).add_(precision)
            factor = torch.linalg.cholesky(hessian)
            # a logit never has to move by more than this at once
            step = torch.cholesky_solve(slope[:, None], factor)[:, 0].clamp_(-2, 2)
            self._effects = self._effects + step
            if float(step.abs().max()) < 1e-6:
                break
        return torch.cholesky_inverse(factor)


class _Design(NamedTuple):
    """X = [one-hot variant, one-hot side, 1, features] of n questions, never made in full: V
    variants and S sides."""

    variant: Tensor
    side: Tensor
    cell: Tensor  # variant * S + side
    dense: Tensor  # n x (1 + P)
    variants: int
    sides: int

    @classmethod
    def of(cls, judged: Judged, variants: int, sides: int) -> "_Design":
        dense = torch.cat([torch.ones_like(judged.loss)[:, None], judged.features], 1)
        cell = judged.variant.long() * sides + judged.side
        return cls(judged.variant, judged.side, cell, dense, variants, sides)

    def times(self, effects: Tensor) -> Tensor:
        """X effects, (n,)."""
        tail = self.variants + self.sides
        cells = effects[: self.variants, None] + effects[self.variants : tail]
        return cells.reshape(-1)[self.cell] + self.dense @ effects[tail:]

    def collect(self, value: Tensor) -> Tensor:
        """X' value."""
        variants = torch.bincount(self.variant, value, self.variants)
        sides = torch.bincount(self.side, value, self.sides)
        return torch.cat([variants, sides, self.dense.mT @ value])

    def curvature(self, weight: Tensor) -> Tensor:
        """X' diag(weight) X."""
        v, tail = self.variants, self.variants + self.sides
        cells = torch.bincount(self.cell, weight, v * self.sides).reshape(v, self.sides)
        weighted = self.dense * weight[:, None]
        result = weighted.new_zeros(tail + weighted.shape[1], tail + weighted.shape[1])
        result.diagonal()[:v], result.diagonal()[v:tail] = cells.sum(1), cells.sum(0)
        result[:v, v:tail], result[v:tail, :v] = cells, cells.mT
        across = result[:tail, tail:]
        across.index_add_(0, self.variant, weighted).index_add_(0, v + self.side, weighted)
        result[tail:, :tail], result[tail:, tail:] = across.mT, self.dense.mT @ weighted
        return result


def _variant_prior(relation: Tensor, severity: Tensor) -> Tensor:
    """V x V covariance of a: overall, severity at large, relation, and severity within it."""
    same = (relation[:, None] == relation).double()
    level = severity / severity.max().clamp(min=1)
    line = level[:, None] * level
    near = torch.exp(-0.5 * ((severity[:, None] - severity) / 2) ** 2)
    white = torch.eye(len(relation), dtype=torch.float64, device=relation.device)
    return 2 * line + same * (0.5 + 2 * line + 0.5 * near) + 0.05 * white


def _side_prior(concepts: int, device: torch.device) -> Tensor:
    """3C x 3C covariance of b: truth at large, concept, and the side of a concept."""
    concept = torch.arange(concepts * SIDES, device=device) // SIDES
    truth = torch.arange(concepts * SIDES, device=device) % SIDES
    same_concept = (concept[:, None] == concept).double()
    same_truth = (truth[:, None] == truth).double()
    return 0.5 * same_truth + 0.5 * same_concept + 0.5 * same_truth * same_concept
