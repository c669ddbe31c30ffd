"""Limits of an endpoint: calls per minute, retries, and the number of calls in flight."""

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
"""Bounds of the calls in flight if ``in_flight`` is "auto"."""
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

    Before further attempt k = 0, 1, ... the call waits a random time, uniform between 0 and
    ``first_wait * 2 ** k`` seconds (exponential backoff with full jitter), but at least as long as
    the server's Retry-After asks.

    Attributes:
        times: Number of further attempts.
        timeout: Seconds that each attempt may take.
        first_wait: Longest wait in seconds before the first further attempt.
        longest_wait: Longest wait in seconds before any attempt, unless Retry-After is longer.
        patience: Longest Retry-After in seconds that is waited for. If a server asks for a longer
            wait, the audit ends, and ``resume`` continues it.
        give_up_after: Number of calls in a row without a reply after which the server counts as
            down. The audit then ends, and ``resume`` continues it.
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
        """Return the seconds to wait after a failed attempt.

        Args:
            attempt: Number of the attempt, from 0 on.
            asked: The server's Retry-After in seconds, None if it sent none.
            rng: Source of randomness.
        """
        most = min(self.longest_wait, self.first_wait * 2.0**attempt)
        return max(rng.uniform(0, most), asked or 0.0)


class Pace:
    """Rate limit by turns that are evenly spaced, first in, first out.

    Without bursts, a limit that a server enforces by the second is kept, too.

    Args:
        per_minute: Maximum number of units, calls or tokens, that start in any minute; None: any.
        clock: Function that returns seconds.
        sleep: Function that waits.
    """

    def __init__(self, per_minute: float | None, *, clock: Clock, sleep: Sleep) -> None:
        self._seconds = 0.0 if per_minute is None else 60.0 / per_minute
        self._clock, self._sleep = clock, sleep
        self._next = clock()

    async def turn(self, units: float = 1.0) -> float:
        """Wait for a turn that uses ``units``, and return the seconds waited."""
        if not self._seconds:
            return 0.0
        arrived = self._clock()
        start = max(arrived, self._next)
        self._next = start + units * self._seconds
        while (left := start - self._clock()) > 0:
            await self._sleep(left)
        return self._clock() - arrived

    def give_back(self, units: float) -> None:
        """Give back units that a turn had reserved and did not use."""
        self._next -= units * self._seconds


FIRST = 4
"""Level at which `Concurrency` begins."""
CONGESTED = ("http 429", "http 503", "http 529", "timeout")
"""Kinds of trouble that fewer attempts in flight may avoid; 529 is Anthropic's "overloaded"."""
FEWEST, SMOOTHED = 8, 16
"""Minimum and maximum number of latencies that are averaged: single ones vary several-fold."""
INFLATED = 2.0
"""Multiple of the best mean latency above which there seem to be too many attempts in flight."""
FASTER = 0.75
"""Halving the level has helped if the mean latency fell below this share."""


class Concurrency:
    """The number of attempts that may be in flight, which adapts to the server's replies.

    Additive increase, multiplicative decrease (Chiu and Jain, 1989, as in TCP's congestion control,
    RFC 5681), between two bounds that no server can move:

    - After a round, which is as many answers as ``level``, the level rises by one, or doubles
      until the first halving; but only if the round used the whole level.
    - An attempt that is refused because of too many requests, or times out, halves the level. All
      attempts that were sent before the halving count as one.
    - A mean latency above twice the best one halves the level, too. If halving does not reduce the
      latency, the server is slow for other reasons, and its latency becomes the best one.

    Attributes:
        level: Number of attempts that may be in flight, from ``least`` to ``most``.
        halvings: Number of times that the level was halved.
    """

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most
        self.level = min(max(least, FIRST), most)
        self.halvings = 0
        self._answers = 0  # of this round
        self._full = False  # whether the round used the whole level
        self._seconds: deque[float] = deque(maxlen=SMOOTHED)
        self._best = float("inf")
        self._slow: float | None = None  # the mean latency that caused the last halving

    @property
    def adapts(self) -> bool:
        """Return whether the level can change."""
        return self.least < self.most

    def sent(self, busy: int) -> int:
        """Count an attempt.

        Args:
            busy: Number of attempts in flight, with this one.

        Returns:
            The number of halvings so far, to be passed on with the attempt's outcome.
        """
        self._full |= busy >= self.level
        return self.halvings

    def answered(self, seconds: float, halvings: int) -> None:
        """Count the answer to an attempt.

        Args:
            seconds: Its latency.
            halvings: The number that ``sent`` returned for it.
        """
        if halvings != self.halvings:
            return  # sent at a higher level
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
        """Halve the level, as an attempt had one of the CONGESTED troubles.

        Args:
            halvings: The number that ``sent`` returned for it.
        """
        if halvings == self.halvings:
            self._slow = None
            self._halve()

    def _halve(self) -> None:
        self.level = max(self.least, self.level // 2)
        self.halvings += 1
        self._answers, self._full = 0, False
        self._seconds.clear()

    def _slower(self) -> bool:
        """Return whether answers take so long that there seem to be too many attempts in flight."""
        if len(self._seconds) < FEWEST:
            return False
        mean = fmean(self._seconds)
        before, self._slow = self._slow, None
        if mean <= INFLATED * self._best:
            self._best = min(self._best, mean)
            return False
        if before is not None and mean > FASTER * before:  # the last halving did not help
            self._best = mean
            return False
        self._slow = mean
        return True


class Gate:
    """Keeps the number of attempts in flight within the level of a `Concurrency`, and reports the
    outcome of each attempt to it."""

    def __init__(self, concurrency: Concurrency, clock: Clock = time.monotonic) -> None:
        self._concurrency, self._clock = concurrency, clock
        self._busy = self._sending = 0  # admitted; of these, sent
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Wait until the level allows another attempt. Turns of `Pace` are taken inside: attempts
        that waited here after their turn would be sent in a burst."""
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
        """Measure the latency of an attempt, and report it or its trouble."""
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
