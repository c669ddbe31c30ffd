"""What K >= 3 other models tell of the regression under the question GP, before any answer.

The models are taken for a sample of a population, to which the one that is audited belongs, too. So
each of them is regressed on the rest, leave-one-out: how its logit follows from the others' mean
logit (an intercept and a slope), and from the one factor in which the others disagree most. The
spread of these K regressions is how far the next model may be from the mean of them.

The answers of other models are facts that were collected apart. Nothing of this audit's own answers
enters, so predictions stay fixed before every draw, and no interval rests on any of this.

The mean under the question GP is then as like them as the answers say. Two regressions learn from
the same answers: one that starts from the cohort, and one that knows nothing of it. Each
counts by how well it foretells the answers that it is not shown, so that a model which is unlike
its cohort costs some answers, and no more.
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
"""The variance of K models' coefficients is that of a sample: it is taken WIDER times, and more."""
SINGLE, SINGLE_VARIANCE = 0.1, 0.25
"""What single models' logits, less their mean, are multiplied by, and their weights' variance."""
FIRST_CELLS = 0.003
"""The first guess of the variance of effects of variants, and of sides, beyond what the cohort's
mean predicts; learned from its models."""
ROUNDS = 4
"""Fits, of some rounds each, in which the variances of a model's effects settle."""
MAX_ROWS = 8192
"""Questions that the regressions are fitted on, at most, evenly spread."""


def logits(losses: Floats) -> Floats:
    """Of losses in [0, 1], none taken for certain."""
    inside = np.clip(losses, LOWEST, HIGHEST)
    return np.asarray(np.log(inside / (1 - inside)))


@dataclass(frozen=True)
class Factor:
    """The largest disagreement of K models: ``centre`` (K,) are their mean responses, less those of
    all, ``loading`` (K,) what a question's residuals are weighted with, so that its mean square is
    1."""

    centre: Floats
    loading: Floats

    @classmethod
    def of(cls, losses: Floats) -> "Factor":
        """Of n questions x K models."""
        rest = losses - losses.mean(axis=1, keepdims=True)
        centre = rest.mean(axis=0)
        _, sizes, right = np.linalg.svd(rest - centre, full_matrices=False)
        size = max(float(sizes[0]), 1e-9)
        loading = right[0] * np.sign(right[0][np.argmax(np.abs(right[0]))])  # else it is a coin's
        return cls(centre, loading * (np.sqrt(len(losses)) / size))

    def scores(self, losses: Floats) -> Floats:
        """(n,) of questions n x K."""
        rest = losses - losses.mean(axis=1, keepdims=True)
        return np.asarray((rest - self.centre) @ self.loading)


@dataclass(frozen=True)
class CohortPrior:
    """The prior of a model's regression on K others, and what is made of their losses.

    ``members`` (K, 5): each model's regression on the others: intercept, slope, weight of the
    factor, and the variances of its effects of variants and of sides. All else follows from them.
    """

    members: Floats
    factor: Factor

    @classmethod
    def of(cls, known: Floats, filled: Floats, cells: "Cells") -> "CohortPrior":
        """Return the prior by losses of n questions x K models, three or more, each with a known
        one: ``known`` is NaN elsewhere, ``filled`` holds expected losses there."""
        rows = np.linspace(0, len(known) - 1, min(len(known), MAX_ROWS)).round().astype(int)
        known, filled, cells = known[rows], filled[rows], cells.rows(rows)
        members = [_member(known, filled, cells, j) for j in range(known.shape[1])]
        return cls(np.array(members), Factor.of(filled))

    @property
    def models(self) -> int:
        return len(self.members)

    @property
    def effects(self) -> EffectsPrior:
        """Of intercept, slope, factor and the K single models; and the variances of cells."""
        mean, variance = prior_of(self.members)
        singles = np.zeros(self.models)
        return EffectsPrior(
            torch.from_numpy(np.concatenate([mean, singles])),
            torch.from_numpy(np.concatenate([variance, singles + SINGLE_VARIANCE])),
            (float(np.median(self.members[:, 3])), float(np.median(self.members[:, 4]))),
        )

    def features(self, losses: Floats) -> Floats:
        """n x (2 + K): the regression's columns, of questions n x K."""
        each = logits(losses)
        columns = [logits(losses.mean(axis=1))[:, None], self.factor.scores(losses)[:, None]]
        singles = SINGLE * (each - each.mean(axis=1, keepdims=True))
        return np.concatenate([*columns, singles], axis=1)


def prior_of(members: Floats) -> tuple[Floats, Floats]:
    """Mean and variance, (3,) each, of intercept, slope and weight of the factor. The factor's sign
    means nothing, so its weight is 0 on average."""
    mean = np.append(members[:, :2].mean(axis=0), 0.0)
    variance = np.append(members[:, :2].var(axis=0, ddof=1), (members[:, 2] ** 2).mean())
    return mean, WIDER * variance + MIN_VARIANCE


@dataclass(frozen=True)
class Cells:
    """The kinds of n questions: ``variant`` and ``side`` (concept * 3 + truth) of each, and what
    the variants are; ``concepts``: how many."""

    variant: Indices
    side: Indices
    relation: tuple[int, ...]
    severity: tuple[int, ...]
    concepts: int

    def rows(self, rows: Indices) -> "Cells":
        """Those of some questions."""
        return Cells(
            self.variant[rows], self.side[rows], self.relation, self.severity, self.concepts
        )


