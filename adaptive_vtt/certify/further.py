"""How many draws an audit that has begun still takes: the one forecast of terminal and report.

It is that of the plan (``draws``, see ``forecast``), fed with what is known: the evidence that bets
have gathered against either end of an interval as narrow as wanted, of all such intervals the one
that is nearest; the variance and the range of recent pseudo-outcomes; and how often draws move
each target. Where strata are drawn first a draw moves few targets, so open ones wait for each
other: if they share the draws evenly, target k ends after max(r_k, sum_j min(r_j, r_k) / targets
per draw).

Of the r draws that one proposal would take, L that are left without replacement are worth r / (1 +
r/L).
"""

from collections.abc import Iterable, Sequence
from math import ceil, exp, floor, sqrt
from typing import NamedTuple

import numpy as np

from ..types import Bools, Floats
from .game import Game

KNOWN = 8
"""Draws that moved a target, before which nothing is forecast of it: its first guess of the
variance, ``Bets.prior``, counts as much."""
VARIANCE, REACH = 0.38, 0.42
"""What a variance and a range count for, chosen on 68 audits of the kinds of
``experiments.engine.forecasts``: less than in the formula, as the nearest of all intervals is
taken."""
NEAR = 0.2
"""Ends nearer than this share of the half-width to the estimate are taken to be this far."""
PLACES = 41
"""Intervals of the width wanted that are tried, from one end of what is possible to the other."""
SPREAD = 0.08
"""Variance of log(forecast / truth) where much is known."""
LUCK = 0.08
"""More of it, over the evidence that is lacking: the last bets are won by luck."""
FEW = 0.3
"""More of it, over the losses of the rarer kind that were seen, and one: of few, none knows the
variance."""
SURE = 1.5
"""Standard deviations from a forecast to either end of its range."""
MAX_DOUBT = 50.0
"""Log of a factor beyond which all that is left is the end: its exponential stays a number."""
MIN_EVIDENCE = 0.5
WIDE = 4
"""Ranges over a larger factor are given by their ends alone."""
TINY = 1e-12


class Range(NamedTuple):
    """Further calls: ``likely``, and, in four of five audits, from ``least`` to ``most``."""

    likely: int
    least: int
    most: int

    @property
    def wide(self) -> bool:
        """Whether it spans more than a factor ``WIDE``."""
        return self.most > WIDE * max(self.least, 1)

    def __str__(self) -> str:
        """As it stands before "more calls"."""
        if self.wide:
            return f"between {self.least:,} and {self.most:,}"
        return f"about {self.likely:,} ({self.least:,} to {self.most:,})"

    @property
    def short(self) -> str:
        """For a table."""
        ends = f"{self.least:,} to {self.most:,}"
        return ends if self.wide else f"{self.likely:,} ({ends})"

    def after(self, made: int) -> "Range":
        """With the calls that were made before."""
        return Range(self.likely + made, self.least + made, self.most + made)

    def times(self, factor: float) -> "Range":
        """Of draws that take ``factor`` calls each."""
        return Range(*(ceil(n * factor) for n in self))


NONE = Range(0, 0, 0)
COLUMNS = ("more_calls", "more_calls_least", "more_calls_most")
"""Of a result's targets."""


def draws(
    evidence: Floats, aim: "Floats | float", away: Floats, variance: float, reach: float
) -> Floats:
    """Draws that gather ``evidence``, on the scale of log wealth, against means ``away`` from the
    rate: by bets that aim at ``aim``, where pseudo-outcomes have this variance and bets this
    ``reach``, their range over the share of wealth that may be lost."""
    return np.asarray(evidence * (2 * variance / aim + reach) / away)


def longest(ranges: Iterable[Range | None]) -> Range | None:
    """Of an audit, by those of its targets; None where one of them is not known, or none given."""
    every = list(ranges)
    known = [each for each in every if each is not None]
    if not known or len(known) < len(every):
        return None
    return Range(*map(max, zip(*known, strict=True)))


