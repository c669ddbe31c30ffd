"""The answers so far as arrays: what was asked and lost, and how likely it was to be asked."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from ...certify.targets import Target, member
from ...journal.rows import CallRow, DrawRow
from ...space import QuestionSpace
from ...types import Bools, Floats, Indices


@dataclass(frozen=True)
class Evidence:
    """n judged questions, those that do not count left out.

    ``question``, ``sample``, ``variant``, ``concept``, ``truth`` (n,); ``loss`` (n,) in [0, 1];
    ``weight`` (n,): the inverse of the draw proposal, 1 where it was even. Questions were drawn
    where failures were likely, say; weighed so, a mean loss is that of the unseen questions, too.
    """

    question: Indices
    sample: Indices
    variant: Indices
    concept: Indices
    truth: Indices
    loss: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.question)

    @classmethod
    def of(cls, space: QuestionSpace, draws: Sequence[DrawRow], calls: Collection[CallRow]) -> Self:
        """What the answered ones among ``draws`` tell; ``calls`` may hold others, too."""
        drawn = {row.call: row for row in draws}
        told = [
            (answer.question, answer.loss, _weight(drawn[call.call]))
            for call in calls
            if call.call in drawn
            for answer in call.answers
            if answer.loss is not None and not answer.excluded
        ]
        question = np.array([q for q, _, _ in told], np.int64)
        sample, variant, concept = space.parts(question)
        truth = np.asarray(space.dataset.truth(sample, concept), np.int64)
        loss, weight = (np.array([row[k] for row in told], float) for k in (1, 2))
        return cls(question, sample, variant, concept, truth, loss, weight)

    @property
    def rate(self) -> float:
        """The weighted mean loss; 0 where nothing is judged."""
        weights = self.weight
        return float(np.average(self.loss, weights=weights)) if weights.any() else 0.0

    def only(self, kept: Bools | Indices) -> Self:
        """Those of the questions that ``kept`` marks (n,), or those at its places."""
        return type(self)(*(getattr(self, f.name)[kept] for f in fields(self)))

    def inside(self, space: QuestionSpace, targets: Sequence[Target]) -> Bools:
        """K x n: which questions belong to which of K targets."""
        return member(space, targets, self.sample, self.variant, self.concept, self.truth)


def _weight(draw: DrawRow) -> float:
    """The share of its call under an even proposal, over that under the proposal it was drawn
    from."""
    return 1 / (int(draw.why.get("candidates", 1 / draw.probability)) * draw.probability)
