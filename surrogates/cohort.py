"""Prior of the question GP's mean from a cohort of K >= 3 other models.

The cohort and the audited model are taken to be a sample of one population of models. So each model
of the cohort is regressed on the others. The regression predicts its logit from the others' mean
logit (intercept and slope), and from the one factor in which the others disagree most. The spread
of the K regressions is the expected distance of the next model from their mean.

The cohort's answers were collected earlier, without answers of this audit. So predictions are fixed
before every draw, and no interval rests on the cohort.

The mean of the question GP mixes two regressions on this audit's answers: one with the cohort's
prior, one without. Each is weighted by the likelihood of left-out answers. So a model unlike its
cohort costs a few more answers at most.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.types import Floats, Indices

from .loss_mean import HIGHEST, LOWEST, EffectsPrior, Judged, LossMean

RIDGE = 1e-3
"""Prior precision of a model's intercept and slope in its regression on the others."""
WIDER, MIN_VARIANCE = 1.15, 1e-3
"""Factor and term that widen the sample variance of K models' coefficients."""
SINGLE, SINGLE_VARIANCE = 0.1, 0.25
"""Scale of single models' logits less their mean, and prior variance of their weights."""
FIRST_CELLS = 0.003
"""First guess of the variances of effects of variants and of sides, beyond those of the cohort's
mean."""
ROUNDS = 4
"""Fits after which the variances of a model's effects have settled."""
MAX_ROWS = 8192
"""Most questions that the regressions are fitted on, evenly spread."""
FIRST_SHARE = 0.5
"""Share of the regression with the cohort's prior before any answer. With 0.25, estimates after 20
answers are worse by a third; with 0.9, models unlike their cohort take 4 to 14 % more calls."""


def logits(losses: Floats) -> Floats:
    """Return the logits of losses in [0, 1], clipped so that they are finite."""
    inside = np.clip(losses, LOWEST, HIGHEST)
    return np.asarray(np.log(inside / (1 - inside)))


@dataclass(frozen=True)
class Factor:
    """Largest disagreement of K models.

    Attributes:
        centre: (K,) each model's mean loss less the mean of all.
        loading: (K,) weights of a question's residuals; the scores have a mean square of 1.
    """

    centre: Floats
    loading: Floats

    @classmethod
    def of(cls, losses: Floats) -> "Factor":
        """Return the factor of losses n x K."""
        residuals = losses - losses.mean(axis=1, keepdims=True)
        centre = residuals.mean(axis=0)
        _, sizes, right = np.linalg.svd(residuals - centre, full_matrices=False)
        size = max(float(sizes[0]), 1e-9)
        # the sign of a singular vector is arbitrary, so make its largest entry positive
        loading = right[0] * np.sign(right[0][np.argmax(np.abs(right[0]))])
        return cls(centre, loading * (np.sqrt(len(losses)) / size))

    def scores(self, losses: Floats) -> Floats:
        """Return the score of each question (n,), given losses n x K."""
        residuals = losses - losses.mean(axis=1, keepdims=True)
        return np.asarray((residuals - self.centre) @ self.loading)