def further(game: Game, left: int, half_width: float | None = None) -> list[Range | None]:
    """Draws until each target is done, of ``left`` that there are; None where too little is known.

    ``half_width``: until each interval is that narrow, in place of what the audit asks for.
    """
    count = len(game.sizes)
    needed, doubt = np.zeros(count), np.zeros(count)
    for k in range(count):
        if not game.sequences.emptied[k]:
            needed[k], doubt[k] = _Target(game, k, left).needed(half_width)
    unknown = np.isnan(needed)
    open_ = np.where(unknown, np.nanmax(needed, initial=0.0), needed)
    together = max(float((game.moved / np.maximum(game.ages, 1)).sum()), TINY)
    in_turn = [max(r, float(np.minimum(open_, r).sum()) / together) for r in open_.tolist()]
    return [
        None if unknown[k] else _range(min(r, left), float(doubt[k]), left)
        for k, r in enumerate(in_turn)
    ]


def in_calls(ranges: Sequence[Range | None], open_: Bools, per_draw: float) -> list[Range | None]:
    """Return the draws of ``ranges`` as calls, of which a draw takes ``per_draw``: None where they
    are not known, no calls where a target is not ``open_``."""
    return [
        NONE if not still else None if each is None or not each.most else each.times(per_draw)
        for each, still in zip(ranges, open_.tolist(), strict=True)
    ]


def _range(likely: float, doubt: float, left: int) -> Range:
    if likely == 0:
        return NONE
    reach = exp(min(SURE * doubt, MAX_DOUBT))
    ends = (likely, likely / reach, likely * reach)
    middle, least, most = (min(end, left) for end in ends)
    return Range(min(max(round(middle), 1), left), max(floor(least), 1), max(ceil(most), 1))


