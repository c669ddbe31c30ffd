"""Prices of calls, and the tokens that replies count, in the shapes of many servers.

Counts of one reply may contradict each other: some servers count thinking apart from
``completion_tokens``, in ``reasoning_tokens`` or in ``total_tokens`` alone, and bill it. A reply is
read as the most that its counts can mean together. The largest of several counts of one side is
taken. A part that is larger than its side was counted apart from it. A total above both sides holds
more.
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
"""Most tokens of one call that are believed; a larger count is a mistake, or a lie."""
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
    """The cost of attempts, and the part that no server confirmed: it may not have been charged."""

    cost: float = 0.0
    unconfirmed: float = 0.0

    def __add__(self, other: "Bill") -> "Bill":
        return Bill(self.cost + other.cost, self.unconfirmed + other.unconfirmed)


def whole(count: object) -> int | None:
    """Return a count of tokens; None for anything else that a server may send."""
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return count if 0 <= count <= MAX_TOKENS else None


@dataclass(frozen=True)
class Prices:
    """``per_call``, and ``input`` and ``output`` per ``tokens`` tokens, in ``currency``.

    What is not given is free; ``known`` says whether what is given can price a call.
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

        With one of the two token prices alone the other would pass as free.
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
_INPUT = re.compile(r"prompt|input|cache")
"""In the name of a part of what was sent; other parts are of what was answered."""
_TOTAL = re.compile(r"total_tokens|bill\w*_tokens")
_NO_USAGE = re.compile(r"max|limit|remaining|quota|budget")
_NUMBER = re.compile(r"\s*(\d{1,20}|\d{1,3}(?:[,_]\d{3}){1,5})(\.\d*)?\s*")
_DEPTH = 4
"""Objects within each other that are looked through."""


@dataclass(frozen=True)
class Counts:
    """The counts of a reply: tokens ``sent`` and ``answered``, and in ``total``.

    A side that is not counted, or not by a whole number, is ``unsure``: it may have any number of
    tokens from the one here on.
    """

    sent: int = 0
    answered: int = 0
    total: int = 0
    unsure: frozenset[Side] = frozenset()

    @property
    def nothing(self) -> bool:
        """Return whether no token is counted anywhere, and neither side is."""
        return len(self.unsure) == 2 and not (self.sent or self.answered or self.total)

    @property
    def largest(self) -> int:
        return max(self.sent + self.answered, self.total)


def number_in(value: object) -> float | None:
    """Return a number of 0 or more as a server may write it, as a number or as text, else None."""
    if isinstance(value, str):
        number = _NUMBER.fullmatch(value)
        value = number and float(re.sub("[,_]", "", value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 and value != math.inf else None


def count_in(value: object) -> int | None:
    """Return a count of tokens, a part of a token as a whole one; None for anything else."""
    number = number_in(value)
    return None if number is None else math.ceil(number)


def read_counts(usage: object, apart: Sequence[str] = (), hints: object = None) -> Counts:
    """Return what a reply counts.

    Args:
        usage: The object that counts, or several in a list.
        apart: Names of counts of tokens sent that are no part of the others.
        hints: What may count more, and never makes a side sure.
    """
    sides: dict[Side, list[int]] = {"input": [], "output": []}
    cached: dict[str, list[int]] = {}
    parts: dict[tuple[Side, str], int] = {}
    unsure: set[Side] = set()
    total = 0
    for name, _, value in _named(usage):
        if value is None or not (name in apart or name in _SIDES):
            continue
        count = count_in(value)
        (cached.setdefault(name, []) if name in apart else sides[_SIDES[name]]).append(count or 0)
        if count is None or count != number_in(value):
            unsure.add("input" if name in apart else _SIDES[name])
    unsure |= {side for side, counts in sides.items() if not counts}
    for name, within, value in (*_named(usage), *_named(hints)):
        count = count_in(value)
        if count is None or name in apart or not name.endswith("_tokens"):
            continue
        if name in _SIDES:
            sides[_SIDES[name]].append(count)
        elif _TOTAL.fullmatch(name):
            total = max(total, count)
        elif not _NO_USAGE.search(name):
            side: Side = "input" if _INPUT.search(f"{within} {name}") else "output"
            parts[side, name] = max(parts.get((side, name), 0), count)
    tokens = {side: max(counts, default=0) for side, counts in sides.items()}
    tokens["input"] += sum(map(max, cached.values()))
    # all are compared before any is added
    for side, count in [(s, n) for (s, _), n in parts.items() if n > tokens[s]]:
        tokens[side] += count
    return Counts(tokens["input"], tokens["output"], total, frozenset(unsure))


def _named(counts: object, within: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, str, Any]]:
    """Yield every value in an object with its name, and those that it lies within, in snake case
    and without an ending "_count"."""
    if depth == 0:
        return
    if isinstance(counts, list):
        for one in counts:
            yield from _named(one, within, depth - 1)
    elif isinstance(counts, Mapping):
        for key, value in counts.items():
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key)[:80]).lower()
            name = re.sub(r"tokens?_count$", "tokens", snake)
            if isinstance(value, Mapping | list):
                yield from _named(value, f"{within} {name}", depth - 1)
            else:
                yield name, within, value
