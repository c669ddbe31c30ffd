"""Consistency: the follow-up's answer against the source image's. No label is needed."""

from types import MappingProxyType
from typing import Annotated, Any

from ..datasets.base import Dataset
from ..datasets.view import View
from ..relations.base import RelationDefaults
from ..types import FollowUp, Outcome, Question, Sample, SourceAnswer, Unanswered
from ..utils.options import Option
from .base import OracleDefaults, UnansweredLoss

VIOLATIONS = MappingProxyType({"violation rate": 1})


class Agreement(OracleDefaults):
    """Base of oracles for which the source's answer is the truth, of every sample."""

    needs_source = True
    rates = VIOLATIONS

    def view(self, dataset: Dataset) -> Dataset:
        return View(dataset, dataset.concepts, range(len(dataset.concepts)), (1, 1, 1))


class Consistency(Agreement):
    """Loss 1 where Yes became No or No became Yes without the relation saying so.

    Every sample counts, labelled or not; "truth" 1 stands for "as expected of the source's
    answer", and the coordinate is that of the probability of it. A follow-up whose source
    was not answered is excluded.
    """

    def __init__(
        self,
        threshold: Annotated[float, Option("Yes from this on", gt=0, le=1)] = 0.5,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        self.threshold = threshold
        self.unanswered_loss = unanswered_loss

    def expect(
        self,
        relation: RelationDefaults,
        follow_up: FollowUp,
        sample: Sample,
        question: Question,
        source_answer: SourceAnswer,
    ) -> int | None:
        if not isinstance(source_answer, float):
            return None
        return relation.expect(int(source_answer >= self.threshold), follow_up)

    def judge(
        self, question: Question, answer: Any, expected: int | None, source_answer: Any = None
    ) -> Outcome:
        if expected is None:
            return Outcome(0.0, excluded="the source image was not answered")
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        agrees = (answer >= self.threshold) == bool(expected)
        likely = answer if expected else 1 - answer
        return Outcome(float(not agrees), (likely + 1) / 2)
