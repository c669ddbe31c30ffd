"""The protocol of journals."""

from collections.abc import Sequence
from typing import Any, Protocol

from ..types import JsonObject
from .rows import BeliefRow, CallRow, DrawRow, FactRow, JudgingRow, Link, Row, SourceRow


class Journal(Protocol):
    """The ledger that the engine writes and reads. A write is committed whole or not at all."""

    def facts(self) -> JsonObject:
        """Return the latest value of each fact, by name."""

    def set_facts(self, **facts: Any) -> None:
        """Write facts by name, or new values for them; unchanged ones are not written again.

        Args:
            facts: Values that JSON can hold.
        """

    def add(self, rows: Sequence[Row]) -> None:
        """Commit rows of one kind.

        Args:
            rows: Draws, answered calls with all their answers, answers about source images,
                beliefs, or steps of asking a judge. The positions of these continue the
                journal's.

        Raises:
            JournalError: The journal has one of them already, or one is about a call that was
                not drawn.
        """

    def judging(self) -> list[JudgingRow]:
        """Return all steps of asking a judge, in the order of their commit."""

    def beliefs(self) -> list[BeliefRow]:
        """Return the beliefs at all checkpoints, by number of draws."""

    def sources(self) -> list[SourceRow]:
        """Return all answers about source images, by number."""

    def draws(self, *, proposals: bool = True) -> list[DrawRow]:
        """Return all draws, in order.

        Args:
            proposals: Whether to read their proposals, which are most of a long journal. Those
                that are not read may be empty; ``proposal`` reads one.
        """

    def proposal(self, draw: int) -> bytes:
        """Return the packed proposal of one draw.

        Raises:
            JournalError: There is no such draw.
        """

    def calls(self) -> list[CallRow]:
        """Return all answered calls in the order of their commit, without pictures."""

    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        """Return the source and the follow-up as PNG, by call."""

    def fact_rows(self) -> list[FactRow]:
        """Return every value that any fact ever had, in the order of writing."""

    def links(self) -> list[Link]:
        """Return the chain: one link per row, in the order of writing."""

    @property
    def head(self) -> str:
        """The seal of the last row, which depends on all rows; "" before the first."""

    def check_storage(self) -> None:
        """Raise JournalError if the journal's storage is damaged."""

    def check_place(self) -> None:
        """Raise JournalError if the journal's file was deleted or replaced.

        Rows that were written from then on would be lost with it.
        """

    def close(self) -> None:
        """Release the file; the journal cannot be used afterwards."""
