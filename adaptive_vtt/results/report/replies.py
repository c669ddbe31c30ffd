"""The first replies of a chat model, and every kind of reading with its count."""

from ..replies import kinds, readings
from .evidence import Evidence
from .section import Section

FIRST = 5
"""Replies that are shown."""


def section(evidence: Evidence) -> Section | None:
    """Show replies as they came and as they were read; None where the journal keeps none."""
    first = readings(evidence.calls, FIRST)
    if not first:
        return None
    title, counts = "What the model said, and how it was read", kinds(evidence.calls).most_common()
    return Section.of(evidence, title, "replies", "replies.html", first=first, kinds=counts)
