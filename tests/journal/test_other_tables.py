"""A file whose tables are no journal's is refused before anything is read; long queries end."""

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.cli import main
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import SQLiteJournal, files, read_journal
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

from .test_journal import draw_row

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(SQLiteJournal(tmp_path / "journal.db")) as journal:
        journal.set_facts(space={}, settings={})
    return tmp_path / "journal.db"


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


RENAMED = "ALTER TABLE facts RENAME TO kept"
OTHERS = {
    "view": [RENAMED, "CREATE VIEW facts AS SELECT * FROM kept"],
    "endless view": [
        RENAMED,
        f"CREATE VIEW facts AS SELECT i AS position, 'a' AS name, '1' AS value FROM ({ENDLESS})",
    ],
    "trigger": ["CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM calls; END"],
    "virtual table": ["CREATE VIRTUAL TABLE words USING fts5(word)"],
    "generated column": [
        RENAMED,
        "CREATE TABLE facts (position INTEGER PRIMARY KEY, name TEXT NOT NULL, stored TEXT, "
        "value TEXT AS (CASE WHEN position THEN stored ELSE '2' END))",
        "DROP TABLE kept",
    ],
    "another table": ["CREATE TABLE notes (note TEXT)"],
    "no index": ["DROP INDEX answers_by_call"],
    "another index": ["CREATE INDEX facts_by_name ON facts (name) WHERE name > ''"],
    "no table": ["DROP TABLE pictures"],
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_tables_are_refused_before_they_are_read(path: Path, kind: str) -> None:
    edit(path, *OTHERS[kind])
    for read_only in (True, False):
        with pytest.raises(JournalError, match=r"tables and indices .* as this program makes them"):
            SQLiteJournal(path, read_only=read_only)


def test_rows_that_differ_at_every_reading_pass_no_gate(tmp_path: Path, capsys: Any) -> None:
    run = tmp_path / "run"
    space = QuestionSpace(tiny_dataset(12, 2), ["identity", "brightness_up"])
    options: dict[str, Any] = {"half_width": 0.2, "targets": ["overall"], "budget": 12}
    with Audit(space, ScriptedModel(), journal=run / "journal.db", **options) as audit:
        audit.run()
        head = audit.journal.head
        (honest,) = audit.journal.facts()["intervals"]
    forged = json.dumps([honest | {"lower": 0.0, "upper": 0.02, "estimate": 0.01}])
    edit(
        run / "journal.db",
        RENAMED,
        "CREATE VIEW facts AS SELECT position, name, CASE WHEN name = 'intervals' "
        f"AND random() % 2 THEN '{forged}' ELSE value END AS value FROM kept",
    )
    for command in (["gate", "--rule", "overall <= 5 %", "--head", head], ["verify"], ["report"]):
        for _ in range(3):
            with pytest.raises(SystemExit) as ended:
                main([command[0], str(run), *command[1:]])
            assert ended.value.code == 2
    assert "got table 'kept'" in " ".join(capsys.readouterr().err.split())


def test_a_query_without_end_is_ended(path: Path, monkeypatch: pytest.MonkeyPatch):
    with closing(read_journal(path)) as journal:
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                journal._read(ENDLESS)
        finally:
            signal.signal(signal.SIGALRM, before)
        monkeypatch.setattr(files, "PATIENCE", 0.05)
        with pytest.raises(JournalError, match=r"a query to end within 0\.05 s"):
            journal._read(ENDLESS)


# -- links, threads, forks ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["journal.db", "journal.db-wal", "journal.db-shm"])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / name).symlink_to(elsewhere)
    with pytest.raises(JournalError, match=r"link that leads nowhere|a file that SQLite made"):
        SQLiteJournal(tmp_path / "journal.db")
    assert not elsewhere.exists()


def test_any_thread_reads_and_writes(path: Path) -> None:
    with closing(SQLiteJournal(path)) as journal:

        def write(first: int) -> None:
            for draw in range(first, 40, 4):
                journal.add([draw_row(draw, draw)])
                journal.set_facts(**{f"f{first}": draw})
                assert journal.draws(proposals=False)

        threads = [Thread(target=write, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [draw.draw for draw in journal.draws()] == [*range(40)]
        assert [link.row for link in journal.links() if link.kind == "fact"] == [*range(42)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_refused_while_another_thread_reads(path: Path) -> None:
    reading, forked = Event(), Event()

    def read(journal: SQLiteJournal) -> None:
        with journal._reading():
            reading.set()
            forked.wait()

    with closing(SQLiteJournal(path)) as journal:
        thread = Thread(target=read, args=(journal,))
        thread.start()
        reading.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(5)  # ends a child that waits for the thread, which it does not have
            refused = 0
            for use in (
                journal.facts,
                lambda: journal.set_facts(a=1),
                lambda: journal.add([draw_row(0, 0)]),
            ):
                try:
                    use()
                except JournalError as error:
                    refused += "got a forked child" in str(error)
            os._exit(refused)
        forked.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        thread.join()
        journal.set_facts(a=1)
