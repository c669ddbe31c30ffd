"""Repeat probes: answered questions asked again, to notice a model that changes during an audit.

They are counted and paid for as all calls are, and never enter an interval: they detect drift
and cannot repair it. In the journal they stand among the answers about source images, with
numbers below 0: -1 - c is call c asked again. What stands there is every judged question's
number, P(yes) or None, and loss.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from ..journal.rows import AnswerRow, CallRow, SourceRow
from ..types import Answer, JsonObject, Unanswered
from ..utils.random_streams import generator
from .call_queue import REPEATED, Call, CallQueue, is_repeat_probe, number_of
from .draw_order import DrawOrder
from .judge import Judge
from .loop import Hook, Loop

FIRST = 25
"""The first repeat probe follows this many draws, the next twice as many, and so on."""
TOLERANCE = 0.05
"""Answers differ where P(yes), or without it the loss, differs by more than this."""


class RepeatProbes(Hook):
    """Asks ``count`` calls again; which and when follows from the key and the draws.

    Half of them (rounded down) are due after 25, 50, 100 ... draws, the others when the audit is
    to end. Each repeats a call that was learnt from by then, every one at most once.
    """

    def __init__(
        self, key: int | str, count: int, judge: Judge, queue: CallQueue, draw_order: DrawOrder
    ) -> None:
        self.count = count
        self._key, self._judge, self._queue, self._draw_order = key, judge, queue, draw_order
        self._chosen: set[int] = set()
        self._known: set[int] = set()  # answered in an earlier run

    @property
    def calls(self) -> int:
        """How many were asked or wait."""
        return len(self._chosen | self._known)

    @property
    def left(self) -> int:
        """How many are still to be asked."""
        return max(0, self.count - self.calls)

    def owns(self, number: int) -> bool:
        return is_repeat_probe(number)

    def after_draw(self, loop: Loop) -> None:
        """Queues the one that is due after so many draws, if any."""
        place = next((j for j in range(self.count // 2) if FIRST << j == loop.draws), None)
        call = None if place is None else self._choose(place, self._chosen)
        if call is not None and (call in self._known or self.left):
            self._put(call)

    def before_end(self, loop: Loop) -> bool:
        """Queues those that are left; whether there are any."""
        asked = self.calls
        while self.left:
            call = self._choose(self.calls, self._chosen | self._known)
            if call is None:
                break
            self._put(call)
        return self.calls > asked

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """The answer, ready for the journal."""
        call = REPEATED - number
        rows, open_ = self._judge.judged(call, answer), set[int]()
        if isinstance(answer, Answer):  # what a judge would have to read is not compared
            queries = self._judge.queries(call, answer)
            open_ = {question for question, query in queries.items() if not query.sure}
        self._judge.forget(call)
        judged = tuple(
            [row.question, row.answer, row.loss]
            for row in rows
            if row.loss is not None and row.question not in open_
        )
        paid = answer.cost, elapsed, answer.unconfirmed
        return SourceRow(-1 - call, judged, *paid, answer.reply)

    def received(self, row: SourceRow) -> None:
        """The answer is in the journal."""
        self._queue.done(number_of(row))

    def recall(self, row: SourceRow) -> None:
        """Take an answer from the journal."""
        self._known.add(-1 - row.source)

    def _choose(self, place: int, used: set[int]) -> int | None:
        """One of the calls learnt from that were not used, by chance; None where there is none."""
        learnt = self._draw_order.calls[: self._draw_order.learned]
        open_ = [call for call in learnt if call not in used]
        if not open_:
            return None
        return open_[int(generator(self._key, "canary", place).integers(len(open_)))]

    def _put(self, call: int) -> None:
        self._chosen.add(call)
        if call not in self._known:
            self._queue.put(Call(REPEATED - call, -1, self._judge.prompt(call)))


@dataclass(frozen=True)
class Repeated:
    """The result of repeat probes: ``calls`` asked again, with ``answers`` to judged questions, of
    which ``differ`` are not as they were (see TOLERANCE)."""

    calls: int
    answers: int
    differ: int

    @property
    def share(self) -> float:
        """The share of answers that differ."""
        return self.differ / max(self.answers, 1)

    def as_dict(self) -> JsonObject:
        """For JSON."""
        return {**asdict(self), "share": self.share}


def repeated(rows: Iterable[SourceRow], calls: Sequence[CallRow]) -> Repeated | None:
    """The result of the repeat probes among ``rows``, given all ``calls``; None without repeat
    probes."""
    repeat_probes = [row for row in rows if row.repeat_probe]
    if not repeat_probes:
        return None
    again = {-1 - row.source for row in repeat_probes}
    first = {a.question: a for call in calls if call.call in again for a in call.answers}
    compared = [
        _differs(first[q], now, loss) for row in repeat_probes for q, now, loss in row.answers
    ]
    return Repeated(len(repeat_probes), len(compared), sum(compared))


def _differs(first: AnswerRow, now: float | None, loss: float) -> bool:
    if first.answer is not None and now is not None:
        return abs(first.answer - now) > TOLERANCE
    return abs((first.loss or 0.0) - loss) > TOLERANCE
