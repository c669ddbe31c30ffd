"""One chain of hashes over everything that a journal holds.

Each row's seal is a hash of the seal before it, of the kind of row, and of its content. A row
that was edited, deleted, inserted or moved breaks the chain at that place. The last seal, the
head, follows from all rows: whoever keeps a copy of it elsewhere can also tell a journal that
was rewritten from its first row on, which the chain alone cannot.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import JournalError
from .base import Journal
from .rows import BeliefRow, CallRow, DrawRow, FactRow, JudgingRow, SourceRow
from .rows import Link as Link

SIZE = 16
"""Bytes per seal: 32 hexadecimal digits, short enough to copy by hand."""
Row = FactRow | DrawRow | CallRow | SourceRow | JudgingRow | BeliefRow


class Chain:
    """The end of a chain: where rows are added."""

    def __init__(self, head: str = "", length: int = 0) -> None:
        self.head = head
        self.length = length

    def add(self, row: Row) -> Link:
        """The row's link, which is the head from now on."""
        kind, number = name_of(row)
        self.head = _seal(self.head, row)
        self.length += 1
        return Link(kind, number, self.head)


def name_of(row: Row) -> tuple[str, int]:
    """A row's kind and number, as its link has them."""
    if isinstance(row, FactRow):
        return "fact", row.position
    if isinstance(row, DrawRow):
        return "draw", row.draw
    if isinstance(row, CallRow):
        return "call", row.call
    if isinstance(row, JudgingRow):
        return "judging", row.position
    if isinstance(row, BeliefRow):
        return "belief", row.draws
    return "source", row.source


def check_chain(journal: Journal, draws: Sequence[DrawRow], calls: Sequence[CallRow]) -> None:
    """Raises JournalError naming the first row that is missing, was added, or was altered.

    ``draws`` and ``calls`` are all that ``journal`` holds; they are long, so they are read once,
    maybe without proposals.
    """
    links = journal.links()
    rows = _rows(journal, draws, calls)
    _check_names([(link.kind, link.row) for link in links], rows)
    head = ""
    for link in links:
        row = rows[link.kind, link.row]
        if isinstance(row, DrawRow):
            row = with_proposal(journal, row)
        try:
            seal = _seal(head, row)
        except (TypeError, ValueError):  # a number that is none any more
            seal = "none"
        if seal != link.seal:
            raise JournalError(f"verify: {_words(row)} was altered after it was written")
        head = link.seal
    order = [link.row for link in links if link.kind == "call"]
    if order != [call.call for call in calls]:
        raise JournalError("verify: the calls are not in the order of their commit")


def check_head(journal: Journal, head: str, where: str, remedy: str = "") -> None:
    """Raises JournalError where ``head`` is not the journal's, saying whether it ever was."""
    if head.strip().lower() == journal.head:
        return
    seals = [link.seal for link in journal.links()]
    if head.strip().lower() in seals:
        later = len(seals) - 1 - seals.index(head.strip().lower())
        raise JournalError(
            f"{where} is this journal's of {later} rows ago; its head is {journal.head} now{remedy}"
        )
    raise JournalError(
        f"{where} is none this journal ever had: expected {journal.head}, got {head!r}{remedy}"
    )


def check_undamaged(journal: Journal) -> None:
    """Raises JournalError where the file or the chain of a journal to go on with is damaged."""
    try:
        journal.check_storage()
        check_chain(journal, journal.draws(proposals=False), journal.calls())
    except JournalError as error:
        raise JournalError(
            f"{error}; nothing was asked, as no interval would hold: restore the journal from a "
            "copy, or begin a new audit elsewhere"
        ) from None


def with_proposal(journal: Journal, row: DrawRow) -> DrawRow:
    """The draw with its proposal, read where it was left out."""
    return row if row.proposal else replace(row, proposal=journal.proposal(row.draw))


def _rows(
    journal: Journal, draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> dict[tuple[str, int], Row]:
    pictures = journal.pictures()
    whole = [replace(c, pictures=pictures[c.call]) if c.call in pictures else c for c in calls]
    others: Sequence[Row] = [*journal.sources(), *journal.judging(), *journal.beliefs()]
    rows: Sequence[Row] = [*journal.fact_rows(), *draws, *whole, *others]
    return {name_of(row): row for row in rows}


def _check_names(names: list[tuple[str, int]], rows: Mapping[tuple[str, int], Row]) -> None:
    """Raises JournalError where links and rows are not the same."""
    for kind, number in names:
        if (kind, number) not in rows:
            raise JournalError(f"verify: {kind} {number} is missing")
    linked = set(names)
    if len(linked) < len(names):
        raise JournalError("verify: the chain names a row twice")
    for name, row in rows.items():
        if name not in linked:
            raise JournalError(f"verify: {_words(row)} is not in the chain: it was added by hand")


def _words(row: Row) -> str:
    if isinstance(row, FactRow):
        return f"the fact {row.name!r}"
    if isinstance(row, CallRow):
        return f"an answer, the cost or a picture of call {row.call}"
    if isinstance(row, SourceRow):
        return f"the answer of source {row.source}"
    if isinstance(row, JudgingRow):
        return f"what a judge was asked, or said, of call {row.call}"
    if isinstance(row, BeliefRow):
        return f"what was believed after {row.draws} draws"
    return f"draw {row.draw}"


# -- what is hashed ------------------------------------------------------------------------


def _seal(before: str, row: Row) -> str:
    kind, _ = name_of(row)
    text = json.dumps([before, kind, *_CONTENT[kind](row)])
    return hashlib.blake2b(text.encode(), digest_size=SIZE).hexdigest()


def _fact(row: FactRow) -> list[Any]:
    return [row.position, row.name, row.value]


def _draw(row: DrawRow) -> list[Any]:
    moves = [
        (m.target, list(m.members), int(m.active), [_real(f) for f in m.figures]) for m in row.moves
    ]
    return [
        row.draw,
        row.question,
        row.call,
        row.sample,
        row.learned,
        _real(row.probability),
        _bytes(row.proposal),
        row.why,
        _real(row.elapsed),
        moves,
    ]


def _call(row: CallRow) -> list[Any]:
    answers = [
        (
            a.question,
            a.call,
            None if a.truth is None else int(a.truth),
            _real(a.answer),
            a.unanswered,
            _real(a.loss),
            _real(a.coordinate),
            a.said,
            a.details,
        )
        for a in sorted(row.answers, key=lambda a: a.question)
    ]
    pictures = None if row.pictures is None else [_bytes(p) for p in row.pictures]
    return [row.call, *_paid(row), answers, pictures]


def _source(row: SourceRow) -> list[Any]:
    return [row.source, list(row.answers), *_paid(row)]


def _judging(row: JudgingRow) -> list[Any]:
    return [row.position, row.call, row.question, row.asked, list(row.said), *_paid(row)]


def _paid(row: CallRow | SourceRow | JudgingRow) -> list[float | None]:
    return [_real(row.cost), _real(row.unconfirmed), _real(row.elapsed)]


def _belief(row: BeliefRow) -> list[Any]:
    return [row.draws, dict(row.figures)]


_CONTENT: dict[str, Callable[[Any], list[Any]]] = {
    "fact": _fact,
    "draw": _draw,
    "call": _call,
    "source": _source,
    "judging": _judging,
    "belief": _belief,
}


def _real(value: float | None) -> float | None:
    """A number as SQLite gives it back: 1 as 1.0, -0.0 as 0.0, NaN as None."""
    return None if value is None or value != value else float(value) + 0.0


def _bytes(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=SIZE).hexdigest()
