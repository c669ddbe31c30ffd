"""The protocol of oracles, and defaults of its members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np

from .. import types
from ..datasets.base import CompleteDataset, Dataset
from ..relations.base import RelationDefaults
from ..types import Case, FollowUp, Indices, Outcome, PairedLoss, Question, Received, Sample, Value
from ..utils.options import Option
from ..utils.other_code import Completed
from .judge_models import JudgeModel, Query

UnansweredLoss = Annotated[float, Option("loss of a question without answer", ge=0, le=1)]
MISCLASSIFICATION, LABEL_ERROR = "misclassification rate", "label error"
"""Names of the error where each image has one class, and where it has any labels."""


def error_of(concepts_are: types.ConceptsAre, rates: Mapping[str, int]) -> str:
    """Return the name of the mean loss over all concepts; ``rates``: those of a single one."""
    only = next(iter(rates)) if len(rates) == 1 else types.ERROR
    return {"classes": MISCLASSIFICATION, "labels": LABEL_ERROR}.get(concepts_are, only)


@dataclass(frozen=True)
class Premise:
    """A question about a follow-up, with its origin.

    Args:
        relation: The relation that made the follow-up.
        follow_up: Its image, and the draws that made it.
        sample: The source.
        question: The question about the follow-up.
        source_answer: The answer about the source, where the oracle needs it.
    """

    relation: RelationDefaults
    follow_up: FollowUp
    sample: Sample
    question: Question
    source_answer: types.SourceAnswer


class Oracle(Protocol):
    """Judges an answer against what was expected, or against the source image's answer.

    ``needs_source``: whether the model must also be asked about the source image. The source image
    (relation identity) is then no question. ``OracleDefaults`` has the optional members.
    """

    needs_source: bool

    def judge(self, question: Question, answer: Any, expected: Any, source_answer: Any) -> Outcome:
        """Return the outcome of ``answer``: a probability of Yes, a mask, or Unanswered."""


class OracleDefaults:
    """Defaults of the optional members of an oracle.

    ``concepts_are`` decides which further figures follow from the rates:

    - "classes": each image has exactly one, and the most probable one is the answer.
    - "labels": each is present or not, and a wrong answer is the opposite.
    - "choices": each question has one right option.
    """

    needs_source = False
    concepts_are: types.ConceptsAre = "other"
    rates = types.SIDES
    unanswered_loss = 1.0
    whole_call: bool = False
    """True if all concepts must be answered in one call."""
    whole_source: bool = False
    """True if it gets the answers about all concepts of the source image, as a tuple."""
    judges_masks: bool = False
    """True if answers are masks that are compared with others."""
    judges_scores: bool = False
    """True if an answer may be a mask's score by the same metric."""
    tells_losses: bool = False
    """True if answers are losses, so that there is no answer to predict."""
    judge_by: JudgeModel | None = None
    """The judge model that is asked where the rule is not sure, if there is one."""
    models: int = 1
    """Models that a call asks; an answer holds the answers of all and costs as many calls."""

    @property
    def error(self) -> str:
        """The name of the mean loss over all concepts."""
        return error_of(self.concepts_are, self.rates)

    @property
    def regime(self) -> str | None:
        """The named rule that reads replies in words; journaled."""
        return None

    @property
    def original(self) -> Oracle:
        """The user's oracle: this one, unless it is adapted."""
        return self

    @property
    def code(self) -> tuple[Oracle, ...]:
        """The oracles whose code decides losses."""
        return (self.original,)

    def alone(self) -> "OracleDefaults | None":
        """Return this oracle, or one in its place, that judges each answer by itself.

        None if there is none.
        """
        return None if self.needs_source else self

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
        """Return the most versions of a source image that the oracle may ask about, without the
        image itself."""
        return 0

    def versions(self, sample: Sample, received: Received | None) -> Mapping[int, types.Version]:
        """Return the versions of a source image to ask about, by place (below ``most_versions``).

        ``received`` has the answers so far; None: return all versions that may be asked about. An
        oracle with versions gets a ``Received`` as ``source_answer``.
        """
        return {}

    def models_asked(self, questions: Indices) -> Indices:
        """Return how many models each question is sent to: (n,), in 1..models."""
        return np.full(len(questions), self.models)

    def paired_losses(self, details: Mapping[str, Any] | None) -> Sequence[PairedLoss]:
        """Return the losses of each of several models, from an outcome's details; () of one."""
        return ()

    def expect(self, given: Premise) -> Any:
        """Return the expected answer to the follow-up."""
        return given.relation.expect(given.question.truth, given.follow_up)

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        """Return a source image's answer as a number by which follow-ups can be judged again.

        Raises:
            InputError: The answer cannot be a number.
        """
        return value if isinstance(value, float) else None

    def query(self, case: Case) -> Query | None:
        """Return the question to ``judge_by`` about an answer; None for none."""
        return None

    def settled(self, case: Case, reply: Value) -> Outcome:
        """Return the outcome of an answer, given the ``reply`` of ``judge_by``, or Unanswered."""
        raise TypeError(f"{type(self).__name__} defines no settled")

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        """Return the outcomes of a call's questions; ``values`` are its answers to all concepts."""
        return [self.judge(c.question, c.answer, c.expected, c.source_answer) for c in cases]


class Adapted(Completed, OracleDefaults):
    """An oracle that does not inherit from ``OracleDefaults``."""

    @property
    def original(self) -> Oracle:
        return self.plain


def adapted(oracle: Oracle) -> OracleDefaults:
    """Return an oracle with all members of ``OracleDefaults``.

    Args:
        oracle: Any oracle.

    Returns:
        The oracle itself if it has them, else one that adds the defaults.
    """
    return oracle if isinstance(oracle, OracleDefaults) else Adapted(oracle)
