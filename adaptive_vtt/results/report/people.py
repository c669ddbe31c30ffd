"""People beside the model: their answers to the same questions, and how real they find the changes.

MedTest asks first whether changed pictures are realistic (RQ1), and answers with a sentence; here
are shares by relation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .beside_journal import Cell, Compared, Interval, Reader, Realism, Share
from .differences import point_span
from .evidence import Evidence
from .headline import wilson
from .section import Section, figure, fragment, percent, span, sure

# -- people beside the model -----------------------------------------------------------------------


SHOWN = 30
"""Targets that are shown of a reader, the best known first; all are in the reader's folder."""
WORDS = {"better": "the reader errs less", "worse": "the reader errs more", "open": "open"}
"""Decisions of a comparison in which the model is A and the reader B."""


@dataclass(frozen=True)
class ReaderRow:
    """One target: what the model loses, what the reader does, and by how much less."""

    target: str
    model: str
    reader: str
    difference: str
    words: str
    side: str


def readers_section(evidence: Evidence) -> Section | None:
    """None where nobody answered this audit's questions."""
    reading = evidence.people.reading
    if reading is None or not reading.readers:
        return None
    html = fragment(
        "readers.html",
        readers=[(reader, wrong(reader), reader_rows(reader)) for reader in reading.readers],
        kappa=figure(reading.kappa[0]),
        shared=reading.kappa[1],
        sure="" if reading.confidence is None else sure(reading.confidence),
    )
    return Section("People beside the model", "readers", html)


def wrong(reader: Reader) -> str:
    """How often the reader was wrong, of what was answered; no rate of any target."""
    return percent(reader.wrong)


def reader_rows(reader: Reader) -> list[ReaderRow]:
    """Targets, those first of which most is known of the reader."""
    found = sorted(reader.targets, key=lambda one: one.reader[2] - one.reader[1])
    return [_reader_row(one) for one in found[:SHOWN]]


def _reader_row(one: Compared) -> ReaderRow:
    return ReaderRow(
        one.target,
        _rate_and_span(one.model),
        _rate_and_span(one.reader),
        "–" if one.difference is None else point_span(*one.difference[1:]),
        WORDS.get(one.decision, one.decision or "–"),
        {"better": "right", "worse": "wrong"}.get(one.decision, ""),
    )


def _rate_and_span(interval: Interval) -> str:
    return f"{percent(interval[0])} ({span(*interval[1:])})"


# -- realism ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RealismRow:
    """A relation, or all: both shares with their intervals, and the first by severity."""

    name: str
    realistic: str
    realistic_interval: str
    same: str
    same_interval: str
    pairs: int
    by_severity: str


def realism_section(evidence: Evidence) -> Section | None:
    """None where nobody judged pictures of this audit."""
    realism = evidence.people.realism
    if realism is None or not realism.cells:
        return None
    html = fragment(
        "realism.html",
        rows=realism_rows(realism),
        readers=realism.readers,
        kappas=[(name, figure(kappa), count) for name, (kappa, count) in realism.kappa.items()],
    )
    return Section("Realism", "realism", html)


def realism_rows(realism: Realism) -> list[RealismRow]:
    """A row per relation, the least realistic first, those nobody judged so last, and one of all at
    the end."""
    relations: dict[str, list[Cell]] = {}
    for cell in realism.cells:
        relations.setdefault(cell.relation, []).append(cell)

    def rank(item: tuple[str, list[Cell]]) -> float:
        rate = _rate([cell.realistic for cell in item[1]])
        return math.inf if rate is None else rate

    found = sorted(relations.items(), key=rank)
    every = [("all", realism.cells)] if len(relations) > 1 else []
    return [_realism_row(name, cells) for name, cells in [*found, *every]]


def _realism_row(name: str, cells: Sequence[Cell]) -> RealismRow:
    realistic, same = [c.realistic for c in cells], [c.same for c in cells]
    severities = sorted((c.severity, c.realistic) for c in cells)
    shown = ", ".join(f"{s}: {yes} of {n}" for s, (yes, n) in severities)
    return RealismRow(
        name,
        percent(_rate(realistic)),
        _interval(realistic),
        percent(_rate(same)),
        _interval(same),
        max(sum(n for _, n in realistic), sum(n for _, n in same)),
        shown if name != "all" else "",
    )


def _rate(shares: Sequence[Share]) -> float | None:
    """None where nobody judged any."""
    yes, count = map(sum, zip(*shares, strict=True))
    return yes / count if count else None


def _interval(shares: Sequence[Share]) -> str:
    """Wilson's, of pairs that were drawn evenly from each cell."""
    yes, count = map(sum, zip(*shares, strict=True))
    return span(*wilson(yes, count)) if count else "–"
