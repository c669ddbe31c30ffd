"""Betting confidence sequences for many targets at once.

Source: Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting
(JRSS-B 2024). For every target and every m on a grid

    K+(m) = prod (1 + L+ (a+ - m)),   0 <= L+ <= c / (m - lo)
    K-(m) = prod (1 - L- (a- - m)),   0 <= L- <= c / (hi - m)

are nonnegative supermartingales when m is the true mean R, E[a+] <= R <= E[a-] given the
past, lo <= a+, a- <= hi, and everything but a+ and a- is fixed by the past. Then
{m : theta K+ + (1 - theta) K- < 1 / alpha} holds R at all times with probability 1 - alpha, for any
theta in (0, 1) that was fixed before the first bet. A small rate is known as soon as its upper end
is, which K- decides: a smaller theta gives K- more of alpha.
"""

from dataclasses import dataclass

import numpy as np

from ..types import Bets, Bools, Floats, Indices

BETS = Bets(cap=0.98, eagerness=1.2, prior=8.0, most_skew=3.0, ratio=True, tilts_capped=False)
"""What new audits bet by; those begun before go on as their journal says."""
MIN_VARIANCE = 1e-9
TINY = 1e-300
BETWEEN = 3.5
"""Width in grid cells up to which an interval counts as never emptied. Two neighbouring possible
means span three cells, one to either side included, and the true mean may lie between them when
both are excluded: only a wider interval proves that the losses changed."""
EDGE = 1e-9
"""Distance, on the scale of losses 0..1, by which the ends of an interval may pass each other
through rounding alone, and share of its cap by which a bet may pass it so."""
CLEARLY = 1.0
"""Standard errors by which a mean alone must lie outside its interval. Steady models were seen to
stray by .5, while models that drift slowly were certified more often with 2."""
MIN_SHARE = 0.02
"""A smaller share of questions that count is not believed: estimates divide by it."""
SPARSE = 0.9
"""Share of the stored means that are still possible, below which excluded ones are thrown out:
doing so at every draw would cost more than it saves."""


@dataclass(frozen=True)
class Step:
    """One pair of pseudo-outcomes a+ = ``low`` and a- = ``high`` for every target, all (K,).

    ``lo`` <= a+ and a- <= ``hi``; ``foreseen`` is their likely variance. Against the mean
    m they are used with predictions moved by m - centre, which adds (m - centre) *
    ``tilt``; a tilt has mean 0 and lies in [-``tilt_bound``, ``tilt_most``]. All but ``low``,
    ``high`` and ``tilt`` are fixed by the past. Targets that are not ``active`` stay.

    Questions that turn out not to count are left out of the rate by taking the loss of each as m
    wherever bets are against m: (L - m) has the mean 0 over the questions that count exactly if
    L - m, and 0 for the others, has it over all. Losses stay within [0, 1], so that all bounds
    hold. ``out``: what those seen before would add to a if their losses were 1, ``out_now``: what
    this draw's add; both are 0 where everything counts.
    """

    active: Bools
    low: Floats
    high: Floats
    lo: Floats
    hi: Floats
    foreseen: Floats
    tilt: Floats
    tilt_bound: Floats
    tilt_most: Floats
    out: Floats
    out_now: Floats

    @property
    def counting(self) -> Floats:
        """(K,): pseudo-outcomes of the share of the target's questions that count."""
        return np.asarray(1 - self.out - self.out_now)


