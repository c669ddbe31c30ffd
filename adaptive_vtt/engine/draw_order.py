"""Answers in draw order: judged ones wait until every earlier draw is answered, too."""

from ..journal.rows import CallRow
from .belief import Learnt
from .selector import Selector


class DrawOrder:
    """What the selector is to learn. ``calls`` lists the calls as they were drawn.

    ``learned`` counts the draws learnt from, ``questions`` the questions judged. ``both``:
    unanswered questions count both ways.

    With a ``lag``, draws are made in blocks of ``block``: those from draw t on, a multiple of it,
    know draws 0 .. t - lag - 1 and no others. What is drawn then follows from the answers alone,
    in whatever order and however late they came, and whichever of a block were asked for together.
    """

    def __init__(
        self, selector: Selector, both: bool, lag: int | None = None, block: int = 1
    ) -> None:
        self.calls: list[int] = []
        self.learned = 0
        self.questions = 0
        self._selector = selector
        self._both = both
        self._lag = lag
        self._block = block
        self._outcomes: dict[int, tuple[list[Learnt], float]] = {}  # and what the call cost

    def keep(self, row: CallRow) -> None:
        """Holds a call's judged answers until it is their turn."""
        outcomes = self.outcomes(row)
        self._outcomes[row.call] = outcomes, row.cost
        self.questions += len(outcomes)

    def outcomes(self, row: CallRow) -> list[Learnt]:
        """What a call's judged answers teach."""
        return [Learnt.of(a, self._both) for a in row.answers if a.loss is not None]

    def catch_up(self) -> None:
        """Learns whatever can be learnt now: with a lag, what the next draw is to know."""
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
        if self._lag is None:
            return None
        start = len(self.calls) // self._block * self._block
        return max(0, start - self._lag)

    def together(self, wanted: int) -> int:
        """How many draws, the next among them, know the same, where ``wanted`` are made now."""
        return wanted if self._lag is None else self._block

    def learn(self, until: int | None = None) -> None:
        """Learns from answered draws in draw order, as far as they are complete (or ``until``)."""
        end = len(self.calls) if until is None else until
        while self.learned < end and self.calls[self.learned] in self._outcomes:
            self._selector.learn(*self._outcomes.pop(self.calls[self.learned]))
            self.learned += 1
