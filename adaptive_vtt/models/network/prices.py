"""What calls cost."""

import re
from dataclasses import dataclass, fields, replace
from typing import Annotated

from ...errors import InputError
from ...utils.figures import USD
from ...utils.options import Option, check_options

MAX_TOKENS = 10_000_000
"""Most tokens of one call that are believed; a larger count is a mistake, or a lie."""
CURRENCY = "^[A-Z]{3}$"


@dataclass(frozen=True)
class Usage:
    """Tokens of one attempt, as the server counts them; an image's tokens are input.

    Raises InputError for counts that are no whole numbers of 0 or more.
    """

    input: int = 0
    output: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            count = getattr(self, field.name)
            if whole(count) is None:
                raise InputError(
                    f"{field.name} tokens: expected a whole number from 0 to {MAX_TOKENS}, got "
                    f"{count!r:.40}"
                )

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True)
class Bill:
    """What attempts cost, and the part of it that no server confirmed: it may not have been
    charged."""

    cost: float = 0.0
    unconfirmed: float = 0.0

    def __add__(self, other: "Bill") -> "Bill":
        return Bill(self.cost + other.cost, self.unconfirmed + other.unconfirmed)


def whole(count: object) -> int | None:
    """A count of tokens as a server may tell it; None for anything else, which counts nothing."""
    counts = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_TOKENS
    return count if counts else None  # type: ignore[return-value]


@dataclass(frozen=True)
class Prices:
    """``per_call``, and ``input`` and ``output`` per ``tokens`` tokens, in ``currency``.

    What is not given is free; ``known`` says whether what is given can price a call.
    """

    per_call: Annotated[float | None, Option("price of a call", name="price_per_call", ge=0)] = None
    input: Annotated[
        float | None, Option("price of price_tokens tokens sent", name="price_input", ge=0)
    ] = None
    output: Annotated[
        float | None, Option("price of price_tokens tokens answered", name="price_output", ge=0)
    ] = None
    tokens: Annotated[int, Option("tokens the prices are for", name="price_tokens", ge=1)] = (
        1_000_000
    )
    currency: Annotated[
        str, Option("of prices and caps, as ISO 4217 calls it (EUR)", pattern=CURRENCY)
    ] = USD

    def __post_init__(self) -> None:
        check_options(Prices, vars(self))
        if not re.fullmatch(CURRENCY, self.currency):
            raise InputError(
                f"price currency: expected three capitals, as in 'EUR', got {self.currency!r}"
            )

    @property
    def known(self) -> bool:
        """A price per call, or prices of both input and output tokens, are given.

        With one of the two token prices alone the other would pass as free.
        """
        given = (self.input is not None, self.output is not None)
        return all(given) or (self.per_call is not None and not any(given))

    def times(self, factor: float) -> "Prices":
        """These prices at a rate: half of them, say, in batches."""
        prices = {name: getattr(self, name) for name in ("per_call", "input", "output")}
        return replace(self, **{n: p * factor for n, p in prices.items() if p is not None})

    def cost(self, usage: Usage) -> float:
        """What one billed attempt with this usage costs."""
        tokens = usage.input * (self.input or 0.0) + usage.output * (self.output or 0.0)
        return (self.per_call or 0.0) + tokens / self.tokens
