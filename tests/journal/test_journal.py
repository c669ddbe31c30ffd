"""The journal: whole writes or none, the same in memory and in a file, refused when foreign."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import (
    VERSION,
    Journal,
    MemoryJournal,
    SQLiteJournal,
    check_chain,
    open_journal,
)
from adaptive_vtt.journal.rows import AnswerRow, CallRow, DrawRow, SourceRow

small = st.integers(0, 6)
maybe = st.none() | st.floats(0, 1)
facts = st.dictionaries(
    st.sampled_from(["space", "settings", "ended"]),
    st.none() | st.integers() | st.text(max_size=5) | st.lists(st.floats(0, 1), max_size=3),
    max_size=2,
)
pictures = st.none() | st.tuples(st.binary(max_size=4), st.binary(max_size=4))


def draw_row(draw: int, call: int, **changes: Any) -> DrawRow:
    row = DrawRow(draw, call * 10, call, f"s{call}", 0, 0.25, b"proposal\0", {"candidates": 4}, 1.5)
    return replace(row, **changes)


def answer_row(call: int, question: int, answer: float | None = 0.75) -> AnswerRow:
    reason = "refused" if answer is None else None
    return AnswerRow(question, call, 1, answer, reason, 0.0, None if answer is None else 0.875)


def call_row(call: int, *questions: int, **changes: Any) -> CallRow:
    answers = tuple(answer_row(call, question) for question in questions)
    return replace(CallRow(call, 0.5, 2.5, answers), **changes)


@st.composite
def draw_rows(draw: st.DrawFn) -> list[DrawRow]:
    numbers = draw(st.lists(st.tuples(small, small), min_size=1, max_size=3))
    return [draw_row(number, call, learned=number) for number, call in numbers]


@st.composite
def call_rows(draw: st.DrawFn) -> list[CallRow]:
    rows = []
    for call in draw(st.lists(small, min_size=1, max_size=3)):
        questions = draw(st.lists(st.integers(0, 12), min_size=1, max_size=3))
        answers = tuple(answer_row(call, q, draw(maybe)) for q in questions)
        cost = draw(st.sampled_from([0, -0.0, 0.5, 1]))
        rows.append(CallRow(call, cost, 2.5, answers, draw(pictures)))
    return rows


source_rows = st.lists(
    st.builds(SourceRow, small, st.tuples(maybe, maybe), maybe.map(lambda x: x or -0.0), small),
    min_size=1,
    max_size=2,
)


def content(journal: Journal) -> tuple[Any, ...]:
    check_chain(journal, journal.draws(), journal.calls())
    return (
        journal.facts(),
        journal.draws(),
        journal.calls(),
        list(journal.pictures().items()),
        journal.sources(),
        journal.fact_rows(),
        journal.links(),
        journal.head,
    )


class Agreement(RuleBasedStateMachine):
    """Any operations, allowed or not, in any order, on a journal in memory and one in a file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal.db"

    @initialize()
    def begin(self) -> None:
        self.memory = MemoryJournal()
        self.file = SQLiteJournal(self.path)

    @rule(rows=draw_rows() | call_rows() | source_rows)
    def add(self, rows: list[Any]) -> None:
        """Both take the write, or both refuse it and are as they were."""
        before = content(self.file)
        refused = []
        for journal in (self.memory, self.file):
            try:
                journal.add(rows)
            except JournalError:
                refused.append(journal)
                assert content(journal) == before
        assert len(refused) in (0, 2)

    @rule(new=facts)
    def set_facts(self, new: dict[str, Any]) -> None:
        self.memory.set_facts(**new)
        self.file.set_facts(**new)

    @rule()
    def reopen(self) -> None:
        self.file.close()
        self.file = SQLiteJournal(self.path, must_exist=True)

    @invariant()
    def same_content(self) -> None:
        if hasattr(self, "file"):
            assert content(self.memory) == content(self.file)

    def teardown(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
        self.folder.cleanup()


TestAgreement = Agreement.TestCase
TestAgreement.settings = settings(max_examples=12, stateful_step_count=10)


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """An empty journal of either kind."""
    opened = open_journal(None if request.param == "memory" else tmp_path / "journal.db")
    yield opened
    opened.close()


# -- both kinds ----------------------------------------------------------------------------


REFUSED: dict[str, list[DrawRow] | list[CallRow]] = {
    "draw stands there": [draw_row(2, 2), draw_row(0, 3)],
    "its call stands there": [draw_row(2, 2), draw_row(3, 0)],
    "draw twice in one write": [draw_row(2, 2), draw_row(2, 3)],
    "not drawn": [call_row(1, 10), call_row(2, 20)],
    "answered already": [call_row(1, 10), call_row(0, 1)],
    "question twice in one call": [call_row(1, 10, 10)],
    "question answered already": [call_row(1, 10, 0)],
}


@pytest.mark.parametrize("why", REFUSED)
def test_rows_that_cannot_be_are_refused_whole(journal: Journal, why: str) -> None:
    journal.add([draw_row(0, 0), draw_row(1, 1)])
    journal.add([call_row(0, 0)])
    rows: list[Any] = REFUSED[why]
    with pytest.raises(JournalError, match=r"^journal"):
        journal.add(rows)
    assert journal.draws() == [draw_row(0, 0), draw_row(1, 1)]
    assert journal.calls() == [call_row(0, 0)]
    journal.add([call_row(1, 10)])  # and the journal goes on
    assert len(journal.calls()) == 2


# -- the file ------------------------------------------------------------------------------


def test_file_is_found_again_as_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one" / "journal.db"  # folders are made
    written = SQLiteJournal(path)
    written.set_facts(space={"name": "ö"})
    written.add([draw_row(0, 1, question=2**62 - 1)])
    written.close()
    read = SQLiteJournal(path, must_exist=True)
    assert read.facts() == {"space": {"name": "ö"}}
    assert read.draws() == [draw_row(0, 1, question=2**62 - 1)]
    read.close()


def of_schema(path: Path, version: int) -> None:
    SQLiteJournal(path).close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"PRAGMA user_version={version}")


