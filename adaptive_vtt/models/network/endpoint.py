"""Models behind a network: many calls in flight, rate limits, and retries.

A subclass defines one attempt at a call (`Endpoint.prepare`, `Endpoint.send`). `Endpoint` sends and
repeats attempts; its base `Paid` books their cost. Calls run on an event loop in a background
thread, so that the audit can choose further questions while it waits for answers.
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

    These errors end the audit (ModelError): a wrong key or unknown model; a host that cannot be
    reached, or a request that it refuses, before the first answer; and a server that is down
    (`Retries.give_up_after`). Any other failure leaves a call Unanswered.

    Args:
        limits: Calls in flight, and calls and tokens per minute. Default None: those of `Limits`.
        clock: Function that returns seconds; for tests.
        sleep: Function that waits; for tests.
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
        self._no_reply = 0  # calls in a row without a reply
        self._mode_decided: asyncio.Event | None = None  # set when the first deciding call ended

    # -- what a subclass defines -----------------------------------------------------------

    async def connect(self) -> None:
        """Prepare the first call, for instance ask the server for its inputs; may raise Trouble."""

    def prepare(self, prompt: Prompt) -> Any:
        """Return the request of a prompt, for ``send``. It runs in a thread, so it may be slow."""
        raise TypeError(f"{type(self).__name__} defines no prepare")

    async def send(self, request: Any, prompt: Prompt) -> Reply:
        """Make one attempt and return the reply. The caller applies the timeout.

        Raises:
            Trouble: The attempt failed.
            Exception: Any other exception except InputError means that the reply is malformed.
        """
        raise TypeError(f"{type(self).__name__} defines no send")

    def decides_mode(self, prompt: Prompt) -> bool:
        """Return whether the elicitation mode depends on this call, so that further calls wait for
        the first one of that kind."""
        return False

    # -- what the audit uses ---------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """The maximum number of calls in flight at this moment."""
        return self._concurrency.level

    def statistics(self) -> JsonObject:
        """Return the counts of `Paid`, and the number of calls in flight if that adapts."""
        level, halved = self._concurrency.level, self._concurrency.halvings
        adapted = {"in_flight": {"at the end": level, "halved": halved}} if self.adapts else {}
        return super().statistics() | adapted

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        """Start a call, and return its future. An exception in it, an AvttError, ends the audit."""
        return self._background.submit(self._call(prompt))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return answers in the order of the prompts, with at most ``in_flight`` calls at once."""
        futures = [self.submit(prompt) for prompt in prompts]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    # -- one call --------------------------------------------------------------------------

    async def _call(self, prompt: Prompt) -> Answer | Unanswered:
        try:
            async with self._slots, self._mode_known(prompt):
                self._counts.calls += 1
                return await self._attempts(prompt)
        except AvttError:
            raise
        except Exception as error:
            raise self._unforeseen(error) from self._cause(error)

    @asynccontextmanager
    async def _mode_known(self, prompt: Prompt) -> AsyncIterator[None]:
        """Let the first call that decides the elicitation mode pass; others wait for its end."""
        if not self.decides_mode(prompt):
            yield
        elif self._mode_decided is None:
            self._mode_decided = asyncio.Event()
            try:
                yield
            finally:
                self._mode_decided.set()
        else:
            await self._mode_decided.wait()
            yield

    async def _attempts(self, prompt: Prompt) -> Answer | Unanswered:
        """Return the first answer of several attempts at a call, with the cost of all of them."""
        spent, request = Bill(), None
        for attempt in count():
            try:
                await self._connect_once()
                if request is None:
                    request = await asyncio.to_thread(self.prepare, prompt)
                return self._priced(await self._attempt(request, prompt), spent)
            except Trouble as trouble:
                final = attempt == self.retries.times or trouble.then == "leave"
                if final and trouble.reply is not None:
                    return self._priced(trouble.reply, spent)
                self._scrub(trouble)
                spent += self._charge(trouble)
                self._stop_if_hopeless(trouble, spent)
                if final:
                    return self._given_up(trouble, spent)
                if trouble.reply is None:
                    await self._back_off(prompt, attempt, trouble)
        raise AssertionError

    async def _connect_once(self) -> None:
        async with self._connecting:
            if not self._connected:
                try:
                    with reading():
                        await self._in_time(self.connect())
                except Trouble as trouble:
                    trouble.billed = trouble.refused = False  # the model was not asked yet
                    raise
                self._connected = True

    async def _attempt(self, request: Any, prompt: Prompt) -> Reply:
        """Make one attempt within the limits, and return its checked reply.

        It reserves as many tokens per minute as it can use, and releases those that it did not.
        """
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

    # -- the result of a call --------------------------------------------------------------

    def _priced(self, reply: Reply, spent: Bill) -> Answer | Unanswered:
        self._no_reply = 0
        return super()._priced(reply, spent)

    def _given_up(self, trouble: Trouble, spent: Bill) -> Unanswered:
        """Return a call whose attempts all failed as unanswered.

        Raises:
            ModelError: So many calls in a row had no reply that the server seems to be down.
        """
        if trouble.then == "again" and not (self._connected and trouble.kind in REPLIED):
            self._no_reply += 1
            if self._no_reply >= self.retries.give_up_after:
                why = f"{self._no_reply} calls in a row had no reply, the last: {one_line(trouble)}"
                raise failed(spent)(f"{self._who}: {why}; resume when it is back") from None
        else:
            self._no_reply = 0
        return Unanswered(trouble.kind, spent.cost, spent.unconfirmed, trouble.text)
