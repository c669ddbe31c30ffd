"""Predictions before the first draw, from an earlier audit and from a cohort of other models.

An earlier audit asked a small part of the questions, seldom the same as this one. Single losses
do not carry over, but the images and relations with high losses do. So a separate question GP
learns all its answers once, and its predictions are a proxy (``WarmStart``), which may be wrong as
any proxy. It knows the earlier draws, but not those to come: they follow from another key
(``audit_key``).

From a cohort, the question GP gets a prior and features for every question (``CohortLosses``).
Unknown losses of a model in the cohort are predicted: by a warm start from its audit, or, if it
came from a table, from its mean and the other models. No answer of this audit is used here.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..cohort import Cohort
from ..errors import InputError, JournalError
from ..journal.facts import Facts
from ..journal.prior import Prior
from ..space import QuestionSpace
from ..surrogates import Losses, LossSurrogate
from ..surrogates.cohort import MAX_ROWS, Cells, CohortPrior, prior_of
from ..surrogates.loss_mean import SIDES, EffectsPrior
from ..types import Floats, Indices, JsonObject
from .belief import Observation
from .candidates import columns
from .tensors import array, candidates_of, hashed, tensor

if TYPE_CHECKING:
    from .tensors import Tensor


NEUTRAL = 0.5
"""Predicted loss if the earlier audit has no answers."""
MOSTLY = 0.5
"""If a journal has answers to more than this share of the space, no GP predicts the others."""
MAX_KEPT = 2**24
"""Most predictions that are kept, 64 MB; in a larger space they are computed again each time."""


class WarmStart:
    """A proxy: a surrogate's predictions from the answers of an earlier audit.

    Args:
        prior: The earlier audit.
        space: All questions.
        surrogate: Returns a new surrogate, when one is needed.

    Raises:
        InputError: If the earlier audit was of another space.
    """

    def __init__(
        self, prior: Prior, space: QuestionSpace, surrogate: Callable[[], LossSurrogate]
    ) -> None:
        then = prior.space
        if then.fingerprint != space.fingerprint:
            raise InputError(
                f"prior journal {prior.where!r}: expected an audit of this space "
                f"({space.dataset.name!r}, {space.size} questions), got one of "
                f"{then.dataset!r} with {then.size}"
            )
        self._prior, self._space, self._make = prior, space, surrogate
        self._fitted: LossSurrogate | None = None
        self._kept = np.full(space.total if space.total <= MAX_KEPT else 0, np.nan, np.float32)

    @property
    def key(self) -> str:
        """The earlier audit's key."""
        return self._prior.key

    def losses(self, question: Indices, truth: Indices) -> Floats:
        """Return predicted losses (n,) of questions (n,); ``truth`` makes no difference."""
        if not len(self._prior.questions):
            return np.full(len(question), NEUTRAL)
        if not len(self._kept):
            return self._predicted(question)
        new = np.unique(question[np.isnan(self._kept[question])])
        if len(new):
            self._kept[new] = self._predicted(new)
        return self._kept[question].astype(np.float64)

    def content(self) -> str:
        """Return the earlier audit's key with a hash of its answers."""
        return f"{self._prior.key} {hashed(self._prior.questions, self._prior.losses)}"

    def _predicted(self, question: Indices) -> Floats:
        if self._fitted is None:
            self._fitted = self._fit()
        units = np.arange(len(question))  # each question is its own call
        candidates = candidates_of((*columns(self._space, question), units, question))
        return array(self._fitted.posterior(candidates).mean)

    def _fit(self) -> LossSurrogate:
        prior, surrogate = self._prior, self._make()
        table = columns(self._space, prior.questions)
        sample, variant, concept, truth = (tensor(np.ascontiguousarray(row)) for row in table[2:])
        margins = np.array([Observation.of(row, False).margin for row in prior.answers], float)
        losses = Losses(sample, variant, concept, truth, tensor(prior.losses), tensor(margins))
        surrogate.observe(losses)
        return surrogate


