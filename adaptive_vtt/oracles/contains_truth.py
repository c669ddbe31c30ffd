"""Free answers: right where they contain the truth, which a relation may have changed.

Source: MedTest (thesis LYU2308, CUHK 2024), section 4.1.2: an answer is right if it
encompasses the truth; after the relation "text" there is text, after "instrument" there is
an instrument, one more than before, and where the instrument is can no longer be said.
"""

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from ..datasets.vqa.medvqa_questions import (
    INSTRUMENT_COUNT,
    INSTRUMENT_PLACE,
    INSTRUMENTS,
    POSITIONS,
    TEXT,
)
from ..errors import InputError, check_known
from ..models.reply_frames import answer_in, conclusion
from ..models.yes_no import declines
from ..relations.base import RelationDefaults, moves
from ..types import Ask, Case, FollowUp, Outcome, Question, Unanswered, Value
from ..utils.options import Option
from .base import OracleDefaults, Premise, UnansweredLoss
from .choice import ERRORS, by_judge, in_words, scored, without_reading
from .choice_extraction import without_denied
from .judge_models import YES_NO, JudgeModel, Query

Accept = Literal["either", "yes", "name"]
ACCEPT = ("either", "yes", "name")
"""What counts as naming an instrument that was put in: "Yes", its name, or either."""

_NUMBERS = "zero one two three four five six seven eight nine ten"
_AS_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}
_TYPOS = {"rigth": "right", "instrumnet": "instrument", "grey": "gray", "centre": "center"}
_NONE = ("no", "none", "not relevant", "0", "")


@dataclass(frozen=True)
class Truths:
    """Accepted answers, why the question should not count, or "", and what was asked."""

    accepted: tuple[str, ...]
    spoilt: str = ""
    ask: Ask | None = None


class ContainsTruth(OracleDefaults):
    """Loss 0 where the reply contains an accepted answer; 1 - the mean loss is the accuracy.

    Case, known typos, number words, quotes and hyphens do not matter. An answer that is a
    list ("Red, Pink" or "Pink/Red") is contained where all its parts are. ``strict``
    (default) looks for whole words, so that "10" does not contain "1" nor "Not relevant"
    "No", after the last "Final answer:" if there is one, and passes over what is denied ("not a
    polyp"); without it any substring will do, as the plain rule has it. ``judge``: a
    ``JudgeModel`` of the regime "yes-no", asked about replies that do not contain the truth,
    unless both are Yes, No or a number. ``accept``: what counts for "instruments present" after an
    instrument was put in (MedTest asked for "Yes", while its examples answer with names). Answers
    that are numbers are taken to be scores.

    Questions by other names than MEDVQA-GI's are judged by what their samples accept alone.
    """

    rates = ERRORS

    def __init__(
        self,
        strict: Annotated[bool, Option("whole words only")] = True,
        accept: Annotated[Accept, Option("what is right where an instrument was added")] = "either",
        unanswered_loss: UnansweredLoss = 1.0,
        judge: JudgeModel | None = None,
    ) -> None:
        check_known("value of accept", accept, ACCEPT, "contains truth")
        if judge is not None and judge.regime != YES_NO:
            raise InputError(
                "contains truth: expected a judge of the regime 'yes-no', as there are no options "
                f"to match, got {judge.regime!r}"
            )
        self.judge_by = judge
        self.strict = strict
        self.accept = accept
        self.unanswered_loss = unanswered_loss

    @property
    def regime(self) -> str | None:
        """ "yes-no judge"; None without a judge."""
        return None if self.judge_by is None else self.judge_by.regime

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        """Where the instrument is cannot be said once another was put in."""
        return not (relation.adds == "instrument" and concept == INSTRUMENT_PLACE)

    def expect(self, given: Premise) -> Truths:
        sample, concept = given.sample, given.question.concept
        truths = sample.answers.get(concept, ())
        if not truths:
            raise InputError(f"sample {sample.id!r}: expected an accepted answer for {concept!r}")
        if concept in POSITIONS and moves(given.relation, given.follow_up, sample):
            return Truths(truths, f"{given.relation.name} moves what is asked for")
        found = changed(truths, concept, given.follow_up, self.accept)
        return replace(found, ask=sample.asks.get(concept))

    def judge(
        self, question: Question, answer: Any, expected: Truths, source_answer: Any = None
    ) -> Outcome:
        told = in_words(expected.ask, expected.accepted)
        return replace(self._judged(answer, expected), details=told)

    def _judged(self, answer: Any, expected: Truths) -> Outcome:
        settled = without_reading(answer, expected.spoilt, self.unanswered_loss)
        if settled is not None:
            return settled
        part = answer_in(answer)
        if isinstance(part, Unanswered):
            return Outcome(self.unanswered_loss, unanswered=part.reason)
        if self._contains(part, expected.accepted):
            return scored(True)
        reason = declines(part)
        return Outcome(self.unanswered_loss, unanswered=reason) if reason else scored(False)

    def _contains(self, answer: str, accepted: tuple[str, ...]) -> bool:
        """Whether an accepted answer stands in the reply, by the oracle's rule."""
        said = answer
        if self.strict:
            said = without_denied(conclusion(answer), [p for t in accepted for p in _parts(t)])
        return any(contains(said, truth, strict=self.strict) for truth in accepted)

    def query(self, case: Case) -> Query | None:
        expected, reply = case.expected, case.answer
        judge, ask = self.judge_by, expected.ask
        if judge is None or ask is None or expected.spoilt or not isinstance(reply, str):
            return None
        if not reply.strip() or declines(reply):
            return None
        plain = [reply, *expected.accepted]
        sure = self._contains(reply, expected.accepted) or all(map(_is_plain, plain))
        return Query(judge.text(ask, " or ".join(expected.accepted), reply), sure)

    def settled(self, case: Case, said: Value) -> Outcome:
        rule, judge = self.judge(case.question, case.answer, case.expected), self.judge_by
        right = None if judge is None else judge.agrees(said)
        return by_judge(right, said, self.unanswered_loss, rule)


