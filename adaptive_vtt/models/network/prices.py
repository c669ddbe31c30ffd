"""Prices of calls, and the token counts in replies of many servers.

A call has two sides: tokens sent (input) and tokens answered (output). The counts in one reply may
contradict each other. For example, some servers bill reasoning but leave it out of
``completion_tokens``, and count it only in ``reasoning_tokens`` or ``total_tokens``. A reply is
read as the largest usage that its counts can mean together:

- Of several counts of one side, the largest is taken.
- A part, such as reasoning, that is larger than its side is added to it.
- A total above the sum of both sides contains further tokens.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from ...errors import InputError
from ...utils.figures import USD
from ...utils.options import Option, check_options

MAX_TOKENS = 10_000_000
"""Largest count of tokens of one call that is believed."""
CURRENCY = "^[A-Z]{3}$"


@dataclass(frozen=True)
class Usage:
    """Tokens of one attempt, as the server counts them.

    Attributes:
        input: Tokens of the prompt, with those of its image; at least 0.
        output: Tokens of the reply, with those of its reasoning; at least 0.

    Raises:
        InputError: A count is no whole number of 0 or more.
    """

    input: int = 0
    output: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            count = getattr(self, field.name)
            if whole(count) is None:
                expected = f"expected a whole number from 0 to {MAX_TOKENS}"
                raise InputError(f"{field.name} tokens: {expected}, got {count!r:.40}")

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True)
class Bill:
    """The cost of attempts.

    Attributes:
        cost: The cost in the currency of the prices.
        unconfirmed: The part of it that no server confirmed, so that it may not have been charged.
    """

    cost: float = 0.0
    unconfirmed: float = 0.0

    def __add__(self, other: "Bill") -> "Bill":
        return Bill(self.cost + other.cost, self.unconfirmed + other.unconfirmed)


def whole(count: object) -> int | None:
    """Return a whole number from 0 to MAX_TOKENS unchanged, and None for any other value."""
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return count if 0 <= count <= MAX_TOKENS else None


@dataclass(frozen=True)
class Prices:
    """Prices of calls and tokens.

    A price that is not given counts as 0; ``known`` says whether the given ones suffice.

    Attributes:
        per_call: Price of a call.
        input: Price of ``tokens`` tokens sent.
        output: Price of ``tokens`` tokens answered.
        tokens: Number of tokens that ``input`` and ``output`` are for.
        currency: Currency of all prices (ISO 4217).

    Raises:
        InputError: A price is negative, or the currency is no code of three capitals.
    """

    per_call: Annotated[float | None, Option("price of a call", name="price_per_call", ge=0)] = None
    input: Annotated[float | None, Option("price of tokens sent", name="price_input", ge=0)] = None
    output: Annotated[
        float | None, Option("price of tokens answered", name="price_output", ge=0)
    ] = None
    tokens: Annotated[int, Option("tokens a price is for", name="price_tokens", ge=1)] = 1_000_000
    currency: Annotated[str, Option("of prices and caps, ISO 4217 (EUR)", pattern=CURRENCY)] = USD

    def __post_init__(self) -> None:
        check_options(Prices, vars(self))
        if not re.fullmatch(CURRENCY, self.currency):
            expected = "expected three capitals, as in 'EUR'"
            raise InputError(f"price currency: {expected}, got {self.currency!r}")

    @property
    def known(self) -> bool:
        """Return whether a price per call, or prices of both input and output tokens, are given.

        One token price alone does not suffice, as the other tokens would count as free.
        """
        given = (self.input is not None, self.output is not None)
        return all(given) or (self.per_call is not None and not any(given))

    def times(self, factor: float) -> "Prices":
        """Return these prices times a factor."""
        prices = {name: getattr(self, name) for name in ("per_call", "input", "output")}
        return replace(self, **{n: p * factor for n, p in prices.items() if p is not None})

    def cost(self, usage: Usage) -> float:
        """Return the cost of one billed attempt with this usage."""
        tokens = usage.input * (self.input or 0.0) + usage.output * (self.output or 0.0)
        return (self.per_call or 0.0) + tokens / self.tokens


# -- counts of tokens ------------------------------------------------------------------------------


Side = Literal["input", "output"]
_SIDES: dict[str, Side] = {
    **dict.fromkeys(("prompt_tokens", "input_tokens"), "input"),
    **dict.fromkeys(("completion_tokens", "output_tokens"), "output"),
    **dict.fromkeys(("candidates_tokens", "generated_tokens"), "output"),
}
"""Name of a count -> its side."""
_INPUT = re.compile(r"prompt|input|cache")
"""Matches the name of a part of the tokens sent; other parts belong to those answered."""
_TOTAL = re.compile(r"total_tokens|bill\w*_tokens")
_NO_USAGE = re.compile(r"max|limit|remaining|quota|budget")
"""Matches the name of a limit, which is no count of tokens used."""
_NUMBER = re.compile(r"\s*(\d{1,20}|\d{1,3}(?:[,_]\d{3}){1,5})(\.\d*)?\s*")
_DEPTH = 4
"""Maximum depth of nested objects in which counts are looked for."""


@dataclass(frozen=True)
class Counts:
    """The token counts of a reply.

    Attributes:
        sent: Tokens sent.
        answered: Tokens answered.
        total: Tokens in total, 0 if the reply has no such count.
        unsure: Sides without a count that is a whole number. Their real number of tokens may be
            larger than the one here.
    """

    sent: int = 0
    answered: int = 0
    total: int = 0
    unsure: frozenset[Side] = frozenset()

    @property
    def nothing(self) -> bool:
        """Return whether the reply counts no tokens at all."""
        return len(self.unsure) == 2 and not (self.sent or self.answered or self.total)

    @property
    def largest(self) -> int:
        """The largest number of tokens that the counts state."""
        return max(self.sent + self.answered, self.total)


def number_in(value: object) -> float | None:
    """Return a finite number of 0 or more, which may be written as text; None for other values."""
    if isinstance(value, str):
        number = _NUMBER.fullmatch(value)
        value = number and float(re.sub("[,_]", "", value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 and value != math.inf else None


def count_in(value: object) -> int | None:
    """Return a count of tokens, rounded up; None for a value that is none."""
    number = number_in(value)
    return None if number is None else math.ceil(number)


def read_counts(usage: object, apart: Sequence[str] = (), hints: object = None) -> Counts:
    """Return the token counts of a reply.

    Args:
        usage: The object with the counts, or a list of several.
        apart: Names of counts of tokens sent that the other counts do not include.
        hints: Further objects. Their counts can raise the result, but a side that only they count
            remains unsure.
    """
    sides: dict[Side, list[int]] = {"input": [], "output": []}  # counts of a whole side
    separate: dict[str, list[int]] = {}  # counts named in ``apart``
    parts: dict[tuple[Side, str], int] = {}  # the largest count of each part of a side
    unsure: set[Side] = set()
    total = 0
    # a side is sure if ``usage`` counts it, and in whole numbers alone
    for name, _, value in _items(usage):
        if value is not None and (name in apart or name in _SIDES):
            side: Side = "input" if name in apart else _SIDES[name]
            counts = separate.setdefault(name, []) if name in apart else sides[side]
            count = count_in(value)
            counts.append(count or 0)
            if count is None or count != number_in(value):
                unsure.add(side)
    unsure |= {side for side, counts in sides.items() if not counts}
    # every count may raise the number of tokens
    for name, within, value in (*_items(usage), *_items(hints)):
        count = count_in(value)
        if count is None or name in apart or not name.endswith("_tokens"):
            continue
        if name in _SIDES:
            sides[_SIDES[name]].append(count)
        elif _TOTAL.fullmatch(name):
            total = max(total, count)
        elif not _NO_USAGE.search(name):
            side = "input" if _INPUT.search(f"{within} {name}") else "output"
            parts[side, name] = max(parts.get((side, name), 0), count)
    tokens = {side: max(counts, default=0) for side, counts in sides.items()}
    tokens["input"] += sum(map(max, separate.values()))
    # in a list, so that all parts are compared with their sides before any is added
    for larger, count in [(s, n) for (s, _), n in parts.items() if n > tokens[s]]:
        tokens[larger] += count
    return Counts(tokens["input"], tokens["output"], total, frozenset(unsure))


def _items(counts: object, within: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, str, Any]]:
    """Yield each field as its name, the names of the objects around it, and its value.

    Names are in snake case, and "tokens" replaces an ending such as "token_count".
    """
    if depth == 0:
        return
    if isinstance(counts, list):
        for item in counts:
            yield from _items(item, within, depth - 1)
    elif isinstance(counts, Mapping):
        for key, value in counts.items():
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key)[:80]).lower()
            name = re.sub(r"tokens?_count$", "tokens", snake)
            if isinstance(value, Mapping | list):
                yield from _items(value, f"{within} {name}", depth - 1)
            else:
                yield name, within, value