class CohortLosses:
    """The prior and the features that a cohort gives (``surrogates.cohort.CohortSignals``).

    K models of the cohort have D = K + 2 features per question.

    Args:
        cohort: The other models.
        space: All questions.
        surrogate: Returns a new question GP.
        begun: Facts of the journal that is resumed. Its members are used: a pattern may match
            other runs by now, even this one. None: a new audit.

    Raises:
        InputError: If fewer than three models have answers on this space.
        JournalError: If a member that the journal began with is missing.
    """

    def __init__(
        self,
        cohort: Cohort,
        space: QuestionSpace,
        surrogate: Callable[[], LossSurrogate],
        begun: Facts | None = None,
    ) -> None:
        cohort = _as_begun(cohort, begun)
        pairs = zip(cohort.members, cohort.on(space), strict=True)
        answered = [(member, known) for member, known in pairs if len(known.questions)]
        self.cohort, self._space = Cohort([member for member, _ in answered]), space
        self._known = [known for _, known in answered]
        self._warm_starts = [
            None
            if member.journal is None or len(known.questions) > MOSTLY * space.size
            else WarmStart(member.journal, space, surrogate)
            for member, known in answered
        ]
        self._means = np.array([known.losses.mean() for known in self._known])
        kept = space.total if space.total * self._width <= MAX_KEPT else 0
        self._kept = np.full((kept, self._width), np.nan, np.float32)

    def __call__(self, sample: "Tensor", variant: "Tensor", concept: "Tensor") -> "Tensor":
        """Return the features (n, D) of questions (n,)."""
        question = self._space.number(*(array(part) for part in (sample, variant, concept)))
        if not len(self._kept):
            return tensor(self._features(question))
        new = np.unique(question[np.isnan(self._kept[question, 0])])
        if len(new):
            self._kept[new] = self._features(new)
        return tensor(self._kept[question].astype(np.float64))

    @property
    def effects(self) -> EffectsPrior:
        return self.prior.effects

    @cached_property
    def prior(self) -> CohortPrior:
        """The prior, from at most ``MAX_ROWS`` questions with a known loss, evenly spread."""
        asked = np.unique(np.concatenate([known.questions for known in self._known]))
        asked = asked[np.linspace(0, len(asked) - 1, min(len(asked), MAX_ROWS)).astype(int)]
        losses = self._losses(asked)
        return CohortPrior.of(losses, self._filled(asked, losses), self._cells(asked))

    @property
    def content(self) -> str:
        """A hash of all losses of the members."""
        parts = [part for known in self._known for part in known]
        return hashed(*parts, np.array([len(k.questions) for k in self._known]))

    def facts(self) -> JsonObject:
        """Return the fact "cohort" of a new journal: the members, their answers, the prior."""
        mean, variance = prior_of(self.prior.members)
        facts = {
            "models": self.cohort.names,
            "keys": self.cohort.keys,
            "known": [len(known.questions) for known in self._known],
            "content": self.content,
            "members": self.prior.members.tolist(),
            "mean": mean.tolist(),
            "variance": variance.tolist(),
        }
        return {"cohort": facts}

    @property
    def _width(self) -> int:
        return 2 + len(self.cohort)

    def _features(self, question: Indices) -> Floats:
        return self.prior.features(self._filled(question, self._losses(question)))

    def _losses(self, question: Indices) -> Floats:
        """Return each model's losses (n x K); NaN where they are not known."""
        return np.stack([known.of(question) for known in self._known], axis=1)

    def _filled(self, question: Indices, losses: Floats) -> Floats:
        """Return ``losses`` (n x K) with predictions in place of NaN."""
        filled, truth = losses.copy(), np.zeros(len(question), np.int64)
        for column, warm_start in enumerate(self._warm_starts):
            missing = np.isnan(losses[:, column])
            if warm_start is not None and missing.any():
                filled[missing, column] = warm_start.losses(question[missing], truth[missing])
        # Without a warm start: the mean of the other models' losses and the model's mean loss.
        known = ~np.isnan(filled)
        total, count = np.where(known, filled, 0).sum(axis=1), known.sum(axis=1)
        guess = (total[:, None] + self._means) / (count[:, None] + 1)
        return np.where(known, filled, guess)

    def _cells(self, question: Indices) -> Cells:
        """Return where questions (n,) belong in the prior's regression."""
        sample, variant, concept = self._space.parts(question)
        truth = self._space.dataset.truth(sample, concept)
        variants = self._space.variants
        relations = list(dict.fromkeys(v.relation.name for v in variants))
        return Cells(
            variant,
            concept * SIDES + truth % SIDES,
            tuple(relations.index(v.relation.name) for v in variants),
            tuple(v.severity for v in variants),
            len(self._space.concepts),
        )


def _as_begun(cohort: Cohort, begun: Facts | None) -> Cohort:
    """Return the cohort's members that the audit began with; raise JournalError if one lacks."""
    if begun is None or begun.cohort is None:
        return cohort
    members = {
        member.journal.key if member.journal else member.name: member for member in cohort.members
    }
    then = list(zip(begun.cohort.models, begun.cohort.keys, strict=True))
    missing = [name for name, key in then if (key or name) not in members]
    if missing:
        raise JournalError(
            f"journal: was begun with a cohort that has {missing[0]!r}, which is not in this one; "
            "give the cohort as it was, or begin a new audit"
        )
    return Cohort([members[key or name] for name, key in then])
