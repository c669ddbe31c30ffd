"""The mean under the question GP where other models are known: as like them as the answers say.

Two regressions learn from the same answers: one that starts from what a cohort tells
(``cohort``), and one that knows nothing of it. Each counts by how well it foretells the answers
that it is not shown, so that a model which is unlike its cohort costs some answers, and no more.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from .loss_mean import EffectsPrior, Judged, LossMean

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
