"""No verdict: what is told of a question is what was lost on it."""

from types import MappingProxyType
from typing import Any

from ..types import Outcome, Question, Unanswered
from .base import OracleDefaults


class Told(OracleDefaults):
    """The answer, in [0, 1], is the loss; an unanswered question counts as ``unanswered_loss``."""

    tells_losses = True
    rates = MappingProxyType({"mean loss": 0})

    def __init__(self, unanswered_loss: float = 1.0) -> None:
        self.unanswered_loss = unanswered_loss

    def judge(
        self, question: Question, answer: Any, expected: Any, source_answer: Any = None
    ) -> Outcome:
        unanswered = isinstance(answer, Unanswered)
        return Outcome(self.unanswered_loss if unanswered else float(answer))
