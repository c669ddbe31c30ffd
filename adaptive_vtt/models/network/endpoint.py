"""Models behind a network: many calls in flight, limits, retries, and the money they cost.

A subclass says how one attempt is made (`Endpoint.prepare`, `Endpoint.send`); everything
else is here. Calls live on an event loop in a background thread, so the audit can go on
choosing questions while answers are awaited.

What a call costs is the sum over its attempts:

- an attempt that was answered costs what the server's token counts come to; where it counts
  none, and tokens have a price, the most that one attempt can cost;
- one that timed out, or whose reply broke off, was malformed or too long, may have been
  billed: what the server counts or, where it counts nothing, the most one can cost;
- one that was refused (4xx, 429 too), failed on the server (5xx) or never reached it costs
  nothing, unless the server sends token counts with the refusal.

So `most_cost`, the most one attempt can cost times the number of attempts, is never exceeded
as long as the server counts no more tokens than the bounds it was given. A count is a whole
number of 0 or more; anything else that a server gives for one counts nothing.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ...errors import AvttError, InputError, ModelError, one_line
from ...journal.answer_json import writable
from ...types import Answer, CallMode, Prompt, Unanswered, Value
from ...utils.random_streams import generator
from ..base import ModelDefaults
from ..checking import check_answer
from .attempts import MALFORMED, REPLIED, Reply, Trouble, reading
from .background import Background
from .keys import Key, scrubbed, shows
from .limits import Clock, Limits, Pace, Retries, Sleep
from .prices import Prices, Usage, whole

_SHOWN = 200  # characters of a server's own words in an error


@dataclass
class _Counts:
    calls: int = 0
    attempts: int = 0
    retries: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    seconds_backing_off: float = 0.0
    seconds_pacing: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    cost_unconfirmed: float = 0.0
    over_bound: int = 0
    first_malformed: str | None = None


class Endpoint(ModelDefaults):
    """A model under test that is called over a network; see the module for its costs.

    ``host`` names it in errors; ``bound``: the most tokens one attempt can use. ``clock`` and
    ``sleep`` are for tests. Errors that end the audit (ModelError): a wrong key or unknown
    model; before the first answer a host that cannot be reached, or a request it refuses;
    and a server that is down (`Retries.give_up_after`). Anything else leaves a call Unanswered.
    """

    def __init__(
        self,
        *,
        name: str,
        host: str,
        answers: CallMode = "all",
        limits: Limits | None = None,
        retries: Retries | None = None,
        prices: Prices | None = None,
        bound: Usage | None = None,
        keys: Sequence[Key] = (),
        seed: int = 0,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name, self.host = name, host
        self.answers: CallMode = answers
        self.limits = limits or Limits()
        self.retries = retries or Retries()
        self.prices = prices or Prices()
        self._bound = bound or Usage()
        self._check_bound()
        self._keys = tuple({key.reveal(): key for key in keys}.values())
        self._seed, self._sleep = seed, sleep
        self._calls = Pace(self.limits.calls_per_minute, clock=clock, sleep=sleep)
        self._tokens = Pace(self.limits.tokens_per_minute, clock=clock, sleep=sleep)
        self._background = Background(f"endpoint {name}")
        self._slots = asyncio.Semaphore(self.limits.in_flight)
        self._connecting = asyncio.Lock()
        self._connected = False
        self._answered = False
        # True once a journal holds its answers: then a first refused call does not end the audit
        self.trusted = False
        self._silent = 0  # calls in a row that ended without a reply
        self._counts = _Counts()

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

    async def disconnect(self) -> None:
        """Closes what ``connect`` or ``send`` opened."""

    def counted(self, sent: object, said: object) -> Usage | None:
        """The tokens that a server counts, whatever it gives for them; None where neither counts.

        Where one alone does, the other is taken for the most it can be.
        """
        counts = whole(sent), whole(said)
        if counts == (None, None):
            return None
        bound = self._bound.input, self._bound.output
        return Usage(*(b if c is None else c for c, b in zip(counts, bound, strict=True)))

    # -- what the audit uses ---------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """The most calls at a time."""
        return self.limits.in_flight

    @property
    def most_attempts(self) -> int:  # type: ignore[override]  # follows from the retries
        """The most attempts of one call that may be billed."""
        return self.retries.times + 1

    @property
    def most_cost(self) -> float:  # type: ignore[override]  # may rise, if wrongly bounded
        """No call, with all its attempts, can cost more."""
        return self.most_attempts * self.prices.cost(self._bound)

    @property
    def prices_known(self) -> bool:
        """Whether the prices given can price a call."""
        return self.prices.known

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

    def statistics(self) -> dict[str, Any]:
        """Counts since the start, for the report: calls, attempts, failures by kind, money; and
        what was wrong with the first reply that was malformed."""
        counts = vars(self._counts)
        return {**counts, "failures": dict(sorted(self._counts.failures.items()))}

    def close(self) -> None:
        """Ends calls under way and the connections; may be called twice."""
        self._background.close(self.disconnect())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self.host})"

    def _check_bound(self) -> None:
        """Raises InputError where tokens have a price or a limit, and nothing bounds them."""
        priced = bool(self.prices.input or self.prices.output)
        if self._bound.total == 0 and (priced or self.limits.tokens_per_minute is not None):
            what = "a price" if priced else "a limit per minute"
            raise InputError(
                f"model {self.name!r}: its tokens have {what}: expected the most tokens that a "
                "call can use, got none"
            )

    # -- one call --------------------------------------------------------------------------

    async def _call(self, prompt: Prompt) -> Answer | Unanswered:
        try:
            async with self._slots:
                self._counts.calls += 1
                return await self._attempts(prompt)
        except AvttError:
            raise
        except Exception as error:
            said = scrubbed(one_line(error), self._keys)
            cause = None if shows(error, self._keys) else error
            raise ModelError(f"{self._who}: {type(error).__name__}: {said}") from cause

    async def _attempts(self, prompt: Prompt) -> Answer | Unanswered:
        """Attempts until one is answered or none is left; the cost of all of them."""
        spent = 0.0
        request = None
        attempt = 0
        while True:
            try:
                await self._ready()
                if request is None:
                    request = await asyncio.to_thread(self.prepare, prompt)
                reply = await self._attempt(request, prompt)
            except Trouble as trouble:
                trouble.detail = self._shown(trouble.detail)
                spent += self._charge(trouble)
                self._stop_if_hopeless(trouble)
                if trouble.then == "leave" or attempt == self.retries.times:
                    return self._left(trouble, spent)
                await self._back_off(prompt, attempt, trouble)
                attempt += 1
            else:
                return self._priced(reply, spent)

    async def _ready(self) -> None:
        """Connected, by whichever call came first."""
        async with self._connecting:
            if not self._connected:
                try:
                    with reading():
                        await self._in_time(self.connect())
                except Trouble as trouble:
                    trouble.billed = False
                    raise
                self._connected = True

    async def _attempt(self, request: Any, prompt: Prompt) -> Reply:
        most = used = self._bound
        self._counts.seconds_pacing += await self._calls.turn()
        self._counts.seconds_pacing += await self._tokens.turn(most.total)
        self._counts.attempts += 1
        try:
            with reading():
                reply: Reply = await self._in_time(self.send(request, prompt), billed=True)
            with reading(reply.usage):
                self._check(reply, prompt)
            used = reply.usage or most
            return reply
        except Trouble as trouble:
            used = trouble.usage or (most if trouble.billed else Usage())
            raise
        finally:
            self._tokens.give_back(most.total - used.total)

    def _check(self, reply: Reply, prompt: Prompt) -> None:
        """Raises ValueError or ModelError for what is no answer to the prompt."""
        if isinstance(reply.said, Unanswered):
            return
        for value in reply.said:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"expected P(yes) between 0 and 1, got {value}")
        check_answer(Answer(reply.said), prompt, self._who)

    async def _in_time(self, doing: Any, *, billed: bool = False) -> Any:
        try:
            async with asyncio.timeout(self.retries.timeout):
                return await doing
        except TimeoutError:
            seconds = f"no reply within {self.retries.timeout:g} s"
            raise Trouble("timeout", seconds, billed=billed) from None

    async def _back_off(self, prompt: Prompt, attempt: int, trouble: Trouble) -> None:
        key = "/".join(("backoff", prompt.sample_id, prompt.relation, *prompt.concepts))
        rng = generator(self._seed, key, prompt.severity, attempt)
        wait = self.retries.wait(attempt, trouble.asked, rng)
        self._counts.retries += 1
        self._counts.seconds_backing_off += wait
        await self._sleep(wait)

    # -- what came of it -------------------------------------------------------------------

    def _priced(self, reply: Reply, spent: float) -> Answer | Unanswered:
        self._answered, self._silent = True, 0
        cost = self._bill(reply.usage)
        if reply.usage is None and self.prices.cost(Usage(1, 1)) > self.prices.cost(Usage()):
            self._counts.cost_unconfirmed += cost
        if isinstance(reply.said, Unanswered):
            reason = writable(scrubbed(reply.said.reason, self._keys))
            return Unanswered(reason, spent + cost)
        return Answer(tuple(self._without_keys(value) for value in reply.said), spent + cost)

    def _without_keys(self, value: Value) -> Value:
        """A value as it may be journaled: a server may echo whatever it was sent."""
        if isinstance(value, str):
            return writable(scrubbed(value, self._keys))
        if isinstance(value, Unanswered):
            return Unanswered(writable(scrubbed(value.reason, self._keys)))
        return value

    def _shown(self, text: str) -> str:
        """The beginning of a server's words, as it may stand in an error."""
        text = writable(scrubbed(text, self._keys))
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."

    def _charge(self, trouble: Trouble) -> float:
        """What a failed attempt costs."""
        self._counts.failures[trouble.kind] += 1
        if trouble.kind == MALFORMED and self._counts.first_malformed is None:
            self._counts.first_malformed = trouble.detail
        if trouble.usage is not None:
            return self._bill(trouble.usage)
        if not trouble.billed:
            return 0.0
        cost = self._bill(None)
        self._counts.cost_unconfirmed += cost
        return cost

    def _bill(self, usage: Usage | None) -> float:
        """The cost of one billed attempt; a usage above the bound lifts the bound."""
        counts = self._counts
        if usage is not None:
            counts.input_tokens += usage.input
            counts.output_tokens += usage.output
            bound = Usage(
                max(usage.input, self._bound.input), max(usage.output, self._bound.output)
            )
            counts.over_bound += bound != self._bound and self.prices.cost(usage) > 0
            self._bound = bound
        cost = self.prices.cost(usage or self._bound)
        counts.cost += cost
        return cost

    def _left(self, trouble: Trouble, spent: float) -> Unanswered:
        """A call given up; raises ModelError where the endpoint seems to be down."""
        if trouble.then == "again" and not (self._connected and trouble.kind in REPLIED):
            self._silent += 1
            if self._silent >= self.retries.give_up_after:
                raise ModelError(
                    f"{self._who}: {self._silent} calls in a row had no reply, the last: "
                    f"{one_line(trouble)}; resume when it is back"
                ) from None
        else:
            self._silent = 0
        return Unanswered(trouble.kind, spent)

    def _stop_if_hopeless(self, trouble: Trouble) -> None:
        """Raises ModelError for trouble that no further call can escape."""
        if (trouble.asked or 0.0) > self.retries.patience:
            raise ModelError(
                f"{self._who} asks to wait {trouble.asked:.0f} s ({trouble.kind}), longer than "
                f"{self.retries.patience:g} s; resume then"
            ) from None
        strange = trouble.then == "leave" and trouble.kind not in REPLIED and not self.trusted
        first = not self._answered and (strange or trouble.kind == "unreachable")
        if trouble.then == "stop" or first:
            said = one_line(trouble).replace(f"{self._who}: ", "")
            raise ModelError(f"{self._who}: {said}") from None

    @property
    def _who(self) -> str:
        return f"model {self.name!r} at {self.host}"
