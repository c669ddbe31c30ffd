"""Thresholds at which unanswered calls end an audit, and advice for each reason."""

import re
from pathlib import Path

FIRST = 10
"""Number of calls after which an audit ends if none of them was answered."""
FEWEST = 20
"""Minimum number of calls before the unanswered share can end a running audit."""
MUTE = 0.5
"""Unanswered share of calls, or questions, above which nothing is certified: rates would measure
missing answers more than errors of the model."""


def remedy(reason: str) -> str:
    """Return advice on questions that went unanswered for this reason.

    The advice is on the first line of data/remedies.txt whose pattern matches the reason.
    """
    for line in (Path(__file__).parent / "data" / "remedies.txt").read_text("utf-8").splitlines():
        pattern, advice = line.split("\t")
        if re.search(pattern, reason):
            return advice
    return "find out by one call of your own why the model gives no answer"
