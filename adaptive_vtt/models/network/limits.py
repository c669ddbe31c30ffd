"""Limits of an endpoint: its pace, its retries, and the number of calls at a time."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from ...errors import InputError
from ...utils.options import Option, check_options
from .attempts import Trouble

Clock = Callable[[], float]
Sleep = Callable[[float], Coroutine[Any, Any, None]]
AUTO = (1, 64)
"""Bounds of the calls in flight if the server's replies decide how many."""
IN_FLIGHT = (
    "calls in flight; with [least, most], or 'auto' for [1, 64], the server's replies decide"
)
_Calls = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Limits:
    """Limits of an endpoint.

    Attributes:
        in_flight: Calls in flight: a number; the least and the most, between which the server's
            replies decide (see `Concurrency`); or "auto", which is (1, 64).
        calls_per_minute: Calls per minute, above 0; None: no limit.
        tokens_per_minute: Tokens per minute, above 0; None: no limit.

    Raises:
        InputError: A limit is out of range, or bounds are in the wrong order.
    """

    in_flight: Annotated[
        int | tuple[int, int] | Literal["auto"],
        Option(IN_FLIGHT, type=_Calls | tuple[_Calls, _Calls] | Literal["auto"]),
    ] = 8
    calls_per_minute: Annotated[float | None, Option("at most so many calls", gt=0)] = None
    tokens_per_minute: Annotated[float | None, Option("at most so many tokens", gt=0)] = None

    def __post_init__(self) -> None:
        check_options(Limits, vars(self))
        least, most = self.bounds
        if least < 1 or least > most:
            expected = "a whole number of at least 1, or [least, most] in this order"
            raise InputError(f"in_flight: expected {expected}, got {self.in_flight!r}")

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the most calls in flight."""
        if isinstance(self.in_flight, int):
            return self.in_flight, self.in_flight
        return AUTO if self.in_flight == "auto" else self.in_flight


@dataclass(frozen=True)
class Retries:
    """Further attempts at a call that failed.

    Before attempt k + 1 the call waits a random time up to ``first_wait * 2 ** k`` seconds
    (exponential backoff with full jitter), at least as long as the server's Retry-After.

    Attributes:
        times: Number of further attempts.
        timeout: Seconds that each attempt may take.
        first_wait: Seconds, the longest wait before the first further attempt.
        longest_wait: Seconds, the longest wait before any.
        patience: Seconds; a server that asks for a longer wait has closed for now, and the audit
            ends. ``resume`` continues it.
        give_up_after: Calls in a row without an answer after which the server is down, and the
            audit ends. ``resume`` continues it.
    """

    times: Annotated[int, Option("further attempts at what failed", name="retries", ge=0)] = 5
    timeout: Annotated[
        float, Option("seconds that a reply may take, or sending or reading a batch", gt=0)
    ] = 60.0
    first_wait: float = 0.5
    longest_wait: float = 30.0
    patience: float = 120.0
    give_up_after: int = 10

    def __post_init__(self) -> None:
        check_options(Retries, vars(self))

    def wait(self, attempt: int, asked: float | None, rng: np.random.Generator) -> float:
        """Return seconds to wait after failed attempt number ``attempt`` (0, 1 ...)."""
        most = min(self.longest_wait, self.first_wait * 2.0**attempt)
        return max(rng.uniform(0, most), asked or 0.0)


class Pace:
    """Turns spaced so that no more than ``per_minute`` units start in any minute.

    Each turn takes its place in the queue at once, so turns come first in, first out. There
    are no bursts: a limit that a server enforces by the second is kept too.
    """

    def __init__(self, per_minute: float | None, *, clock: Clock, sleep: Sleep) -> None:
        self._seconds = 0.0 if per_minute is None else 60.0 / per_minute
        self._clock, self._sleep = clock, sleep
        self._next = clock()

    async def turn(self, units: float = 1.0) -> float:
        """Wait for a turn that uses ``units``; return the seconds waited."""
        if not self._seconds:
            return 0.0
        arrived = self._clock()
        start = max(arrived, self._next)
        self._next = start + units * self._seconds
        while (left := start - self._clock()) > 0:
            await self._sleep(left)
        return self._clock() - arrived

    def give_back(self, units: float) -> None:
        """Return units that a turn had reserved and did not use."""
        self._next -= units * self._seconds


FIRST = 4
"""Attempts in flight in the beginning."""
CONGESTED = ("http 429", "http 503", "http 529", "timeout")
"""Kinds of trouble that fewer attempts may avoid; 529 is Anthropic's "overloaded"."""
FEWEST, SMOOTHED = 8, 16
"""Answers over which latencies are averaged, at least and at most: single ones differ several-fold,
for reasons of their own."""
INFLATED = 2.0
"""Latencies above this multiple of the best mean are a sign of too many attempts."""
FASTER = 0.75
"""Share of a latency below which halving the attempts has helped."""


