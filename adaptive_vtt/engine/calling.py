"""Asking the model until the audit ends: a batch at a time, a round, or many calls in flight."""

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
from ..models.base import BatchModel, ConcurrentModel, ModelDefaults, NotCharged
from ..models.checking import check_answer, checked, name_of
from ..stopping import State
from ..types import Answer, JsonObject, Unanswered
from ..utils.figures import USD
from .call_queue import Call
from .endpoint import JournalRecord
from .loop import Loop

Back = tuple[Call, "Future[Answer | Unanswered] | None"]
"""A call that came back, with its answer or what went wrong; None: it was not sent."""


STATES = ("at the end", "workers")
"""Numbers among what a model counts that say how it stands, and add up to nothing."""
FIRST = ("first_malformed",)
"""Texts of which the earliest is kept."""


class Flight:
    """Calls that wait to be sent, are on their way, or came back and were not taken out.

    They are sent from a thread of its own, so that the next one goes out the moment an answer
    comes, whatever the audit computes meanwhile: a refit takes as long as many answers.
    ``affordable(calls, sent)`` gives those of the calls that the cap allows with ``sent`` calls;
    it is asked before each is sent, since what a call may cost can rise after it was drawn. Calls
    count as sent until ``paid`` says that their cost is spent: for a moment they count as both,
    never as neither.
    """

    def __init__(
        self, model: ConcurrentModel, affordable: Callable[[Sequence[Call], int], list[Call]]
    ) -> None:
        self._model, self._affordable = model, affordable
        self._calls: dict[int, Call] = {}
        self._inbox: SimpleQueue[Sequence[Call] | None] = SimpleQueue()  # None: no more
        self._coming: deque[Back] = deque()
        self._news: SimpleQueue[None] = SimpleQueue()  # one for each that came
        self._back: dict[int, Back] = {}
        # each is counted up by one thread alone, and read by the other
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
        """All that were added and not landed."""
        return list(self._calls.values())

    def add(self, calls: Sequence[Call]) -> None:
        """Calls to send, in this order, as soon as the model takes another."""
        if calls:
            self._calls.update({call.number: call for call in calls})
            self._inbox.put(calls)

    def back(self, *, wait: bool) -> list[Back]:
        """All that came back and did not land; ``wait``: at least until another came."""
        if wait:
            self._news.get()
        while not self._news.empty():
            self._news.get()
        while self._coming:
            call, _ = self._coming[0]
            self._back[call.number] = self._coming[0]  # before it is gone: this may be interrupted
            self._coming.popleft()
        return list(self._back.values())

    def land(self, calls: Sequence[Call]) -> None:
        """These are no longer in flight."""
        for call in calls:
            del self._calls[call.number], self._back[call.number]

    def paid(self, count: int) -> None:
        """So many of those that were sent count as spent from now on."""
        self._paid += count

    def end(self) -> list[Back]:
        """Sends nothing more, and waits for all that are on their way."""
        self._stop()
        while len(back := self.back(wait=False)) < len(self):
            self._news.get()
        return back

    def _stop(self) -> None:
        self._inbox.put(None)
        self._thread.join()

    # -- the thread that sends -------------------------------------------------------------

    def _send(self) -> None:
        ahead: deque[Call] = deque()
        live: list[Future[Answer | Unanswered]] = []
        while (more := self._inbox.get()) is not None:
            ahead.extend(more)
            # a call that failed ends the audit: what else is sent would be paid for in vain
            if any(f.done() and not f.cancelled() and f.exception() is not None for f in live):
                self._give_back(ahead)
                continue
            live = [future for future in live if not future.done()]
            while ahead and len(live) < self._model.in_flight:
                if not self._affordable([ahead[0]], self._sent - self._paid):
                    self._give_back(ahead)  # the server counted more than its bound
                    break
                live.append(self._submit(ahead.popleft()))
        self._give_back(ahead)

    def _give_back(self, ahead: deque[Call]) -> None:
        while ahead:
            self._came(ahead.popleft(), None)

    def _submit(self, call: Call) -> "Future[Answer | Unanswered]":
        """Sends a call; whatever goes wrong with that comes back as its answer would."""
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
        """In whatever thread an answer comes."""
        self._coming.append((call, future))
        self._news.put(None)
        self._inbox.put(())


CHUNK = 8
"""Most calls drawn in a row. Drawing takes time in which answers come back; looking for them
between chunks keeps the model busy."""


@dataclass(frozen=True)
class Progress:
    """Where a running audit stands, as ``run`` reports it after every batch.

    Attributes:
        state: What stopping rules read.
        cost: Money spent so far, in ``currency``.
        concept: The concept whose answers are most uncertain, on ``side`` 0 (absent) or 1
            (present).
        certified: Number of targets that are certified or decided, of ``of`` targets.
    """

    state: State
    cost: float
    concept: str
    side: int
    currency: str = USD
    certified: int = 0
    of: int = 0
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
        return max(((each.upper - each.lower) / 2 for each in ends), default=None)

    @cached_property
    def targets(self) -> list[TargetStatus]:
        """Where every target stands: name, estimate, lower, upper, half_width, certified and more.

        Estimates are computed when this is first read, so read it during the callback. Where two
        models are compared, ``difference`` has estimate and ends of R_A - R_B.
        """
        return self.statuses()


