"""Repeat probes: answered questions asked again, to notice a model that changes during an audit.

They are counted and paid for as all calls, and never enter an interval: they detect drift but
cannot correct it. The journal has them among the answers about source images, with numbers below
0: -1 - c is call c asked again. A row has the number, P(yes) or None, and loss of every judged
question.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from ..journal.rows import CallRow, SourceRow
from ..types import Answer, JsonObject, Unanswered
from ..utils.random_streams import generator
from .call_queue import REPEATED, Call, CallQueue, is_repeat_probe, number_of
from .draw_order import DrawOrder
from .judge import Judge
from .loop import Hook, Loop

FIRST = 25
"""The first repeat probe follows this many draws, the next twice as many, and so on."""
TOLERANCE = 0.05
"""Answers differ if P(yes), or without it the loss, differs by more than this."""


class RepeatProbes(Hook):
    """Asks ``count`` calls again. Which ones and when depends on the key and the draws alone.

    Half of them (rounded down) are due after 25, 50, 100 ... draws, the others at the end. Each
    repeats a call that was learnt from by then; no call is repeated twice.
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
        """The number of probes that were asked or wait."""
        return len(self._chosen | self._known)

    @property
    def left(self) -> int:
        """The number of probes that are still to be asked."""
        return max(0, self.count - self.calls)

    def owns(self, number: int) -> bool:
        return is_repeat_probe(number)

    def after_draw(self, loop: Loop) -> None:
        """Queue the probe that is due after this draw, if any."""
        place = next((j for j in range(self.count // 2) if FIRST << j == loop.draws), None)
        call = None if place is None else self._choose(place, self._chosen)
        if call is not None and (call in self._known or self.left):
            self._put(call)

    def before_end(self, loop: Loop) -> bool:
        """Queue the probes that are left. Return True if there are any."""
        asked = self.calls
        while self.left:
            call = self._choose(self.calls, self._chosen | self._known)
            if call is None:
                break
            self._put(call)
        return self.calls > asked

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """Return the journal's row of the answer to call ``number``, after ``elapsed`` seconds."""
        call = REPEATED - number
        rows, unsure = self._judge.judged(call, answer), set[int]()
        if isinstance(answer, Answer):  # answers that a judge would have to read are not compared
            queries = self._judge.queries(call, answer)
            unsure = {question for question, query in queries.items() if not query.sure}
        self._judge.forget(call)
        judged = tuple(
            [row.question, row.answer, row.loss]
            for row in rows
            if row.loss is not None and row.question not in unsure
        )
        return SourceRow(-1 - call, judged, answer.cost, elapsed, answer.unconfirmed, answer.reply)

    def received(self, row: SourceRow) -> None:
        """Take an answer that is in the journal now."""
        self._queue.done(number_of(row))

    def recall(self, row: SourceRow) -> None:
        """Take an answer from the journal that is resumed."""
        self._known.add(-1 - row.source)

    def _choose(self, place: int, used: set[int]) -> int | None:
        """Return a random call that was learnt from and is not ``used``; None if there is none."""
        learnt = self._draw_order.calls[: self._draw_order.learned]
        unused = [call for call in learnt if call not in used]
        if not unused:
            return None
        return unused[int(generator(self._key, "canary", place).integers(len(unused)))]

    def _put(self, call: int) -> None:
        self._chosen.add(call)
        if call not in self._known:
            self._queue.put(Call(REPEATED - call, -1, self._judge.prompt(call)))


@dataclass(frozen=True)
class Repeated:
    """The result of repeat probes.

    - ``calls``: number of calls asked again; ``answers``: number of judged questions in them.
    - ``differ``: number of answers that differ from the first ones by more than ``TOLERANCE``.
    """

    calls: int
    answers: int
    differ: int

    @property
    def share(self) -> float:
        """The share of answers that differ, from 0 to 1."""
        return self.differ / max(self.answers, 1)

    def as_dict(self) -> JsonObject:
        """Return the figures for JSON."""
        return {**asdict(self), "share": self.share}


def repeated(rows: Iterable[SourceRow], calls: Sequence[CallRow]) -> Repeated | None:
    """Return the result of the repeat probes among ``rows``; None if there are none.

    ``calls`` are all calls of the journal, with the first answers.
    """
    repeat_probes = [row for row in rows if row.repeat_probe]
    if not repeat_probes:
        return None
    again = {-1 - row.source for row in repeat_probes}
    first = {a.question: a for call in calls if call.call in again for a in call.answers}
    changes = []
    for question, answer, loss in chain.from_iterable(row.answers for row in repeat_probes):
        before = first[question]
        if before.answer is not None and answer is not None:
            changes.append(abs(before.answer - answer))
        else:
            changes.append(abs((before.loss or 0.0) - loss))
    differ = sum(change > TOLERANCE for change in changes)
    return Repeated(len(repeat_probes), len(changes), differ)
