"""The order of learning: outcomes are learnt in draw order, each after all earlier ones.

With c calls in flight, a draw depends on all but the last LAG * c draws. The lag is so long that
one slow answer seldom delays the others. Draws come in blocks of c / 2 that depend on the same
draws, so that a small space is predicted once per block.

So the draws depend only on the answers, in whatever order they came, and on c in every block. If c
changes, the first draw of the block journals it ("in_flight" among its reasons), so that an
interrupted audit can continue in the middle of a block. Whatever decides c, such as the speed of
answers, comes before the block. So every draw is random given all that came before it.
"""

from collections.abc import Callable
from typing import Self

from ..journal.rows import CallRow, DrawRow, Reasons, damaged
from ..models.base import BatchModel, ConcurrentModel, ModelDefaults
from .belief import Observation
from .selector import Selector

LAG = 2


class Blocks:
    """Blocks of draws that depend on the same earlier draws.

    A block that starts at draw t depends on draws 0 to t - lag * c - 1, and has c // parts draws.

    Args:
        calls: Returns c, the number of calls in flight.
        lag: Number of draws that are not known yet, in units of c.
        parts: Number of blocks per c draws.
        adapts: True if c changes, so that it is journaled.
    """

    def __init__(self, calls: Callable[[], int], *, lag: int, parts: int, adapts: bool) -> None:
        self._calls, self._lag, self._parts, self._adapts = calls, lag, parts, adapts
        self._journaled: int | None = None  # c in the last draw that has it
        self._level = 0
        self._start = self._end = self._known = 0

    @classmethod
    def of(cls, model: ModelDefaults) -> Self | None:
        """Return the blocks for a model; None if a draw depends on all answers so far."""
        if isinstance(model, BatchModel):  # a round depends on all rounds before it
            return cls(lambda: model.batch, lag=0, parts=1, adapts=False)
        if not isinstance(model, ConcurrentModel):
            return None
        return cls(lambda: model.in_flight, lag=LAG, parts=2, adapts=model.adapts)

    @property
    def size(self) -> int:
        """The number of draws in the current block."""
        return self._end - self._start

    def known(self, draw: int) -> int:
        """Return how many draws the next draw, of this number, depends on.

        If it starts a block, c is read now, once for the block.
        """
        if draw >= self._end:
            self._begin(draw, self._calls())
        return self._known

    def new_level(self, draw: int) -> int | None:
        """Return c if the next draw, of this number, has to journal it, otherwise None."""
        if not self._adapts or draw != self._start or self._level == self._journaled:
            return None
        self._journaled = self._level
        return self._level

    def restore(self, draw: int, reasons: Reasons) -> None:
        """Take a draw from the journal; raise JournalError if its c is no count."""
        level = reasons.get("in_flight")
        if level is not None:
            if not isinstance(level, int) or level < 1:
                where = f"journal: draws, row {draw}, in_flight"
                raise damaged(where, "a whole number, 1 or more", repr(level))
            self._journaled = level
            self._begin(draw, level)
        elif draw >= self._end:
            self._begin(draw, self._calls() if self._journaled is None else self._journaled)

    def _begin(self, draw: int, calls: int) -> None:
        self._level = calls
        self._start, self._end = draw, draw + max(1, calls // self._parts)
        self._known = max(self._known, draw - self._lag * calls)


class DrawOrder:
    """Gives outcomes to the selector in the order of the draws.

    Args:
        selector: Learns the outcomes.
        both: True if unanswered questions count both ways.
        blocks: Say which draws the next one depends on, so that draws do not depend on when answers
            come. None: a draw depends on all answers so far.
        learnt: Called with the outcomes of each draw that was learnt from.

    Attributes:
        calls: The calls drawn, in order.
        learned: Number of draws that were learnt from.
        questions: Number of questions judged.
    """

    def __init__(
        self,
        selector: Selector,
        both: bool,
        blocks: Blocks | None,
        learnt: Callable[[list[Observation]], object],
    ) -> None:
        self.calls: list[int] = []
        self.learned = 0
        self.questions = 0
        self._selector = selector
        self._both = both
        self._blocks, self._learnt = blocks, learnt
        self._outcomes: dict[int, tuple[list[Observation], float]] = {}  # call -> outcomes, cost

    def keep(self, row: CallRow) -> None:
        """Keep a call's judged answers until it is their turn."""
        outcomes = self.outcomes(row)
        self._outcomes[row.call] = outcomes, row.cost
        self.questions += len(outcomes)

    def outcomes(self, row: CallRow) -> list[Observation]:
        """Return a call's judged answers as the belief learns them."""
        return [Observation.of(a, self._both) for a in row.answers if a.loss is not None]

    def catch_up(self) -> None:
        """Learn all that may be learnt now; in blocks, all that the next draw depends on."""
        self.learn(self._due)

    def ready(self) -> bool:
        """Learn what the next draw depends on. Return False if some of that is unanswered."""
        due = self._due
        if due is None:
            return True
        self.learn(due)
        return self.learned >= due

    @property
    def _due(self) -> int | None:
        """The number of draws that the next one depends on; None: as many as possible."""
        return None if self._blocks is None else self._blocks.known(len(self.calls))

    def together(self, wanted: int) -> int:
        """Return how many draws share the next draw's belief, if ``wanted`` are made now."""
        return wanted if self._blocks is None else self._blocks.size

    def level(self) -> int | None:
        """Return the calls in flight that the next draw has to journal; None: no change."""
        return None if self._blocks is None else self._blocks.new_level(len(self.calls))

    def restore(self, row: DrawRow) -> None:
        """Learn what a draw of the journal depended on."""
        self.learn(row.learned)
        if self._blocks is not None:
            self._blocks.restore(row.draw, row.why)

    def learn(self, until: int | None = None) -> None:
        """Learn from draws in order, up to the first unanswered one or to draw ``until``."""
        end = len(self.calls) if until is None else until
        while self.learned < end and self.calls[self.learned] in self._outcomes:
            outcomes, cost = self._outcomes.pop(self.calls[self.learned])
            self._selector.learn(outcomes, cost)
            self.learned += 1
            self._learnt(outcomes)
