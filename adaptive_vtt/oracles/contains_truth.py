"""Oracle of free answers, which are correct if they contain the truth.

Source: MedTest (thesis LYU2308, CUHK 2024), section 4.1.2. After the relation "text" the image
contains text. After "instrument" it contains one more instrument, and the position of instruments
is no longer unique.
"""

import re
from dataclasses import replace
from typing import Annotated, Literal

from ..datasets.vqa import medvqa_questions as medvqa
from ..errors import InputError, check_known, unexpected
from ..models.reply_frames import answer_in, conclusion
from ..models.yes_no import declines
from ..relations.base import RelationDefaults, moves
from ..types import FollowUp, Outcome, Unanswered
from ..utils.options import Option
from .base import Premise, UnansweredLoss
from .choice import Expected, InWords, scored
from .choice_extraction import without_denied
from .judge_models import YES_NO, JudgeModel

Accept = Literal["either", "yes", "name"]
ACCEPT = ("either", "yes", "name")
"""Accepted answers about an added instrument: "Yes", its name, or either."""

_NUMBERS = "zero one two three four five six seven eight nine ten"
_AS_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}
_TYPOS = {"rigth": "right", "instrumnet": "instrument", "grey": "gray", "centre": "center"}
_NONE = ("no", "none", "not relevant", "0", "")


class ContainsTruth(InWords):
    """Oracle with loss 0 for replies that contain an accepted answer, else 1.

    1 - the mean loss is the accuracy. Case, known typos, number words, quotes and hyphens do not
    matter. A list ("Red, Pink" or "Pink/Red") is contained if all its parts are. An answer that is
    a number is a score.

    Args:
        strict: Whether to match whole words, so that "10" does not contain "1", in the text after
            the last "Final answer:", without denials ("not a polyp"). False matches any substring,
            as MedTest does.
        accept: Accepted answers to "instruments present" after an instrument was added. MedTest
            asks for "Yes", but its examples answer with names.
        unanswered_loss: Loss of a question without answer.
        judge: ``JudgeModel`` of the regime "yes-no" for replies that do not contain the truth,
            unless reply and truth are both Yes, No or a number. Default None: none.

    Raises:
        InputError: ``accept`` is unknown, or the judge has another regime.
    """

    judged_by = "yes-no"

    def __init__(
        self,
        strict: Annotated[bool, Option("whole words only")] = True,
        accept: Annotated[Accept, Option("what is right where an instrument was added")] = "either",
        unanswered_loss: UnansweredLoss = 1.0,
        judge: JudgeModel | None = None,
    ) -> None:
        check_known("value of accept", accept, ACCEPT, "contains truth")
        if judge is not None and judge.regime != YES_NO:
            expected = "a judge of the regime 'yes-no', as there are no options to match"
            raise unexpected("contains truth", expected, repr(judge.regime))
        super().__init__(judge, unanswered_loss)
        self.strict, self.accept = strict, accept

    def applies(self, relation: RelationDefaults, concept: str) -> bool:
        """Return False if another instrument makes the position of the first ambiguous."""
        return not (relation.adds == "instrument" and concept == medvqa.INSTRUMENT_PLACE)

    def expect(self, premise: Premise) -> Expected:
        sample, concept = premise.sample, premise.question.concept
        truths, ask = sample.answers.get(concept, ()), sample.asks.get(concept)
        if not truths:
            raise InputError(f"sample {sample.id!r}: expected an accepted answer for {concept!r}")
        if concept in medvqa.POSITIONS and moves(premise.relation, premise.follow_up, sample):
            return Expected(truths, f"{premise.relation.name} moves what is asked for")
        return replace(changed(truths, concept, premise.follow_up, self.accept), ask=ask)

    def read(self, reply: str, expected: Expected) -> Outcome:
        part = answer_in(reply)
        if isinstance(part, Unanswered):
            return Outcome(self.unanswered_loss, unanswered=part.reason)
        if self._contains(part, expected.right):
            return scored(True)
        reason = declines(part)
        return Outcome(self.unanswered_loss, unanswered=reason) if reason else scored(False)

    def is_sure(self, reply: str, expected: Expected) -> bool | None:
        if not reply.strip() or declines(reply):
            return None
        words = [*map(normalised, [reply, *expected.right])]
        plain = all(word in ("yes", "no") or word.isdigit() for word in words)
        return self._contains(reply, expected.right) or plain

    def _contains(self, answer: str, accepted: tuple[str, ...]) -> bool:
        """Return whether a reply contains an accepted answer."""
        if self.strict:
            answer = without_denied(conclusion(answer), [p for t in accepted for p in _parts(t)])
        return any(contains(answer, truth, strict=self.strict) for truth in accepted)


def changed(
    truths: tuple[str, ...], concept: str, follow_up: FollowUp, accept: Accept = "either"
) -> Expected:
    """Return the accepted answers after a relation that may have added something to the image.

    Args:
        truths: The accepted answers about the source.
        concept: The name of the question.
        follow_up: The follow-up.
        accept: As in ``ContainsTruth``.
    """
    added, right, spoilt = follow_up.details.get("adds", ""), truths, ""
    if added == "text" and concept == medvqa.TEXT:
        right = ("Yes",)
    elif added == "instrument" and concept == medvqa.INSTRUMENTS:
        name = str(follow_up.details.get("object", added))
        names = (name, *(t for t in truths if normalised(t) not in (*_NONE, "yes")))
        right = {"yes": ("Yes",), "name": names, "either": ("Yes", *names)}[accept]
    elif added == "instrument" and concept == medvqa.INSTRUMENT_COUNT:
        counts = [normalised(truth) for truth in truths]
        if all(count.isdigit() for count in counts):
            right = tuple(str(int(count) + 1) for count in counts)
        else:
            spoilt = "one more than an unknown number of instruments"
    elif added == "instrument" and concept == medvqa.INSTRUMENT_PLACE:
        spoilt = "an instrument was put in, so its position is not unique"
    return Expected(right, spoilt)


def contains(reply: str, truth: str, *, strict: bool = True) -> bool:
    """Return whether a reply contains all parts of a truth, both normalised."""
    text, parts = normalised(reply), filter(None, map(normalised, _parts(truth)))
    if not strict:
        return all(part in text for part in parts)
    return all(re.search(rf"(?<![\w<>-]){re.escape(part)}(?![\w-])", text) for part in parts)


def _parts(truth: str) -> list[str]:
    return re.split(r"[,;/]", truth)


def normalised(text: str) -> str:
    """Return a text in lower case, with single spaces, without known typos, with numbers as digits.

    Only positions keep their hyphen, so that "Center" is not contained in "Center-left".
    """
    words = re.sub(r"[\"'“”‘’*.()\[\]?!:_-]", " ", text.lower()).split()
    joined = " ".join(_AS_DIGITS.get(word, word) for word in words)
    for wrong, right in _TYPOS.items():
        joined = joined.replace(wrong, right)
    joined = re.sub(r"\b(upper|lower|center) (left|center|right)\b", r"\1-\2", joined)
    return re.sub(r"([<>]) (?=\d)|(?<=\d) (?=mm\b)", r"\1", joined)
