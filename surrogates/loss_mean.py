"""Mean loss of each kind of question, the mean of the question GP.

It is a penalised logistic regression, logit F = c + a[variant] + b[concept, truth] + x'beta. The
Gaussian priors of a and b correlate the severities of a relation, and the sides of a concept. x are
the logits of the losses of cheaper models. Effects start at 0 (F = .5).

The variances of a, b and beta are estimated with them by expectation-maximisation (MacKay, Neural
Computation 4, 1992). So useless proxies, and relations that do not differ, shrink to 0. Before any
answer the weights beta sum to ``PROXY_WEIGHT``: questions that a cheaper model gets wrong are
likelier to be wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

LOWEST, HIGHEST = 0.02, 0.98
"""Bounds of an expected loss F, as no answer is certain."""

SIDES = 3
"""Number of truths: 0, 1, and unknown (-1, kept as the third)."""

SCALES = (1.0, 1.0, 0.25)
"""First guesses of the variances of a, b and beta; each counts as one observation."""

OVERALL = 1.5
"""Prior standard deviation of the overall logit. With a larger one, first answers move F faster."""

ROUNDS = 5
"""Rounds of expectation-maximisation per fit; the next fit starts where the last one ended."""

PROXY_WEIGHT = 0.6
"""Sum of the weights of the proxies' logits before any answer."""

CAUTION = 4.0
"""Pseudo-answers that pull F to .5. Without them early estimates are too extreme."""


