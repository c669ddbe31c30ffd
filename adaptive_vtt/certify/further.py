"""Forecast how many more draws a running audit takes, for terminal and report.

The formula is that of ``audit.forecast`` (``draws``), with what a running audit knows:

- the evidence that bets have gathered against the ends of an interval as narrow as wanted, for the
  interval that is nearest;
- the variance and the range of recent pseudo-outcomes;
- how often draws move each target.

Where draws choose a stratum first, each moves few targets, so open targets wait for each other. If
they share the draws evenly, target k ends after max(r_k, sum_j min(r_j, r_k) / targets per draw).

Draws are made without replacement. r draws with replacement equal r / (1 + r/L) of L unseen calls.
"""

from collections.abc import Iterable, Sequence
from math import ceil, exp, floor, sqrt
from typing import NamedTuple

import numpy as np

from ..types import Bools, Floats
from .game import Game

KNOWN = 8
"""Draws that must have moved a target before anything is forecast for it. The first guess of its
variance counts as many (``Bets.prior``)."""
VARIANCE, REACH = 0.38, 0.42
"""Factors of variance and range, fitted on 68 audits as in ``experiments.engine.forecasts``. They
are below 1 because the forecast takes the nearest of all intervals."""
NEAR = 0.2
"""Least distance of an interval's end from the estimate, as a share of the half-width."""
PLACES = 41
"""Number of intervals of the wanted width that are tried, evenly over what is possible."""
SPREAD = 0.08
"""Variance of log(forecast / truth) with much evidence."""
LUCK = 0.08
"""Additional variance, divided by the lacking evidence: luck decides the last bets."""
FEW = 0.3
"""Additional variance, divided by 1 + the losses seen of the rarer kind (0 or 1). With few of them
the variance of the losses is uncertain."""
SURE = 1.5
"""Standard deviations from a forecast to either end of its range."""
MAX_DOUBT = 50.0
"""Largest log of the factor from a forecast to an end of its range, so that exp is finite."""
MIN_EVIDENCE = 0.5
"""Least lacking evidence that ``LUCK`` is divided by."""
WIDE = 4
"""Factor between the ends of a range above which no likely value is printed."""
TINY = 1e-12
"""Least divisor, and least distance of an interval's end from the current one."""


class Range(NamedTuple):
    """Forecast of further calls: the ``likely`` number, and the range of four audits in five."""

    likely: int
    least: int
    most: int

    @property
    def wide(self) -> bool:
        """True if its ends differ by more than the factor ``WIDE``."""
        return self.most > WIDE * max(self.least, 1)

    def __str__(self) -> str:
        """Return the text before "more calls"."""
        if self.wide:
            return f"between {self.least:,} and {self.most:,}"
        return f"about {self.likely:,} ({self.least:,} to {self.most:,})"

    @property
    def short(self) -> str:
        """Text for a table's cell."""
        ends = f"{self.least:,} to {self.most:,}"
        return ends if self.wide else f"{self.likely:,} ({ends})"

    def after(self, made: int) -> "Range":
        """Return the range of calls in all, after ``made`` calls."""
        return Range(self.likely + made, self.least + made, self.most + made)

    def times(self, factor: float) -> "Range":
        """Return the range of calls, for a range of draws that take ``factor`` calls each."""
        return Range(*(ceil(n * factor) for n in self))


DONE = Range(0, 0, 0)
"""Forecast of a target that is done."""
COLUMNS = ("more_calls", "more_calls_least", "more_calls_most")
"""Columns of a forecast in a result's table of targets."""


def draws(
    evidence: Floats, aim: "Floats | float", away: Floats, variance: float, reach: float
) -> Floats:
    """Return the expected draws that gather ``evidence`` against means away from the rate.

    Args:
        evidence: Evidence to gather, as log-wealth.
        aim: Half-width that bets aim at.
        away: Distance of the means from the rate, above 0.
        variance: Variance of the pseudo-outcomes.
        reach: Range of the pseudo-outcomes over the share of wealth that a bet may lose.
    """
    return np.asarray(evidence * (2 * variance / aim + reach) / away)


def longest(ranges: Iterable[Range | None]) -> Range | None:
    """Return the forecast of an audit from those of its targets, None if any is unknown."""
    forecasts = list(ranges)
    known = [forecast for forecast in forecasts if forecast is not None]
    if not known or len(known) < len(forecasts):
        return None
    return Range(*map(max, zip(*known, strict=True)))


def further(game: Game, left: int, half_width: float | None = None) -> list[Range | None]:
    """Forecast the draws until each target is done.

    Args:
        game: The game so far.
        left: Unseen calls.
        half_width: Half-width to reach, in place of what the audit asks for.

    Returns:
        One range per target, None where too little is known.
    """
    count = len(game.sizes)
    needed, doubt = np.zeros(count), np.zeros(count)
    for k in range(count):
        if not game.sequences.emptied[k]:
            needed[k], doubt[k] = _TargetForecast(game, k, left).needed(half_width)
    unknown = np.isnan(needed)
    open_ = np.where(unknown, np.nanmax(needed, initial=0.0), needed)
    # Open targets share the draws evenly, but one that every draw moves takes none from others.
    share = game.moved / np.maximum(game.ages, 1)
    rivals = 1 - share
    per_draw = max(float((rivals * share).sum()), TINY)
    in_turn = [max(r, float(rivals @ np.minimum(open_, r)) / per_draw) for r in open_.tolist()]
    return [
        None if unknown[k] else _range(min(r, left), float(doubt[k]), left)
        for k, r in enumerate(in_turn)
    ]


