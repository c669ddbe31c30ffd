"""What an oracle is."""

from dataclasses import dataclass
from typing import Protocol

from ..models.base import Unanswered
from ..question import Question


@dataclass(frozen=True)
class Outcome:
    """The verdict on one answer.

    ``loss`` in [0, 1]; ``coordinate`` the paper's a = (f + truth) / 2 in [0, 1], or None
    where the question was not answered.
    """

    loss: float
    coordinate: float | None = None


class Oracle(Protocol):
    """Judges an answer against what was expected, or against the source image's answer."""

    needs_source: bool

    def judge(
        self,
        question: Question,
        answer: float | Unanswered,
        expected: int,
        source_answer: float | Unanswered | None,
    ) -> Outcome:
        """The outcome of ``answer``, a probability of Yes or Unanswered."""