OnProgress = Callable[[Progress], object]
"""A function that is called with every ``Progress`` of a run."""


def progress_of(loop: Loop) -> Progress:
    """Where the audit stands, and the side of a concept that is most uncertain."""
    state, budget = loop.state(), loop.budget
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
        loop.statuses,
    )


def run_model(loop: Loop, model: ModelDefaults, batch: int, step: Callable[[], None]) -> None:
    """Asks the model until the audit ends, calling ``step`` whenever answers came.

    What the model counted (``statistics``) is added to what the journal has of earlier runs,
    however it ends.
    """
    who = f"model {name_of(model)!r}"
    before, first = loop.journal.facts().get("endpoint") or {}, model.statistics() or {}
    try:
        if isinstance(model, BatchModel):
            run_rounds(loop, model, who, step)
        elif isinstance(model, ConcurrentModel):
            run_concurrently(loop, model, who, step)
        else:
            run_batches(loop, model, batch, step)
    except BaseException:
        with suppress(Exception):  # the first error is the one to tell of
            _keep_statistics(loop, model, before, first)
        raise
    _keep_statistics(loop, model, before, first)


def _keep_statistics(
    loop: Loop, model: ModelDefaults, before: JsonObject, first: JsonObject
) -> None:
    """Journals what the model counted in all runs: ``before`` this one, and since ``first``."""
    statistics = model.statistics()
    if statistics is not None:
        loop.journal.set_facts(endpoint=_added(before, first, statistics))


def _added(before: JsonObject, first: JsonObject, now: JsonObject) -> JsonObject:
    """What was counted ``before``, and what was counted on the way from ``first`` to ``now``."""
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
    """``batch`` calls at a time, or all that wait: nothing is learnt between those.

    A model that raises leaves them to be asked again.
    """
    while calls := loop.ask(max(batch, loop.waiting)):
        try:
            answers = checked(model, [c.prompt for c in calls])
        except BaseException:
            loop.take_back(calls, sent=True)
            raise
        loop.tell_all(zip((c.number for c in calls), answers, strict=True))
        step()


def run_rounds(loop: Loop, model: BatchModel, who: str, step: Callable[[], None]) -> None:
    """A round of ``model.batch`` calls at a time, submitted together.

    The journal knows what was submitted, so nothing is lost where the model raises: the next
    round is about the same calls, and the model finds their answers.
    """
    record = JournalRecord(loop.journal, loop.queue.__contains__)
    while calls := loop.ask(max(model.batch, loop.waiting)):
        try:
            replies = model.ask_batch({call.number: call.prompt for call in calls}, record)
            for call in calls:
                check_answer(replies[call.number], call.prompt, who)
        except BaseException:
            loop.take_back(calls)
            raise
        loop.tell_all((call.number, replies[call.number]) for call in calls)
        step()


def run_concurrently(
    loop: Loop, model: ConcurrentModel, who: str, step: Callable[[], None]
) -> None:
    """Keeps ``model.in_flight`` calls on their way, and learns from answers as they come.

    Some calls are drawn ahead, so that one can be sent the moment another comes back (``Flight``).
    Where anything fails, those on their way are waited for and kept: they are paid for. What did
    not come back is to be asked again.
    """
    with Flight(model, loop.budget.affordable) as flight:
        try:
            while True:
                most = model.in_flight + max(1, model.in_flight // 2)
                lacking = most - len(flight)
                drawn = loop.ask(min(lacking, CHUNK)) if lacking > 0 else []
                flight.add(drawn)
                if not len(flight):
                    return
                # a full chunk: there may be more to draw, so do not wait for an answer
                if back := flight.back(wait=len(drawn) < CHUNK):
                    _tell(loop, who, flight, back)
                    step()
        except BaseException:
            with suppress(Exception):  # the first error is the one to tell of
                _tell(loop, who, flight, flight.end())
            loop.take_back(flight.calls, sent=True)
            with suppress(Exception):  # where that is not written, they count as lost
                loop.mark_unsent()
            raise


def _tell(loop: Loop, who: str, flight: Flight, back: Iterable[Back]) -> None:
    """Tell what came back whole, take back what was not charged for, to be asked again, and raise
    what went wrong with the rest, which stays in flight. ``who``: the model, for errors."""
    answered, unsent, wrong = [], [], []
    for call, future in back:
        if future is None:
            unsent.append(call)
            continue
        try:
            answer = future.result()
            check_answer(answer, call.prompt, who)
        except Exception as error:
            wrong.append(error)
            if isinstance(error, NotCharged):
                unsent.append(call)
        else:
            answered.append((call, answer))
    loop.take_back(unsent)
    flight.land([*unsent, *(call for call, _ in answered)])
    loop.tell_all((call.number, answer) for call, answer in answered)
    flight.paid(len(answered))
    if wrong:
        raise wrong[0]
