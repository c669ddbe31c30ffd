"""What answers are, by their oracle: what the page asks, shows and counts of them.

``answers_of`` chooses the class. A class brings the words of a wrong answer and whether answers
have two sides, a concept present or absent, each with an error of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from ...journal.facts import OracleFacts
from ...journal.rows import AnswerRow, CallRow
from ...oracles.choice import ASKED
from ...types import SIDES, JsonObject
from .section import THIN

LONGEST = 400
"""Characters of a question that are shown, at most."""
QUOTED, BRIEF = 160, 80
"""Characters of an answer in words that a card, and a row of a table, shows at most."""


@dataclass(frozen=True)
class Answers:
    """Numbers that are judged as a whole, without a side; ``number`` names what one is."""

    number: str = "P(yes)"
    sided = False
    of_concepts = True
    """Whether every question is about a concept that it names."""

    def asked(
        self, concept: str, sample: str, change: str, answer: AnswerRow | None
    ) -> tuple[str, str, str]:
        """Return a question in words: what stands before, in and after bold type."""
        image = f"{sample} after {change}" if change else sample
        words = None if answer is None else question_in_words(answer)
        if words is not None:
            return f"“{words['question']}” of {image}", "", ""
        return "Is ", concept, f" present in {image}?"

    def verdict(self, answer: AnswerRow | None) -> tuple[str, str]:
        """Return the verdict in a word, and what there is to say of it."""
        if answer is None:
            return "waiting", "no answer yet"
        if answer.answer is None:
            return "unanswered", answer.unanswered or "no reason was given"
        if answer.loss is None:
            return "unknown", "not judged"
        right = answer.loss < 0.5
        if answer.said is not None:
            return "right" if right else "wrong", answer.said[:BRIEF]
        if right:
            return "right", "present" if answer.truth else "absent"
        return "wrong", "missed: it is present" if answer.truth else "false alarm: it is absent"

    def line(self, concept: str, place: int, answer: AnswerRow) -> JsonObject:
        """Return what a card shows of a wrong answer about a concept, the one at ``place``."""
        at = None if answer.said is not None else answer.answer
        if answer.said is not None:
            words = f"“{answer.said[:QUOTED]}”"
            words += f": {answer.unanswered}" if answer.unanswered else ""
        elif at is None:
            words = f"no answer: {answer.unanswered or 'no reason was given'}"
        else:
            words = self.shown(at)
        return {
            "key": place,
            "truth": (answer.truth or 0) if self.sided else None,
            "name": concept,
            "is": f"is {'present' if answer.truth else 'absent'}" if self.sided else "",
            "said": words,
            "at": at,
            "asked": question_in_words(answer),
        }

    def shown(self, number: float) -> str:
        """Return an answer that is a number in words."""
        return f"{self.number} {100 * number:.0f}{THIN}%"

    def of_model(self, details: Mapping[str, Any]) -> str:
        """Return what one of two models said, and how far that was wrong."""
        said, loss = details.get("said"), float(details.get("loss", 0))
        lost = {0.0: "right", 1.0: "wrong"}.get(loss, f"lost {loss:.2f}")
        if isinstance(said, dict):
            words = f"no answer ({said['unanswered']})" if "unanswered" in said else "an answer"
        elif isinstance(said, int | float):
            words = self.shown(said)
        else:
            words = f"“{str(said)[:QUOTED]}”"
        return f"{words}, {lost}"


class Sided(Answers):
    """Probabilities that a concept is present, each with the truth."""

    sided = True


class Words(Answers):
    """Answers in words, of which P(yes) and sides mean nothing."""


class Captions(Words):
    """Captions, whose objects are compared with those of the source image's caption."""

    of_concepts = False

    def asked(
        self, concept: str, sample: str, change: str, answer: AnswerRow | None
    ) -> tuple[str, str, str]:
        return "", "", f"{sample} after {change}" if change else sample


def answers_of(oracle: OracleFacts, calls: Iterable[CallRow]) -> Answers:
    """Return what the answers of an audit are."""
    rows = [answer for call in calls for answer in call.answers]
    number = "loss" if oracle.tells_losses else "score" if "EFR" in oracle.rates else "P(yes)"
    if any("objects" in (row.details or {}) for row in rows):
        return Captions(number)
    if any(row.said is not None for row in rows):
        return Words(number)
    return (Sided if set(oracle.rates) == set(SIDES) else Answers)(number)


def question_in_words(row: AnswerRow) -> JsonObject | None:
    """Return ``question``, ``options`` (letter, text, whether it is right) and, where there are
    none, what is ``right``; None where the question was not in words, or its journal kept none."""
    asked = (row.details or {}).get(ASKED)
    if not isinstance(asked, Mapping):
        return None
    right: Sequence[str] = [str(text) for text in asked.get("right", ())]
    lettered = zip(ascii_uppercase, asked.get("options", ()), strict=False)
    options = [[letter, _cut(str(text)), letter in right] for letter, text in lettered]
    return {
        "question": _cut(str(asked.get("question", ""))),
        "options": options,
        "right": "" if options else _cut(", ".join(right)),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