@dataclass(frozen=True)
class CohortPrior:
    """Prior of a model's regression on K others, and the regression's inputs.

    Attributes:
        members: (K, 5) each model's regression on the others: intercept, slope, weight of the
            factor, and the variances of its effects of variants and of sides. The prior follows
            from these.
        factor: Factor of all K models.
    """

    members: Floats
    factor: Factor

    @classmethod
    def of(cls, known: Floats, filled: Floats, cells: "Cells") -> "CohortPrior":
        """Return the prior from losses n x K of three or more models.

        Args:
            known: Losses in [0, 1], NaN where unknown; every question has a known one.
            filled: The same with expected losses for NaN.
            cells: Kinds of the questions.
        """
        rows = np.linspace(0, len(known) - 1, min(len(known), MAX_ROWS)).round().astype(int)
        known, filled, cells = known[rows], filled[rows], cells.rows(rows)
        members = [_member(known, filled, cells, j) for j in range(known.shape[1])]
        return cls(np.array(members), Factor.of(filled))

    @property
    def effects(self) -> EffectsPrior:
        """Prior of intercept, slope, factor and K single models, and of the variances of cells."""
        mean, variance = prior_of(self.members)
        singles = np.zeros(len(self.members))
        return EffectsPrior(
            torch.from_numpy(np.concatenate([mean, singles])),
            torch.from_numpy(np.concatenate([variance, singles + SINGLE_VARIANCE])),
            (float(np.median(self.members[:, 3])), float(np.median(self.members[:, 4]))),
        )

    def features(self, losses: Floats) -> Floats:
        """Return the inputs of the regression, n x (2 + K), given losses n x K."""
        mean, score = logits(losses.mean(axis=1)), self.factor.scores(losses)
        single = logits(losses)
        single = SINGLE * (single - single.mean(axis=1, keepdims=True))
        return np.column_stack([mean, score, single])


