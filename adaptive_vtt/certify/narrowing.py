"""What narrower intervals will take, if they narrow on as those of an audit have so far.

With d of T calls drawn, draws without replacement are worth D = d / (1 - d / T). While bets are
capped a half-width w falls with 1 / D, later with 1 / sqrt(D) (``forecast``); so D goes with
w^-exponent, and the exponent, in [1, 2], is read off the calls since the widest interval was twice
as wide. It is a guess, and certifies nothing.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..types import Floats

NARROW = 0.25
"""Before the widest interval is no wider than this, half of what it was at first, how it narrows on
cannot be told."""


@dataclass(frozen=True)
class Narrowing:
    """After ``calls`` of ``total`` the widest interval is within +-``widest``; see the module."""

    calls: int
    total: int
    widest: float
    exponent: float

    @classmethod
    def of(cls, widths: Floats, total: int) -> "Narrowing | None":
        """``widths`` (T + 1,): the widest half-width after 0 ... T calls. None where it has hardly
        narrowed, or every question was asked."""
        calls, now = len(widths) - 1, float(widths[-1])
        if calls >= total or not 0 < now <= NARROW:
            return None
        first = int(np.argmax(widths <= 2 * now))
        worth = [_worth(n, total) for n in (first, calls)]
        fallen = math.log(float(widths[first]) / now)
        exponent = math.log(worth[1] / worth[0]) / fallen if fallen > 0 and worth[0] > 0 else 2.0
        return cls(calls, total, now, min(max(exponent, 1.0), 2.0))

    def calls_to(self, width: float) -> int:
        """Until the widest is within +-``width``, those made included; at most ``total``."""
        worth = _worth(self.calls, self.total) * (self.widest / width) ** self.exponent
        return math.ceil(worth / (1 + worth / self.total) - 1e-9)


def _worth(calls: int, total: int) -> float:
    """As many calls drawn with replacement tell as much."""
    return calls / (1 - calls / total)
