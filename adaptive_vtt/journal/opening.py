"""Open a journal to begin an audit, to resume it, or to read it."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from ..errors import JournalError, one_line
from .base import Journal
from .chain import Row, name_of
from .facts import Facts, begun_facts, is_begun, read_lost
from .in_memory import MemoryJournal
from .rows import FactRow
from .sqlite import SQLiteJournal

AnyJournal = TypeVar("AnyJournal", bound=Journal)
JournalSource = Path | str | Journal | Callable[[], Journal] | None


def open_journal(where: JournalSource) -> Journal:
    """Return a journal to write.

    Args:
        where: A path, a journal, a function that opens one, or None for one in memory.
    """
    if where is None:
        return MemoryJournal()
    if callable(where):
        return where()
    if isinstance(where, str | Path):
        return SQLiteJournal(where)
    return where


@contextmanager
def opened(where: JournalSource) -> Iterator[Journal]:
    """Open a journal as ``open_journal`` does; an error inside closes what was opened here."""
    journal = open_journal(where)
    if journal is where:
        yield journal
    else:
        with closed_on_error(journal):
            yield journal


@contextmanager
def closed_on_error(journal: AnyJournal) -> Iterator[AnyJournal]:
    """Close the journal at an error inside, so that others may write."""
    try:
        yield journal
    except BaseException:
        journal.close()
        raise


def recall(where: JournalSource) -> Facts | None:
    """Return the facts of the audit to resume, or None if one is to be begun."""
    if where is None or callable(where):
        return None
    if isinstance(where, str | Path):
        if not Path(where).is_file():
            return None
        with closing(SQLiteJournal(where, read_only=True)) as journal:
            return begun_facts(journal.facts())
    return begun_facts(where.facts())


def read_journal(path: Path | str) -> SQLiteJournal:
    """Open the journal in a file to read it; nothing is locked, written or created.

    Raises:
        JournalError: There is no such file, or no audit was begun in it.
    """
    journal = SQLiteJournal(path, read_only=True)
    if not is_begun(journal.facts()):
        journal.close()
        raise JournalError(
            f"{path}: no audit was begun here; 'avtt audit SPEC.toml --out "
            f"{Path(path).parent}' begins one"
        )
    return journal


def as_of(journal: Journal, head: str) -> MemoryJournal | None:
    """Return the journal as it was when ``head`` was its head.

    Rows are only ever added, so these are the rows up to that link. Proposals and pictures are
    omitted, as no result depends on them, so the head of the copy differs.

    Returns:
        A copy in memory, or None if the journal never had that head.
    """
    links = journal.links()
    place = next((k for k, link in enumerate(links) if link.seal == head), None)
    if place is None:
        return None
    all_rows: list[Row] = [
        *journal.fact_rows(),
        *journal.draws(proposals=False),
        *journal.calls(),
        *journal.sources(),
        *journal.judging(),
        *journal.beliefs(),
    ]
    rows = {name_of(row): row for row in all_rows}
    earlier = MemoryJournal()
    for link in links[: place + 1]:
        row = rows[link.kind, link.row]
        if isinstance(row, FactRow):
            earlier.set_facts(**{row.name: json.loads(row.value)})
        else:
            earlier.add([row])
    return earlier


def holds_answers(path: Path) -> bool:
    """Return whether a file is a journal with an answer, or with a call that was paid for."""
    if not path.is_file():
        return False
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        return answered(journal)


def answered(journal: Journal) -> bool:
    """Return whether any call was answered or cost something.

    Free calls without an answer, as at a wrong address, are nothing that a user would miss.
    """
    calls, sources = journal.calls(), journal.sources()
    paid = any(call.cost > 0 for call in calls) or any(source.cost > 0 for source in sources)
    answers = (a for call in calls for a in call.answers)
    values = (value for source in sources for value in source.answers)
    return (
        paid
        or bool(journal.judging())
        or any(a.unanswered is None or a.excluded for a in answers)
        or any(not (isinstance(value, dict) and "unanswered" in value) for value in values)
    )


def begin_anew(path: Path) -> SQLiteJournal:
    """Return an empty journal at ``path``; one without any answer is set aside.

    A journal that was begun and has no answer is renamed PATH.1, PATH.2 ..., as it may list calls
    that were sent and lost. These may have been charged, so the new journal counts them as lost
    from its first row on (the fact "interrupted").

    Raises:
        JournalError: The journal there has answers, or another process writes it.
    """
    if path.is_file():
        with closing(SQLiteJournal(path)) as journal:
            if answered(journal):
                raise JournalError(f"{path.parent}: holds answers already")
            if is_begun(journal.facts()):
                try:
                    journal.settle()
                    os.rename(path, _aside(path)[-1])  # while its lock is held
                except (sqlite3.Error, OSError) as error:
                    raise JournalError(f"{path}: cannot be set aside: {one_line(error)}") from None
    lost = _lost_before(path)
    journal = SQLiteJournal(path)
    if lost:
        journal.set_facts(interrupted=lost, counted=[])
    return journal


def _aside(path: Path) -> list[Path]:
    """Return the names of all journals set aside here, and the name for the next."""
    names = [path.with_name(f"{path.name}.1")]
    while names[-1].exists():
        names.append(path.with_name(f"{path.name}.{len(names) + 1}"))
    return names


def _lost_before(path: Path) -> int:
    """Return how many calls the journals set aside here may have lost.

    The last of them counts those of its predecessors in its facts.
    """
    before = _aside(path)[:-1]
    if not before:
        return 0
    with closing(SQLiteJournal(before[-1], read_only=True)) as journal:
        lost = read_lost(journal.facts())
        sent = {draw.call for draw in journal.draws(proposals=False)}
        answered = {call.call for call in journal.calls()}
        return lost.interrupted + len(sent.difference(lost.counted, answered))
