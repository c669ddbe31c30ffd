"""What a model said, from the rows of a journal, which hold its masks where that is wanted."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..journal.answer_json import from_json, to_json
from ..journal.rows import AnswerRow, CallRow
from ..space import QuestionSpace
from ..types import CallMode, Unanswered, Value

MASK = "mask"
"""Where a mask stands among an answer's details: packed bits, as those of source images do."""
LOST = Unanswered("not journaled")
"""In place of a value that the journal does not hold: a mask that was not kept, or a number in
answer to a question that turned out not to count."""


def with_masks(rows: Sequence[AnswerRow], values: Sequence[Value]) -> tuple[AnswerRow, ...]:
    """The rows with the masks among their ``values``, one each. A mask that answers several
    questions stands with the first of them."""
    found, kept = [], set()
    for row, value in zip(rows, values, strict=True):
        if isinstance(value, np.ndarray) and id(value) not in kept:
            kept.add(id(value))
            row = replace(row, details={**(row.details or {}), MASK: to_json(value)})
        found.append(row)
    return tuple(found)


def values_of(space: QuestionSpace, answers: CallMode, call: CallRow) -> tuple[Value, ...]:
    """What the model said to a journaled call, in the order in which its concepts were sent.

    Of a mask that was not kept it is the score that its oracle gave it; where not even that is
    journaled, ``LOST``. Raises JournalError for a mask that is none.
    """
    rows = sorted(call.answers, key=lambda row: row.question)
    places = [0] if answers == "one" else space.asked_by
    found: list[Value] = [LOST] * (max(places) + 1)
    for place, row in zip(places, rows, strict=True):
        if found[place] is LOST:
            found[place] = _value(row)
    return tuple(found)


def _value(row: AnswerRow) -> Value:
    if row.details is not None and MASK in row.details:
        return from_json(row.details[MASK], f"journal: answers, question {row.question}")
    if row.said is not None:
        return row.said
    if row.answer is not None:
        return row.answer
    return LOST if row.excluded or row.unanswered is None else Unanswered(row.unanswered)