def changed(
    truths: tuple[str, ...], concept: str, follow_up: FollowUp, accept: Accept = "either"
) -> Truths:
    """The accepted answers after what a relation put into the picture (``details["adds"]``)."""
    added = follow_up.details.get("adds", "")
    if added == "text" and concept == TEXT:
        return Truths(("Yes",))
    if added == "instrument" and concept == INSTRUMENTS:
        return Truths(_instruments(truths, str(follow_up.details.get("object", added)), accept))
    if added == "instrument" and concept == INSTRUMENT_COUNT:
        return _one_more(truths)
    if added == "instrument" and concept == INSTRUMENT_PLACE:
        return Truths(truths, "an instrument was put in, so where it is cannot be said")
    return Truths(truths)


def _instruments(truths: tuple[str, ...], added: str, accept: Accept) -> tuple[str, ...]:
    """What may be said of the instruments in the picture, those it had included."""
    names = (added, *(t for t in truths if normalised(t) not in (*_NONE, "yes")))
    return {"yes": ("Yes",), "name": names, "either": ("Yes", *names)}[accept]


def _one_more(truths: tuple[str, ...]) -> Truths:
    counts = [normalised(truth) for truth in truths]
    if not all(count.isdigit() for count in counts):
        return Truths(truths, "one more than an unknown number of instruments")
    return Truths(tuple(str(int(count) + 1) for count in counts))


def contains(reply: str, truth: str, *, strict: bool = True) -> bool:
    """Whether the reply contains every part of a truth, both normalised."""
    said = normalised(reply)
    parts = [normalised(part) for part in _parts(truth)]
    return all(_within(part, said, strict) for part in parts if part)


def _parts(truth: str) -> list[str]:
    return re.split(r"[,;/]", truth)


def _is_plain(text: str) -> bool:
    """Whether a text is Yes, No or a number, of which no other words are needed."""
    word = normalised(text)
    return word in ("yes", "no") or word.isdigit()


def normalised(text: str) -> str:
    """Lower case, one space between words, typos mended, small numbers as digits.

    A hyphen is kept in positions alone, so that "Center" is not within "Center-left".
    """
    words = re.sub(r"[\"'“”‘’*.()\[\]?!:_-]", " ", text.lower()).split()
    joined = " ".join(_AS_DIGITS.get(word, word) for word in words)
    for wrong, right in _TYPOS.items():
        joined = joined.replace(wrong, right)
    joined = re.sub(r"\b(upper|lower|center) (left|center|right)\b", r"\1-\2", joined)
    return re.sub(r"([<>]) (?=\d)|(?<=\d) (?=mm\b)", r"\1", joined)


def _within(part: str, said: str, strict: bool) -> bool:
    if not strict:
        return part in said
    return bool(re.search(rf"(?<![\w<>-]){re.escape(part)}(?![\w-])", said))
