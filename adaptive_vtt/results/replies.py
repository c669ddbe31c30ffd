"""Replies of a chat model, and how they were read."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..journal.rows import AnswerRow, CallRow
from ..oracles.choice import ASKED
from ..oracles.choice_extraction import extract
from ..utils.figures import percent, shorten

SHOWN = 300
"""Characters of a reply that are shown, at most."""


class Reading(NamedTuple):
    """A ``reply``, and how it was read: one reading for each question of its call."""

    reply: str
    readings: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The reply in one line, cut to what is shown."""
        return shorten(" ".join(self.reply.split()), SHOWN)

    @property
    def as_read(self) -> str:
        """The readings in one line, each once."""
        return shorten("; ".join(dict.fromkeys(self.readings)), SHOWN)


def readings(calls: Sequence[CallRow], most: int | None = None) -> list[Reading]:
    """Return the replies of calls that have one, ``most`` at most, in the order of the calls."""
    spoken = [call for call in calls if call.reply]
    return [
        Reading(call.reply, tuple(reading(row) for row in call.answers if row.loss is not None))
        for call in spoken[:most]
    ]


def kinds(calls: Sequence[CallRow]) -> Counter[str]:
    """Return how often replies were read as each kind, numbers as Yes or No."""
    rows = [row for call in calls if call.reply for row in call.answers if row.loss is not None]
    return Counter(_kind(row) for row in rows)


def reading(row: AnswerRow) -> str:
    """Return the reading of a reply, in words."""
    if row.said is None and row.unanswered is None and row.answer not in (None, 0.0, 1.0):
        return f"{_kind(row)}, P(yes) {percent(row.answer)}"
    return _kind(row)


def _kind(row: AnswerRow) -> str:
    if row.unanswered is not None:
        return row.unanswered if row.excluded else f"no answer: {row.unanswered}"
    if row.said is None:
        return "no number" if row.answer is None else "Yes" if row.answer >= 0.5 else "No"
    asked = (row.details or {}).get(ASKED) or {}
    if row.answer is None or not asked:
        return "words"
    right = row.answer >= 0.5
    if not asked.get("options"):
        return "words that are right" if right else "words that are wrong"
    letter = (asked["right"] or [None])[0]
    if not right:
        letter = extract(row.said, asked["options"]).letter
    return f"option {letter}" if letter else "a wrong option"