class Sequences:
    """K confidence sequences with levels ``alpha`` (K,), aimed at half-widths ``aims`` (K,).

    Intervals only ever shrink; each is one grid cell wider than what the bets exclude. Means
    outside an interval never come back, so only those inside are kept, all targets in a row.
    ``aims`` may change from step to step, ``alpha`` before the first bet: by the past alone. At
    level 0 nothing is ever excluded. ``theta`` (K,): the weight of K+ in the mixture; None: 1/2.

    ``since`` (K,): the draw that each sequence starts with, counted from 0; it sleeps through those
    before, which must not be active for it. None: all start with the first.

    ``emptied`` (K,): whether nothing was left of an interval at some moment. While the losses
    do not change that has probability ``alpha``, so it is evidence that they did; the interval
    then stays the last that was not empty, and certifies nothing.
    """

    def __init__(
        self,
        aims: Floats,
        alpha: Floats,
        bets: Bets = BETS,
        since: Indices | None = None,
        theta: Floats | None = None,
    ) -> None:
        count, grid = len(aims), round(1 / bets.cell) + 1
        self.since = np.zeros(count, np.int64) if since is None else since
        self.alpha = alpha
        self.theta = np.full(count, 0.5) if theta is None else theta
        self.aims = aims
        self.bets = bets
        self.moves = 0
        self._cell = 1 / (grid - 1)
        # the means still possible, target after target: whose, which, log K+ and log K-
        self._row = np.repeat(np.arange(count), grid)
        self._mean = np.tile(np.linspace(0, 1, grid), count)
        self._alive = np.ones(count * grid, np.bool_)  # those of them that lie in their interval
        self._rising = np.zeros(count * grid)
        self._falling = np.zeros(count * grid)
        self._bet_lower = np.zeros(count)
        self._bet_upper = np.ones(count)
        self.lower = np.zeros(count)
        self.upper = np.ones(count)
        self.emptied = np.zeros(count, dtype=np.bool_)
        # how far past pseudo-outcomes strayed, in units of the variance foreseen for them
        self._strayed = np.full(count, bets.prior)
        self._precision = np.zeros(count)
        self._weighted = np.zeros(count)
        self._prior = np.zeros(count)
        self._sums = np.zeros((2, count))  # weights, and weighted pseudo-outcomes
        self._counted = np.zeros(count)  # weighted pseudo-outcomes of the share that counts
        # (K,): the estimate, drawn to 1/2 as by ``bets.prior`` outcomes while there are few
        self.centre = np.full(count, 0.5)
        # (K,): the expected share of each target's questions that count
        self.share = np.ones(count)

    @property
    def half_width(self) -> Floats:
        """(K,): half the length of each interval."""
        return np.maximum(self.upper - self.lower, 0) / 2

    @property
    def estimate(self) -> Floats:
        """(K,): weighted mean of the pseudo-outcomes, kept within the interval.

        The weights are foreseen precisions relative to a coin of the expected mean: absolute
        ones would weigh most what came while the mean happened to look small.
        """
        return np.where(self._sums[0] > 0, np.clip(self.mean, self.lower, self.upper), np.nan)

    def disagreeing(self, least: Floats, most: Floats) -> Bools:
        """(K,): whether the draws disagree with what the bets leave; ``least`` and ``most`` are
        what a finite pool still allows a mean to be.

        They do where the estimate, before it is kept within the interval, lies outside by more than
        ``CLEARLY`` standard errors, or where it lies outside and so does the centre of the bets.
        The estimate alone may be poor: it weighs draws by what was foreseen of them.
        """
        mean, edge = _or(self.mean, 0.5), np.full(len(self.alpha), EDGE)
        outside = self._outside(mean, least, most, edge)
        clearly = self._outside(mean, least, most, CLEARLY * np.sqrt(self.mean_variance))
        moved = self._outside(self.centre, least, most, edge)
        return outside & (clearly | moved) & (self._sums[0] > 0)

    def _outside(self, values: Floats, least: Floats, most: Floats, by: Floats) -> Bools:
        """(K,): which of ``values``, cut to what is possible, lie outside the bets' interval by
        more than ``by``."""
        values = np.clip(values, least, np.maximum(least, most))
        return (values < self._bet_lower - by) | (values > self._bet_upper + by)

    @property
    def mean(self) -> Floats:
        """(K,): the weighted mean of the pseudo-outcomes; NaN before any."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self._sums[1] / self._sums[0] / self.share)

    def kept(self, k: int) -> tuple[Floats, Floats, Floats]:
        """Target ``k``: the means that are still possible, and log K+ and log K- against each."""
        mine = self._row == k
        return self._mean[mine], self._rising[mine], self._falling[mine]

    @property
    def mean_variance(self) -> Floats:
        """(K,): of ``mean``, as far as the pseudo-outcomes tell.

        ``mean`` divides by the share that counts, so its error is that much larger than theirs.
        """
        return np.asarray(self.stray / np.maximum(self._precision * self.share**2, TINY))

    @property
    def stray(self) -> Floats:
        """(K,): mean square of past pseudo-outcomes about the centre, over that foreseen."""
        return self._strayed / (self.bets.prior + np.maximum(self.moves - self.since, 0))

    def move(self, step: Step, betting: bool = True) -> None:
        """The next draw's pseudo-outcomes; only looked at where nothing is bet on them."""
        if betting:
            up, down = self.growth(step, self._row, self._mean)
            self._rising += up
            self._falling += down
        self._note(step)
        self._shrink()

    def growth(self, step: Step, row: Indices, m: Floats) -> tuple[Floats, Floats]:
        """What the step adds to log K+ and log K- against means ``m`` of the targets ``row``."""
        counting, centre = 1 - step.out, self.centre
        # the pseudo-outcomes of a target are linear in m, with predictions moved and without
        low, high = (np.stack([a - centre * step.tilt, a]) for a in (step.low, step.high))
        slope = np.stack([step.tilt, np.zeros_like(centre)]) - (counting - step.out_now)
        away, rest, bet = m - centre[row], m * counting[row], self._bets(step.foreseen, row, m)
        down, up = away * step.tilt_bound[row], away * step.tilt_most[row]
        room_up, room_down = rest - step.lo[row], step.hi[row] - rest
        on = step.active[row]  # figures of the others may pass their bounds, so never as a factor
        grown = []
        for room, more, ends, sign in (
            (room_up, np.maximum(down, -up), low, 1.0),
            (room_down, np.maximum(-down, up), high, -1.0),
        ):
            wide = room + more
            stays = 1 - self._tilted(bet, wide)  # 0: predictions are moved; 1: they are not
            fraction = self._capped(bet, np.where(stays, room, wide))
            gain = fraction * sign * (ends[stays, row] + m * slope[stays, row])
            grown.append(np.log1p(np.where(on, gain, 0.0)))
        return grown[0], grown[1]

    def bound(self, least: Floats, most: Floats) -> None:
        """Cuts the intervals to [least, most]: what the rest of a finite pool still allows."""
        lower, upper = np.maximum(self._bet_lower, least), np.minimum(self._bet_upper, most)
        left = lower <= upper + EDGE
        self.lower = np.where(left, lower, self.lower)
        self.upper = np.where(left, upper, self.upper)
        self.emptied |= ~left

    def _bets(self, foreseen: Floats, row: Indices, m: Floats) -> Floats:
        """The best bet against each of means ``m`` of targets ``row``, by variance and skew.

        Kelly's bet against m on a coin of bias m + w is w / (m (1 - m)), whatever the coin
        does: so the variance is scaled by that of 0/1 losses whose mean is m.
        """
        centre = self.centre
        scale = (
            self.bets.eagerness
            * self.aims
            * self.share
            / np.maximum(foreseen * self.stray, MIN_VARIANCE)
        )
        skew = m * (1 - m) / (centre * (1 - centre))[row]
        return scale[row] / skew.clip(1 / self.bets.most_skew, self.bets.most_skew)

    def _note(self, step: Step) -> None:
        active, centre = step.active, self.centre
        middle = (step.low + step.high) / 2
        outcome = middle + centre * (step.out + step.out_now)
        foreseen = np.maximum(step.foreseen, MIN_VARIANCE)
        self._prior = np.where(self.moves == self.since, self.bets.prior / foreseen, self._prior)
        weight = active * centre * (1 - centre) / foreseen
        self._sums += weight * np.stack([np.ones_like(middle), middle])
        self._counted += weight * step.counting
        strayed = np.where(active, (outcome - centre) ** 2 / foreseen, 1.0)
        self._strayed += np.where(self.moves >= self.since, strayed, 0.0)
        self._precision += active / foreseen
        self._weighted += active * outcome / foreseen
        self.moves += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (self._weighted + 0.5 * self._prior) / (self._precision + self._prior)
            share = self._counted / self._sums[0]
        self.centre = _or(mean, 0.5).clip(0.02, 0.98)
        self.share = _or(share, 1.0).clip(MIN_SHARE, 1)

    def _shrink(self) -> None:
        """Drops what is excluded by now, but for one grid cell; what is dropped stays so."""
        theta = np.stack([self.theta, 1 - self.theta])
        with np.errstate(divide="ignore"):
            enough = 1 / self.alpha
            half = np.log(enough / theta / 2)  # log-wealth of either side that is half of enough
        row = self._row
        inside = (self._rising < half[0][row]) & (self._falling < half[1][row])
        near = np.flatnonzero(~inside)  # few, as exponentials take time
        some, both = row[near], np.exp([self._rising[near], self._falling[near]])
        inside[near] = (theta[:, some] * both).sum(axis=0) < enough[some]
        inside |= np.isinf(enough)[row]  # at level 0, where wealth may overflow
        inside &= self._alive
        row, mean = self._row[inside], self._mean[inside]
        empty = self._bet_upper - self._bet_lower > BETWEEN * self._cell
        if len(row):
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            some = row[starts]  # a target with nothing left stays as it is
            empty[some] = False
            first = np.minimum.reduceat(mean, starts) - self._cell
            last = np.maximum.reduceat(mean, starts) + self._cell
            self._bet_lower[some] = np.maximum(self._bet_lower[some], first)
            self._bet_upper[some] = np.minimum(self._bet_upper[some], last)
        self.emptied |= empty
        kept = self._possible()
        if kept.sum() < SPARSE * len(kept):
            self._row, self._mean = self._row[kept], self._mean[kept]
            self._rising, self._falling = self._rising[kept], self._falling[kept]
            kept = np.ones(len(self._row), np.bool_)
        self._alive = kept

    def _possible(self) -> Bools:
        """Which of the means kept lie in their interval; half a cell against rounding."""
        edge = 0.5 * self._cell
        above = self._mean > self._bet_lower[self._row] - edge
        return above & (self._mean < self._bet_upper[self._row] + edge)

    def _tilted(self, bet: Floats, room: Floats) -> Bools:
        """Which bets have their predictions moved, where that takes ``room``: those that this does
        not bring to their cap. It makes outcomes vary less, which is worth nothing to a bet whose
        size its room decides."""
        return (bet * room <= self.bets.cap * (1 + EDGE)) | self.bets.tilts_capped

    def _capped(self, bet: Floats, room: Floats) -> Floats:
        """``bet``, or cap / room where that is less; without room nothing can be lost."""
        with np.errstate(divide="ignore"):
            most = np.where(room > 0, self.bets.cap / np.maximum(room, 1e-300), np.inf)
        return np.minimum(bet, most)


def _or(values: Floats, other: float) -> Floats:
    """The values, with ``other`` in place of NaN; ``np.nan_to_num`` takes ten times as long."""
    return np.where(np.isnan(values), other, values)