class Concurrency:
    """The number of attempts that may be in flight, which follows the server's replies.

    Additive increase, multiplicative decrease (Chiu and Jain, 1989, as in TCP's congestion control,
    RFC 5681), between two bounds that no server can move:

    - a round, as many answers as there may be attempts, if all were used: one attempt more, or
      twice as many until a first sign that there are too many;
    - an attempt that was refused for their number, or not answered in time: half as many, once for
      all attempts that were sent before;
    - answers that take twice as long as they did at best: half as many, too. Where that does not
      make them faster the server is slow for other reasons, and its pace is the best from then on.

    ``level``: attempts that may be in flight, in ``least`` .. ``most``; fixed where those are the
    same. ``halvings``: how often it was halved.
    """

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.level = min(max(least, FIRST), most)
        self.halvings = 0
        self._answers = 0  # of this round
        self._full = False  # whether all that is allowed was used in it
        self._seconds: deque[float] = deque(maxlen=SMOOTHED)
        self._best = float("inf")
        self._slow: float | None = None  # the latency for which it was halved last

    @property
    def adapts(self) -> bool:
        """Return whether the level can change."""
        return self.least < self.most

    def sent(self, busy: int) -> int:
        """Note an attempt, the ``busy``-th in flight; return the halvings, for its result."""
        self._full |= busy >= self.level
        return self.halvings

    def answered(self, seconds: float, halvings: int) -> None:
        """Note that an attempt was answered after so many seconds."""
        if halvings != self.halvings:
            return  # sent when there were more
        self._seconds.append(seconds)
        self._answers += 1
        if self._answers < self.level:
            return
        if self._slower():
            self._halve()
            return
        if self._full:
            self.level = min(self.most, self.level + (1 if self.halvings else self.level))
        self._answers, self._full = 0, False

    def congested(self, halvings: int) -> None:
        """Note that an attempt was refused as one too many, or not answered in time."""
        if halvings == self.halvings:
            self._slow = None
            self._halve()

    def _halve(self) -> None:
        self.level = max(self.least, self.level // 2)
        self.halvings += 1
        self._answers, self._full = 0, False
        self._seconds.clear()

    def _slower(self) -> bool:
        """Return whether answers take so long that there seem to be too many attempts."""
        if len(self._seconds) < FEWEST:
            return False
        mean = fmean(self._seconds)
        before, self._slow = self._slow, None
        if mean <= INFLATED * self._best:
            self._best = min(self._best, mean)
            return False
        if before is not None and mean > FASTER * before:
            self._best = mean
            return False
        self._slow = mean
        return True


class Gate:
    """Holds attempts back beyond the level of ``concurrency``, which learns of their results."""

    def __init__(self, concurrency: Concurrency, clock: Clock = time.monotonic) -> None:
        self._concurrency, self._clock = concurrency, clock
        self._busy = self._sending = 0  # admitted; of these, sent
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Wait until the level allows another attempt. Turns are taken inside: attempts that wait
        here would be sent in a burst after their turns."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._busy < self._concurrency.level)
            self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            async with self._changed:
                self._changed.notify_all()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Measure an attempt, and note its trouble."""
        self._sending += 1
        sent, began = self._concurrency.sent(self._sending), self._clock()
        try:
            yield
            self._concurrency.answered(self._clock() - began, sent)
        except Trouble as trouble:
            if trouble.kind in CONGESTED:
                self._concurrency.congested(sent)
            raise
        finally:
            self._sending -= 1