@dataclass(frozen=True)
class Losses:
    """n judged questions, the observations of a surrogate.

    Attributes:
        sample: (n,) int64, sample by number.
        variant: (n,) int64, relation and severity by number.
        concept: (n,) int64, concept by number.
        truth: (n,) int64, 0 or 1.
        loss: (n,) losses in [0, 1].
        margin: (n,) by how much the answer was right, on any scale; NaN where unknown. None: it is
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
    """n judged questions in the form that the regression keeps.

    Attributes:
        unit: (n,) number of the unit, -1 if it is forgotten; int32 or int64, as the next three.
        variant: (n,) variant by number.
        column: (n,) column of the system of equations.
        side: (n,) concept * 3 + truth, where an unknown truth is 2.
        loss: (n,) losses in [0, 1]; NaN for questions to predict.
        margin: (n,) margins, NaN where unknown.
        features: (n, P') features of proxies and cohort.
    """

    unit: Tensor
    variant: Tensor
    column: Tensor
    side: Tensor
    loss: Tensor
    margin: Tensor
    features: Tensor

    def __getitem__(self, rows: Any) -> "Judged":
        return Judged(*(column[rows] for column in vars(self).values()))


class Mean(Protocol):
    """Model of F in [.02, .98] of any question; ``LossMean`` documents the methods."""

    device: torch.device

    def fit(self, judged: Judged) -> None: ...
    def features(self, proxies: Tensor) -> Tensor: ...
    def expected(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor: ...
    def variant_rates(self) -> Tensor: ...
    def logits(self, judged: Judged) -> Tensor: ...
    def left_out(self, judged: Judged) -> Tensor: ...


@dataclass(frozen=True)
class EffectsPrior:
    """Prior of the regression.

    Attributes:
        mean: (1 + D,) means of the intercept and of the weights of the first D features.
        variance: (1 + D,) their variances.
        cells: First guesses of the variances of the effects of variants and of sides, each of
            which counts as one observation.
    """

    mean: Tensor
    variance: Tensor
    cells: tuple[float, float]


class LossMean:
    """Logistic regression of F in [.02, .98] on variant, concept, truth and features.

    Args:
        relation: (V,) the number of each variant's relation.
        severity: (V,) each variant's severity.
        concepts: Number of concepts C.
        prior: Prior from other models, with which no pseudo-answers pull F to .5; None: none.
        device: Device of all tensors.
    """

    def __init__(
        self,
        relation: Sequence[int],
        severity: Sequence[int],
        concepts: int,
        *,
        prior: EffectsPrior | None = None,
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
        floats: Any = {"dtype": torch.float64, "device": self.device}
        self._caution = CAUTION if prior is None else 0.0
        if prior is None:
            prior = EffectsPrior(torch.zeros(1), torch.tensor([OVERALL**2]), SCALES[:2])
        self._prior_mean = prior.mean.to(**floats)
        self._prior_variance = prior.variance.to(**floats)
        self._guesses = (*prior.cells, SCALES[2])
        self._scales = list(self._guesses)
        self._count = 0
        self._offset = torch.zeros((), **floats)  # mean of x'beta
        cells = self._variants + self._sides
        self._centre = torch.cat([torch.zeros(cells, **floats), self._prior_mean])  # prior mean
        self._effects = self._centre
        self._weight = torch.ones(self._sides, **floats)  # questions of each side
        self._inverse = torch.eye(len(self._effects), **floats)

    @property
    def beta(self) -> Tensor:
        """Weight of each feature; before the first fit, of those that have a prior alone."""
        return self._effects[self._variants + self._sides + 1 :]

    @property
    def cell_variances(self) -> tuple[float, float]:
        """Variances of the effects of variants and of sides."""
        return self._scales[0], self._scales[1]

    def fit(self, judged: Judged) -> None:
        """Learn from all judged questions."""
        self._count = len(judged.loss)
        self._weight = torch.bincount(judged.side, minlength=self._sides).double()
        new = judged.features.shape[1] - len(self.beta)
        if new:
            first = self._effects.new_full((new,), PROXY_WEIGHT / new)
            self._effects = torch.cat([self._effects, first])
            self._centre = torch.cat([self._centre, first])
            self._blocks.append(torch.eye(new, dtype=torch.float64, device=self.device))
        design = _Design.of(judged, self._variants, self._sides)
        for _ in range(ROUNDS):
            self._inverse = self._newton(design, judged.loss)
            self._rescale()
        if len(self.beta):
            self._offset = (judged.features @ self.beta).mean()

    def _rescale(self) -> None:
        """Update the variances of a, b and beta by a step of expectation-maximisation."""
        start, away = 0, self._effects - self._centre
        for number, block in enumerate(self._blocks):
            rows = slice(start, start + len(block))
            effects = away[rows]
            second = effects @ block @ effects + (block * self._inverse[rows, rows]).sum()
            scale = (float(second) + self._guesses[number]) / (len(block) + 1)
            self._scales[number] = min(max(scale, 1e-3), 4.0)
            # the intercept and weights with a prior, of fixed variance, stand between b and beta
            start = rows.stop + (number == 1) * len(self._prior_mean)

    def features(self, proxies: Tensor) -> Tensor:
        """Return the logits of the proxies' losses (n, P) and of their mean, (n, P')."""
        if proxies.shape[1] > 1:
            proxies = torch.cat([proxies, proxies.mean(1, keepdim=True)], 1)
        return torch.logit(proxies.clamp(LOWEST, HIGHEST))

    def expected(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor:
        """Return F (n,) of n questions; ``side`` is concept * 3 + truth, 2 for an unknown truth."""
        return self._cautious(torch.sigmoid(self._logits(variant, side, features)))

    def variant_rates(self) -> Tensor:
        """Return F of each variant (V,), averaged over the sides asked about, for mean proxies."""
        effects = self._effects
        a, b = effects[: self._variants], effects[self._variants :][: self._sides]
        a = a + effects[self._variants + self._sides] + self._offset
        rates = torch.sigmoid(a[:, None] + b)
        weight = self._weight + 1e-9
        return self._cautious(rates @ (weight / weight.sum()))

    def logits(self, judged: Judged) -> Tensor:
        """Return logit F (n,) of n questions, without pseudo-answers."""
        return self._logits(judged.variant, judged.side, judged.features)

    def left_out(self, judged: Judged) -> Tensor:
        """Return the leave-one-out logit F (n,) of questions that F was fitted on.

        It takes one Newton step from the mode: eta - h (l - F) / (1 - h F (1 - F)), where h is the
        leverage.
        """
        inverse, variant, side = self._inverse, judged.variant, self._variants + judged.side
        tail = self._variants + self._sides
        dense = torch.cat([torch.ones_like(judged.loss)[:, None], judged.features], 1)
        # x' H^-1 x for the rows x of the design matrix, without computing it in full
        cells = inverse[variant, variant] + inverse[side, side] + 2 * inverse[variant, side]
        across = inverse[:, tail:][variant] + inverse[:, tail:][side]
        leverage = cells + ((2 * across + dense @ inverse[tail:, tail:]) * dense).sum(1)
        eta = self.logits(judged)
        rate = torch.sigmoid(eta)
        shrunk = 1 - (leverage * rate * (1 - rate)).clamp(max=0.9)
        return eta - leverage * (judged.loss - rate) / shrunk

    def _cautious(self, rates: Tensor) -> Tensor:
        if self._caution:
            share = self._count / (self._count + self._caution)
            rates = share * rates + (1 - share) / 2
        return rates.clamp(LOWEST, HIGHEST)

    def _logits(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor:
        effects, first_side = self._effects, self._variants
        cells = effects[variant] + effects[first_side + side] + effects[first_side + self._sides]
        weighted = len(self.beta)  # features that the last fit had
        return cells + features[:, :weighted] @ self.beta if weighted else cells

    def _newton(self, design: "_Design", loss: Tensor) -> Tensor:
        """Move the effects to their mode by Newton's method, and return the inverse Hessian."""
        parts = [block / scale for block, scale in zip(self._blocks, self._scales, strict=False)]
        block_diagonal: Any = torch.block_diag
        precision = block_diagonal(*parts[:2], (1 / self._prior_variance).diag(), *parts[2:])
        for _ in range(8):
            rate = torch.sigmoid(design.times(self._effects))
            slope = design.collect(loss - rate) - precision @ (self._effects - self._centre)
            hessian = design.curvature(rate * (1 - rate)).add_(precision)
            factor = torch.linalg.cholesky(hessian)
            # steps are bounded, since Newton's method may overshoot
            step = torch.cholesky_solve(slope[:, None], factor)[:, 0].clamp_(-2, 2)
            self._effects = self._effects + step
            if float(step.abs().max()) < 1e-6:
                break
        return torch.cholesky_inverse(factor)


