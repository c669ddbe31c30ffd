"""Decisions: which side of a limit a rate lies on, and which of two models is better.

**One limit.** Bets against the limit u itself decide the side. While a rate is at most u, the
wealth K+(u) of bets on larger rates is a nonnegative supermartingale that starts at 1. While the
rate is at least u, so is K-(u). "Above" is decided when K+(u) reaches 1 / alpha_k, and "at most"
when K-(u) does. Each has the full alpha_k, as only one of the two can be wrong.

**Many targets.** Over more than two targets, each direction gets half of alpha and is stepped down
as in Holm (Scandinavian Journal of Statistics 1979). Target k passes at

    (alpha / 2) w_k / (the sum of w_j over targets not decided in this direction)

Before the first error, no target whose rate truly lies on the other side was decided in this
direction. So these targets have at least their shares of alpha / 2, and Ville's inequality bounds
the error of each. Without halving, step-down would not be valid: every target has a wrong
direction, and until it is decided rightly it may be decided wrongly.

**With intervals.** Where intervals are asked for too, one alpha_k pays for both. "Above" is decided
at 1 / (theta alpha_k) and "at most" at 1 / ((1 - theta) alpha_k), and nothing is stepped down.
There the interval's bets, theta K+ + (1 - theta) K-, exclude the limit as well. With full alpha_k
and step-down, intervals and decisions would each hold, but the chance that either is wrong would be
up to twice as large.

**Two models.** Which model is better is the side of its pivot that a target's rate lies on. The
rate is that of pairs, y = (1 + L_A - L_B) / 2 with the pivot 1/2, or that of model B alone with
model A's known rate as pivot. The difference delta = R_A - R_B is ``scale`` times the rate's
distance from the pivot. A target is "better" (B loses less) or "worse" once its whole interval lies
on one side. It is "within" once its whole interval lies within ``margin`` of 0. All three follow
from the interval, so they hold at every moment that it does.

**A claim.** A claim delta >= ``at_least``, registered before the first draw, is decided by bets
against that difference, each way at the target's full alpha. Only one of "holds" and "fails" can be
wrong. A claim takes fewer questions than a side of the interval.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..types import Bools, Floats

if TYPE_CHECKING:
    from ..journal.facts import VersusFacts


FEW = 2
"""Most targets that are decided without step-down, which saves nothing for so few."""
MIN_AIM, MAX_AIM = 0.0025, 0.1
"""Least half-width that bets aim at, about two grid cells, and the largest."""
EDGE = 1e-9
"""Largest difference from 0, or from the margin, that counts as rounding. An interval often ends at
a pivot, since pivots lie on the grid."""
BETTER, WORSE, WITHIN, OPEN = "better", "worse", "within", "open"
HOLDS, FAILS = "holds", "fails"
ALIKE = 0.5
"""Loss of a pair in which both models have the same loss."""


class Decisions:
    """Decided sides of K targets.

    Args:
        limit: The limit of all targets, or one each (K,).
        alpha: (K,) probability of deciding each target wrongly.
        shared: Whether the sum of ``alpha`` bounds the probability of any error, and not each its
            own error alone.
        theta: (K,) weight of bets on larger rates where ``alpha`` pays for intervals too; None
            where it does not.

    Attributes:
        above: (K,) which targets are decided to lie above the limit.
        below: (K,) which are decided to lie at most at the limit.
        most: (2 x K) the largest log K+ and log K- at the limit so far.
    """

    def __init__(
        self, limit: float | Floats, alpha: Floats, shared: bool, theta: Floats | None = None
    ) -> None:
        count = len(alpha)
        self.limit, self.alpha = limit, alpha
        self.above, self.below = np.zeros((2, count), dtype=np.bool_)
        self.most = np.zeros((2, count))
        self._steps = shared and count > FEW and theta is None
        shares = np.ones((2, count)) if theta is None else np.stack([theta, 1 - theta])
        self._each = shares * alpha
        self._now = np.zeros((2, count))

    @property
    def decided(self) -> Bools:
        """(K,): which targets are decided."""
        return self.above | self.below

    def play(self, up: Floats, down: Floats) -> None:
        """Add a draw's change of log K+ and log K- at the limit, (K,) each."""
        self._now += (up, down)
        self.most = np.maximum(self.most, self._now)

    def settle(self, least: Floats, most: Floats) -> None:
        """Decide targets; ``least`` and ``most`` (K,) bound the rates still possible."""
        self._mark(least > self.limit, most <= self.limit)
        count = -1
        while self.decided.sum() > count:  # a decided target leaves its alpha to the others
            count = int(self.decided.sum())
            self._mark(*(self.most >= self.needed()))

    def lacking(self) -> Floats:
        """Return the share of evidence that each nearer decision lacks, (K,) in [0, 1]."""
        with np.errstate(invalid="ignore"):
            gathered = np.nan_to_num(self.most / self.needed()).max(axis=0)
        return np.where(self.decided, 0.0, 1 - np.clip(gathered, 0, 1))

    def sides(self) -> list[str]:
        """Return "above" the limit, "below" (at most at) it, or "open" for each target."""
        return np.select([self.above, self.below], ["above", "below"], OPEN).tolist()

    def needed(self) -> Floats:
        """Return log K+ and log K- at which each target is decided now, 2 x K."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self._steps:
                return np.log(1 / self._each)
            open_ = np.stack([(self.alpha * ~done).sum() for done in (self.above, self.below)])
            half = self.alpha.sum() / 2
            return np.log(open_[:, None] / (half * self.alpha))

    def _mark(self, above: Bools, below: Bools) -> None:
        """Decide open targets; a decided target stays decided."""
        open_ = ~self.decided
        self.above |= above & open_
        self.below |= below & open_ & ~above


@dataclass(frozen=True)
class Comparison:
    """Comparison of two models, as the module's docstring defines it.

    Attributes:
        pivot: (K,) or (1,) rate at which both models are equally good.
        scale: delta per distance of the rate from the pivot.
        margin: Largest |delta| in [0, 1) that counts as no difference.
        stops: Whether the audit ends once all targets are decided, and not by other rules alone.
        at_least: Claimed least delta in (-1, 1); None: no claim, intervals decide.
    """

    pivot: tuple[float, ...] = (0.5,)
    scale: float = 2.0
    margin: float = 0.0
    stops: bool = True
    at_least: float | None = None

    @classmethod
    def of(cls, facts: "VersusFacts") -> "Comparison":
        """Return the comparison of a journal."""
        return cls(facts.pivot, facts.scale, facts.margin, at_least=facts.at_least)

    def describe(self) -> dict[str, object]:
        """Return the comparison as the journal keeps it."""
        claim = {} if self.at_least is None else {"at_least": self.at_least}
        return {"pivot": [*self.pivot], "scale": self.scale, "margin": self.margin, **claim}

    @property
    def goals(self) -> Floats:
        """(K,) or (1,): rates whose side is to be decided, those of the claim or the pivots.

        A delta equal to ``at_least`` fulfils the claim, so the rates lie ``EDGE`` below it.
        """
        claimed = 0.0 if self.at_least is None else self.at_least - EDGE
        return np.array(self.pivot) + claimed / self.scale

    def differences(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest delta of intervals of rates, (K,) each."""
        ends = np.sort(self.scale * (np.stack([lower, upper]) - np.array(self.pivot)), axis=0)
        return ends[0], ends[1]

    def at(self, k: int) -> tuple[float, float]:
        """Return the pivot of target ``k``, and ``scale``."""
        return self.pivot[k % len(self.pivot)], self.scale

    def decisions(self, lower: Floats, upper: Floats) -> list[str]:
        """Return "better", "worse", "within" or "open" for each interval."""
        least, most = self.differences(lower, upper)
        inside = np.maximum(-least, most) <= self.margin + EDGE
        sides = [least > EDGE, most < -EDGE, inside]
        return np.select(sides, [BETTER, WORSE, WITHIN], OPEN).tolist()

    def claimed(self, claims: Decisions) -> list[str]:
        """Return "holds", "fails" or "open" for the claim about each target."""
        names = (HOLDS, FAILS) if self.scale > 0 else (FAILS, HOLDS)
        return np.select([claims.above, claims.below], names, OPEN).tolist()

    def decided(self, lower: Floats, upper: Floats) -> Bools:
        """Return which intervals decide, (K,)."""
        return np.array(self.decisions(lower, upper)) != OPEN

    def aims(self, centre: Floats) -> Floats:
        """Return the half-widths (K,) at which targets of these rates (K,) would be decided."""
        away = np.abs(centre - self.goals)
        inside = self.margin / abs(self.scale) - away
        return np.clip(np.maximum(away, inside), MIN_AIM, MAX_AIM)
