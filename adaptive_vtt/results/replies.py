"""Replies of a chat model, and how they were read."""

from collections import Counter
from collections.abc import Sequence

from ..journal.rows import AnswerRow, CallRow
from ..oracles.choice import ASKED
from ..oracles.choice_extraction import extract
from ..utils.figures import percent, shorten

MAX_REPLY = 300
"""Characters of a reply that are shown, at most."""


def readings(calls: Sequence[CallRow], most: int | None = None) -> list[tuple[str, str]]:
    """Return the replies of calls that have one, in the order of the calls.

    Args:
        calls: The calls.
        most: Number of replies, at most.

    Returns:
        A reply and how it was read, each question's reading once. Both stand in one line, cut to
        ``MAX_REPLY`` characters.
    """
    read = []
    for call in [call for call in calls if call.reply][:most]:
        words = dict.fromkeys(reading(row) for row in call.answers if row.loss is not None)
        lines = (" ".join(call.reply.split()), "; ".join(words))
        read.append((shorten(lines[0], MAX_REPLY), shorten(lines[1], MAX_REPLY)))
    return read


def kinds(calls: Sequence[CallRow]) -> Counter[str]:
    """Return how often replies were read as each kind, numbers as Yes or No."""
    rows = [row for call in calls if call.reply for row in call.answers if row.loss is not None]
    return Counter(_kind(row) for row in rows)


def reading(row: AnswerRow) -> str:
    """Return the reading of a reply, in words."""
    if row.answer_text is None and row.unanswered is None and row.answer not in (None, 0.0, 1.0):
        return f"{_kind(row)}, P(yes) {percent(row.answer)}"
    return _kind(row)


def _kind(row: AnswerRow) -> str:
    if row.unanswered is not None:
        return row.unanswered if row.excluded else f"no answer: {row.unanswered}"
    if row.answer_text is None:
        return "no number" if row.answer is None else "Yes" if row.answer >= 0.5 else "No"
    asked = (row.details or {}).get(ASKED) or {}
    if row.answer is None or not asked:
        return "words"
    right = row.answer >= 0.5
    if not asked.get("options"):
        return "words that are right" if right else "words that are wrong"
    letter = (asked["right"] or [None])[0]
    if not right:
        letter = extract(row.answer_text, asked["options"]).letter
    return f"option {letter}" if letter else "a wrong option"
