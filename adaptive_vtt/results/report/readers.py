"""People beside the model: the same questions, in the order of the same draws."""

from dataclasses import dataclass

from .differences import point_span
from .evidence import Evidence
from .people import Compared, Interval, Reader
from .section import Section, figure, fragment, percent, span, sure

SHOWN = 30
"""Targets that are shown of a reader, the best known first; all are in the reader's folder."""
WORDS = {"better": "the reader errs less", "worse": "the reader errs more", "open": "open"}
"""Decisions of a comparison in which the model is A and the reader B."""


@dataclass(frozen=True)
class Row:
    """One target: what the model loses, what the reader does, and by how much less."""

    target: str
    model: str
    reader: str
    difference: str
    words: str
    side: str


def section(evidence: Evidence) -> Section | None:
    """None where nobody answered this audit's questions."""
    reading = evidence.people.reading
    if reading is None or not reading.readers:
        return None
    html = fragment(
        "readers.html",
        readers=[(reader, wrong(reader), rows(reader)) for reader in reading.readers],
        kappa=figure(reading.kappa[0]),
        shared=reading.kappa[1],
        sure="" if reading.confidence is None else sure(reading.confidence),
    )
    return Section("People beside the model", "readers", html)


def wrong(reader: Reader) -> str:
    """How often the reader was wrong, of what was answered; no rate of any target."""
    return percent(reader.wrong)


def rows(reader: Reader) -> list[Row]:
    """Targets, those first of which most is known of the reader."""
    found = sorted(reader.targets, key=lambda one: one.reader[2] - one.reader[1])
    return [_row(one) for one in found[:SHOWN]]


def _row(one: Compared) -> Row:
    return Row(
        one.target,
        _rate(one.model),
        _rate(one.reader),
        "–" if one.difference is None else point_span(*one.difference[1:]),
        WORDS.get(one.decision, one.decision or "–"),
        {"better": "right", "worse": "wrong"}.get(one.decision, ""),
    )


def _rate(interval: Interval) -> str:
    return f"{percent(interval[0])} ({span(*interval[1:])})"
