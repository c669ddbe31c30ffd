"""The protocol of oracles, and the defaults of its optional members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np

from .. import types
from ..datasets.base import CompleteDataset, Dataset
from ..relations.base import RelationDefaults, truth_after
from ..types import Case, FollowUp, Indices, Outcome, PairedLoss, Question, Received, Sample, Value
from ..utils.options import Option
from ..utils.other_code import Completed, naming
from .judge_models import JudgeModel, Query

UnansweredLoss = Annotated[float, Option("loss of a question without answer", ge=0, le=1)]
MISCLASSIFICATION, LABEL_ERROR = "misclassification rate", "label error"
"""Names of the error rate for images with one class each, and for images with any labels."""


def error_of(concepts_are: types.ConceptsAre, rates: Mapping[str, int]) -> str:
    """Return the name of the mean loss over all concepts.

    Args:
        concepts_are: As in ``OracleDefaults``.
        rates: Name -> side of the truth, for the rates of a single concept.
    """
    other = next(iter(rates)) if len(rates) == 1 else types.ERROR
    return {"classes": MISCLASSIFICATION, "labels": LABEL_ERROR}.get(concepts_are, other)


@dataclass(frozen=True)
class Premise:
    """Everything on which the expected answer to a question depends.

    Args:
        relation: The relation that made the follow-up.
        follow_up: The follow-up image, and the random numbers that made it.
        sample: The source.
        question: The question about the follow-up.
        source_answer: The answer about the source, if the oracle needs it.
    """

    relation: RelationDefaults
    follow_up: FollowUp
    sample: Sample
    question: Question
    source_answer: types.SourceAnswer


class Oracle(Protocol):
    """A rule that judges an answer by the expected one, or by the answer about the source image.

    ``OracleDefaults`` has the optional members.

    Attributes:
        needs_source: Whether the model must be asked about the source image, too. The source image
            (relation identity) is then no question.
    """

    needs_source: bool

    def judge(self, question: Question, answer: Any, expected: Any, source_answer: Any) -> Outcome:
        """Return the outcome of ``answer``: a probability of Yes, a mask, or Unanswered."""


class OracleDefaults:
    """Defaults of the optional members of an oracle.

    ``concepts_are`` decides which further figures are derived from the rates:

    - "classes": each image has exactly one concept, and the most probable one is the answer.
    - "labels": each concept is present or absent, and a wrong answer is the opposite.
    - "choices": each question has one correct option.
    """

    needs_source = False
    concepts_are: types.ConceptsAre = "other"
    rates = types.SIDES
    unanswered_loss = 1.0
    whole_call: bool = False
    """True if all concepts must be answered in one call."""
    whole_source: bool = False
    """True if ``source_answer`` is a tuple of the answers about all concepts of the source."""
    judges_masks: bool = False
    """True if answers are masks."""
    judges_scores: bool = False
    """True if an answer may be the score of a mask, by the same metric, instead of the mask."""
    tells_losses: bool = False
    """True if answers are losses, so that there is no answer to predict."""
    judge_by: JudgeModel | None = None
    """The judge model that is asked if the rule is unsure; None: there is none."""
    models: int = 1
    """Number of models that a call asks; an answer contains those of all."""

    @property
    def error(self) -> str:
        """The name of the mean loss over all concepts."""
        return error_of(self.concepts_are, self.rates)

    @property
    def journal_name(self) -> str:
        """The name in journals and in the audit's key, which a renamed class must keep."""
        return type(self.original).__name__

    @property
    def regime(self) -> str | None:
        """Name of the rule that reads replies in words, for the journal; None: there is none."""
        return None

    @property
    def original(self) -> Oracle:
        """The user's oracle: this one, or the one that it wraps."""
        return self

    @property
    def code(self) -> tuple[Oracle, ...]:
        """The oracles whose code decides losses."""
        return (self.original,)

    def alone(self) -> "OracleDefaults | None":
        """Return an oracle for the same purpose that judges each answer without that about the
        source: this one, or another; None if there is none."""
        return None if self.needs_source else self

    def judge(
        self, question: Question, answer: Any, expected: Any, source_answer: Any = None
    ) -> Outcome:
        raise TypeError(f"{type(self).__name__} defines no judge")

    def view(self, dataset: Dataset) -> Dataset:
        """Return the dataset with the concepts and truths that this oracle judges."""
        return dataset

    def asked(self, dataset: CompleteDataset) -> tuple[tuple[str, ...], Sequence[int]]:
        """Return the concepts to send to a model, and the index among them of each concept of
        ``view``."""
        return dataset.asked

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        """Return whether a question about ``concept`` after ``relation`` can be judged."""
        return True

    def most_versions(self, dataset: CompleteDataset) -> int:
        """Return the maximum number of versions of a source image that the oracle asks about, apart
        from the image itself."""
        return 0

    def versions(self, sample: Sample, received: Received | None) -> Mapping[int, types.Version]:
        """Return the versions of a source image to ask about, by number (below ``most_versions``).

        An oracle with versions gets a ``Received`` as ``source_answer``.

        Args:
            sample: The source.
            received: The answers so far. None: return all versions that may be asked about.
        """
        return {}

    def models_asked(self, questions: Indices) -> Indices:
        """Return the number of models to which each question is sent, (n,) in 1..models."""
        return np.full(len(questions), self.models)

    def paired_losses(self, details: Mapping[str, Any] | None) -> Sequence[PairedLoss]:
        """Return the loss of each of several models from an outcome's details; () for one model."""
        return ()

    def expect(self, premise: Premise) -> Any:
        """Return the expected answer to the follow-up."""
        return truth_after(premise.relation, premise.question.truth, premise.follow_up)

    def record(self, value: Value, sample: Sample, concept: str) -> float | None:
        """Return an answer about a source image as a number, by which follow-ups can be judged.

        Raises:
            InputError: The answer cannot be a number.
        """
        return value if isinstance(value, float) else None

    def query(self, case: Case) -> Query | None:
        """Return the question to the judge model about an answer; None if it is not asked."""
        return None

    def settled(self, case: Case, reply: Value) -> Outcome:
        """Return the outcome of an answer by the reply of the judge model, or Unanswered."""
        raise TypeError(f"{type(self).__name__} defines no settled")

    def judge_call(self, cases: Sequence[Case], values: Sequence[Value]) -> list[Outcome]:
        """Return the outcomes of the questions of a call.

        Args:
            cases: The questions that are judged, with their answers.
            values: The answers to all concepts of the call.
        """
        outcomes = []
        for c in cases:
            about = f", for sample {c.question.sample_id!r}, concept {c.question.concept!r}"
            with naming("oracle", self.original, "judge", about):
                outcomes.append(self.judge(c.question, c.answer, c.expected, c.source_answer))
        return outcomes


class Adapted(Completed, OracleDefaults):
    """Wrapper that adds ``OracleDefaults`` to an oracle that does not inherit from it."""

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
