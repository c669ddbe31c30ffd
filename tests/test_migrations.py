"""A journal of an earlier schema: read as it is by every command, migrated wholly or not at all."""

import gzip
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from golden.make_journal3 import OPTIONS, old_space

from adaptive_vtt import Audit
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.cli import main
from adaptive_vtt.errors import JournalError
from adaptive_vtt.export.failures import export_failures
from adaptive_vtt.journal import VERSION, SQLiteJournal, read_journal
from adaptive_vtt.testing import ScriptedModel

OLD = Path(__file__).parent / "golden" / "journal3.db.gz"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "journal.db"
    path.parent.mkdir()
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def dump(path: Path) -> list[str]:
    """Every statement that would make the database anew."""
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


@pytest.mark.parametrize("command", ["report", "verify"])
def test_commands_that_read_leave_the_old_schema_as_it_is(old: Path, command: str) -> None:
    data = old.read_bytes()
    with pytest.raises(SystemExit) as ended:
        main([command, str(old.parent)])
    assert not ended.value.code
    assert old.read_bytes() == data


def test_failures_are_exported_from_the_old_schema_as_it_is(old: Path, tmp_path: Path) -> None:
    data = old.read_bytes()
    with closing(read_journal(old)) as journal:
        exported = export_failures(journal, old_space(), tmp_path / "failures")
    assert exported.images == len([*(tmp_path / "failures" / "images").iterdir()]) > 0
    assert old.read_bytes() == data


def test_resuming_migrates_once_and_says_from_what(old: Path) -> None:
    with Audit(old_space(), ScriptedModel(), journal=old, **OPTIONS) as audit:
        facts = audit.journal.facts()
        head = audit.journal.head
    assert (facts["migrated"], version(old)) == ({"from": 3}, VERSION)
    with closing(SQLiteJournal(old)) as journal:  # nothing is migrated twice
        assert [row.name for row in journal.fact_rows()].count("migrated") == 1
        assert journal.head == head
        verify(journal)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_killed_at_any_statement_of_the_migration_the_journal_is_the_old_one_or_the_new(
    old: Path,
) -> None:
    data, before = old.read_bytes(), dump(old)
    with closing(read_journal(old)) as journal:
        head = journal.head
    statements = _migrate_and_die(old, kill_at=0)
    seen = set()
    for kill_at in range(statements, 0, -3):
        _fresh(old, data)
        _migrate_and_die(old, kill_at)
        with closing(read_journal(old)) as journal:  # while what it left beside is there
            assert journal.head == head
            verify(journal)
        seen.add(version(old))
        if version(old) == 3:
            assert dump(old) == before
        SQLiteJournal(old).close()
        with closing(read_journal(old)) as journal:
            assert (version(old), journal.head) == (VERSION, head)
    assert seen == {3, VERSION}


def _fresh(path: Path, data: bytes) -> None:
    for left in path.parent.iterdir():
        left.unlink()
    path.write_bytes(data)


def _migrate_and_die(path: Path, kill_at: int) -> int:
    """Opens a journal for writing in a child that kills itself before its ``kill_at``-th
    statement; 0: never. How many statements it came to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _open_counting(path, kill_at, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as counts:
        count = len(counts.read())
    os.waitpid(child, 0)
    return count


def _open_counting(path: Path, kill_at: int, told: int) -> None:
    connect, seen = sqlite3.connect, 0

    def tick(_: str) -> None:
        nonlocal seen
        seen += 1
        if seen == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(told, b".")

    def connected(*args: object, **options: object) -> sqlite3.Connection:
        database = connect(*args, **options)  # type: ignore[call-overload]
        database.set_trace_callback(tick)
        return database

    sqlite3.connect = connected  # type: ignore[assignment]
    SQLiteJournal(path).close()


def test_a_schema_older_than_3_is_refused_with_what_to_do(old: Path) -> None:
    with closing(sqlite3.connect(old)) as database:
        database.execute("PRAGMA user_version=2")
    data = old.read_bytes()
    with pytest.raises(JournalError, match=r"schema version 2, and this program reads 3 to 5: "):
        SQLiteJournal(old)
    assert old.read_bytes() == data
