"""Right or wrong, against the known truth of a binary concept."""

from typing import Annotated, Any

from ..types import Outcome, Question, Unanswered
from ..utils.options import Option
from .base import OracleDefaults, UnansweredLoss


class Correctness(OracleDefaults):
    """Loss 1 where the answer lies on the wrong side of ``threshold``; a = (f + truth) / 2.

    An unanswered question counts as ``unanswered_loss`` (1 by default).
    Source: Concept-centric VTT, section 2.1, equation 2.
    """

    concepts_are = "labels"

    def __init__(
        self,
        threshold: Annotated[float, Option("Yes from this on", gt=0, le=1)] = 0.5,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        self.threshold = threshold
        self.unanswered_loss = unanswered_loss

    def judge(
        self, question: Question, answer: Any, expected: int, source_answer: Any = None
    ) -> Outcome:
        if isinstance(answer, Unanswered):
            return Outcome(self.unanswered_loss)
        says_yes = answer >= self.threshold
        return Outcome(float(says_yes != bool(expected)), (answer + expected) / 2)
