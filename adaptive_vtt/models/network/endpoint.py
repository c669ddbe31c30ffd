"""Models behind a network: many calls in flight, limits, and retries.

A subclass says how one attempt is made (`Endpoint.prepare`, `Endpoint.send`); what a call costs
is in `paid.py`, everything else here. Calls live on an event loop in a background thread, so
the audit can go on choosing questions while answers are awaited.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
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
    """A model under test that is called over a network; ``paid`` are the options of `Paid`.

    ``clock`` and ``sleep`` are for tests. Errors that end the audit (ModelError): a wrong key or
    unknown model; before the first answer a host that cannot be reached, or a request it refuses;
    and a server that is down (`Retries.give_up_after`). Anything else leaves a call Unanswered.
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
        self._gate = Gate(self._concurrency, clock)
        self._slots = asyncio.Semaphore(self._concurrency.most)
        self._connecting = asyncio.Lock()
        self._connected = False
        self._silent = 0  # calls in a row that ended without a reply
        self._found_out: asyncio.Event | None = None  # set once the first call that does so ended

    # -- what a subclass says --------------------------------------------------------------

    async def connect(self) -> None:
        """What must be known before the first call; may raise Trouble."""

    def prepare(self, prompt: Prompt) -> Any:
        """The request of a prompt, whatever ``send`` takes. Runs in a thread: it may be slow."""
        raise TypeError(f"{type(self).__name__} defines no prepare")

    async def send(self, request: Any, prompt: Prompt) -> Reply:
        """One attempt; raises Trouble where it fails. The timeout is the caller's.

        Any other exception but InputError says that the reply was malformed.
        """
        raise TypeError(f"{type(self).__name__} defines no send")

    def finds_out(self, prompt: Prompt) -> bool:
        """Whether what comes of a call decides how others are made, which then wait for the first
        such call."""
        return False

    # -- what the audit uses ---------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """The most calls at a time, as of now."""
        return self._concurrency.level

    @property
    def adapts(self) -> bool:  # type: ignore[override]  # follows from the limits
        return self._concurrency.adapts

    def statistics(self) -> JsonObject:
        """As of `Paid`; of calls at a time that adapt, how many there may be now, too."""
        level, halved = self._concurrency.level, self._concurrency.halvings
        adapted = {"in_flight": {"at the end": level, "halved": halved}} if self.adapts else {}
        return super().statistics() | adapted

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        """Starts a call. Its exception, if any, is an AvttError and ends the audit."""
        return self._background.submit(self._call(prompt))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Answers in the order of the prompts, ``in_flight`` of them asked at a time."""
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
        """Until it is known how calls are to be made, one call alone is under way."""
        if self._found_out is None and self.finds_out(prompt):
            self._found_out = asyncio.Event()
            try:
                yield
            finally:
                self._found_out.set()
            return
        if self._found_out is not None and self.finds_out(prompt):
            await self._found_out.wait()
        yield

    async def _attempts(self, prompt: Prompt) -> Answer | Unanswered:
        """Attempts until one is answered or none is left; the cost of all of them."""
        spent = Bill()
        request = None
        attempt = 0
        while True:
            try:
                await self._ready()
                if request is None:
                    request = await asyncio.to_thread(self.prepare, prompt)
                reply = await self._attempt(request, prompt)
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
                attempt += 1
            else:
                return self._priced(reply, spent)

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
        most, used, reserved = self._bound, Usage(), 0

        async def turn() -> None:
            nonlocal used, reserved
            self._counts.seconds_pacing += await self._calls.turn()
            self._counts.seconds_pacing += await self._tokens.turn(most.total)
            self._counts.attempts += 1
            used, reserved = most, most.total

        try:
            with reading():
                reply: Reply = await self._gate.attempt(
                    turn, lambda: self._in_time(self.send(request, prompt), billed=True)
                )
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
        """A call given up; raises ModelError where the endpoint seems to be down."""
        if trouble.then == "again" and not (self._connected and trouble.kind in REPLIED):
            self._silent += 1
            if self._silent >= self.retries.give_up_after:
                raise failed(spent)(
                    f"{self._who}: {self._silent} calls in a row had no reply, the last: "
                    f"{one_line(trouble)}; resume when it is back"
                ) from None
        else:
            self._silent = 0
        return Unanswered(trouble.kind, spent.cost, spent.unconfirmed, trouble.text)
