"""When calls without an answer end an audit, and what may be done about each reason."""

import re
from pathlib import Path

FIRST = 10
"""Calls after which an audit ends where none of them was answered."""
FEWEST = 20
"""Fewest calls whose unanswered share is judged while more are to come."""
MUTE = 0.5
"""Share of calls, or questions, without an answer above which nothing is certified: every rate
would measure the silence, and little of what the model sees."""


def remedy(reason: str) -> str:
    """Return advice on questions that went unanswered for this reason.

    It is the first line of remedies.txt whose pattern matches.
    """
    for line in (Path(__file__).parent / "data" / "remedies.txt").read_text("utf-8").splitlines():
        pattern, advice = line.split("\t")
        if re.search(pattern, reason):
            return advice
    return "find out by one call of your own why the model gives no answer"
