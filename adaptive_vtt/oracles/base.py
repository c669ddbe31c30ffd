"""What an oracle is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np

from ..datasets.base import CompleteDataset, Dataset
from ..relations.base import RelationDefaults
from ..types import (
    ERROR,
    SIDES,
    Case,
    ConceptsAre,
    FollowUp,
    Indices,
    Outcome,
    PairedLoss,
    Question,
    Received,
    Sample,
    SourceAnswer,
    Value,
    Version,
)
from ..utils.options import Option
from .judge_models import JudgeModel, Query

UnansweredLoss = Annotated[float, Option("loss of a question without answer", ge=0, le=1)]
MISCLASSIFICATION, LABEL_ERROR = "misclassification rate", "label error"
"""What it is called where each image has one class, and where it has any labels."""


def error_of(concepts_are: ConceptsAre, rates: Mapping[str, int]) -> str:
    """Return what the mean loss over all concepts is called; ``rates``: those of a single one."""
    only = next(iter(rates)) if len(rates) == 1 else ERROR
    return {"classes": MISCLASSIFICATION, "labels": LABEL_ERROR}.get(concepts_are, only)


@dataclass(frozen=True)
class Premise:
    """What follows for an answer: a question about a follow-up, how that was made of the source
    sample, and what was said of the source, where the oracle needs it."""

    relation: RelationDefaults
    follow_up: FollowUp
    sample: Sample
    question: Question
    source_answer: SourceAnswer


class Oracle(Protocol):
    """Judges an answer against what was expected, or against the source image's answer.

    ``needs_source``: whether the model has to be asked about the source image, too; then
    the source image itself (relation identity) is no question. Inherit from
    ``OracleDefaults`` for what else there is to say.
    """

    needs_source: bool

    def judge(
        self,
        question: Question,
        answer: Any,
        expected: Any,
        source_answer: Any,
    ) -> Outcome:
        """Return the outcome of ``answer``: a probability of Yes, a mask, or Unanswered."""


class OracleDefaults:
    """What most oracles do alike.

    ``concepts_are`` says which further figures follow from their rates: "classes", of which every
    image has exactly one, and the likeliest is the answer; "labels", each there or not by itself,
    and an answer that is wrong about one is the opposite one; "choices", questions that have one
    right option each; or "other".
    """

    needs_source = False
    concepts_are: ConceptsAre = "other"
    rates = SIDES
    unanswered_loss = 1.0
    whole_call: bool = False
    """Whether all concepts have to be answered in one call."""
    judges_masks: bool = False
    """Whether answers are masks that are compared with others."""
    judges_scores: bool = False
    """Whether a mask's score by the same metric will do in place of the mask."""
    tells_losses: bool = False
    """Whether a question's loss is told, and no answer of which to believe anything."""
    judge_by: JudgeModel | None = None
    """The judge model that is asked where the rule is not sure, if there is one."""
    models: int = 1
    """How many models a call asks: each answer is theirs together, and costs so many calls."""

    @property
    def error(self) -> str:
        """What the mean loss is called of all concepts together."""
        return error_of(self.concepts_are, self.rates)

    @property
    def regime(self) -> str | None:
        """How replies in words are read, where that is named; journaled."""
        return None

    @property
    def original(self) -> Oracle:
        """The oracle as it was given: this one, unless it stands in for another."""
        return self

    @property
    def code(self) -> tuple[Oracle, ...]:
        """Whose code decides losses: this one's, and that of oracles which it leaves it to."""
        return (self.original,)

    def judge(
        self, question: Question, answer: Any, expected: Any, source_answer: Any = None
    ) -> Outcome:
        raise TypeError(f"{type(self).__name__} defines no judge")

    def view(self, dataset: Dataset) -> Dataset:
        """Return the samples and concepts that can be judged."""
        return dataset

    def asked(self, dataset: CompleteDataset) -> tuple[tuple[str, ...], Sequence[int]]:
        """Return the concepts to send to a model about a viewed dataset, and which one each is."""
        return dataset.asked

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        """Return whether a question about ``concept`` after ``relation`` can be judged."""
        return True

    def most_versions(self, dataset: CompleteDataset) -> int:
        """Of so many versions of a source image of a viewed dataset the oracle may have to
        hear, beside itself."""
        return 0

    def versions(self, sample: Sample, received: Received | None) -> Mapping[int, Version]:
        """Return the versions of a source image to ask about, by place (below ``most_versions``),
        given what was said of itself, and of those asked about so far; all there may be for None.

        An oracle that may have to hear of versions is given a ``Received`` as ``source_answer``.
        """
        return {}

    def models_asked(self, questions: Indices) -> Indices:
        """(n,), in 1..models: how many models each question has to be asked."""
        return np.full(len(questions), self.models)

    def paired_losses(self, details: Mapping[str, Any] | None) -> Sequence[PairedLoss]:
        """Return what each of several models lost, from the details of an outcome; () of one
        model."""
        return ()

    def expect(self, given: Premise) -> Any:
        """Return what the answer to the follow-up should be."""
        return given.relation.expect(given.question.truth, given.follow_up)

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        """Return a source image's answer as a number by which follow-ups can be judged again.

        Raises:
            InputError: where no number could be.
        """
        return value if isinstance(value, float) else None

    def query(self, case: Case) -> Query | None:
        """Return what ``judge_by`` may be asked about an answer; None where nothing is to be
        asked."""
        return None

    def settled(self, case: Case, reply: Value) -> Outcome:
        """Return the outcome of an answer, given the ``reply`` of ``judge_by``, or Unanswered."""
        raise TypeError(f"{type(self).__name__} defines no settled")

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        """Return the outcomes of a call's questions; ``values`` are its answers to all concepts."""
        return [self.judge(c.question, c.answer, c.expected, c.source_answer) for c in cases]


class Adapted(OracleDefaults):
    """An oracle that has only ``needs_source`` and ``judge``."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.needs_source = oracle.needs_source

    @property
    def original(self) -> Oracle:
        return self.oracle

    def judge(
        self, question: Question, answer: Any, expected: Any, source_answer: Any = None
    ) -> Outcome:
        return self.oracle.judge(question, answer, expected, source_answer)


def adapted(oracle: Oracle) -> OracleDefaults:
    """Return the oracle with everything ``OracleDefaults`` promises."""
    return oracle if isinstance(oracle, OracleDefaults) else Adapted(oracle)
