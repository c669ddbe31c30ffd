"""Questions in words, as the journal keeps them: what was asked, the options, what is right."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from ...journal.rows import AnswerRow
from ...oracles.choice import ASKED

LONGEST = 400
"""So many characters of a text are shown."""


def asked(row: AnswerRow) -> dict[str, Any] | None:
    """``question``, ``options`` (letter, text, whether it is right) and, where there are none, what
    is ``right``; None where the question was not in words, or its journal kept none."""
    told = (row.details or {}).get(ASKED)
    if not isinstance(told, Mapping):
        return None
    right = [str(text) for text in told.get("right", ())]
    lettered = zip(ascii_uppercase, told.get("options", ()), strict=False)
    options = [[letter, cut(str(text)), letter in right] for letter, text in lettered]
    return {
        "question": cut(str(told.get("question", ""))),
        "options": options,
        "right": "" if options else cut(", ".join(right)),
    }


def cut(text: str) -> str:
    """A text that may be long, with an ellipsis where it ends early."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
