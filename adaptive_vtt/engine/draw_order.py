"""What a draw knows: answers in the order of the draws, each once all before it are answered.

With c calls in flight, a draw follows from all but the last LAG * c draws: so many that one slow
answer seldom holds up the others. Draws come in blocks of c / 2 that know the same, so that what
is expected of a small space is worked out once per block. What is drawn then follows from the
answers alone, in whatever order and however late they came, and from the c of every block. Where
that changes, the first draw of a block says so in the journal ("in_flight" among its reasons), so
that an interrupted audit goes on in the middle of a block as if nothing had happened. What decides
about c, such as how fast answers come, lies before the block it is chosen for, so that every draw
is random given all that came before it.
"""

from collections.abc import Callable
from typing import Self

from ..errors import JournalError
from ..journal.rows import CallRow, DrawRow, Reasons
from ..models.base import BatchModel, ConcurrentModel, ModelDefaults
from .belief import Observation
from .selector import Selector

LAG = 2


class Blocks:
    """Blocks of ``calls() // parts`` draws, those from draw t on knowing draws 0 .. t - lag - 1,
    where lag is ``lag`` times ``calls()``. ``adapts``: whether that changes, and is journaled."""

    def __init__(
        self, calls: Callable[[], int], *, lag: int, parts: int, adapts: bool = False
    ) -> None:
        self._calls, self._lag, self._parts, self._adapts = calls, lag, parts, adapts
        self._journaled: int | None = None  # c of the last draw that holds it
        self._level = 0
        self._start = self._end = self._known = 0

    @classmethod
    def of(cls, model: ModelDefaults) -> Self | None:
        """Those of an audit of ``model``; None where a draw knows all that was answered."""
        if isinstance(model, BatchModel):  # a round knows all answers before it, none of its own
            return cls(lambda: model.batch, lag=0, parts=1)
        if not isinstance(model, ConcurrentModel):
            return None
        return cls(lambda: model.in_flight, lag=LAG, parts=2, adapts=model.adapts)

    @property
    def size(self) -> int:
        """How many draws know what the next one knows, itself included."""
        return self._end - self._start

    def known(self, draw: int) -> int:
        """How many draws the one of this number, the next, knows. Where it begins a block, c is
        decided, once."""
        if draw >= self._end:
            self._begin(draw, self._calls())
        return self._known

    def new_level(self, draw: int) -> int | None:
        """Return c if the next draw, of this number, has to journal it; None if it is known."""
        if not self._adapts or draw != self._start or self._level == self._journaled:
            return None
        self._journaled = self._level
        return self._level

    def restore(self, draw: int, reasons: Reasons) -> None:
        """Take a draw from the journal. Raises JournalError where its c is none."""
        level = reasons.get("in_flight")
        if level is not None:
            if not isinstance(level, int) or level < 1:
                raise JournalError(
                    f"journal: draws, row {draw}, in_flight: expected a whole number, 1 or more, "
                    f"got {level!r}; the journal is damaged: restore a copy of it"
                )
            self._journaled = level
            self._begin(draw, level)
        elif draw >= self._end:
            self._begin(draw, self._calls() if self._journaled is None else self._journaled)

    def _begin(self, draw: int, calls: int) -> None:
        self._level = calls
        self._start, self._end = draw, draw + max(1, calls // self._parts)
        self._known = max(self._known, draw - self._lag * calls)


class DrawOrder:
    """What the selector is to learn. ``calls`` lists the calls as they were drawn.

    ``learned`` counts the draws learnt from, ``questions`` the questions judged. ``both``:
    unanswered questions count both ways.

    With ``blocks``, a draw knows what they say, and no other draws: what is drawn then does not
    depend on when answers came, nor on which draws were asked for together.
    ``learnt`` is called with the outcomes of every draw that is learnt from.
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

    def level(self) -> int | None:
        """The calls in flight that the next draw is to tell the journal of; None: nothing new."""
        return None if self._blocks is None else self._blocks.new_level(len(self.calls))

    def restore(self, row: DrawRow) -> None:
        """Learn what the next draw of the journal knew."""
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
            self._learnt(outcomes)
