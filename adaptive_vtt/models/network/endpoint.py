"""Models behind a network: many calls in flight, limits, and retries.

A subclass says how one attempt is made (`Endpoint.prepare`, `Endpoint.send`); what a call costs
is in `paid.py`, everything else here. Calls live on an event loop in a background thread, so
the audit can choose further questions while answers are awaited.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from itertools import count
from typing import Annotated, Any

from ...errors import AvttError, one_line
from ...types import Answer, JsonObject, Prompt, Unanswered
from ...utils.options import Group
from ...utils.random_streams import generator
from .attempts import REPLIED, Reply, Trouble, reading
from .limits import Clock, Concurrency, Gate, Limits, Pace, Sleep
from .paid import Paid, failed
from .prices import Bill, Usage


class Endpoint(Paid):
    """A model under test that is called over a network.

    Errors that end the audit (ModelError): a wrong key or unknown model; before the first answer a
    host that cannot be reached, or a request it refuses; and a server that is down
    (`Retries.give_up_after`). Anything else leaves a call Unanswered.

    Args:
        limits: What the server allows at once and per minute. Default None: those of `Limits`.
        clock: Returns seconds; for tests.
        sleep: Waits; for tests.
        **paid: Options of `Paid`, such as prices and retries.
    """

    def __init__(
        self,
        *,
        limits: Annotated[Limits | None, Group(Limits)] = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        **paid: Any,
    ) -> None:
        super().__init__(sleep=sleep, **paid)
        self.limits = limits or Limits()
        if self.limits.tokens_per_minute is not None:
            self._check_bound("a limit per minute")
        self._calls = Pace(self.limits.calls_per_minute, clock=clock, sleep=sleep)
        self._tokens = Pace(self.limits.tokens_per_minute, clock=clock, sleep=sleep)
        self._concurrency = Concurrency(*self.limits.bounds)
        self.adapts = self._concurrency.adapts
        self._gate = Gate(self._concurrency, clock)
        self._slots = asyncio.Semaphore(self._concurrency.most)
        self._connecting = asyncio.Lock()
        self._connected = False
        self._silent = 0  # calls in a row that ended without a reply
        self._decided: asyncio.Event | None = None  # set once the first call that decides ended

    # -- what a subclass defines -----------------------------------------------------------

    async def connect(self) -> None:
        """Learn what must be known before the first call; may raise Trouble."""

    def prepare(self, prompt: Prompt) -> Any:
        """Return the request of a prompt, for ``send``. Runs in a thread: it may be slow."""
        raise TypeError(f"{type(self).__name__} defines no prepare")

    async def send(self, request: Any, prompt: Prompt) -> Reply:
        """Make one attempt; raise Trouble if it fails. The timeout is the caller's.

        Any other exception but InputError means that the reply was malformed.
        """
        raise TypeError(f"{type(self).__name__} defines no send")

    def decides_mode(self, prompt: Prompt) -> bool:
        """Return whether the result of a call decides how others are made, which then wait for the
        first such call."""
        return False

    # -- what the audit uses ---------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """The most calls in flight, as of now."""
        return self._concurrency.level

    def statistics(self) -> JsonObject:
        """Add the level of calls in flight, if it adapts, to the counts of `Paid`."""
        level, halved = self._concurrency.level, self._concurrency.halvings
        adapted = {"in_flight": {"at the end": level, "halved": halved}} if self.adapts else {}
        return super().statistics() | adapted

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        """Start a call. Its exception, if any, is an AvttError and ends the audit."""
        return self._background.submit(self._call(prompt))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return answers in the order of the prompts, ``in_flight`` of them asked at a time."""
        futures = [self.submit(prompt) for prompt in prompts]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    # -- one call --------------------------------------------------------------------------

    async def _call(self, prompt: Prompt) -> Answer | Unanswered:
        try:
            async with self._slots, self._after_the_first(prompt):
                self._counts.calls += 1
                return await self._attempts(prompt)
        except AvttError:
            raise
        except Exception as error:
            raise self._unforeseen(error) from self._cause(error)

    @asynccontextmanager
    async def _after_the_first(self, prompt: Prompt) -> AsyncIterator[None]:
        """Hold calls back while the first one decides how others are made."""
        if not self.decides_mode(prompt):
            yield
        elif self._decided is None:
            self._decided = asyncio.Event()
            try:
                yield
            finally:
                self._decided.set()
        else:
            await self._decided.wait()
            yield

    async def _attempts(self, prompt: Prompt) -> Answer | Unanswered:
        """Return the answer of the first attempt that has one, with the cost of all of them."""
        spent, request = Bill(), None
        for attempt in count():
            try:
                await self._ready()
                if request is None:
                    request = await asyncio.to_thread(self.prepare, prompt)
                return self._priced(await self._attempt(request, prompt), spent)
            except Trouble as trouble:
                last = attempt == self.retries.times
                if trouble.reply is not None and (last or trouble.then == "leave"):
                    return self._priced(trouble.reply, spent)
                self._scrub(trouble)
                spent += self._charge(trouble)
                self._stop_if_hopeless(trouble, spent)
                if trouble.then == "leave" or last:
                    return self._left(trouble, spent)
                if trouble.reply is None:
                    await self._back_off(prompt, attempt, trouble)
        raise AssertionError

    async def _ready(self) -> None:
        async with self._connecting:
            if not self._connected:
                try:
                    with reading():
                        await self._in_time(self.connect())
                except Trouble as trouble:
                    trouble.billed = trouble.refused = False  # nothing was asked of the model yet
                    raise
                self._connected = True

    async def _attempt(self, request: Any, prompt: Prompt) -> Reply:
        most, used, reserved, counts = self._bound, Usage(), 0, self._counts
        try:
            async with self._gate.admitted():
                waited = await self._calls.turn() + await self._tokens.turn(most.total)
                counts.seconds_pacing += waited
                counts.attempts += 1
                used, reserved = most, most.total
                with reading(), self._gate.sending():
                    reply: Reply = await self._in_time(self.send(request, prompt), billed=True)
            with reading(reply.usage, reply.text.encode(errors="replace")):
                self._check(reply, prompt)
            used = reply.usage or most
            return reply
        except Trouble as trouble:
            used = trouble.usage or (most if trouble.billed else Usage())
            raise
        finally:
            self._tokens.give_back(reserved - used.total)

    async def _back_off(self, prompt: Prompt, attempt: int, trouble: Trouble) -> None:
        key = "/".join(("backoff", prompt.sample_id, prompt.relation, *prompt.concepts))
        rng = generator(self._seed, key, prompt.severity, attempt)
        wait = self.retries.wait(attempt, trouble.asked, rng)
        self._counts.retries += 1
        self._counts.seconds_backing_off += wait
        await self._sleep(wait)

    # -- what came of it -------------------------------------------------------------------

    def _priced(self, reply: Reply, spent: Bill) -> Answer | Unanswered:
        self._silent = 0
        return super()._priced(reply, spent)

    def _left(self, trouble: Trouble, spent: Bill) -> Unanswered:
        """Return a call given up; raise ModelError if the endpoint seems to be down."""
        if trouble.then == "again" and not (self._connected and trouble.kind in REPLIED):
            self._silent += 1
            if self._silent >= self.retries.give_up_after:
                why = f"{self._silent} calls in a row had no reply, the last: {one_line(trouble)}"
                raise failed(spent)(f"{self._who}: {why}; resume when it is back") from None
        else:
            self._silent = 0
        return Unanswered(trouble.kind, spent.cost, spent.unconfirmed, trouble.text)
