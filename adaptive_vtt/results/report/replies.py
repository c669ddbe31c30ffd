"""The first replies of a chat model, and every kind of reading with its count."""

import pandas as pd

from ..replies import kinds, readings
from .evidence import Evidence
from .section import Section

FIRST = 5
"""Replies that are shown."""


def section(evidence: Evidence) -> Section | None:
    """Show replies as they came and as they were read; None where the journal keeps none."""
    first = [(one.shown, one.as_read) for one in readings(evidence.calls, FIRST)]
    if not first:
        return None
    return Section.of(
        evidence,
        "Replies",
        "replies",
        "replies.html",
        first=pd.DataFrame(first, columns=["reply", "read as"]),
        kinds=pd.DataFrame(kinds(evidence.calls).most_common(), columns=["reading", "questions"]),
    )
