"""People beside the model: their answers to the same questions, and how real they find the changes.

MedTest asks first whether changed pictures are realistic (RQ1), and answers with a sentence; here
are shares by relation.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..difference import DECISIONS, told
from ..outcomes import wilson
from .beside_journal import Cell, Compared, Interval, Reader, Realism, Share
from .evidence import Evidence
from .section import Section, beside, figure, percent, span, sure

SHOWN = 30
"""Targets that are shown of a reader, the best known first; all are in the reader's folder."""


# -- the same questions, in the order of the same draws ------------------------------------------


class ReaderRow(NamedTuple):
    """One target: what the model loses and the reader does, how much more or less; in words."""

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
    return Section.of(
        "People beside the model",
        "readers",
        "readers.html",
        readers=[(reader, wrong(reader), reader_rows(reader)) for reader in reading.readers],
        kappa=figure(reading.kappa[0]),
        shared=reading.kappa[1],
        sure="" if reading.confidence is None else sure(reading.confidence),
    )


def wrong(reader: Reader) -> str:
    """How often the reader was wrong, of what was answered; no rate of any target."""
    return percent(reader.wrong)


def reader_rows(reader: Reader) -> list[ReaderRow]:
    """Targets, those first of which most is known of the reader."""
    found = sorted(reader.targets, key=lambda one: one.reader[2] - one.reader[1])
    return [_reader_row(one, reader.name) for one in found[:SHOWN]]


def _reader_row(one: Compared, name: str) -> ReaderRow:
    difference = "–"
    if one.difference is not None:  # the model's rate less the reader's
        delta, lower, upper = one.difference
        difference = told(name, -delta, -upper, -lower)
    return ReaderRow(
        one.target,
        _rate_and_span(one.model),
        _rate_and_span(one.reader),
        difference,
        DECISIONS.get(one.decision or "", "–").format(b=name),
        {"better": "right", "worse": "wrong"}.get(one.decision, ""),
    )


def _rate_and_span(interval: Interval) -> str:
    return f"{beside(*interval)} ({span(*interval[1:])})"


# -- realism -------------------------------------------------------------------------------------


class RealismRow(NamedTuple):
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
    return Section.of(
        "Realism",
        "realism",
        "realism.html",
        rows=realism_rows(realism),
        readers=realism.readers,
        kappas=[(name, figure(kappa), count) for name, (kappa, count) in realism.kappa.items()],
    )


def realism_rows(realism: Realism) -> list[RealismRow]:
    """A row per relation, the least realistic first, those nobody judged so last, and one of all at
    the end."""
    relations: dict[str, list[Cell]] = {}
    for cell in realism.cells:
        relations.setdefault(cell.relation, []).append(cell)

    def rank(item: tuple[str, list[Cell]]) -> float:
        yes, count = _sums([cell.realistic for cell in item[1]])
        return yes / count if count else math.inf

    found = sorted(relations.items(), key=rank)
    every = [("all", realism.cells)] if len(relations) > 1 else []
    return [_realism_row(name, cells) for name, cells in [*found, *every]]


def _realism_row(name: str, cells: Sequence[Cell]) -> RealismRow:
    realistic, same = _sums([c.realistic for c in cells]), _sums([c.same for c in cells])
    severities = sorted((c.severity, c.realistic) for c in cells)
    shown = ", ".join(f"{s}: {yes} of {n}" for s, (yes, n) in severities)
    pairs = max(realistic[1], same[1])
    return RealismRow(
        name, *_rate(*realistic), *_rate(*same), pairs, shown if name != "all" else ""
    )


def _sums(shares: Sequence[Share]) -> tuple[int, int]:
    yes, count = map(sum, zip(*shares, strict=True))
    return yes, count


def _rate(yes: int, count: int) -> tuple[str, str]:
    """The share with Wilson's interval, of pairs that were drawn evenly from each cell."""
    return (percent(yes / count), span(*wilson(yes, count))) if count else ("–", "–")
