"""Answers in draw order: judged ones wait until every earlier draw is answered, too."""

from typing import Any

from ..journal.rows import CallRow, DrawRow
from .belief import Observation
from .blocks import Blocks
from .checkpoints import Checkpoints
from .selector import Selector


class DrawOrder:
    """What the selector is to learn. ``calls`` lists the calls as they were drawn.

    ``learned`` counts the draws learnt from, ``questions`` the questions judged. ``both``:
    unanswered questions count both ways.

    With ``blocks``, a draw knows what they say, and no other draws: what is drawn then does not
    depend on when answers came, nor on which draws were asked for together.
    ``checkpoints`` are told of all that is learnt.
    """

    def __init__(
        self,
        selector: Selector,
        both: bool,
        blocks: Blocks | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.calls: list[int] = []
        self.learned = 0
        self.questions = 0
        self._selector = selector
        self._both = both
        self._blocks, self._checkpoints = blocks, checkpoints
        self._outcomes: dict[int, tuple[list[Observation], float]] = {}  # and what the call cost

    def keep(self, row: CallRow) -> None:
        """Holds a call's judged answers until it is their turn."""
        outcomes = self.outcomes(row)
        self._outcomes[row.call] = outcomes, row.cost
        self.questions += len(outcomes)

    def outcomes(self, row: CallRow) -> list[Observation]:
        """What a call's judged answers teach."""
        return [Observation.of(a, self._both) for a in row.answers if a.loss is not None]

    def catch_up(self) -> None:
        """Learns whatever can be learnt now: in blocks, what the next draw is to know."""
        self.learn(self._due)

    def ready(self) -> bool:
        """Learns what the next draw is to know; False where some of that is not answered yet."""
        due = self._due
        if due is None:
            return True
        self.learn(due)
        return self.learned >= due

    @property
    def _due(self) -> int | None:
        """How many draws the next one is to know; None: all that can be."""
        return None if self._blocks is None else self._blocks.known(len(self.calls))

    def together(self, wanted: int) -> int:
        """How many draws, the next among them, know the same, where ``wanted`` are made now."""
        return wanted if self._blocks is None else self._blocks.size

    def reasons(self) -> dict[str, Any]:
        """What the next draw is to tell the journal of what it knows."""
        return {} if self._blocks is None else self._blocks.reasons(len(self.calls))

    def restore(self, row: DrawRow) -> None:
        """Learns what a draw that the journal tells of, the next, knew."""
        self.learn(row.learned)
        if self._blocks is not None:
            self._blocks.restore(row.draw, row.why)

    def learn(self, until: int | None = None) -> None:
        """Learns from answered draws in draw order, as far as they are complete (or ``until``)."""
        end = len(self.calls) if until is None else until
        while self.learned < end and self.calls[self.learned] in self._outcomes:
            outcomes, cost = self._outcomes.pop(self.calls[self.learned])
            self._selector.learn(outcomes, cost)
            self.learned += 1
            if self._checkpoints is not None:
                self._checkpoints.learnt(outcomes)