class _Target:
    """What is known of target ``k`` of a game with ``left`` draws."""

    def __init__(self, game: Game, k: int, left: int) -> None:
        sequences = game.sequences
        self.game, self.k = game, k
        self.ends = float(sequences.lower[k]), float(sequences.upper[k])
        theta = sequences.theta[k]
        with np.errstate(divide="ignore"):  # against the lower, and the upper end
            self.evidence = np.log(1 / (np.array([theta, 1 - theta]) * sequences.alpha[k]))
        self.variance = VARIANCE * float(game.foreseen[k] * sequences.stray[k])
        self.reach = REACH * float(game.reach[k]) / sequences.bets.cap
        answered = game.sizes[k] - game.waiting[k]
        until_all = game.waiting[k] * game.moved[k] / answered if answered else left
        self.left = max(min(until_all, left), 1.0)
        # where unanswered questions count both ways, what is bet on lies to either side
        gap = (game.most[k] - game.least[k]) / answered / 2 if answered else 0.0
        middle = float(np.clip(game.estimate[k], *self.ends))
        self.low, self.high = middle - gap, middle + gap
        rarer = min(game.least[k], answered - game.most[k])
        self.few = FEW / (1 + max(float(rarer), 0.0))
        kept = sequences.kept(k)
        self.means, self.rising, self.falling = kept

    def needed(self, half_width: float | None) -> tuple[float, float]:
        """Draws, and the standard deviation of their logarithm; (nan, 0) where they are unknown."""
        rules = self.game.rules
        goals: list[tuple[float, float, float]] = []
        if half_width is not None or not (rules.only_sides or rules.compare):
            goals.append(self._narrow(half_width or rules.aim))
        if half_width is None and self.game.decisions is not None:
            goals.append(self._decided())
        elif half_width is None and rules.compare is not None:
            goals.append(self._compared())
        draws_, lacking, away = max(goals)
        if draws_ == 0:
            return 0.0, 0.0
        if self.game.moved[self.k] <= KNOWN or not len(self.means) or away <= 0:
            return np.nan, 0.0
        luck = LUCK / max(lacking, MIN_EVIDENCE)
        worth = draws_ / (1 + draws_ / self.left) if np.isfinite(draws_) else self.left
        return worth, sqrt(SPREAD + luck + self.few + 4 / away**2)

    def _narrow(self, wanted: float) -> tuple[float, float, float]:
        """Until the interval reaches ``wanted`` to either side."""
        lower, upper = self.ends
        if upper - lower <= 2 * wanted:
            return 0.0, 0.0, np.inf
        if not len(self.means):
            return np.inf, float(self.evidence.max()), np.inf
        low = np.linspace(lower, upper - 2 * wanted, PLACES)
        return (*self._nearest(low, low + 2 * wanted, wanted), np.inf)

    def _nearest(self, low: Floats, high: Floats, aim: float) -> tuple[float, float]:
        """Of the intervals from ``low`` to ``high`` the one that takes the fewest draws: those, and
        the evidence that is lacking."""
        against = np.stack(
            [np.interp(low, self.means, self.rising), np.interp(high, self.means, self.falling)]
        )
        inside = np.stack([low > self.ends[0] + TINY, high < self.ends[1] - TINY])
        lacking = np.where(inside, np.maximum(self.evidence[:, None] - against, 0), 0.0)
        away = np.maximum(np.stack([self.low - low, high - self.high]), 0)
        if self.low == self.high:  # else an end that lies within what is unanswered stays
            away = np.maximum(away, NEAR * aim)
        draws_ = self._draws(lacking, aim, away)
        place = int(draws_.max(axis=0).argmin())
        side = int(draws_[:, place].argmax())
        return float(draws_[side, place]), float(lacking[side, place])

    def _draws(self, lacking: Floats, aim: float, away: Floats) -> Floats:
        needed = draws(lacking, aim, np.maximum(away, TINY), self.variance, self.reach)
        return np.where(lacking > 0, needed, 0.0)

    def _decided(self) -> tuple[float, float, float]:
        """Until bets decide on which side of its limit it lies; and how many standard deviations
        from the limit the estimate is, less the one that it takes to tell anything."""
        made, k = self.game.decisions, self.k
        if made is None or made.decided[k]:
            return 0.0, 0.0, np.inf
        limit = float(np.broadcast_to(made.limit, made.alpha.shape)[k])
        side = 0 if (self.low + self.high) / 2 > limit else 1
        lacking = float((made.needed() - made.most)[side, k])
        return self._beyond(limit, max(lacking, TINY))

    def _compared(self) -> tuple[float, float, float]:
        """Until the interval lies on one side of the pivot, or within the margin."""
        compare, k = self.game.rules.compare, self.k
        ends = np.array([np.full(self.game.sizes.shape, end) for end in self.ends])
        if compare is None or compare.decided(*ends)[k]:
            return 0.0, 0.0, np.inf
        goal = float(np.broadcast_to(compare.goals, self.game.sizes.shape)[k])
        margin = compare.margin / abs(compare.scale)
        if abs((self.low + self.high) / 2 - goal) < margin / 2:
            low, high = np.array([goal - margin]), np.array([goal + margin])
            return (*self._nearest(low, high, margin), np.inf)
        side = 0 if (self.low + self.high) / 2 > goal else 1
        against = (self.rising, self.falling)[side]
        there = np.interp(goal, self.means, against) if len(self.means) else 0.0
        return self._beyond(goal, max(float(self.evidence[side] - there), TINY))

    def _beyond(self, limit: float, lacking: float) -> tuple[float, float, float]:
        """Until ``limit`` is excluded, for lack of so much evidence."""
        away = max(self.low - limit, limit - self.high, 0.0)
        deviation = sqrt(max(float(self.game.sequences.mean_variance[self.k]), TINY))
        aim = float(self.game.sequences.aims[self.k])
        needed = self._draws(np.array(lacking), aim, np.array(away))
        return float(needed), lacking, max(away / deviation - 1, 0.0)
