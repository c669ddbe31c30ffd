"""Models of a cohort: what each lost, and which questions of a space that is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..journal.prior import Prior
from ..space import QuestionSpace
from ..types import IDENTITY, Floats, Indices


class Item(NamedTuple):
    """What a loss is about. Without ``relation`` it is the source image, where the space has it,
    else its only variant; without ``concept`` the only one."""

    sample: str
    relation: str | None = None
    severity: int | None = None
    concept: str | None = None


class Known(NamedTuple):
    """Questions (n,) of a space, ascending, and a model's losses (n,) in [0, 1]."""

    questions: Indices
    losses: Floats

    def of(self, questions: Indices) -> Floats:
        """(m,): the losses of other questions, NaN where none is known."""
        if not len(self.questions):
            return np.full(len(questions), np.nan)
        place = np.searchsorted(self.questions, questions).clip(max=len(self.questions) - 1)
        return np.where(self.questions[place] == questions, self.losses[place], np.nan)


@dataclass(frozen=True)
class Member:
    """One model: its ``name``, and the ``losses`` of items, or what a ``journal`` holds."""

    name: str
    losses: Mapping[Item, float] | None = None
    journal: Prior | None = None

    def on(self, space: QuestionSpace) -> Known:
        """What is known of the questions of a space; items that are none of it are left out."""
        if self.journal is not None:
            then = self.journal.space
            if then.fingerprint != space.fingerprint:
                raise InputError(
                    f"cohort: {self.journal.where!r}: expected an audit of this space "
                    f"({space.dataset.name!r}, {space.size} questions), got one of "
                    f"{then.dataset!r} with {then.size}; leave it out"
                )
            return Known(self.journal.questions, self.journal.losses)
        return _known(self.name, self.losses or {}, space)


def _known(name: str, losses: Mapping[Item, float], space: QuestionSpace) -> Known:
    samples = {space.dataset.sample_id(k): k for k in range(len(space.dataset))}
    variants = {(v.relation.name, v.severity): k for k, v in enumerate(space.variants)}
    concepts = {concept: k for k, concept in enumerate(space.concepts)}
    source = next((k for (r, _), k in variants.items() if r == IDENTITY), 0)
    found: dict[int, float] = {}
    for item, loss in losses.items():
        if item.concept is None and len(concepts) > 1:
            raise InputError(
                f"cohort: {name!r}, sample {item.sample!r}: expected a concept, as the space has "
                f"{len(concepts)}, got none; add a column 'concept'"
            )
        sample = samples.get(item.sample)
        where = (item.relation, item.severity or 0)
        variant = source if item.relation is None else variants.get(where)  # type: ignore[arg-type]  # not None
        concept = 0 if item.concept is None else concepts.get(item.concept)
        if sample is not None and variant is not None and concept is not None:
            found[space.numbering.number(sample, variant, concept)] = loss
    questions = np.array(sorted(found), np.int64)
    return Known(questions, np.array([found[q] for q in questions.tolist()], float))
