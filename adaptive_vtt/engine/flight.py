"""Calls on their way to a model that takes several at a time."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from ..models.base import CallLost, ConcurrentModel
from ..types import Answer, Unanswered
from .call_queue import Call

Back = tuple[Call, "Future[Answer | Unanswered] | None"]
"""A call that came back, with its answer or what went wrong; None: it was not sent."""


class Flight:
    """Calls that wait to be sent, are on their way, or came back and were not taken out.

    They are sent from a thread of its own, so that the next one goes out the moment an answer
    comes, whatever the audit computes meanwhile: a refit takes as long as many answers.
    ``affordable(calls, sent)`` gives those of the calls that the cap allows beside ``sent`` calls;
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            if any(map(_ends_the_audit, live)):  # what else is sent would be paid for in vain
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


def _ends_the_audit(future: "Future[Answer | Unanswered]") -> bool:
    """Whether a call failed in a way that is no answer; a lost one is only asked again."""
    if not future.done() or future.cancelled():
        return False
    error = future.exception()
    return error is not None and not isinstance(error, CallLost)