def _member(known: Floats, filled: Floats, cells: Cells, j: int) -> Floats:
    """(5,): the regression of model j on the others; see ``CohortPrior``."""
    asked = np.flatnonzero(~np.isnan(known[:, j]))
    others = np.delete(filled, j, axis=1)
    mean = logits(others.mean(axis=1))[asked]
    factor = Factor.of(others).scores(others)[asked]
    losses = known[asked, j]
    one = np.ones_like(mean)
    line = _regressed(losses, np.stack([one, mean], 1))
    with_factor = _regressed(losses, np.stack([one, mean, factor], 1))
    kinds = _cell_variances(losses, mean, line, cells.rows(asked))
    return np.array([*line, with_factor[2], *kinds])


def _regressed(losses: Floats, inputs: Floats) -> Floats:
    """Weights of a logistic regression, with a slight pull to what the others' mean says."""
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
    """The variances of a model's effects of variants and of sides, by expectation-maximisation
    next to its line on the others' mean."""
    given = EffectsPrior(
        torch.from_numpy(line), torch.full((2,), MIN_VARIANCE).double(), (FIRST_CELLS,) * 2
    )
    fitted = LossMean(cells.relation, cells.severity, cells.concepts, given=given)
    count = len(losses)
    none = torch.full((count,), torch.nan, dtype=torch.float64)
    judged = Judged(
        torch.zeros(count, dtype=torch.int64),
        torch.from_numpy(cells.variant),
        torch.zeros(count, dtype=torch.int64),
        torch.from_numpy(cells.side),
        torch.from_numpy(losses),
        none,
        torch.from_numpy(mean)[:, None],
    )
    for _ in range(ROUNDS):
        fitted.fit(judged)
    return fitted.cell_variances


FIRST_SHARE = 0.5
"""The share of the regression that goes by the cohort, before any answer. With .9 a model like its
cohort takes no fewer calls, and one unlike it 4 to 14 % more."""


class CohortSignals(Protocol):
    """What other models tell: the regression's prior, and its inputs for any question."""

    @property
    def effects(self) -> EffectsPrior:
        """Of the intercept and of D columns."""

    def __call__(self, sample: Tensor, variant: Tensor, concept: Tensor) -> Tensor:
        """(n, D): the columns of questions (n,) each."""


class CohortMean:
    """F by a cohort's regression, and by one without, mixed; see ``loss_mean.Mean``.

    The first D features are the cohort's, those of cheaper models follow.
    """

    def __init__(
        self,
        relation: Sequence[int],
        severity: Sequence[int],
        concepts: int,
        *,
        given: EffectsPrior,
        device: torch.device | str = "cpu",
    ) -> None:
        kinds = relation, severity, concepts
        self._like = LossMean(*kinds, given=given, device=device)
        self._alone = LossMean(*kinds, device=device)
        self._own = len(given.mean) - 1
        self.device = self._like.device
        self.share = FIRST_SHARE

    def fit(self, judged: Judged) -> None:
        """Learns from all judged questions, and how much either regression counts."""
        alone = self._without(judged)
        self._like.fit(judged)
        self._alone.fit(alone)
        odds = math.log(FIRST_SHARE / (1 - FIRST_SHARE))
        gain = _told(self._like.left_out(judged), judged)
        gain -= _told(self._alone.left_out(alone), alone)
        self.share = float(torch.sigmoid(gain + odds))

    def features(self, proxies: Tensor) -> Tensor:
        """(n, P'): see ``LossMean``."""
        return self._alone.features(proxies)

    def expected(self, variant: Tensor, side: Tensor, features: Tensor) -> Tensor:
        """F (n,) of n questions."""
        alone = self._alone.expected(variant, side, features[:, self._own :])
        return self._mixed(self._like.expected(variant, side, features), alone)

    def variant_rates(self) -> Tensor:
        """(V,): F of each variant."""
        return self._mixed(self._like.variant_rates(), self._alone.variant_rates())

    def logits(self, judged: Judged) -> Tensor:
        """logit F (n,) of n questions, without caution."""
        return self._both(self._like.logits(judged), self._alone.logits(self._without(judged)))

    def left_out(self, judged: Judged) -> Tensor:
        """logit F (n,) of questions, as if each had not been among those that F was fitted on."""
        return self._both(self._like.left_out(judged), self._alone.left_out(self._without(judged)))

    def _without(self, judged: Judged) -> Judged:
        return replace(judged, features=judged.features[:, self._own :])

    def _mixed(self, like: Tensor, alone: Tensor) -> Tensor:
        return self.share * like + (1 - self.share) * alone

    def _both(self, like: Tensor, alone: Tensor) -> Tensor:
        return torch.logit(self._mixed(torch.sigmoid(like), torch.sigmoid(alone)), eps=1e-6)


def _told(logits: Tensor, judged: Judged) -> Tensor:
    """Log-likelihood of the losses."""
    ones, zeros = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    return (judged.loss * ones + (1 - judged.loss) * zeros).sum()
