"""What both journals promise; the agreement test in test_journal.py goes further."""

from collections.abc import Callable
from pathlib import Path

import pytest

from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.testing.contracts import JournalContract

KINDS: dict[str, Callable[[Path], Journal]] = {
    "in memory": lambda path: MemoryJournal(),
    "sqlite": SQLiteJournal,
}


class TestJournals(JournalContract):
    @pytest.fixture(autouse=True, params=KINDS)
    def chosen(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self._open, self._folder, self._made = KINDS[request.param], tmp_path, 0

    def make(self) -> Journal:
        self._made += 1
        return self._open(self._folder / f"{self._made}.db")

    def reopened(self, journal: Journal) -> Journal:
        if isinstance(journal, MemoryJournal):
            return journal
        journal.close()
        return SQLiteJournal(self._folder / f"{self._made}.db", must_exist=True)