def of_recipes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (partial(of_schema, version=VERSION - 1), rf"version {VERSION - 1}, and this .* {VERSION}"),
        (partial(of_schema, version=VERSION + 1), rf"version {VERSION + 1}, and this .* {VERSION}"),
        (of_recipes, r"other\.db' is a database, but not a journal"),
        (lambda path: path.write_text("no database " * 99), r"cannot be opened: .*not a database"),
    ],
    ids=["older", "newer", "another database", "another file"],
)
def test_what_is_no_journal_is_refused_and_left_alone(tmp_path: Path, write: Any, message: str):
    path = tmp_path / "other.db"
    write(path)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=message):
        SQLiteJournal(path)
    assert path.read_bytes() == before


def test_a_folder_and_a_file_in_the_way_are_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"cannot be opened: unable to open"):
        SQLiteJournal(tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(JournalError, match=r"journal '.*journal\.db' cannot be opened"):
        SQLiteJournal(tmp_path / "file" / "journal.db")


def test_file_that_became_read_only_refuses_writes_and_stays_readable(tmp_path: Path) -> None:
    # "query_only" stands in for a read-only file, which root could write all the same.
    journal = SQLiteJournal(tmp_path / "journal.db")
    journal.add([draw_row(0, 0)])
    journal._db.execute("PRAGMA query_only=ON")
    for write in (
        lambda: journal.add([draw_row(1, 1)]),
        lambda: journal.add([call_row(0, 0)]),
        lambda: journal.set_facts(space=1),
    ):
        with pytest.raises(JournalError, match=r"cannot be written: .*readonly.*nothing of this"):
            write()
    assert content(journal)[:4] == ({}, [draw_row(0, 0)], [], [])
    journal.close()


def test_full_disk_refuses_the_write_whole_and_later_goes_on(tmp_path: Path) -> None:
    journal = SQLiteJournal(tmp_path / "journal.db")
    journal.add([draw_row(0, 0), draw_row(1, 1)])
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count={pages}")  # no page may be added: a full disk
    before = content(journal)
    big = (b"\1" * 100_000, b"\2" * 100_000)
    with pytest.raises(JournalError, match=r"cannot be written: database or disk is full; nothing"):
        journal.add([call_row(0, 0), call_row(1, 1, pictures=big)])
    assert content(journal) == before
    other = SQLiteJournal(tmp_path / "journal.db", read_only=True)
    assert content(other) == before
    other.close()
    journal._db.execute("PRAGMA max_page_count=100000")  # room again
    journal.add([call_row(0, 0), call_row(1, 1, pictures=big)])
    assert journal.pictures() == {1: big}
    journal.close()
