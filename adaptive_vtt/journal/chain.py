"""One chain of hashes over everything that a journal holds.

Each row's seal is a hash of the seal before it, of the kind of row, and of its content. A row
that was edited, deleted, inserted or moved breaks the chain at that place. The last seal, the
head, depends on all rows. A copy of it, kept elsewhere, also reveals a journal that was
rewritten from its first row on, which the chain alone cannot.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import JournalError
from .base import Journal
from .rows import BeliefRow, CallRow, DrawRow, FactRow, JudgingRow, SourceRow
from .rows import Link as Link
from .rows import Row as Row

SIZE = 16
"""Bytes per seal: 32 hexadecimal digits, short enough to copy by hand."""


class Chain:
    """The end of a chain, where rows are added."""

    def __init__(self, head: str = "", length: int = 0) -> None:
        self.head = head
        self.length = length

    def add(self, row: Row) -> Link:
        """Append a row and return its link, whose seal is the new head."""
        kind, number = name_of(row)
        self.head = _seal(self.head, row)
        self.length += 1
        return Link(kind, number, self.head)


def name_of(row: Row) -> tuple[str, int]:
    """Return a row's kind and number, as its link names them."""
    kind = _KINDS[type(row)]
    return kind.name, getattr(row, kind.number)


def check_chain(journal: Journal, draws: Sequence[DrawRow], calls: Sequence[CallRow]) -> None:
    """Check that no row is missing, was added by hand, or was altered.

    Args:
        journal: The journal to check.
        draws: All its draws, with or without proposals. They are long, so they are read once.
        calls: All its calls.

    Raises:
        JournalError: It names the first row that does not fit the chain.
    """
    links = journal.links()
    pictures = journal.pictures()
    written: list[Row] = [*journal.fact_rows(), *draws]
    written += [replace(c, pictures=pictures[c.call]) if c.call in pictures else c for c in calls]
    written += [*journal.sources(), *journal.judging(), *journal.beliefs()]
    rows = {name_of(row): row for row in written}
    _check_names([(link.kind, link.row) for link in links], rows)
    head = ""
    for link in links:
        row = rows[link.kind, link.row]
        if isinstance(row, DrawRow):
            row = with_proposal(journal, row)
        try:
            seal = _seal(head, row)
        except (TypeError, ValueError):  # a number was replaced by something else
            seal = "none"
        if seal != link.seal:
            raise JournalError(f"verify: {_label(row)} was altered after it was written")
        head = link.seal
    order = [link.row for link in links if link.kind == "call"]
    if order != [call.call for call in calls]:
        raise JournalError("verify: the calls are not in the order of their commit")


def check_head(journal: Journal, head: str, where: str) -> None:
    """Raise JournalError if ``head`` is not the journal's, and say whether it ever was.

    Args:
        journal: The journal to check.
        head: A head that was noted earlier.
        where: Where it was noted, for the message.
    """
    if head.strip().lower() == journal.head:
        return
    seals = [link.seal for link in journal.links()]
    if head.strip().lower() in seals:
        later = len(seals) - 1 - seals.index(head.strip().lower())
        raise JournalError(
            f"{where} is this journal's of {later} rows ago; its head is {journal.head} now"
        )
    raise JournalError(
        f"{where} is none this journal ever had: expected {journal.head}, got {head!r}"
    )


def check_undamaged(journal: Journal) -> None:
    """Raise JournalError if the file or the chain of a journal to resume is damaged."""
    try:
        journal.check_storage()
        check_chain(journal, journal.draws(proposals=False), journal.calls())
    except JournalError as error:
        raise JournalError(
            f"{error}; nothing was asked, as no interval would hold: restore the journal from a "
            "copy, or begin a new audit elsewhere"
        ) from None


def with_proposal(journal: Journal, row: DrawRow) -> DrawRow:
    """Return the draw with its proposal, which is read if it was left out."""
    return row if row.proposal else replace(row, proposal=journal.proposal(row.draw))


def _check_names(names: list[tuple[str, int]], rows: Mapping[tuple[str, int], Row]) -> None:
    """Raise JournalError unless every link has its row, and every row one link."""
    for kind, number in names:
        if (kind, number) not in rows:
            raise JournalError(f"verify: {kind} {number} is missing")
    linked = set(names)
    if len(linked) < len(names):
        raise JournalError("verify: the chain names a row twice")
    for name, row in rows.items():
        if name not in linked:
            raise JournalError(f"verify: {_label(row)} is not in the chain: it was added by hand")


# -- content of the hashes -----------------------------------------------------------------


def _seal(before: str, row: Row) -> str:
    """Return the hash of a row and of the seal before it."""
    kind = _KINDS[type(row)]
    text = json.dumps([before, kind.name, *kind.content(row)])
    return hashlib.blake2b(text.encode(), digest_size=SIZE).hexdigest()


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
            a.answer_text,
            a.details,
        )
        for a in sorted(row.answers, key=lambda a: a.question)
    ]
    pictures = None if row.pictures is None else [_bytes(p) for p in row.pictures]
    return [row.call, *_paid(row), answers, pictures]


def _paid(row: CallRow | SourceRow | JudgingRow) -> list[float | str | None]:
    """Return the fields of cost, time and reply that three kinds of rows have."""
    return [_real(row.cost), _real(row.unconfirmed), _real(row.elapsed), row.reply]


class _Kind(NamedTuple):
    """A kind of row: its name, the field that numbers it, its name in errors, its hashed content.

    The content is a list that JSON can hold, and must never change: old chains depend on it.
    """

    name: str
    number: str
    words: str
    content: Callable[[Any], list[Any]]


_KINDS: dict[type, _Kind] = {
    FactRow: _Kind("fact", "position", "the fact {0.name!r}", lambda r: [*vars(r).values()]),
    DrawRow: _Kind("draw", "draw", "draw {0.draw}", _draw),
    CallRow: _Kind("call", "call", "an answer, the cost or a picture of call {0.call}", _call),
    SourceRow: _Kind(
        "source",
        "source",
        "the answer of source {0.source}",
        lambda r: [r.source, list(r.answers), *_paid(r)],
    ),
    JudgingRow: _Kind(
        "judging",
        "position",
        "a step of judging call {0.call}",
        lambda r: [r.position, r.call, r.question, r.asked, list(r.answers), *_paid(r)],
    ),
    BeliefRow: _Kind(
        "belief",
        "draws",
        "what was believed after {0.draws} draws",
        lambda r: [r.draws, dict(r.figures)],
    ),
}


def _label(row: Row) -> str:
    return _KINDS[type(row)].words.format(row)


def _real(value: float | None) -> float | None:
    """Return a number as SQLite returns it: 1 as 1.0, -0.0 as 0.0, NaN as None."""
    return None if value is None or value != value else float(value) + 0.0


def _bytes(data: bytes) -> str:
    """Return the hash that stands for a proposal or a picture."""
    return hashlib.blake2b(data, digest_size=SIZE).hexdigest()
