"""Ask the model until the audit ends: in batches, in rounds, or with many calls in flight."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from queue import SimpleQueue
from typing import Self

import numpy as np

from ..certify.status import TargetStatus
from ..journal.rows import CallRow
from ..models.base import BatchModel, ConcurrentModel, ModelDefaults, NotCharged
from ..models.checking import check_answer, checked, name_of
from ..stopping import State
from ..types import Answer, JsonObject, Unanswered
from ..utils.figures import USD
from .call_queue import Call
from .journaled_endpoint import JournalRecord
from .loop import Loop

Returned = tuple[Call, "Future[Answer | Unanswered] | None"]
"""A call with the future of its answer or error; None: it was not sent."""


CHUNK = 8
"""Most calls that are drawn in a row. Drawing takes time; taking answers between chunks keeps the
model busy."""
STATES = ("at the end", "workers")
"""Names of a model's statistics that describe a state, and are not added up over runs."""
FIRST = ("first_malformed",)
"""Names of a model's statistics whose first value is kept."""


class Flight:
    """Calls that wait to be sent, are on their way, or have returned.

    A separate thread sends them. So the next one is sent the moment an answer comes, even while the
    audit refits a GP, which takes as long as many answers.

    Args:
        model: The model.
        affordable: Function of (calls, number of calls sent) that returns the calls that the cap
            allows. It is called before each is sent, since the worst price of a call can rise
            after it was drawn. A call counts as sent until ``paid`` says that its cost is spent:
            for a moment it counts as both, never as neither.
    """

    def __init__(
        self, model: ConcurrentModel, affordable: Callable[[Sequence[Call], int], list[Call]]
    ) -> None:
        self._model, self._affordable = model, affordable
        self._calls: dict[int, Call] = {}
        self._inbox: SimpleQueue[Sequence[Call] | None] = SimpleQueue()  # None: no more
        self._coming: deque[Returned] = deque()
        self._news: SimpleQueue[None] = SimpleQueue()  # one entry for each in _coming
        self._returned: dict[int, Returned] = {}
        # Each is raised by one thread alone, and read by the other.
        self._sent = self._paid = 0
        self._thread = threading.Thread(target=self._send, name="calls", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def calls(self) -> list[Call]:
        """All calls that were added and not removed."""
        return list(self._calls.values())

    def add(self, calls: Sequence[Call]) -> None:
        """Send these calls, in this order, as soon as the model takes another."""
        if calls:
            self._calls.update({call.number: call for call in calls})
            self._inbox.put(calls)

    def returned(self, *, wait: bool) -> list[Returned]:
        """Return all calls that have returned and were not removed.

        Args:
            wait: True to wait first until one more has returned.
        """
        if wait:
            self._news.get()
        while not self._news.empty():
            self._news.get()
        while self._coming:
            call, _ = self._coming[0]
            # Copied before it is removed: a KeyboardInterrupt may come in between.
            self._returned[call.number] = self._coming[0]
            self._coming.popleft()
        return list(self._returned.values())

    def remove(self, calls: Sequence[Call]) -> None:
        """Remove calls that have returned."""
        for call in calls:
            del self._calls[call.number], self._returned[call.number]

    def paid(self, count: int) -> None:
        """Count ``count`` more of the sent calls as spent."""
        self._paid += count

    def end(self) -> list[Returned]:
        """Stop sending, wait for all calls on their way, and return the calls that returned."""
        self._stop()
        while len(returned := self.returned(wait=False)) < len(self):
            self._news.get()
        return returned

    def _stop(self) -> None:
        self._inbox.put(None)
        self._thread.join()

    # -- the thread that sends -------------------------------------------------------------

    def _send(self) -> None:
        waiting: deque[Call] = deque()
        live: list[Future[Answer | Unanswered]] = []
        while (calls := self._inbox.get()) is not None:
            waiting.extend(calls)
            failed = (f.done() and not f.cancelled() and f.exception() is not None for f in live)
            if any(failed):  # an exception ends the audit: further calls would be paid for in vain
                self._return_unsent(waiting)
                continue
            live = [future for future in live if not future.done()]
            while waiting and len(live) < self._model.in_flight:
                if not self._affordable([waiting[0]], self._sent - self._paid):
                    self._return_unsent(waiting)  # a reply had more tokens than its bound
                    break
                live.append(self._submit(waiting.popleft()))
        self._return_unsent(waiting)

    def _return_unsent(self, waiting: deque[Call]) -> None:
        while waiting:
            self._came(waiting.popleft(), None)

    def _submit(self, call: Call) -> "Future[Answer | Unanswered]":
        """Send a call. An exception is returned in place of its answer."""
        self._sent += 1
        future: Future[Answer | Unanswered]
        try:
            future = self._model.submit(call.prompt)
        except BaseException as error:
            future = Future()
            future.set_exception(error)
        future.add_done_callback(partial(self._came, call))
        return future

    def _came(self, call: Call, future: "Future[Answer | Unanswered] | None") -> None:
        """Note that a call returned. May be called from any thread."""
        self._coming.append((call, future))
        self._news.put(None)
        self._inbox.put(())


@dataclass(frozen=True)
class Progress:
    """The state of a running audit, as ``run`` reports it after every batch.

    Attributes:
        state: What stopping rules read.
        cost: Money spent so far, in ``currency``.
        concept: The concept whose answers are most uncertain, on ``side`` 0 (absent) or 1
            (present).
        certified: Number of targets that are certified or decided.
        total: Number of all targets.
        answered: Calls that were answered since the report before.
    """

    state: State
    cost: float
    concept: str
    side: int
    currency: str = USD
    certified: int = 0
    total: int = 0
    answered: Sequence[CallRow] = field(default=(), repr=False, compare=False)
    statuses: Callable[[], list[TargetStatus]] = field(default=list, repr=False, compare=False)

    @property
    def calls(self) -> int:
        """Calls of the model drawn so far."""
        return self.state.calls

    @property
    def questions(self) -> int:
        """Questions judged so far."""
        return self.state.questions

    @property
    def elapsed(self) -> float:
        """Seconds that the audit took so far, those before an interruption included."""
        return self.state.elapsed

    @property
    def half_width(self) -> float | None:
        """The half-width of the widest interval; None where nothing is certified."""
        ends = [target.difference or target for target in self.state.targets]
        return max(((end.upper - end.lower) / 2 for end in ends), default=None)

    @cached_property
    def targets(self) -> list[TargetStatus]:
        """The status of every target: name, estimate, lower, upper, half_width, certified and more.

        Estimates are computed when this is first read, so read it during the callback. In a
        comparison of two models, ``difference`` has the estimate and the ends of R_A - R_B.
        """
        return self.statuses()


OnProgress = Callable[[Progress], object]
"""A function that is called with every ``Progress`` of a run."""


def progress_of(loop: Loop) -> Progress:
    """Report the state of an audit, its most uncertain concept and side, and its fresh answers."""
    state, budget = loop.state(), loop.budget
    fresh, loop.fresh = loop.fresh, []
    uncertainty = loop.belief.side_uncertainty()
    if not state.exhausted:
        uncertainty = np.nan_to_num(state.uncertainty, nan=-1.0)
    concept, side = divmod(int(np.argmax(uncertainty)), 2)
    return Progress(
        state,
        budget.spent,
        loop.space.concepts[concept],
        side,
        budget.currency,
        sum(target.certified for target in state.targets),
        len(state.targets),
        fresh,
        loop.statuses,
    )


def run_model(loop: Loop, model: ModelDefaults, batch: int, step: Callable[[], None]) -> None:
    """Ask the model until the audit ends.

    The model's ``statistics`` are added to those of earlier runs in the journal, even after an
    error.

    Args:
        loop: The audit's loop.
        model: The model.
        batch: Number of calls at a time, for a model that is neither batched nor concurrent.
        step: Called whenever answers came.
    """
    name = f"model {name_of(model)!r}"
    earlier, start = loop.journal.facts().get("endpoint") or {}, model.statistics() or {}
    try:
        if isinstance(model, BatchModel):
            run_rounds(loop, model, name, step)
        elif isinstance(model, ConcurrentModel):
            run_concurrently(loop, model, name, step)
        else:
            run_batches(loop, model, batch, step)
    except BaseException:
        with suppress(Exception):  # the first error is the one to report
            _keep_statistics(loop, model, earlier, start)
        raise
    _keep_statistics(loop, model, earlier, start)


def _keep_statistics(
    loop: Loop, model: ModelDefaults, earlier: JsonObject, start: JsonObject
) -> None:
    """Journal a model's statistics of all runs, given those at the ``start`` of this run."""
    statistics = model.statistics()
    if statistics is not None:
        loop.journal.set_facts(endpoint=_added(earlier, start, statistics))


def _added(before: JsonObject, first: JsonObject, now: JsonObject) -> JsonObject:
    """Return ``before`` + ``now`` - ``first``, name by name."""
    total: JsonObject = {}
    for name in {**before, **now}:
        earlier, value = before.get(name), now.get(name)
        if isinstance(value, dict):
            total[name] = _added(earlier or {}, first.get(name) or {}, value)
        elif value is None or (name in FIRST and earlier is not None):
            total[name] = earlier
        elif isinstance(value, int | float) and name not in STATES:
            total[name] = (earlier or 0) + value - (first.get(name) or 0)
        else:
            total[name] = value
    return total


def run_batches(loop: Loop, model: ModelDefaults, batch: int, step: Callable[[], None]) -> None:
    """Ask ``batch`` calls at a time, or all that wait if those are more.

    If the model raises, its calls are asked again in the next run.
    """
    while calls := loop.ask(max(batch, loop.waiting)):
        try:
            answers = checked(model, [c.prompt for c in calls])
        except BaseException:
            loop.take_back(calls, sent=True)
            raise
        loop.tell_all(zip((c.number for c in calls), answers, strict=True))
        step()


def run_rounds(loop: Loop, model: BatchModel, name: str, step: Callable[[], None]) -> None:
    """Submit rounds of ``model.batch`` calls.

    The journal has what was submitted, so nothing is lost if the model raises: the next run submits
    the same calls, and the model fetches their answers.
    """
    record = JournalRecord(loop.journal, loop.queue.__contains__)
    while calls := loop.ask(max(model.batch, loop.waiting)):
        try:
            replies = model.ask_batch({call.number: call.prompt for call in calls}, record)
            for call in calls:
                check_answer(replies[call.number], call.prompt, name)
        except BaseException:
            loop.take_back(calls)
            raise
        loop.tell_all((call.number, replies[call.number]) for call in calls)
        step()


def run_concurrently(
    loop: Loop, model: ConcurrentModel, name: str, step: Callable[[], None]
) -> None:
    """Keep ``model.in_flight`` calls on their way, and learn from answers as they come.

    The first call is made alone, so a process that is killed early loses one call, not all in
    flight. Then some calls are drawn ahead, so that one can be sent the moment another returns
    (``Flight``). After an error the answers on their way are awaited and kept, as they are paid
    for. Calls without an answer are asked again in the next run.
    """
    most = 1
    with Flight(model, loop.budget.affordable) as flight:
        try:
            while True:
                lacking = most - len(flight)
                drawn = loop.ask(min(lacking, CHUNK)) if lacking > 0 else []
                flight.add(drawn)
                if not len(flight):
                    return
                # After a full chunk there may be more to draw, so do not wait for an answer.
                if returned := flight.returned(wait=len(drawn) < CHUNK):
                    _take(loop, name, flight, returned)
                    step()
                    most = model.in_flight + max(1, model.in_flight // 2)
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                _take(loop, name, flight, flight.end())
            loop.take_back(flight.calls, sent=True)
            with suppress(Exception):  # if that is not written, they count as lost
                loop.mark_unsent()
            raise


def _take(loop: Loop, name: str, flight: Flight, returned: Iterable[Returned]) -> None:
    """Give the loop all answers that returned, and put uncharged calls back into its queue.

    Calls that failed stay in flight; the first of their errors is raised. ``name`` is the model's,
    for error messages.
    """
    answered, unsent, errors = [], [], []
    for call, future in returned:
        if future is None:
            unsent.append(call)
            continue
        try:
            answer = future.result()
            check_answer(answer, call.prompt, name)
        except Exception as error:
            errors.append(error)
            if isinstance(error, NotCharged):
                unsent.append(call)
        else:
            answered.append((call, answer))
    loop.take_back(unsent)
    flight.remove([*unsent, *(call for call, _ in answered)])
    loop.tell_all((call.number, answer) for call, answer in answered)
    flight.paid(len(answered))
    if errors:
        raise errors[0]
