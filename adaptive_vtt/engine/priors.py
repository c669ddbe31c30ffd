"""What is foretold of every question before the first draw: by an earlier audit, and by a cohort.

An earlier audit asked a small part of the questions, and this one seldom asks the same. What
carries over is not the loss of one question but where losses are: which images, which relations. So
a question GP of its own learns all its answers, once, and what it expects is a proxy of the new
model (``WarmStart``). It may be wrong as any proxy may. It knows the earlier draws, and nothing of
those to come, which follow from a key of their own (``audit_key``).

Of a cohort, the question GP gets a prior and columns for every question (``CohortLosses``). A
model that was asked a part of the questions predicts the others as a warm start from its audit
does, or, where it came from a table, what the other models and its own mean say. Nothing here
knows an answer of this audit.
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
"""The expected loss where the earlier audit has no answer."""
MAX_KEPT = 2**24
"""Questions of a space up to which expected losses are kept, 64 MB; else they are worked out again
each time."""


class WarmStart:
    """Expected losses of questions, by ``surrogate`` once it has learnt the answers of ``prior``.

    ``surrogate`` makes one that has learnt nothing, when it is needed. Raises InputError where the
    earlier audit was of another space.
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
        self._learnt: LossSurrogate | None = None
        self._kept = np.full(space.total if space.total <= MAX_KEPT else 0, np.nan, np.float32)

    @property
    def key(self) -> str:
        """That of the earlier audit."""
        return self._prior.key

    def losses(self, question: Indices, truth: Indices) -> Floats:
        if not len(self._prior.questions):
            return np.full(len(question), NEUTRAL)
        if not len(self._kept):
            return self._expected(question)
        new = np.unique(question[np.isnan(self._kept[question])])
        if len(new):
            self._kept[new] = self._expected(new)
        return self._kept[question].astype(np.float64)

    def content(self) -> str:
        return f"{self._prior.key} {hashed(self._prior.questions, self._prior.losses)}"

    def _expected(self, question: Indices) -> Floats:
        if self._learnt is None:
            self._learnt = self._taught()
        table = columns(self._space, question)
        places = np.arange(len(question))
        return array(self._learnt.posterior(candidates_of((*table, places, question))).mean)

    def _taught(self) -> LossSurrogate:
        prior, surrogate = self._prior, self._make()
        table = columns(self._space, prior.questions)
        sample, variant, concept, truth = (tensor(np.ascontiguousarray(row)) for row in table[2:])
        margins = np.array([Observation.of(row, False).margin for row in prior.answers], float)
        losses = Losses(sample, variant, concept, truth, tensor(prior.losses), tensor(margins))
        surrogate.observe(losses)
        return surrogate


MOSTLY = 0.5
"""The share of the space above which a journal's other questions need no question GP."""


class CohortLosses:
    """Prior and columns that a cohort gives for a space; see ``surrogates.cohort.CohortSignals``.

    ``surrogate`` makes a question GP that has learnt nothing. ``begun``: the facts of a journal
    that is gone on with, by whose members it goes: a pattern may match other runs by now, such as
    this one. Raises InputError where fewer than three models tell anything.
    """

    def __init__(
        self,
        cohort: Cohort,
        space: QuestionSpace,
        surrogate: Callable[[], LossSurrogate],
        begun: Facts | None = None,
    ) -> None:
        known = _then(cohort, begun)
        there = [(m, k) for m, k in zip(known.members, known.on(space), strict=True) if len(k[0])]
        self.cohort, self._space = Cohort([member for member, _ in there]), space
        self._known = [known for _, known in there]
        journals = [member.journal for member in self.cohort.members]
        self._warm_starts = [
            None
            if journal is None or len(known.questions) > MOSTLY * space.size
            else WarmStart(journal, space, surrogate)
            for journal, known in zip(journals, self._known, strict=True)
        ]
        self._usual = np.array([known.losses.mean() for known in self._known])
        kept = space.total if space.total * self._width <= MAX_KEPT else 0
        self._kept = np.full((kept, self._width), np.nan, np.float32)

    def __call__(self, sample: "Tensor", variant: "Tensor", concept: "Tensor") -> "Tensor":
        """(n, D) columns of the regression, of questions (n,)."""
        question = self._space.number(*(array(part) for part in (sample, variant, concept)))
        if not len(self._kept):
            return tensor(self._columns(question))
        new = np.unique(question[np.isnan(self._kept[question, 0])])
        if len(new):
            self._kept[new] = self._columns(new)
        return tensor(self._kept[question].astype(np.float64))

    @property
    def effects(self) -> EffectsPrior:
        return self.prior.effects

    @cached_property
    def prior(self) -> CohortPrior:
        """Of the questions of which any loss is known."""
        known = [each.questions for each in self._known]
        asked = np.unique(np.concatenate(known))
        asked = asked[np.linspace(0, len(asked) - 1, min(len(asked), MAX_ROWS)).astype(int)]
        losses = self._losses(asked)
        return CohortPrior.of(losses, self._filled(asked, losses), self._cells(asked))

    @property
    def content(self) -> str:
        """A digest of all that is known of its members."""
        parts = [part for known in self._known for part in known]
        return hashed(*parts, np.array([len(k.questions) for k in self._known]))

    def facts(self) -> JsonObject:
        """For a new journal: what the prior follows from, and what it is."""
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

    def _columns(self, question: Indices) -> Floats:
        return self.prior.features(self._filled(question, self._losses(question)))

    def _losses(self, question: Indices) -> Floats:
        """n x K, NaN where nothing is known."""
        return np.stack([known.of(question) for known in self._known], axis=1)

    def _filled(self, question: Indices, losses: Floats) -> Floats:
        """The same with what is expected where nothing is known."""
        filled, truth = losses.copy(), np.zeros(len(question), np.int64)
        for column, warm_start in enumerate(self._warm_starts):
            lacking = np.isnan(losses[:, column])
            if warm_start is not None and lacking.any():
                filled[lacking, column] = warm_start.losses(question[lacking], truth[lacking])
        there = ~np.isnan(filled)
        total, count = np.where(there, filled, 0).sum(axis=1), there.sum(axis=1)
        guess = (total[:, None] + self._usual) / (count[:, None] + 1)
        return np.where(there, filled, guess)

    def _cells(self, question: Indices) -> Cells:
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


def _then(cohort: Cohort, begun: Facts | None) -> Cohort:
    """The members that the audit was begun with, of those there are now. Raises JournalError where
    one is missing."""
    if begun is None or begun.cohort is None:
        return cohort
    keys = [member.journal and member.journal.key for member in cohort.members]
    there = {key or m.name: m for key, m in zip(keys, cohort.members, strict=True)}
    then = list(zip(begun.cohort.models, begun.cohort.keys, strict=True))
    missing = [name for name, key in then if (key or name) not in there]
    if missing:
        raise JournalError(
            f"journal: was begun with a cohort that has {missing[0]!r}, which is not in this one; "
            "give the cohort as it was, or begin a new audit"
        )
    return Cohort([there[key or name] for name, key in then])
