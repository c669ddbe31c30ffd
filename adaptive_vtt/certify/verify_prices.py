"""What each draw was expected to cost anew, from what the draws before it sent and did cost.

Code of its own, which shares nothing with ``engine.prices``, whose docstring is its reference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import JournalError
from ..journal.rows import CallRow, DrawRow

PRIOR = 4.0
MAX_RATIO = 8.0
AGREE = 1e-6
"""Relative: fits on two machines differ by rounding."""


def check_prices(
    guess: Mapping[str, float] | None, draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> None:
    """Raises JournalError naming the first draw that says another expected cost than the answers
    that it knew come to, or that knew one that is not there.

    ``guess``: the settings' ``prices``, None where proposals did not go by them.
    """
    if guess is None:
        return
    costs = {call.call: call.cost for call in calls}
    table, known = _Table(guess), 0
    for draw in draws:
        for earlier in draws[known : draw.learned]:
            if earlier.call not in costs:
                raise JournalError(
                    f"verify: draw {draw.draw} knew the answer to draw {earlier.draw}, which has "
                    "none"
                )
            table.book(_sent(earlier), costs[earlier.call])
        known = max(known, draw.learned)
        expected, told = table.expected(_sent(draw)), draw.why.get("expected_cost")
        if not isinstance(told, float) or not abs(told - expected) <= AGREE * expected:
            raise JournalError(
                f"verify: draw {draw.draw} should be expected to cost {expected:g}, got {told}"
            )


class _Table:
    """The normal equations of all costs booked, and the sums of those and of the models asked."""

    def __init__(self, guess: Mapping[str, float]) -> None:
        first = [guess["call"], guess["pixels"], guess["characters"]]
        self.left = [[PRIOR * (i == j) for j in range(3)] for i in range(3)]
        self.right = [PRIOR * value for value in first]
        self.money, self.models = PRIOR * sum(first), PRIOR

    def expected(self, sent: Sequence[float]) -> float:
        fit = np.linalg.solve(np.array(self.left), np.array(self.right))
        share, mean = sent[0], self.money / self.models
        plain = sum(b * x for b, x in zip(fit.tolist(), sent, strict=True)) / share
        return share * max(mean / MAX_RATIO, min(plain, mean * MAX_RATIO))

    def book(self, sent: Sequence[float], cost: float) -> None:
        usual = self.expected(sent)
        cost = max(usual / MAX_RATIO, min(cost, usual * MAX_RATIO))
        for i, x in enumerate(sent):
            self.right[i] += cost * x
            for j, y in enumerate(sent):
                self.left[i][j] += x * y
        self.money, self.models = self.money + cost, self.models + sent[0]


def _sent(draw: DrawRow) -> list[float]:
    """Models asked, and theirs of pixels and characters; raises JournalError where a draw does not
    say."""
    told: list[Any] = [draw.why.get("models", 1.0), *map(draw.why.get, ("pixels", "characters"))]
    if not all(isinstance(value, float | int) and 0 <= value < np.inf for value in told):
        raise JournalError(f"verify: draw {draw.draw} does not say what its call sends")
    if not told[0] > 0:
        raise JournalError(f"verify: draw {draw.draw} asks no model")
    share, pixels, characters = told
    return [share, share * pixels, share * characters]
