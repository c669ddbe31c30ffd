"""Models whose calls cost money: prices, bounds, keys, and the cost of each attempt.

The cost of a call is the sum over its attempts:

- An attempt that was answered costs the price of the tokens that the server counts. If the server
  counts none, and tokens have a price, it costs the most that one attempt can.
- An attempt may have been billed if it timed out, failed on the server (5xx, 408), lost its
  connection after it was sent, or had a reply that broke off, was malformed or too long. It costs
  the price of the tokens that the server counts, or else the most that one attempt can.
- An attempt that was refused (4xx, including 429, and content filters) costs nothing, unless the
  server counts tokens with the refusal. One that never reached the server costs nothing.

``failed_attempts`` overrides this for servers that are known to bill "all" failed attempts that
reached them, or "none". Costs that no server confirmed are booked separately, too (`Bill`).

So no call costs more than `most_cost`, the most that one attempt can cost times the number of
attempts, as long as the server counts no more tokens than the bounds allow. A count above a bound
raises the bound, which is journaled; a count above `MAX_TOKENS` ends the audit. If counts
contradict each other, the largest total that they can mean is booked (`prices.py`); a count that is
no number is replaced by the bound.
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
"""Which failed attempts without token counts are booked, each at the most that it can cost: those
that a provider is "likely" to bill, "all" that reached it, or "none"."""
FAILED_ATTEMPTS = (
    "which failed attempts without token counts are booked, each at the most it can cost (likely: "
    "timeouts, 5xx, broken replies; no refusals)"
)
PIXELS_PER_TOKEN, CHARACTERS_PER_TOKEN, TEMPLATE_TOKENS = 750.0, 4.0, 40.0
"""A first guess of a prompt's tokens: Anthropic's rule for images, the usual one for English text,
and the length of a template. The engine learns the real counts from the first answers."""
HIGH_IMAGE, HIGH_PIXELS_PER_TOKEN = 255.0, 500.0
"""A high guess of an image's tokens: a fixed number, and one more for so many pixels. By OpenAI's
rule, 85 tokens and 170 per started tile of 512 x 512 pixels, no square image counts more."""
REPLY, HIGH_REPLY = 1 / 8, 1 / 2
"""Length of a reply in a first guess and in a high one, as a share of the longest reply."""
MAX_PIXELS = 1_200_000.0
"""Size in pixels to which large providers shrink images, so that larger ones cost no more."""
SERVED = ("model", "system_fingerprint")
"""Fields of a reply that name the model behind it; if they change, the model has changed."""
_NAMES, _NAME_LENGTH = 20, 80
"""Maximum number of such names that are counted, and of characters of each."""
_SHOWN = 200
"""Maximum number of characters of a server's text in an error."""


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
    """A model under test whose calls cost money; the module's docstring says how much.

    Args:
        name: Name in errors, journals and reports.
        host: The server, for errors.
        answers: Concepts that one call answers: "all" or "one".
        retries: Further attempts at calls that fail. Default None: those of `Retries`.
        prices: Prices of calls and tokens. Default None: unknown.
        bound: The most tokens that one attempt can use. Default None: not known.
        keys: Secrets, which are removed from all texts that are shown or stored.
        failed_attempts: Failed attempts that the server bills, if it counts no tokens.
        seed: Seed of the random waits between attempts.
        sleep: Function that waits; for tests.

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
        self._bound = self._initial_bound = bound or Usage()
        check_known("value", failed_attempts, get_args(FailedAttempts), "failed_attempts")
        self._failed_attempts = failed_attempts
        if self.prices.input or self.prices.output:
            self._check_bound("a price")
        self._keys = tuple({key.reveal(): key for key in keys}.values())
        self._seed, self._sleep = seed, sleep
        self._background = Background(f"endpoint {name}")
        # At the end of the program nothing needs to be closed, and no thread could be waited for.
        weakref.finalize(self, self._background.drop).atexit = False
        self._answered = False
        self._counts = _Counts()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r} at {self.host})"

    @property
    def _who(self) -> str:
        return f"model {self.name!r} at {self.host}"

    def close(self) -> None:
        """End calls in flight, and close connections. May be called repeatedly. A model that is no
        longer referenced is closed, too."""
        self._background.close()

    def statistics(self) -> JsonObject:
        """Return counts since the start: calls, attempts, failures by kind, cost; the fault of the
        first malformed reply; and the number of replies by each model name in them."""
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
        """The likely cost of a call; None if tokens sent are free, so that all calls cost alike."""
        return self._guess(TEMPLATE_TOKENS, PIXELS_PER_TOKEN, REPLY)

    @property
    def high_guess(self) -> PriceGuess | None:  # type: ignore[override]  # follows from prices
        """The likely cost if the provider counts many tokens per image, and replies are longer."""
        return self._guess(TEMPLATE_TOKENS + HIGH_IMAGE, HIGH_PIXELS_PER_TOKEN, HIGH_REPLY)

    def _guess(self, tokens: float, pixels_per_token: float, reply: float) -> PriceGuess | None:
        """Return a guess of the cost of a call, None if tokens sent have no price.

        Args:
            tokens: Tokens that every call sends, without those of pixels and questions.
            pixels_per_token: Pixels of an image per token.
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
        """Return the bound, in tokens sent and answered, if a server's counts have raised it."""
        raised = self._bound != self._initial_bound
        return {"": (self._bound.input, self._bound.output)} if raised else {}

    def keep_bounds(self, bounds: Mapping[str, tuple[int, int]]) -> None:
        if "" in bounds:
            self._raise_bound(Usage(*bounds[""]))

    def _raise_bound(self, usage: Usage) -> bool:
        """Raise the bound to a usage above it; return whether the usage was above."""
        before = self._bound
        self._bound = Usage(max(usage.input, before.input), max(usage.output, before.output))
        return self._bound != before

    def _check_bound(self, what: str) -> None:
        """Raise InputError if tokens have no bound; ``what`` names what needs one."""
        if self._bound.total == 0:
            expected = "expected the most tokens that a call can use"
            raise InputError(f"model {self.name!r}: its tokens have {what}: {expected}, got none")

    @property
    def _per_token(self) -> bool:
        """True if tokens have a price."""
        return self.prices.cost(Usage(1, 1)) > self.prices.cost(Usage())

    # -- what a reply counts and costs -----------------------------------------------------

    def counted(
        self, usage: object, apart: Sequence[str] = (), hints: object = None
    ) -> Usage | None:
        """Return the tokens that a reply counts, None if it counts none.

        A side, sent or answered, that has no whole number as its count is booked at its bound or
        more. Tokens of the total beyond both sides are booked at the higher of the two prices.

        Args:
            usage: As ``apart`` and ``hints``, an argument of `read_counts`.
            apart: See there.
            hints: See there.

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
    def _usage_of_refusals(self) -> Usage | None:
        """The usage of a refusal without token counts; None if it may have been billed."""
        return None if self._failed_attempts == "all" else Usage()

    def _priced(self, reply: Reply, spent: Bill) -> Answer | Unanswered:
        """Return the reply as an answer, which costs ``spent`` and the price of this attempt."""
        self._answered = True
        unconfirmed = reply.usage is None and self._per_token
        bill = spent + self._bill(reply.usage, unconfirmed=unconfirmed)
        for served_field, name in reply.served.items():
            names, name = self._counts.served[served_field], self._journaled(name)[:_NAME_LENGTH]
            if name in names or len(names) < _NAMES:
                names[name] += 1
        text = self._journaled(reply.text)
        if isinstance(reply.values, Unanswered):
            reason = self._without_keys(reply.values.reason)
            return Unanswered(reason, bill.cost, bill.unconfirmed, text)
        values = tuple(map(self._clean, reply.values))
        return Answer(values, bill.cost, bill.unconfirmed, text)

    def _charge(self, trouble: Trouble) -> Bill:
        """Count a failed attempt, and return its cost."""
        self._counts.failures[trouble.kind] += 1
        if trouble.kind == MALFORMED and self._counts.first_malformed is None:
            self._counts.first_malformed = trouble.detail
        if trouble.usage is not None:
            return self._bill(trouble.usage)
        reached = trouble.billed or trouble.refused
        billed = {"likely": trouble.billed, "all": reached, "none": False}[self._failed_attempts]
        return self._bill(None, unconfirmed=True) if billed else Bill()

    def _bill(self, usage: Usage | None, *, unconfirmed: bool = False) -> Bill:
        """Count one billed attempt, and return its cost: that of its usage, else of the bound.

        A usage above the bound raises the bound.
        """
        counts = self._counts
        if usage is not None:
            counts.input_tokens += usage.input
            counts.output_tokens += usage.output
            counts.over_bound += self._raise_bound(usage) and self.prices.cost(usage) > 0
        cost = self.prices.cost(usage or self._bound)
        bill = Bill(cost, cost if unconfirmed else 0.0)
        counts.cost += bill.cost
        counts.cost_unconfirmed += bill.unconfirmed
        return bill

    # -- errors ----------------------------------------------------------------------------

    def _check(self, reply: Reply, prompt: Prompt) -> None:
        """Raise ValueError or ModelError if the values of a reply are no answer to the prompt."""
        if isinstance(reply.values, Unanswered):
            return
        for value in reply.values:
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"expected P(yes) between 0 and 1, got {value}")
        check_answer(Answer(reply.values), prompt, self._who)

    async def _in_time(self, exchange: Awaitable[Any], *, billed: bool = False) -> Any:
        """Return the result of an exchange with the server.

        Raises:
            Trouble: It took longer than the timeout; ``billed``: so it may have been charged.
        """
        try:
            async with asyncio.timeout(self.retries.timeout):
                return await exchange
        except TimeoutError:
            seconds = f"no reply within {self.retries.timeout:g} s"
            raise Trouble("timeout", seconds, billed=billed) from None

    def _stop_if_hopeless(self, trouble: Trouble, spent: Bill | None = None) -> None:
        """Raise ModelError for trouble that every further call would have, too.

        Args:
            trouble: The trouble.
            spent: The cost of the attempts at this call, None if it is not known.
        """
        if (trouble.asked or 0.0) > self.retries.patience:
            raise failed(spent)(
                f"{self._who} asks to wait {trouble.asked:.0f} s ({trouble.kind}), longer than "
                f"{self.retries.patience:g} s; resume then"
            ) from None
        refused = trouble.then == "leave" and trouble.kind not in REPLIED and not self.trusted
        never_worked = not self._answered and (refused or trouble.kind == "unreachable")
        if trouble.then == "stop" or never_worked:
            message = one_line(trouble).replace(f"{self._who}: ", "")
            raise failed(spent)(f"{self._who}: {message}") from None

    def _unforeseen(self, error: Exception) -> ModelError:
        """Return an exception that nothing handles as a ModelError without keys."""
        message = scrubbed(one_line(error), self._keys)
        return ModelError(f"{self._who}: {type(error).__name__}: {message}")

    def _cause(self, error: Exception) -> Exception | None:
        """Return an exception as the cause of another, or None if it would show a key."""
        return None if shows(error, self._keys) else error

    # -- texts without keys: a server may repeat the headers that it was sent ----------------

    def _without_keys(self, text: str) -> str:
        return writable(scrubbed(text, self._keys))

    def _clean(self, value: Value) -> Value:
        """Return a value without keys in its text."""
        if isinstance(value, Unanswered):
            return Unanswered(self._without_keys(value.reason))
        return self._without_keys(value) if isinstance(value, str) else value

    def _journaled(self, text: str) -> str:
        """Return a text for the journal. Keys are removed before it is shortened, since half a key
        would not be recognised."""
        return kept(self._without_keys(text))

    def _shown(self, text: str) -> str:
        """Return a server's text, without keys and shortened, for an error."""
        text = self._without_keys(text)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."

    def _scrub(self, trouble: Trouble) -> None:
        """Remove keys from a trouble's texts, and shorten them."""
        trouble.detail, trouble.text = self._shown(trouble.detail), self._journaled(trouble.text)


def failed(spent: Bill | None) -> type[ModelError]:
    """Return the class of error for a failed call whose attempts cost ``spent``; None: unknown."""
    return ModelError if spent is None or spent.cost else NotCharged
