"""How many attempts may be on their way at a time: as many as the server bears.

Additive increase, multiplicative decrease (Chiu and Jain, 1989, as in TCP's congestion control,
RFC 5681), between two bounds that no server can move:

- a round, as many answers as there may be attempts, all of which were used: one attempt more, or
  twice as many until a first sign that there are too many;
- an attempt that was refused for their number, or not answered in time: half as many, once for
  all attempts that were sent before;
- answers that take twice as long as they did at best: half as many, too. Where that does not make
  them faster the server is slow for reasons of its own, and its pace is the best from then on.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from statistics import fmean
from typing import TypeVar

from .attempts import Trouble
from .limits import Clock

T = TypeVar("T")

FIRST = 4
"""Attempts at a time in the beginning."""
CONGESTED = ("http 429", "http 503", "http 529", "timeout")
"""Kinds of trouble that fewer attempts at a time may avoid; 529 is Anthropic's "overloaded"."""
FEWEST, SMOOTHED = 8, 16
"""Answers over which latencies are averaged, at least and at most: single ones differ several-fold,
for reasons of their own."""
INFLATED = 2.0
"""Latencies above this multiple of the best mean are a sign of too many attempts."""
FASTER = 0.75
"""Share of a latency below which halving the attempts has helped."""


class Concurrency:
    """``level``: attempts that may be on their way, in ``least`` .. ``most``; fixed where those are
    the same. ``halvings``: how often it was halved."""

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
        """Whether the level can change."""
        return self.least < self.most

    def sent(self, busy: int) -> int:
        """An attempt is made, the ``busy``-th of those on their way; returns what to tell with what
        becomes of it."""
        self._full |= busy >= self.level
        return self.halvings

    def answered(self, seconds: float, halvings: int) -> None:
        """An attempt was answered after so many seconds."""
        if halvings != self.halvings:
            return  # sent when there were more: tells nothing of today's level
        self._seconds.append(seconds)
        self._answers += 1
        if self._answers < self.level:
            return
        if self._slower():
            self._halve()
            return
        if self._full:
            step = self.level if self.halvings == 0 else 1
            self.level = min(self.most, self.level + step)
        self._answers, self._full = 0, False

    def congested(self, halvings: int) -> None:
        """An attempt was refused because there were too many, or not answered in time."""
        if halvings == self.halvings:
            self._slow = None
            self._halve()

    def _halve(self) -> None:
        self.level = max(self.least, self.level // 2)
        self.halvings += 1
        self._answers, self._full = 0, False
        self._seconds.clear()

    def _slower(self) -> bool:
        """Whether answers take so long that there seem to be too many attempts."""
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
    """Lets as many attempts through at a time as ``concurrency`` says, and tells it what comes of
    them."""

    def __init__(self, concurrency: Concurrency, clock: Clock = time.monotonic) -> None:
        self._concurrency, self._clock = concurrency, clock
        self._busy = self._sending = 0  # let through; of these, past their turn
        self._changed = asyncio.Condition()

    async def attempt(
        self, turn: Callable[[], Awaitable[None]], send: Callable[[], Awaitable[T]]
    ) -> T:
        """What ``send`` gives, once it may be called, which is after its ``turn``; raises whatever
        they raise. Turns are taken inside: who waited here would go in a burst after its turn."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._busy < self._concurrency.level)
            self._busy += 1
        try:
            await turn()
        except BaseException:
            await self._gone()
            raise
        self._sending += 1
        sent, began = self._concurrency.sent(self._sending), self._clock()
        try:
            found = await send()
            self._concurrency.answered(self._clock() - began, sent)
            return found
        except Trouble as trouble:
            if trouble.kind in CONGESTED:
                self._concurrency.congested(sent)
            raise
        finally:
            self._sending -= 1
            await self._gone()

    async def _gone(self) -> None:
        self._busy -= 1
        async with self._changed:
            self._changed.notify_all()
