"""The first replies of a chat model, and every kind of reading with its count."""

from ..replies import kinds, readings
from .evidence import Evidence
from .section import Section

FIRST = 5
"""Replies that are shown."""


def section(evidence: Evidence) -> Section | None:
    """None where the journal keeps no replies."""
    first = readings(evidence.calls, FIRST)
    if not first:
        return None
    return Section.of(
        "What the model said, and how it was read",
        "replies",
        "replies.html",
        first=first,
        kinds=kinds(evidence.calls).most_common(),
        folder=evidence.folder,
    )
