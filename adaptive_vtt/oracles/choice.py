"""Multiple choice: the option that a reply names, against the right one.

Source: EndoBench, section 4.1 and its public scoring code; see ``oracles.choice_extraction``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from types import MappingProxyType
from typing import Annotated, Any

from ..errors import InputError
from ..models.reply_frames import NO_ANSWER
from ..relations.base import coordinates, moves
from ..types import Ask, Case, JsonObject, Outcome, Question, Unanswered, Value
from ..utils.options import Option
from .base import OracleDefaults, Premise, UnansweredLoss
from .choice_extraction import extract
from .judge_models import EXACT, OPTION_MATCHING, JudgeModel, Query

ERRORS = MappingProxyType({"error rate": 1})
"""Name of the only rate -> its side of the truth. Every question is about a concept of its own,
whose truth is always 1, so there is no second side."""

ASKED = "asked"
"""In an outcome's details: the question in words, its options, and what is right."""


@dataclass(frozen=True)
class Choice:
    """What was asked, the right letter, and why the question should not count, or ""."""

    ask: Ask
    letter: str
    spoilt: str = ""


class MultipleChoice(OracleDefaults):
    """Loss 1 for a wrong letter, 0 for the right one; 1 - the mean loss is the accuracy.

    ``judge``: a ``JudgeModel`` that is asked what a reply meant that names no option. Refusals and
    replies without an option count as ``unanswered_loss``; the benchmark counts them as wrong.
    ``regime`` names how replies were read. Answers that are numbers are taken to be scores: right
    from .5 on.

    A question about coordinates does not count after a relation that moves them.
    """

    rates = ERRORS
    concepts_are = "choices"

    def __init__(
        self,
        faithful: Annotated[
            bool, Option("read replies by EndoBench's own rule, quirks and all")
        ] = False,
        judge: JudgeModel | None = None,
        unanswered_loss: UnansweredLoss = 1.0,
    ) -> None:
        self.faithful = faithful
        self.judge_by = judge
        self.unanswered_loss = unanswered_loss

    @property
    def regime(self) -> str:
        """ "exact", "option-matching judge" or "yes-no judge"."""
        return EXACT if self.judge_by is None else self.judge_by.regime

    def expect(self, given: Premise) -> Choice:
        sample, concept = given.sample, given.question.concept
        ask, answers = sample.asks.get(concept), sample.answers.get(concept, ())
        if ask is None or not ask.options or len(answers) != 1:
            raise InputError(
                f"sample {sample.id!r}: expected options and one right letter for "
                f"{concept!r}, got {len(ask.options) if ask else 0} options and "
                f"the answers {list(answers)}"
            )
        spoilt = ""
        if coordinates(ask) and moves(given.relation, given.follow_up, sample):
            spoilt = f"{given.relation.name} moves what the coordinates name"
        return Choice(ask, answers[0], spoilt)

    def judge(
        self, question: Question, answer: Any, expected: Choice, source_answer: Any = None
    ) -> Outcome:
        told = in_words(expected.ask, [expected.letter])
        return replace(self._judged(answer, expected), details=told)

    def query(self, case: Case) -> Query | None:
        expected, reply = case.expected, case.answer
        if self.judge_by is None or expected.spoilt or not isinstance(reply, str):
            return None
        found = extract(reply, expected.ask.options, faithful=self.faithful)
        if not (found.letter or found.open):
            return None
        truth = expected.ask.options[ascii_uppercase.index(expected.letter)]
        return Query(self.judge_by.text(expected.ask, truth, reply), found.letter is not None)

    def settled(self, case: Case, said: Value) -> Outcome:
        rule, judge = self.judge(case.question, case.answer, case.expected), self.judge_by
        if judge is None:
            return rule
        if judge.regime == OPTION_MATCHING:
            letter = judge.letter(said, case.expected.ask.options)
            right = None if letter is None else letter == case.expected.letter
        else:
            right = judge.agrees(said)
        return by_judge(right, said, self.unanswered_loss, rule)

    def _judged(self, answer: Any, expected: Choice) -> Outcome:
        settled = without_reading(answer, expected.spoilt, self.unanswered_loss)
        if settled is not None:
            return settled
        found = extract(answer, expected.ask.options, faithful=self.faithful)
        if found.letter is not None:
            return scored(found.letter == expected.letter)
        return Outcome(self.unanswered_loss, unanswered=found.reason)


def in_words(ask: Ask | None, right: Sequence[str]) -> JsonObject | None:
    """The details of an outcome that tell people what was asked, and what is ``right``."""
    if ask is None:
        return None
    return {ASKED: {"question": ask.text, "options": [*ask.options], "right": [*right]}}


def without_reading(answer: Any, spoilt: str, unanswered_loss: float) -> Outcome | None:
    """The outcome where there are no words to read: what was asked is spoilt, nothing was
    answered, or a score was recorded; else None."""
    if spoilt:
        return Outcome(0.0, excluded=spoilt)
    if isinstance(answer, Unanswered):
        return Outcome(unanswered_loss)
    return scored(answer >= 0.5) if isinstance(answer, float) else None


def by_judge(right: bool | None, said: Value, unanswered_loss: float, rule: Outcome) -> Outcome:
    """The outcome of an answer that a judge ``said`` to be ``right`` or not, or could not tell
    (None): then it is no answer, as where the judge failed."""
    if right is not None:
        return replace(scored(right), details=rule.details)
    why = f" (judge: {said.reason})" if isinstance(said, Unanswered) else ""
    return Outcome(unanswered_loss, unanswered=NO_ANSWER + why, details=rule.details)


def scored(right: bool) -> Outcome:
    """The outcome of words that are right, or wrong; the coordinate is (score + 1) / 2."""
    score = float(right)
    return Outcome(1 - score, (score + 1) / 2, score)
