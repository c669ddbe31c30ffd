"""What both journals promise; the agreement test in test_journal.py goes further."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import (
    Journal,
    MemoryJournal,
    SQLiteJournal,
    check_chain,
    with_proposal,
)
from adaptive_vtt.journal.rows import AnswerRow, CallRow, DrawRow, SourceRow
from adaptive_vtt.testing.contracts.checks import error_of

KINDS: dict[str, Callable[[Path], Journal]] = {
    "in memory": lambda path: MemoryJournal(),
    "sqlite": SQLiteJournal,
}
DRAW = DrawRow(0, 70, 7, "s7", 0, 0.25, b"proposal\0", {"candidates": 4}, 1.5)
ANSWERS = (
    AnswerRow(70, 7, 1, 0.75, None, 0.25, 0.875),
    AnswerRow(71, 7, 0, None, "refused", 1.0, None, "No comment.", {"names": ["cup"]}),
    AnswerRow(72, 7, None, None, None, None, None),
)
CALL = CallRow(7, 0.5, 2.5, ANSWERS, (b"source", b"follow-up"))
SOURCE = SourceRow(3, (0.5, "a cup", None), 0.25, 3.5)


class TestJournals:
    @pytest.fixture(autouse=True, params=KINDS)
    def chosen(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self._open, self._folder, self._made = KINDS[request.param], tmp_path, 0

    def make(self) -> Journal:
        self._made += 1
        return self._open(self._folder / f"{self._made}.db")

    def reopened(self, journal: Journal) -> Journal:
        """Closed and opened again; the journal itself where it is kept in memory."""
        if isinstance(journal, MemoryJournal):
            return journal
        journal.close()
        return SQLiteJournal(self._folder / f"{self._made}.db", must_exist=True)

    def test_it_begins_empty(self) -> None:
        journal = self.make()
        assert self._content(journal) == ({}, [], [], {}, [], [], [], "")
        journal.close()

    def test_what_is_written_is_read_as_it_was(self) -> None:
        journal = self.reopened(self._filled())
        assert journal.facts() == {"space": {"size": 3}, "ended": None, "seed": 5}
        assert journal.draws() == [DRAW, replace(DRAW, draw=1, call=8, question=80)]
        assert [
            with_proposal(journal, row) for row in journal.draws(proposals=False)
        ] == journal.draws()
        assert journal.proposal(1) == DRAW.proposal
        assert journal.calls() == [replace(CALL, pictures=None)]
        assert journal.pictures() == {7: (b"source", b"follow-up")}
        assert journal.sources() == [SOURCE]
        journal.close()

    def test_facts_have_the_value_written_last_and_keep_their_history(self) -> None:
        journal = self.make()
        for value in (1, 1, [2.5, "x"], None):
            journal.set_facts(stop=value)
        assert journal.facts() == {"stop": None}
        assert [json.loads(row.value) for row in journal.fact_rows()] == [1, [2.5, "x"], None]
        journal.close()

    def test_every_row_is_a_link_of_one_chain(self) -> None:
        journal = self._filled()
        before, count = journal.head, len(journal.links())
        assert count == 7
        journal.set_facts(more=1)
        assert journal.head != before
        assert len(journal.links()) == count + 1
        check_chain(journal, journal.draws(), journal.calls())
        journal.close()

    def test_equal_rows_come_to_equal_seals(self) -> None:
        one, other = self._filled(), self._filled()
        assert one.head == other.head
        one.close()
        other.close()

    def test_a_row_that_stands_there_is_refused_and_nothing_is_written(self) -> None:
        new = replace(DRAW, draw=2, call=9, question=90)
        call = CallRow(8, 0.0, 1.0, ())
        source = replace(SOURCE, source=4)
        writes: list[Callable[[Journal], None]] = [
            lambda journal: journal.add([new, DRAW]),
            lambda journal: journal.add([call, CALL]),
            lambda journal: journal.add([source, SOURCE]),
        ]
        for write in writes:
            journal = self._filled()
            before = self._content(journal)
            error_of(JournalError, partial(write, journal))
            assert self._content(journal) == before
            journal.close()

    def test_an_answer_to_a_call_that_was_not_drawn_is_refused(self) -> None:
        journal = self._filled()
        error_of(JournalError, lambda: journal.add([CallRow(9, 0.0, 1.0, ())]))
        assert [row.call for row in journal.calls()] == [7]
        journal.close()

    def test_the_proposal_of_a_draw_that_is_not_there_is_refused(self) -> None:
        journal = self._filled()
        assert "draw 2 is missing" in str(error_of(JournalError, lambda: journal.proposal(2)))
        journal.close()

    def test_rows_come_in_the_order_that_is_promised(self) -> None:
        journal = self.make()
        numbers = (5, 2, 9)
        journal.add([replace(DRAW, draw=k, call=c) for k, c in enumerate(numbers)])
        for number in numbers:
            journal.add([CallRow(number, 0.0, 1.0, ())])
            journal.add([replace(SOURCE, source=number)])
        journal = self.reopened(journal)
        assert [row.draw for row in journal.draws()] == [0, 1, 2]
        assert [row.call for row in journal.calls()] == [5, 2, 9]
        assert [row.source for row in journal.sources()] == [2, 5, 9]
        journal.close()

    # -- what they are made of ---------------------------------------------------------

    def _filled(self) -> Journal:
        journal = self.make()
        journal.set_facts(space={"size": 3}, ended=None, seed=5)
        journal.add([DRAW, replace(DRAW, draw=1, call=8, question=80)])
        journal.add([replace(CALL, answers=ANSWERS[::-1])])  # read by their questions
        journal.add([SOURCE])
        return journal

    @staticmethod
    def _content(journal: Journal) -> tuple[Any, ...]:
        journal.check_storage()
        return (
            journal.facts(),
            journal.draws(),
            journal.calls(),
            journal.pictures(),
            journal.sources(),
            journal.fact_rows(),
            journal.links(),
            journal.head,
        )
