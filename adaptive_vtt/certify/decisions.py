"""On which side of its limit every target's rate lies: decided by bets against the limit itself.

While a rate is at most the limit u, the wealth K+(u) that bets on larger rates have made of 1 is a
nonnegative supermartingale, and so is K-(u) while the rate is at least u. "Above" is decided when
K+(u) reaches 1 / alpha_k, "at most" when K-(u) does: each at full alpha_k, as for a given rate only
one of the two can be an error.

Over more than two targets alpha is halved between the directions and stepped down within each, as
Holm does (Scandinavian Journal of Statistics 1979): target k passes at
(alpha / 2) w_k / (the sum of w_j over targets not decided in this direction). Of the targets whose
rate truly is on the other side none was decided before the first error, so that they have at least
their shares of alpha / 2; Ville's inequality bounds each. Without halving, step-down would not be
valid: every target has one true hypothesis, however many others are decided, and a target that was
decided rightly has had its chance to err before.

Where intervals are asked for, too, one alpha_k pays for both: a side is decided at 2 / alpha_k, at
which the interval's bets, (K+ + K-) / 2, exclude the limit as well, and nothing steps down. At
alpha_k and with step-down, intervals and decisions each hold, but one of both errs with up to twice
that probability.
"""

import numpy as np

from ..types import Bools, Floats

FEW = 2
"""Targets up to which an even half each way would gain nothing."""


class Decisions:
    """Which of K targets are ``above`` the ``limit``, and which at most (``below``) it, (K,) each.

    ``alpha`` (K,): the probability with which each may be decided wrongly; ``shared``: whether
    their sum is the probability of any error at all, rather than each its own. ``limit``: one for
    all, or (K,). ``beside``: whether ``alpha`` pays for the targets' intervals, too.
    """

    def __init__(
        self, limit: float | Floats, alpha: Floats, shared: bool, beside: bool = False
    ) -> None:
        count = len(alpha)
        self.limit = limit
        self.alpha = alpha
        self.above = np.zeros(count, dtype=np.bool_)
        self.below = np.zeros(count, dtype=np.bool_)
        self.most = np.zeros((2, count))  # the largest log K+ and log K- at the limit so far
        self._steps = shared and count > FEW and not beside
        self._each = alpha / 2 if beside else alpha
        self._now = np.zeros((2, count))

    @property
    def decided(self) -> Bools:
        """(K,)"""
        return self.above | self.below

    def play(self, up: Floats, down: Floats) -> None:
        """What a draw adds to log K+ and log K- at the limit."""
        self._now += (up, down)
        self.most = np.maximum(self.most, self._now)

    def settle(self, least: Floats, most: Floats) -> None:
        """Decides what can be; ``least`` and ``most`` are what a finite pool still allows."""
        self._mark(least > self.limit, most <= self.limit)
        found = -1
        while found != (found := int(self.decided.sum())):
            needed = self.needed()
            self._mark(*(self.most >= needed))

    def lacking(self) -> Floats:
        """(K,) in [0, 1]: the share of the evidence that the nearer decision still lacks."""
        with np.errstate(invalid="ignore"):
            there = np.nan_to_num(self.most / self.needed()).max(axis=0)
        return np.where(self.decided, 0.0, 1 - np.clip(there, 0, 1))

    def side(self, k: int) -> str:
        """ "above" the limit or "below" (at most at) it; "open" while target ``k`` is undecided."""
        if self.above[k]:
            return "above"
        return "below" if self.below[k] else "open"

    def rows(self) -> list[dict[str, str]]:
        """Per target which side was found."""
        return [{"decided": self.side(k)} for k in range(len(self.alpha))]

    def needed(self) -> Floats:
        """2 x K: log K+ and log K- at which a target passes now."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self._steps:
                return np.log(1 / np.stack([self._each, self._each]))
            open_ = np.stack([(self.alpha * ~done).sum() for done in (self.above, self.below)])
            half = self.alpha.sum() / 2
            return np.log(open_[:, None] / (half * self.alpha))

    def _mark(self, above: Bools, below: Bools) -> None:
        """A target that was decided stays so."""
        open_ = ~self.decided
        self.above |= above & open_
        self.below |= below & open_ & ~above
