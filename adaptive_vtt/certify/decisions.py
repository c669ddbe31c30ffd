"""What is decided of a rate: on which side of a limit it lies, and which of two models is better.

A side is decided by bets against the limit itself.

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

Where intervals are asked for, too, one alpha_k pays for both: "above" is decided at 1 / (theta
alpha_k) and "at most" at 1 / ((1 - theta) alpha_k), at which the interval's bets, theta K+ +
(1 - theta) K-, exclude the limit as well, and nothing steps down. At
alpha_k and with step-down, intervals and decisions each hold, but one of both errs with up to twice
that probability.

Which of two models is better is the side of its pivot that a target's rate lies on. The rate is
that of pairs, y = (1 + L_A - L_B) / 2, whose pivot is 1/2, or model B's alone, whose pivot is the
known rate of model A. The difference delta = R_A - R_B is ``scale`` times the rate's distance from
the pivot. A target is decided "better" (B loses less) or "worse" once its whole interval lies on
one side, and "within" once no part of it lies further than ``margin`` from 0. All three follow from
the interval alone, so they hold whenever it does, at every moment.

A claim delta >= ``at_least``, registered before the first draw, is decided by bets against that
very difference instead, each way at the target's full alpha: whatever delta is, only one of "holds"
and "fails" can be wrong. It takes fewer questions than the interval's side.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..types import Bools, Floats

if TYPE_CHECKING:
    from ..journal.facts import VersusFacts


FEW = 2
"""Targets up to which an even half each way would gain nothing."""


class Decisions:
    """Which of K targets are ``above`` the ``limit``, and which at most (``below``) it, (K,) each.

    ``alpha`` (K,): the probability with which each may be decided wrongly; ``shared``: whether
    their sum is the probability of any error at all, rather than each its own. ``limit``: one for
    all, or (K,). ``theta`` (K,): where ``alpha`` pays for the targets' intervals, too, the weight
    of their bets on larger rates.
    """

    def __init__(
        self, limit: float | Floats, alpha: Floats, shared: bool, theta: Floats | None = None
    ) -> None:
        count = len(alpha)
        self.limit = limit
        self.alpha = alpha
        self.above = np.zeros(count, dtype=np.bool_)
        self.below = np.zeros(count, dtype=np.bool_)
        self.most = np.zeros((2, count))  # the largest log K+ and log K- at the limit so far
        self._steps = shared and count > FEW and theta is None
        shares = np.ones((2, count)) if theta is None else np.stack([theta, 1 - theta])
        self._each = shares * alpha
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
        count = -1
        while count != (count := int(self.decided.sum())):
            needed = self.needed()
            self._mark(*(self.most >= needed))

    def lacking(self) -> Floats:
        """(K,) in [0, 1]: the share of the evidence that the nearer decision still lacks."""
        with np.errstate(invalid="ignore"):
            there = np.nan_to_num(self.most / self.needed()).max(axis=0)
        return np.where(self.decided, 0.0, 1 - np.clip(there, 0, 1))

    def sides(self) -> list[str]:
        """Per target "above" the limit, "below" (at most at) it, or "open"."""
        return np.select([self.above, self.below], ["above", "below"], OPEN).tolist()

    def needed(self) -> Floats:
        """2 x K: log K+ and log K- at which a target passes now."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self._steps:
                return np.log(1 / self._each)
            open_ = np.stack([(self.alpha * ~done).sum() for done in (self.above, self.below)])
            half = self.alpha.sum() / 2
            return np.log(open_[:, None] / (half * self.alpha))

    def _mark(self, above: Bools, below: Bools) -> None:
        """A target that was decided stays so."""
        open_ = ~self.decided
        self.above |= above & open_
        self.below |= below & open_ & ~above


MIN_AIM = 0.0025
"""Bets aim at least this far from the expected rate: about two grid cells."""
MAX_AIM = 0.1
"""Bets aim no further than this."""
EDGE = 1e-9
"""Differences nearer to 0, or to the margin, than this are rounding: an interval often ends at a
pivot, which lies on the grid."""
BETTER, WORSE, WITHIN, OPEN = "better", "worse", "within", "open"
HOLDS, FAILS = "holds", "fails"
ALIKE = 0.5
"""The loss of a pair where both models lost alike."""


@dataclass(frozen=True)
class Comparison:
    """``pivot`` (K,) or (1,): the rate at which both models are alike; ``scale``: see the module;
    ``margin``: in [0, 1), on the scale of delta; 0: differences of any size matter. ``stops``:
    whether an audit ends once all are decided; False: its other rules alone end it. ``at_least``:
    in (-1, 1), the delta that is claimed to be reached; None: no claim, intervals decide."""

    pivot: tuple[float, ...] = (0.5,)
    scale: float = 2.0
    margin: float = 0.0
    stops: bool = True
    at_least: float | None = None

    @classmethod
    def of(cls, facts: "VersusFacts") -> "Comparison":
        """That of a journal."""
        return cls(facts.pivot, facts.scale, facts.margin, at_least=facts.at_least)

    def describe(self) -> dict[str, object]:
        """For the journal."""
        claim = {} if self.at_least is None else {"at_least": self.at_least}
        return {"pivot": [*self.pivot], "scale": self.scale, "margin": self.margin, **claim}

    @property
    def goals(self) -> Floats:
        """(K,) or (1,): the rates whose side is to be decided: of the claim, else the pivots. What
        reaches a claim exactly fulfils it, so they lie ``EDGE`` on its other side."""
        claimed = 0.0 if self.at_least is None else self.at_least - EDGE
        return np.array(self.pivot) + claimed / self.scale

    def differences(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """(K,) each: delta at least, and at most."""
        ends = np.sort(self.scale * (np.stack([lower, upper]) - np.array(self.pivot)), axis=0)
        return ends[0], ends[1]

    def at(self, k: int) -> tuple[float, float]:
        """The rate of target ``k`` at which both models are alike, and ``scale``."""
        return self.pivot[k % len(self.pivot)], self.scale

    def decisions(self, lower: Floats, upper: Floats) -> list[str]:
        """Per target "better", "worse", "within" or "open"."""
        least, most = self.differences(lower, upper)
        inside = np.maximum(-least, most) <= self.margin + EDGE
        sides = [least > EDGE, most < -EDGE, inside]
        return np.select(sides, [BETTER, WORSE, WITHIN], OPEN).tolist()

    def claimed(self, claims: Decisions) -> list[str]:
        """Per target whether the claim "holds", "fails" or is "open"."""
        names = (HOLDS, FAILS) if self.scale > 0 else (FAILS, HOLDS)
        return np.select([claims.above, claims.below], names, OPEN).tolist()

    def decided(self, lower: Floats, upper: Floats) -> Bools:
        """(K,)"""
        return np.array(self.decisions(lower, upper)) != OPEN

    def aims(self, centre: Floats) -> Floats:
        """(K,): the half-widths at which targets of these rates would be decided."""
        away = np.abs(centre - self.goals)
        inside = self.margin / abs(self.scale) - away
        return np.clip(np.maximum(away, inside), MIN_AIM, MAX_AIM)
