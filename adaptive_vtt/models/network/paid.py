"""Models whose calls cost money: prices, bounds, keys, and the cost of each attempt.

What a call costs is the sum over its attempts:

- an attempt that was answered costs what the server's token counts come to; where it counts
  none, and tokens have a price, the most that one attempt can cost;
- one may have been billed that timed out, failed on the server (5xx, 408) or lost its connection
  once it was sent. So may one whose reply broke off, was malformed or too long. It costs what the
  server counts or, where it counts nothing, the most one can cost;
- one that was refused (4xx, 429 too, and content filters) costs nothing, unless the server sends
  token counts with the refusal; one that never reached the server costs nothing.

``failed_attempts`` says otherwise of servers that are known to bill "all" failed attempts that
reached them, or "none". What is booked and no server confirmed is kept apart (`Bill`).

So `most_cost`, the most one attempt can cost times the number of attempts, is never exceeded
as long as the server counts no more tokens than the bounds it was given. A count above a bound
lifts it, and is journaled; one above `MAX_TOKENS` ends the audit. Where counts contradict each
other the most that they can mean is booked (`prices.py`); what is no count at all is taken for the
bound.
"""

import asyncio
import math
import weakref
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from ...errors import InputError, ModelError, check_known, one_line
from ...journal.answer_json import writable
from ...types import Answer, CallMode, JsonObject, Prompt, Unanswered, Value
from ...utils.background import Background
from ...utils.options import Group, Option
from ..base import ModelDefaults, NotCharged, PriceGuess
from ..checking import check_answer
from ..reply_frames import kept
from .attempts import MALFORMED, REPLIED, Reply, Trouble
from .keys import Key, scrubbed, shows
from .limits import Retries, Sleep
from .prices import MAX_TOKENS, Bill, Prices, Usage, read_counts

FailedAttempts = Literal["likely", "all", "none"]
"""Which failed attempts are booked at the most one can cost, where no tokens are counted: those
that a provider is "likely" to bill, "all" that reached it, or "none"."""
FAILED_ATTEMPTS = (
    "which failed attempts without token counts are booked, each at the most it can cost (likely: "
    "timeouts, 5xx, broken replies; no refusals)"
)
PIXELS_PER_TOKEN, CHARACTERS_PER_TOKEN, TEMPLATE_TOKENS = 750.0, 4.0, 40.0
"""A first guess: Anthropic's rule for images, everybody's for English, and a prompt's other
words. What other providers count is learnt from their first answers."""
HIGH_IMAGE, HIGH_PIXELS_PER_TOKEN = 255.0, 500.0
"""A high guess: an image's tokens in any case, and pixels per further one. By OpenAI's rule, 85
tokens and 170 per started tile of 512 x 512 pixels, no square image counts more."""
REPLY, HIGH_REPLY = 1 / 8, 1 / 2
"""Tokens of a reply in a first guess and in a high one, as a share of the most it can have."""
MAX_PIXELS = 1_200_000.0
"""Pixels above which large providers shrink images, and charge no more for them."""
SERVED = ("model", "system_fingerprint")
"""Fields of a reply that name who made it; a server that changes them has changed the model."""
_NAMES, _NAME = 20, 80
"""Most names that are counted, and characters of each."""
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
    served: dict[str, Counter[str]] = field(default_factory=lambda: {n: Counter() for n in SERVED})


