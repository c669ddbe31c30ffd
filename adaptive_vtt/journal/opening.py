"""Journals opened as what they are needed for: to go on with, to read, to begin anew."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from ..errors import JournalError, one_line
from .base import Journal
from .facts import Facts, begun_facts, is_begun, read_lost
from .in_memory import MemoryJournal
from .sqlite import SQLiteJournal

AnyJournal = TypeVar("AnyJournal", bound=Journal)
JournalSource = Path | str | Journal | Callable[[], Journal] | None


def open_journal(where: JournalSource) -> Journal:
    """A journal as given, as a function opens it, at a path, or in memory where it is None."""
    if where is None:
        return MemoryJournal()
    if callable(where):
        return where()
    if isinstance(where, str | Path):
        return SQLiteJournal(where)
    return where


@contextmanager
def opened(where: JournalSource) -> Iterator[Journal]:
    """As ``open_journal``; where anything fails inside, what was opened here is closed."""
    journal = open_journal(where)
    if journal is where:
        yield journal
    else:
        with closed_on_error(journal):
            yield journal


@contextmanager
def closed_on_error(journal: AnyJournal) -> Iterator[AnyJournal]:
    """Closes the journal where anything fails inside, and lets others write."""
    try:
        yield journal
    except BaseException:
        journal.close()
        raise


def recall(where: JournalSource) -> Facts | None:
    """The facts of the journal that an audit is to go on with; None where it is to be begun."""
    if where is None or callable(where):
        return None
    if isinstance(where, str | Path):
        if not Path(where).is_file():
            return None
        with closing(SQLiteJournal(where, read_only=True)) as journal:
            return begun_facts(journal.facts())
    return begun_facts(where.facts())


def read_journal(path: Path | str) -> SQLiteJournal:
    """The audit in a file as it is now: no lock, no write, and nothing made.

    Raises JournalError where there is no such file, or no audit was begun in it.
    """
    journal = SQLiteJournal(path, read_only=True)
    if not is_begun(journal.facts()):
        journal.close()
        raise JournalError(
            f"{path}: no audit was begun here; 'avtt audit SPEC.toml --out "
            f"{Path(path).parent}' begins one"
        )
    return journal


def holds_answers(path: Path) -> bool:
    """Whether a journal stands at ``path`` in which any call was answered, or paid for."""
    if not path.is_file():
        return False
    with closing(SQLiteJournal(path, read_only=True)) as journal:
        return answered(journal)


def answered(journal: Journal) -> bool:
    """Whether any call brought an answer or cost something.

    Calls that stayed unanswered for nothing, as where an address was wrong, leave nothing to keep.
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
    """An empty journal at ``path``, where none stands or one without any answer.

    A journal that was begun but holds no answer is set aside as PATH.1, PATH.2 ...: it may tell
    of calls that were sent and never came back. Those may have been charged for, so that the
    new journal counts them as lost from its first row on (the fact "interrupted"). Raises
    JournalError where answers stand there, or another process writes.
    """
    if path.is_file():
        with closing(SQLiteJournal(path)) as journal:
            if answered(journal):
                raise JournalError(f"{path.parent}: holds answers already")
            if is_begun(journal.facts()):
                _set_aside(journal)
    lost = _lost_before(path)
    journal = SQLiteJournal(path)
    if lost:
        journal.set_facts(interrupted=lost, counted=[])
    return journal


def _set_aside(journal: SQLiteJournal) -> None:
    """Renames the file while its lock is held."""
    path = journal.path
    try:
        journal.settle()
        os.rename(path, _aside(path)[-1])
    except (sqlite3.Error, OSError) as error:
        raise JournalError(f"{path}: cannot be set aside: {one_line(error)}") from None


def _aside(path: Path) -> list[Path]:
    """Every journal set aside here before, and the name of the next."""
    names = [path.with_name(f"{path.name}.1")]
    while names[-1].exists():
        names.append(path.with_name(f"{path.name}.{len(names) + 1}"))
    return names


def _lost_before(path: Path) -> int:
    """How many calls the journal set aside last may have lost, with those before it."""
    before = _aside(path)[:-1]
    if not before:
        return 0
    with closing(SQLiteJournal(before[-1], read_only=True)) as journal:
        lost = read_lost(journal.facts())
        sent = {draw.call for draw in journal.draws(proposals=False)}
        came_back = {call.call for call in journal.calls()}
        return lost.interrupted + len(sent.difference(lost.counted, came_back))
