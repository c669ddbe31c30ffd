"""One question, in words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """One question in words; ``truth`` is that of the source image."""

    number: int
    sample_id: str
    relation: str
    severity: int
    concept: str
    truth: int