class Paid(ModelDefaults):
    """A model under test whose calls cost money; see the module for how much.

    Args:
        name: For errors, journals and reports.
        host: The server, for errors.
        answers: Questions that one call answers.
        retries: Further attempts at calls that fail.
        prices: Prices of calls and tokens.
        bound: The most tokens that one attempt can use.
        keys: Taken out of whatever is shown or kept.
        failed_attempts: Which of them the server bills, where it does not say.
        seed: Seed of the random waits between attempts.
        sleep: For tests.

    Raises:
        InputError: Tokens have a price and no bound.
    """

    def __init__(
        self,
        *,
        name: str,
        host: str,
        answers: CallMode = "all",
        retries: Annotated[Retries | None, Group(Retries)] = None,
        prices: Annotated[Prices | None, Group(Prices)] = None,
        bound: Usage | None = None,
        keys: Sequence[Key] = (),
        failed_attempts: Annotated[FailedAttempts, Option(FAILED_ATTEMPTS)] = "likely",
        seed: int = 0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name, self.host = name, host
        self.answers: CallMode = answers
        self.retries, self.prices = retries or Retries(), prices or Prices()
        self.most_attempts, self.currency = self.retries.times + 1, self.prices.currency
        self._bound = self._given = bound or Usage()
        check_known("value", failed_attempts, get_args(FailedAttempts), "failed_attempts")
        self._failed_attempts = failed_attempts
        if self.prices.input or self.prices.output:
            self._check_bound("a price")
        self._keys = tuple({key.reveal(): key for key in keys}.values())
        self._seed, self._sleep = seed, sleep
        self._background = Background(f"endpoint {name}")
        # A program that ends needs nothing closed; its threads could not be waited for either.
        weakref.finalize(self, self._background.drop).atexit = False
        self._answered = False
        self._counts = _Counts()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self.host})"

    @property
    def _who(self) -> str:
        return f"model {self.name!r} at {self.host}"

    def close(self) -> None:
        """End calls under way and the connections. May be called twice; a model that is dropped is
        closed, too."""
        self._background.close()

    def statistics(self) -> JsonObject:
        """Return counts since the start: calls, attempts, failures by kind, money; what was wrong
        with the first malformed reply; and replies by who made them."""
        counts = {**vars(self._counts), "failures": dict(sorted(self._counts.failures.items()))}
        served = {name: dict(names) for name, names in counts.pop("served").items() if names}
        return {**counts, "served": served} if served else counts

    # -- prices and bounds -----------------------------------------------------------------

    @property
    def most_cost(self) -> float:  # type: ignore[override]  # rises with the bound
        return self.most_attempts * self.prices.cost(self._bound)

    @property
    def costs_money(self) -> bool:
        return True

    @property
    def prices_known(self) -> bool:
        return self.prices.known

    @property
    def price_guess(self) -> PriceGuess | None:  # type: ignore[override]  # follows from prices
        """None if tokens sent cost nothing, so that calls are not known to differ."""
        return self._guess(TEMPLATE_TOKENS, PIXELS_PER_TOKEN, REPLY)

    @property
    def high_guess(self) -> PriceGuess | None:  # type: ignore[override]  # follows from prices
        """The price guess by the rule for images that counts most, and for longer replies."""
        return self._guess(TEMPLATE_TOKENS + HIGH_IMAGE, HIGH_PIXELS_PER_TOKEN, HIGH_REPLY)

    def _guess(self, tokens: float, pixels_per_token: float, reply: float) -> PriceGuess | None:
        """Return the price guess of calls.

        Args:
            tokens: Tokens that every call sends; those of image and text are added.
            pixels_per_token: Pixels of an image that count as a token.
            reply: Length of a reply as a share of the longest.
        """
        prices = self.prices
        if not (prices.known and prices.input):
            return None
        sent, answered = prices.input / prices.tokens, (prices.output or 0.0) / prices.tokens
        return PriceGuess(
            (prices.per_call or 0.0) + sent * tokens + answered * reply * self._bound.output,
            sent / pixels_per_token,
            sent / CHARACTERS_PER_TOKEN,
            MAX_PIXELS,
        )

    def bounds(self) -> dict[str, tuple[int, int]]:
        """Return the bound, input and output tokens, if a server counted more than was given."""
        lifted = self._bound != self._given
        return {"": (self._bound.input, self._bound.output)} if lifted else {}

    def keep_bounds(self, bounds: Mapping[str, tuple[int, int]]) -> None:
        if "" in bounds:
            self._lift(Usage(*bounds[""]))

    def _lift(self, usage: Usage) -> bool:
        """Lift the bound to a usage above it; return whether it was above."""
        before = self._bound
        self._bound = Usage(max(usage.input, before.input), max(usage.output, before.output))
        return self._bound != before

    def _check_bound(self, what: str) -> None:
        """Raise InputError if tokens have ``what`` it says, and nothing bounds them."""
        if self._bound.total == 0:
            expected = "expected the most tokens that a call can use"
            raise InputError(f"model {self.name!r}: its tokens have {what}: {expected}, got none")

    @property
    def _per_token(self) -> bool:
        return self.prices.cost(Usage(1, 1)) > self.prices.cost(Usage())

    # -- what a reply counts and costs -----------------------------------------------------

    def counted(
        self, usage: object, apart: Sequence[str] = (), hints: object = None
    ) -> Usage | None:
        """Return the tokens that a reply counts, None if it counts none; see `read_counts`.

        A side that is not counted by a number has the most tokens that it can have. Tokens of the
        total beyond both sides are booked at the higher price.

        Raises:
            Trouble: A count is above MAX_TOKENS. It ends the audit.
        """
        counts = read_counts(usage, apart, hints)
        if counts.largest > MAX_TOKENS and self._per_token:
            claim = f"counts over {MAX_TOKENS:,} tokens for one call, so that its bill is unknown"
            detail = f"{claim}; ask whoever runs it before resuming"
            raise Trouble("token count", detail, then="stop", billed=True)
        if counts.nothing or counts.largest > MAX_TOKENS:
            return None
        sent = max(counts.sent, self._bound.input if "input" in counts.unsure else 0)
        answered = max(counts.answered, self._bound.output if "output" in counts.unsure else 0)
        beyond = max(0, counts.total - sent - answered)
        if (self.prices.input or 0.0) > (self.prices.output or 0.0):
            return Usage(sent + beyond, answered)
        return Usage(sent, answered + beyond)

    @property
    def _refused(self) -> Usage | None:
        """The tokens of a refusal that counts none; None if it may have been billed."""
        return None if self._failed_attempts == "all" else Usage()

    def _priced(self, reply: Reply, spent: Bill) -> Answer | Unanswered:
        """Return the reply as an answer, with what it and the attempts before it cost."""
        self._answered = True
        unconfirmed = reply.usage is None and self._per_token
        bill = spent + self._bill(reply.usage, unconfirmed=unconfirmed)
        for field_, name in reply.served.items():
            names, name = self._counts.served[field_], self._journaled(name)[:_NAME]
            if name in names or len(names) < _NAMES:
                names[name] += 1
        text = self._journaled(reply.text)
        if isinstance(reply.values, Unanswered):
            reason = self._without_keys(reply.values.reason)
            return Unanswered(reason, bill.cost, bill.unconfirmed, text)
        values = tuple(map(self._clean, reply.values))
        return Answer(values, bill.cost, bill.unconfirmed, text)

    def _charge(self, trouble: Trouble) -> Bill:
        """Book a failed attempt."""
        self._counts.failures[trouble.kind] += 1
        if trouble.kind == MALFORMED and self._counts.first_malformed is None:
            self._counts.first_malformed = trouble.detail
        if trouble.usage is not None:
            return self._bill(trouble.usage)
        reached = trouble.billed or trouble.refused
        billed = {"likely": trouble.billed, "all": reached, "none": False}[self._failed_attempts]
        return self._bill(None, unconfirmed=True) if billed else Bill()

    def _bill(self, usage: Usage | None, *, unconfirmed: bool = False) -> Bill:
        """Return the cost of one billed attempt; a usage above the bound lifts the bound."""
        counts = self._counts
        if usage is not None:
            counts.input_tokens += usage.input
            counts.output_tokens += usage.output
            counts.over_bound += self._lift(usage) and self.prices.cost(usage) > 0
        cost = self.prices.cost(usage or self._bound)
        bill = Bill(cost, cost if unconfirmed else 0.0)
        counts.cost += bill.cost
        counts.cost_unconfirmed += bill.unconfirmed
        return bill

    # -- what went wrong -------------------------------------------------------------------

    def _check(self, reply: Reply, prompt: Prompt) -> None:
        """Raise ValueError or ModelError for what is no answer to the prompt."""
        if isinstance(reply.values, Unanswered):
            return
        for value in reply.values:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"expected P(yes) between 0 and 1, got {value}")
        check_answer(Answer(reply.values), prompt, self._who)

    async def _in_time(self, doing: Awaitable[Any], *, billed: bool = False) -> Any:
        try:
            async with asyncio.timeout(self.retries.timeout):
                return await doing
        except TimeoutError:
            seconds = f"no reply within {self.retries.timeout:g} s"
            raise Trouble("timeout", seconds, billed=billed) from None

    def _stop_if_hopeless(self, trouble: Trouble, spent: Bill | None = None) -> None:
        """Raise ModelError for trouble that would stop every further call, too.

        Args:
            trouble: The trouble.
            spent: The cost of the attempts at this call, None if it is not known.
        """
        if (trouble.asked or 0.0) > self.retries.patience:
            raise failed(spent)(
                f"{self._who} asks to wait {trouble.asked:.0f} s ({trouble.kind}), longer than "
                f"{self.retries.patience:g} s; resume then"
            ) from None
        strange = trouble.then == "leave" and trouble.kind not in REPLIED and not self.trusted
        first = not self._answered and (strange or trouble.kind == "unreachable")
        if trouble.then == "stop" or first:
            message = one_line(trouble).replace(f"{self._who}: ", "")
            raise failed(spent)(f"{self._who}: {message}") from None

    def _unforeseen(self, error: Exception) -> ModelError:
        message = scrubbed(one_line(error), self._keys)
        return ModelError(f"{self._who}: {type(error).__name__}: {message}")

    def _cause(self, error: Exception) -> Exception | None:
        """Return an exception as the cause of another, or None if it would show a key."""
        return None if shows(error, self._keys) else error

    # -- texts without keys: a server may echo whatever it was sent --------------------------

    def _without_keys(self, text: str) -> str:
        return writable(scrubbed(text, self._keys))

    def _clean(self, value: Value) -> Value:
        if isinstance(value, Unanswered):
            return Unanswered(self._without_keys(value.reason))
        return self._without_keys(value) if isinstance(value, str) else value

    def _journaled(self, text: str) -> str:
        """Return a text for the journal, cut after keys are removed, as half a key would stay."""
        return kept(self._without_keys(text))

    def _shown(self, text: str) -> str:
        text = self._without_keys(text)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."

    def _scrub(self, trouble: Trouble) -> None:
        """Remove keys from a server's words, and cut these."""
        trouble.detail, trouble.text = self._shown(trouble.detail), self._journaled(trouble.text)


def failed(spent: Bill | None) -> type[ModelError]:
    """Return the error of a call whose attempts may have cost ``spent``."""
    return ModelError if spent is None or spent.cost else NotCharged