def in_calls(ranges: Sequence[Range | None], open_: Bools, per_draw: float) -> list[Range | None]:
    """Convert forecasts of draws into calls.

    Args:
        ranges: One forecast per target, None where it is unknown.
        open_: (K,) whether each target is open; for one that is not, no calls are left.
        per_draw: Calls that a draw takes on average.
    """
    calls = [r.times(per_draw) if r is not None and r.most else None for r in ranges]
    return [r if is_open else DONE for r, is_open in zip(calls, open_.tolist(), strict=True)]


def _range(likely: float, doubt: float, left: int) -> Range:
    """Return the range about a likely number; ``doubt``: standard deviation of its logarithm."""
    if likely == 0:
        return DONE
    factor = exp(min(SURE * doubt, MAX_DOUBT))
    middle, least, most = min(likely, left), min(likely / factor, left), min(likely * factor, left)
    return Range(min(max(round(middle), 1), left), max(floor(least), 1), max(ceil(most), 1))


class _TargetForecast:
    """Forecast for target ``k`` of a game with ``left`` unseen calls."""

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
        # where unanswered losses count as 0 and as 1, the two bettors see rates to either side
        gap = (game.most[k] - game.least[k]) / answered / 2 if answered else 0.0
        middle = float(np.clip(game.estimate[k], *self.ends))
        self.low, self.high = middle - gap, middle + gap
        rarer = min(game.least[k], answered - game.most[k])
        self.few = FEW / (1 + max(float(rarer), 0.0))
        self.means, self.rising, self.falling = sequences.kept(k)

    def needed(self, half_width: float | None) -> tuple[float, float]:
        """Return the draws left and the standard deviation of their logarithm, (nan, 0) if unknown.

        ``half_width`` is as in ``further``.
        """
        rules = self.game.rules
        # each goal: draws, lacking evidence, and standard errors from what is to be excluded
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
        # r draws with replacement, as bets forecast, equal r / (1 + r/L) without
        needed = draws_ / (1 + draws_ / self.left) if np.isfinite(draws_) else self.left
        return needed, sqrt(SPREAD + luck + self.few + 4 / away**2)

    def _narrow(self, wanted: float) -> tuple[float, float, float]:
        """Return the goal of a half-width of ``wanted``."""
        lower, upper = self.ends
        if upper - lower <= 2 * wanted:
            return 0.0, 0.0, np.inf
        if not len(self.means):
            return np.inf, float(self.evidence.max()), np.inf
        low = np.linspace(lower, upper - 2 * wanted, PLACES)
        draws_, lacking = self._nearest(low, low + 2 * wanted, wanted)
        return max(draws_, 1.0), lacking, np.inf  # an open target takes a draw

    def _nearest(self, low: Floats, high: Floats, aim: float) -> tuple[float, float]:
        """Return the draws and the lacking evidence of the interval that takes the fewest draws.

        ``low`` and ``high`` (n,) are the ends of the intervals to choose from.
        """
        against = np.stack(
            [np.interp(low, self.means, self.rising), np.interp(high, self.means, self.falling)]
        )
        inside = np.stack([low > self.ends[0] + TINY, high < self.ends[1] - TINY])
        lacking = np.where(inside, np.maximum(self.evidence[:, None] - against, 0), 0.0)
        away = np.maximum(np.stack([self.low - low, high - self.high]), 0)
        if self.low == self.high:  # else an end between the two is out of reach, and stays so
            away = np.maximum(away, NEAR * aim)
        draws_ = self._draws(lacking, aim, away)
        place = int(draws_.max(axis=0).argmin())
        side = int(draws_[:, place].argmax())
        return float(draws_[side, place]), float(lacking[side, place])

    def _draws(self, lacking: Floats, aim: float, away: Floats) -> Floats:
        needed = draws(lacking, aim, np.maximum(away, TINY), self.variance, self.reach)
        return np.where(lacking > 0, needed, 0.0)

    def _decided(self) -> tuple[float, float, float]:
        """Return the goal of a decision about the target's limit."""
        decisions, k = self.game.decisions, self.k
        if decisions is None or decisions.decided[k]:
            return 0.0, 0.0, np.inf
        limit = float(np.broadcast_to(decisions.limit, decisions.alpha.shape)[k])
        side = 0 if (self.low + self.high) / 2 > limit else 1
        lacking = float((decisions.needed() - decisions.most)[side, k])
        return self._beyond(limit, max(lacking, TINY))

    def _compared(self) -> tuple[float, float, float]:
        """Return the goal of an interval on one side of the pivot, or within the margin."""
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
        gathered = np.interp(goal, self.means, against) if len(self.means) else 0.0
        return self._beyond(goal, max(float(self.evidence[side] - gathered), TINY))

    def _beyond(self, limit: float, lacking: float) -> tuple[float, float, float]:
        """Return the goal of excluding ``limit``, given the evidence that is ``lacking``.

        One standard error of its distance is not counted: nearer estimates show no side.
        """
        away = max(self.low - limit, limit - self.high, 0.0)
        deviation = sqrt(max(float(self.game.sequences.mean_variance[self.k]), TINY))
        aim = float(self.game.sequences.aims[self.k])
        needed = self._draws(np.array(lacking), aim, np.array(away))
        return float(needed), lacking, max(away / deviation - 1, 0.0)
