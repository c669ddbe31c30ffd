"""What an audit is told, by its model and by a judge: committed first, and then learnt from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from ..engine.audit_parts import Parts
from ..engine.endpoint import JournaledWays
from ..engine.judging import Reply
from ..journal import Journal
from ..journal.rows import CallRow
from ..types import Answer, Unanswered

Said = Answer | Unanswered


class Receiving:
    """Takes answers into ``journal``, what was found out of how to ask (``ways``) before them;
    ``seconds`` tells the time of the audit.

    ``failed``: a step was not finished, so that the audit can only go on from its journal.
    """

    def __init__(
        self, parts: Parts, journal: Journal, ways: JournaledWays, seconds: Callable[[], float]
    ) -> None:
        self.failed, self._ways = False, ways
        self._parts, self._journal, self._seconds = parts, journal, seconds

    def take(self, answers: Mapping[int, Said], *, learn: bool) -> dict[int, Exception]:
        """Keeps the answers to calls by number, those about source images below 0, and learns from
        them where that may be; gives by number why an answer could not be judged."""
        parts, seconds = self._parts, self._seconds()
        self._ways.keep()
        self._sources({n: a for n, a in answers.items() if n < 0}, seconds)
        with self._step():
            rest = {n: a for n, a in answers.items() if n >= 0}
            rest = parts.judging.receive(rest, self._journal, seconds)
        rows, errors = parts.judge.rows(rest, seconds)
        self._commit(rows)
        for row in rows:
            parts.queue.done(row.call)
            parts.budget.pay(row.cost)
        if learn:
            parts.draw_order.catch_up()
        with self._step():
            parts.checkpoints.commit(self._journal)
        parts.judging.send(self._journal)
        return errors

    def judge(self, *, wait_for: bool = True) -> bool:
        """Asks the judge what it may be asked, and takes what it said, all of it to ``wait_for``
        that; whether anything came of it. Raises ModelError for a judge that cannot work."""
        received = self._replies([])
        while self._parts.judging.send(self._journal):
            received = self._replies(self._parts.judging.replies(wait_for=wait_for)) or received
            if not wait_for:
                break
        return received

    def rest(self) -> None:
        """Keeps what the judge is saying as a run ends: it is paid for."""
        with suppress(Exception):
            self._replies(self._parts.judging.replies(every=True))

    def _sources(self, answers: Mapping[int, Said], seconds: float) -> None:
        queue = self._parts.source_queue
        rows = [queue.row(n, a, seconds) for n, a in answers.items()]
        if not rows:
            return
        with self._step():
            self._journal.add_sources(rows)
        for row in rows:
            self._parts.budget.pay(row.cost)
            queue.received(row)

    def _replies(self, replies: Sequence[Reply]) -> bool:
        judging, seconds = self._parts.judging, self._seconds()
        self._ways.keep()
        with self._step():
            judging.keep(replies, self._journal, seconds)
        rows = judging.complete(seconds)
        if rows:
            self._commit(rows)
            self._parts.draw_order.catch_up()
        return bool(replies or rows)

    def _commit(self, rows: list[CallRow]) -> None:
        with self._step():
            self._journal.add_calls(rows)
        for row in rows:
            self._parts.judge.forget(row.call)
            self._parts.judging.done(row.call)
            self._parts.draw_order.keep(row)

    @contextmanager
    def _step(self) -> Iterator[None]:
        before, self.failed = self.failed, True  # what failed once stays so
        yield
        self.failed = before
