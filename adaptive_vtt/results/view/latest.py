"""The newest good value of something that takes long to make, made again in the background."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Generic, Protocol, TypeVar

from ...errors import AvttError, one_line


class OfJournal(Protocol):
    """Whatever was made of a journal as it was when ``head`` was its end."""

    @property
    def head(self) -> str: ...


AGAIN = 10.0
"""Seconds after which what failed is tried again, if somebody still asks."""
Made = TypeVar("Made", bound=OfJournal)


class Latest(Generic[Made]):
    """Made when somebody asks and the journal has grown; between two, at least as long as it took.

    ``value`` is the last that could be made, or None; ``failure`` says why the last try failed,
    else "", and there is another after ``AGAIN``. ``busy``: whether one is under way.
    """

    def __init__(self, make: Callable[[], Made], pool: Executor) -> None:
        self._make, self._pool = make, pool
        self.value: Made | None = None
        self.failure, self.busy = "", False
        self._head: str | None = None
        self._rest_until = 0.0
        self._lock = threading.Lock()

    def ask(self, head: str) -> None:
        """Begins a newer one where the journal ends at another ``head``; waits for nothing."""
        with self._lock:
            if head != self._head and not self.busy and time.monotonic() >= self._rest_until:
                self.busy = True
                self._pool.submit(self._renew, head)

    def _renew(self, head: str) -> None:
        began, least = time.monotonic(), 0.0
        try:
            self.value, self.failure = self._make(), ""
            head = self.value.head
        except AvttError as error:
            self.failure, head, least = one_line(error), "", AGAIN
        finally:
            with self._lock:
                now = time.monotonic()
                self._head, self.busy = head, False
                self._rest_until = now + max(least, now - began)
