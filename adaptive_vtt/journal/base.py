"""What every journal can do."""

from collections.abc import Sequence
from typing import Any, Protocol

from ..types import JsonObject
from .rows import BeliefRow, CallRow, DrawRow, FactRow, JudgingRow, Link, Row, SourceRow


class Journal(Protocol):
    """What the engine writes and reads. Every write is whole or not at all."""

    def facts(self) -> JsonObject:
        """All facts by name: the value of each that was written last."""

    def set_facts(self, **facts: Any) -> None:
        """Writes facts, or other values for them; values must fit JSON. A fact that stands
        there with the same value is not written again."""

    def add(self, rows: Sequence[Row]) -> None:
        """Commit rows of one kind: draws, answered calls with all their answers, answers about
        source images, steps of asking a judge (positions going on from those there), or beliefs.

        Raises:
            JournalError: One of them stands there already, or is about a call that was not drawn.
        """

    def judging(self) -> list[JudgingRow]:
        """All steps of asking a judge, in the order of their commit."""

    def beliefs(self) -> list[BeliefRow]:
        """All that was believed, by draws."""

    def sources(self) -> list[SourceRow]:
        """All answers about source images, by number."""

    def draws(self, *, proposals: bool = True) -> list[DrawRow]:
        """All draws, in order. Without ``proposals``, which are most of a long journal, those may
        be empty; ``proposal`` reads one."""

    def proposal(self, draw: int) -> bytes:
        """The packed proposal of one draw; raises JournalError where there is no such draw."""

    def calls(self) -> list[CallRow]:
        """All answered calls in the order of their commit, without pictures."""

    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        """Source and follow-up PNG by call."""

    def fact_rows(self) -> list[FactRow]:
        """Every value that any fact has had, in the order of writing."""

    def links(self) -> list[Link]:
        """The chain: one link per row, in the order of writing."""

    @property
    def head(self) -> str:
        """The seal of the last row, which follows from all rows; "" before the first."""

    def check_storage(self) -> None:
        """Raises JournalError where what the journal is stored in is damaged."""

    def check_place(self) -> None:
        """Raises JournalError where the journal's file was deleted or replaced: rows written from
        then on would be lost with it."""

    def close(self) -> None:
        """Releases the file; the journal cannot be used after."""