class _Design(NamedTuple):
    """Design matrix X = [one-hot variant, one-hot side, 1, features], never computed in full.

    ``variant`` and ``side`` (n,) are numbers below ``variants`` and ``sides``; ``cell`` (n,) is
    variant * sides + side; ``dense`` (n, 1 + P) are the last columns.
    """

    variant: Tensor
    side: Tensor
    cell: Tensor
    dense: Tensor
    variants: int
    sides: int

    @classmethod
    def of(cls, judged: Judged, variants: int, sides: int) -> "_Design":
        dense = torch.cat([torch.ones_like(judged.loss)[:, None], judged.features], 1)
        cell = judged.variant.long() * sides + judged.side
        return cls(judged.variant, judged.side, cell, dense, variants, sides)

    def times(self, effects: Tensor) -> Tensor:
        """Return X effects, (n,)."""
        tail = self.variants + self.sides
        cells = effects[: self.variants, None] + effects[self.variants : tail]
        return cells.reshape(-1)[self.cell] + self.dense @ effects[tail:]

    def collect(self, value: Tensor) -> Tensor:
        """Return X' value."""
        variants = torch.bincount(self.variant, value, self.variants)
        sides = torch.bincount(self.side, value, self.sides)
        return torch.cat([variants, sides, self.dense.mT @ value])

    def curvature(self, weight: Tensor) -> Tensor:
        """Return X' diag(weight) X."""
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
    """Return the covariance of a, V x V: severity, relation, and severity within a relation."""
    same = (relation[:, None] == relation).double()
    level = severity / severity.max().clamp(min=1)
    line = level[:, None] * level
    near = torch.exp(-0.5 * ((severity[:, None] - severity) / 2) ** 2)
    white = torch.eye(len(relation), dtype=torch.float64, device=relation.device)
    return 2 * line + same * (0.5 + 2 * line + 0.5 * near) + 0.05 * white


def _side_prior(concepts: int, device: torch.device) -> Tensor:
    """Return the covariance of b, 3C x 3C: truth, concept, and truth of a concept."""
    concept = torch.arange(concepts * SIDES, device=device) // SIDES
    truth = torch.arange(concepts * SIDES, device=device) % SIDES
    same_concept = (concept[:, None] == concept).double()
    same_truth = (truth[:, None] == truth).double()
    return 0.5 * same_truth + 0.5 * same_concept + 0.5 * same_truth * same_concept