def prior_of(members: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of intercept, slope and weight of the factor, (3,) each.

    The factor's sign is arbitrary, so the mean of its weight is 0.
    """
    mean = np.append(members[:, :2].mean(axis=0), 0.0)
    variance = np.append(members[:, :2].var(axis=0, ddof=1), (members[:, 2] ** 2).mean())
    return mean, WIDER * variance + MIN_VARIANCE


@dataclass(frozen=True)
class Cells:
    """Kinds of n questions.

    Attributes:
        variant: (n,) variant by number.
        side: (n,) concept * 3 + truth.
        relation: (V,) the number of each variant's relation.
        severity: (V,) each variant's severity.
        concepts: Number of concepts.
    """

    variant: Indices
    side: Indices
    relation: tuple[int, ...]
    severity: tuple[int, ...]
    concepts: int

    def rows(self, rows: Indices) -> "Cells":
        """Return the kinds of the questions at ``rows``."""
        return replace(self, variant=self.variant[rows], side=self.side[rows])


def _member(known: Floats, filled: Floats, cells: Cells, j: int) -> Floats:
    """Return the regression of model j on the others, as a row of ``CohortPrior.members``."""
    answered = np.flatnonzero(~np.isnan(known[:, j]))
    others = np.delete(filled, j, axis=1)
    mean = logits(others.mean(axis=1))[answered]
    factor = Factor.of(others).scores(others)[answered]
    losses = known[answered, j]
    one = np.ones_like(mean)
    line = _regressed(losses, np.stack([one, mean], 1))
    with_factor = _regressed(losses, np.stack([one, mean, factor], 1))
    kinds = _cell_variances(losses, mean, line, cells.rows(answered))
    return np.array([*line, with_factor[2], *kinds])


def _regressed(losses: Floats, inputs: Floats) -> Floats:
    """Return the weights of a logistic regression, shrunk slightly to the others' mean."""
    towards = np.zeros(inputs.shape[1])
    towards[1] = 1.0
    weights = towards.copy()
    for _ in range(50):
        rate = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        slope = inputs.T @ (losses - rate) - RIDGE * (weights - towards)
        curvature = (inputs.T * (rate * (1 - rate))) @ inputs + RIDGE * np.eye(len(weights))
        step = np.clip(np.linalg.solve(curvature, slope), -1, 1)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _cell_variances(losses: Floats, mean: Floats, line: Floats, cells: Cells) -> tuple[Any, ...]:
    """Return the variances of a model's effects of variants and of sides.

    They are fitted by expectation-maximisation, with ``line`` on the others' mean fixed.
    """
    prior = EffectsPrior(
        torch.from_numpy(line), torch.full((2,), MIN_VARIANCE).double(), (FIRST_CELLS,) * 2
    )
    fitted = LossMean(cells.relation, cells.severity, cells.concepts, prior=prior)
    count = len(losses)
    judged = Judged(
        unit=torch.zeros(count, dtype=torch.int64),
        variant=torch.from_numpy(cells.variant),
        column=torch.zeros(count, dtype=torch.int64),
        side=torch.from_numpy(cells.side),
        loss=torch.from_numpy(losses),
        margin=torch.full((count,), torch.nan, dtype=torch.float64),
        features=torch.from_numpy(mean)[:, None],
    )
    for _ in range(ROUNDS):
        fitted.fit(judged)
    return fitted.cell_variances


class CohortSignals(Protocol):
    """Prior of the regression from other models, and its inputs for any question."""

    @property
    def effects(self) -> EffectsPrior:
        """Prior of the intercept and of D weights."""

    def __call__(self, sample: Tensor, variant: Tensor, concept: Tensor) -> Tensor:
        """Return the D inputs (n, D) of questions, given by their parts (n,) each."""


class CohortMean:
    """F as the mixture of a regression with a cohort's prior and one without (``loss_mean.Mean``).

    The first D features are the cohort's; those of cheaper models follow.

    Args:
        relation: (V,) the number of each variant's relation.
        severity: (V,) each variant's severity.
        concepts: Number of concepts C.
        prior: The cohort's prior of the intercept and of D weights.
        device: Device of all tensors.
    """

    def __init__(
        self,
        relation: Sequence[int],
        severity: Sequence[int],
        concepts: int,
        *,
        prior: EffectsPrior,
        device: torch.device | str = "cpu",
    ) -> None:
        kinds = relation, severity, concepts
        self._like = LossMean(*kinds, prior=prior, device=device)
        self._alone = LossMean(*kinds, device=device)
        self._own = len(prior.mean) - 1
        self.device = self._like.device
        self.share = FIRST_SHARE

    def fit(self, judged: Judged) -> None:
        """Learn from all judged questions, and weight the two regressions."""
        alone = self._without(judged)
        self._like.fit(judged)
        self._alone.fit(alone)
        odds = math.log(FIRST_SHARE / (1 - FIRST_SHARE))
        gain = _log_likelihood(self._like.left_out(judged), judged)
        gain -= _log_likelihood(self._alone.left_out(alone), alone)
        self.share = float(torch.sigmoid(gain + odds))

    def features(self, proxies: Tensor) -> Tensor:
        """Return features of proxies (n, P'), as ``LossMean.features``."""
        return self._alone.features(proxies)

    def expected(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor:
        """Return F (n,) of n questions."""
        alone = self._alone.expected(variant, side, features[:, self._own :])
        return self._mixed(self._like.expected(variant, side, features), alone)

    def variant_rates(self) -> Tensor:
        """Return F of each variant, (V,)."""
        return self._mixed(self._like.variant_rates(), self._alone.variant_rates())

    def logits(self, judged: Judged) -> Tensor:
        """Return logit F (n,) of n questions, without pseudo-answers."""
        return self._both(self._like.logits(judged), self._alone.logits(self._without(judged)))

    def left_out(self, judged: Judged) -> Tensor:
        """Return the leave-one-out logit F (n,) of questions that F was fitted on."""
        return self._both(self._like.left_out(judged), self._alone.left_out(self._without(judged)))

    def _without(self, judged: Judged) -> Judged:
        return replace(judged, features=judged.features[:, self._own :])

    def _mixed(self, like: Tensor, alone: Tensor) -> Tensor:
        return self.share * like + (1 - self.share) * alone

    def _both(self, like: Tensor, alone: Tensor) -> Tensor:
        return torch.logit(self._mixed(torch.sigmoid(like), torch.sigmoid(alone)), eps=1e-6)


def _log_likelihood(logits: Tensor, judged: Judged) -> Tensor:
    """Return the log-likelihood of the losses."""
    ones, zeros = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    return (judged.loss * ones + (1 - judged.loss) * zeros).sum()
