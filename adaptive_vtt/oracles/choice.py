"""Multiple choice: compare the option that a reply names with the correct one.

Source: EndoBench, section 4.1 and its public scoring code; see ``oracles.choice_extraction``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from ..errors import unexpected
from ..models.reply_frames import NO_ANSWER
from ..relations.base import coordinates, moves
from ..types import Ask, Case, JsonObject, Outcome, Question, Unanswered, Value
from ..utils.options import Option
from .base import OracleDefaults, Premise, UnansweredLoss
from .choice_extraction import Extraction, extract
from .judge_models import EXACT, OPTION_MATCHING, JudgeModel, Query, Regime

ERRORS = MappingProxyType({"error rate": 1})
"""Name of the only rate -> its side of the truth, which is always 1."""

ASKED = "asked"
"""Key, in an outcome's details, of the question in words, its options, and the correct answers."""


@dataclass(frozen=True)
class Expected:
    """The expected reply.

    Attributes:
        right: The correct letter, or the accepted answers.
        spoilt: The reason why the question is excluded, "" if it counts.
        ask: The question.
    """

    right: tuple[str, ...]
    spoilt: str = ""
    ask: Ask | None = None


class InWords(OracleDefaults):
    """Base of oracles that read replies in words by a rule, and ask a judge model if it is unsure.

    An answer that is a number is a score, and correct from .5 on.

    Args:
        judge: The judge model; None: there is none.
        unanswered_loss: Loss of a question without answer.
    """

    rates = ERRORS

    judged_by: ClassVar[Regime] = "option-matching"
    """The default regime of a judge model."""

    def __init__(self, judge: JudgeModel | None, unanswered_loss: float) -> None:
        self.judge_by, self.unanswered_loss = judge, unanswered_loss

    @property
    def regime(self) -> str | None:
        """The regime of the judge model (see ``judge_models``), None without one."""
        return None if self.judge_by is None else self.judge_by.regime

    def read(self, reply: str, expected: Expected) -> Outcome:
        """Return the outcome of a reply by the rule."""
        raise TypeError(f"{type(self).__name__} defines no read")

    def is_sure(self, reply: str, expected: Expected) -> bool | None:
        """Return whether the rule is sure about a reply; None if no judge is to be asked."""
        raise TypeError(f"{type(self).__name__} defines no is_sure")

    def truth(self, expected: Expected) -> str:
        """Return the correct answer for a judge model."""
        return " or ".join(expected.right)

    def judge(
        self, question: Question, answer: Any, expected: Expected, source_answer: Any = None
    ) -> Outcome:
        if expected.spoilt:
            outcome = Outcome(0.0, excluded=expected.spoilt)
        elif isinstance(answer, Unanswered):
            outcome = Outcome(self.unanswered_loss)
        elif isinstance(answer, float):
            outcome = scored(answer >= 0.5)
        else:
            outcome = self.read(answer, expected)
        return replace(outcome, details=in_words(expected.ask, expected.right))

    def query(self, case: Case) -> Query | None:
        expected, reply, judge = case.expected, case.answer, self.judge_by
        if judge is None or expected.ask is None or expected.spoilt or not isinstance(reply, str):
            return None
        if (sure := self.is_sure(reply, expected)) is None:
            return None
        return Query(judge.text(expected.ask, self.truth(expected), reply), sure)

    def settled(self, case: Case, reply: Value) -> Outcome:
        rule, judge = self.judge(case.question, case.answer, case.expected), self.judge_by
        if judge is None:
            return rule
        right = judge.agrees(reply)
        if judge.regime == OPTION_MATCHING:
            letter = judge.letter(reply, case.expected.ask.options)
            right = None if letter is None else letter in case.expected.right
        if right is not None:
            return replace(scored(right), details=rule.details)
        # the judge gave no verdict, or failed
        why = f" (judge: {reply.reason})" if isinstance(reply, Unanswered) else ""
        return Outcome(self.unanswered_loss, unanswered=NO_ANSWER + why, details=rule.details)


class MultipleChoice(InWords):
    """Loss 1 for a wrong option, 0 for the correct one; 1 - the mean loss is the accuracy.

    A question about coordinates is excluded after a relation that moves them.

    Args:
        faithful: Whether to read replies by EndoBench's rule, including its edge cases.
        judge: A ``JudgeModel`` that reads replies without an option. Default None: none.
        unanswered_loss: Loss of refusals and replies without an option; 1 in the benchmark.
    """

    concepts_are = "choices"

    def __init__(
        self,
        faithful: Annotated[
            bool, Option("read replies by EndoBench's rule, oddities included")
        ] = False,
        judge: JudgeModel | None = None,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        super().__init__(judge, unanswered_loss)
        self.faithful = faithful

    @property
    def regime(self) -> str:
        """ "exact", "option-matching judge" or "yes-no judge"."""
        return super().regime or EXACT

    def expect(self, premise: Premise) -> Expected:
        sample, concept = premise.sample, premise.question.concept
        ask, answers = sample.asks.get(concept), sample.answers.get(concept, ())
        if ask is None or not ask.options or len(answers) != 1:
            got = f"{(len(ask.options) if ask else 0)} options and the answers {list(answers)}"
            expected = f"options and one right letter for {concept!r}"
            raise unexpected(f"sample {sample.id!r}", expected, got)
        moved = coordinates(ask) and moves(premise.relation, premise.follow_up, sample)
        spoilt = f"{premise.relation.name} moves what the coordinates name" if moved else ""
        return Expected(answers, spoilt, ask)

    def read(self, reply: str, expected: Expected) -> Outcome:
        choice = self._extracted(reply, expected)
        if choice.letter is not None:
            return scored(choice.letter in expected.right)
        return Outcome(self.unanswered_loss, unanswered=choice.reason)

    def is_sure(self, reply: str, expected: Expected) -> bool | None:
        choice = self._extracted(reply, expected)
        return choice.letter is not None if choice.letter or choice.open else None

    def truth(self, expected: Expected) -> str:
        assert expected.ask is not None
        return expected.ask.options[ascii_uppercase.index(expected.right[0])]

    def _extracted(self, reply: str, expected: Expected) -> Extraction:
        options = () if expected.ask is None else expected.ask.options
        return extract(reply, options, faithful=self.faithful)


def in_words(ask: Ask | None, right: Sequence[str]) -> JsonObject | None:
    """Return an outcome's details with the question and the correct answers; None without one."""
    if ask is None:
        return None
    return {ASKED: {"question": ask.text, "options": [*ask.options], "right": [*right]}}


def scored(right: bool) -> Outcome:
    """Return the outcome of a correct or wrong reply; its coordinate is (score + 1) / 2."""
    score = float(right)
    return Outcome(1 - score, (score + 1) / 2, score)
