"""Betting confidence sequences for many targets at once.

Source: Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting (JRSS-B
2024). For every target and every mean m on a grid, two bettors start with a wealth of 1:

    K+(m) = prod (1 + L+ (a+ - m)),   0 <= L+ <= c / (m - lo)

    K-(m) = prod (1 - L- (a- - m)),   0 <= L- <= c / (hi - m)

Both are nonnegative supermartingales at the true mean R, if E[a+] <= R <= E[a-] given the past,
lo <= a+, a- <= hi, and the past fixes everything but a+ and a-. Then the set

    {m : theta K+ + (1 - theta) K- < 1 / alpha}

contains R at all times with probability 1 - alpha, for any theta in (0, 1) fixed before the first
bet. K- decides the upper end, which is the last to come near a small rate. So a small theta, which
gives K- more of alpha, certifies small rates sooner.
"""

from dataclasses import dataclass

import numpy as np

from ..types import Bets, Bools, Floats, Indices

BETS = Bets(cap=0.98, eagerness=1.2, prior=8.0, most_skew=3.0, ratio=True, tilts_capped=False)
"""Constants of new audits. A resumed audit keeps those of its journal."""
MIN_VARIANCE = 1e-9
"""Least variance that bets and weights divide by."""
TINY = 1e-300
"""Least divisor, so that 0 / 0 stays 0."""
BETWEEN = 3.5
"""Widest interval, in grid cells, that may be excluded without counting as emptied.

Two neighbouring possible means and one cell to either side span three cells. The true mean may lie
between the two when both are excluded, so only a wider interval proves that the losses changed."""
EDGE = 1e-9
"""Distance, in losses, by which the ends of an interval may cross through rounding, and share of
its cap by which a bet may exceed it."""
CLEARLY = 1.0
"""Standard errors by which a mean alone must lie outside its interval to disagree with it. Means of
steady models strayed by up to .5, and with 2 more slowly drifting models were certified."""
MIN_SHARE = 0.02
"""Least share of counting questions that estimates divide by."""
SPARSE = 0.9
"""Share of the stored means that are still possible below which the others are dropped. Dropping
them at every draw would cost more than it saves."""


@dataclass(frozen=True)
class Step:
    """Pseudo-outcomes of one draw for every target. All arrays are (K,).

    The past fixes all but ``low``, ``high`` and ``tilt``. A bet against the mean m moves
    predictions by m - centre, which adds (m - centre) * ``tilt`` to the pseudo-outcomes.

    Questions that turn out not to count are left out of the rate: a bet against m takes the loss
    of each to be m. If m is the mean loss of the counting questions, their L - m sum to 0. The
    others add 0, so the mean of L - m over all questions is 0 as well. Losses stay within [0, 1],
    so all bounds hold.

    Attributes:
        active: Whether the draw moves the target.
        low: a+, at least ``lo``.
        high: a-, at most ``hi``.
        lo: Lower bound of a+.
        hi: Upper bound of a-.
        foreseen: Expected variance of the pseudo-outcomes.
        tilt: Change of both if every prediction rose by 1; its mean is 0.
        tilt_bound: Largest value of -tilt.
        tilt_most: Largest value of tilt.
        out: Term that earlier questions which do not count would add if their losses were 1.
        out_now: The same for this draw's questions.
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
        """(K,): pseudo-outcome of the share of questions that count."""
        return np.asarray(1 - self.out - self.out_now)


class Sequences:
    """K confidence sequences.

    Intervals only shrink. Each includes one grid cell beyond the means that the bets leave. Only
    means inside their interval are stored, since those outside never come back.

    Args:
        aims: (K,) half-widths that bets aim at. They may change between steps, by the past alone.
        alpha: (K,) the probability with which each interval may fail. At 0 nothing is excluded.
        bets: Constants of the game.
        since: (K,) the draw, from 0, with which each sequence starts. Earlier draws must not be
            active for it. None: all start with draw 0.
        theta: (K,) the weight of K+ in the mixture; None: 1/2.

    Attributes:
        lower: (K,) lower ends of the intervals.
        upper: (K,) upper ends.
        emptied: (K,) whether an interval emptied at some moment. With fixed losses that has the
            probability ``alpha``, so it is evidence that the losses changed. The interval then
            stays the last one that was not empty, and certifies nothing.
        centre: (K,) expected means, near 1/2 while there are few outcomes.
        share: (K,) expected shares of questions that count.
        moves: Draws so far.
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
        # the stored means, target after target: whose, which, log K+ and log K-
        self._row = np.repeat(np.arange(count), grid)
        self._mean = np.tile(np.linspace(0, 1, grid), count)
        self._alive = np.ones(count * grid, np.bool_)  # whether each lies in its interval
        self._rising = np.zeros(count * grid)
        self._falling = np.zeros(count * grid)
        self._bet_lower = np.zeros(count)
        self._bet_upper = np.ones(count)
        self.lower = np.zeros(count)
        self.upper = np.ones(count)
        self.emptied = np.zeros(count, dtype=np.bool_)
        # squared distances of pseudo-outcomes from the centre, over their expected variances
        self._strayed = np.full(count, bets.prior)
        # the centre: sums of 1 / variance and of outcome / variance, and the prior's precision
        self._precision = np.zeros(count)
        self._weighted = np.zeros(count)
        self._prior = np.zeros(count)
        self._sums = np.zeros((2, count))  # weights, and weighted pseudo-outcomes
        self._counted = np.zeros(count)  # weighted pseudo-outcomes of the share that counts
        # outcomes weighted by precision, with ``bets.prior`` outcomes of 1/2 added
        self.centre = np.full(count, 0.5)
        self.share = np.ones(count)

    @property
    def half_width(self) -> Floats:
        """(K,): half the length of each interval."""
        return np.maximum(self.upper - self.lower, 0) / 2

    @property
    def estimate(self) -> Floats:
        """(K,): weighted mean of the pseudo-outcomes, clipped to the interval; NaN before any.

        The weights are expected precisions relative to a coin of the expected mean. Absolute
        precisions would give most weight to draws made while the mean happened to look small.
        """
        return np.where(self._sums[0] > 0, np.clip(self.mean, self.lower, self.upper), np.nan)

    def disagreeing(self, least: Floats, most: Floats) -> Bools:
        """Return whether the draws disagree with the interval that the bets leave, (K,).

        They do where the mean of the draws lies outside by more than ``CLEARLY`` standard errors.
        They also do where both that mean and the centre of the bets lie outside. The mean alone
        may be poor, as it weights draws by expected variances.

        Args:
            least: (K,) the least rate that the unanswered questions allow.
            most: (K,) the largest rate that they allow.
        """
        mean, edge = _filled(self.mean, 0.5), np.full(len(self.alpha), EDGE)
        outside = self._outside(mean, least, most, edge)
        clearly = self._outside(mean, least, most, CLEARLY * np.sqrt(self.mean_variance))
        moved = self._outside(self.centre, least, most, edge)
        return outside & (clearly | moved) & (self._sums[0] > 0)

    def _outside(self, values: Floats, least: Floats, most: Floats, by: Floats) -> Bools:
        """Return which values, clipped to [least, most], lie outside the bets' interval, (K,).

        ``by`` is how far outside they must lie.
        """
        values = np.clip(values, least, np.maximum(least, most))
        return (values < self._bet_lower - by) | (values > self._bet_upper + by)

    @property
    def mean(self) -> Floats:
        """(K,): the weighted mean of the pseudo-outcomes; NaN before any."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self._sums[1] / self._sums[0] / self.share)

    def kept(self, k: int) -> tuple[Floats, Floats, Floats]:
        """Return the stored means of target ``k``, and log K+ and log K- against each."""
        own = self._row == k
        return self._mean[own], self._rising[own], self._falling[own]

    @property
    def mean_variance(self) -> Floats:
        """(K,): estimated variance of ``mean``.

        ``mean`` divides by the share that counts, so its error is larger by that factor than that
        of the pseudo-outcomes.
        """
        return np.asarray(self.stray / np.maximum(self._precision * self.share**2, TINY))

    @property
    def stray(self) -> Floats:
        """(K,): mean squared distance of pseudo-outcomes from the centre, over that expected."""
        return self._strayed / (self.bets.prior + np.maximum(self.moves - self.since, 0))

    def move(self, step: Step) -> None:
        """Bet on the next draw's pseudo-outcomes, and learn from them."""
        up, down = self.growth(step, self._row, self._mean)
        self._rising += up
        self._falling += down
        self._note(step)
        self._shrink()

    def growth(self, step: Step, row: Indices, m: Floats) -> tuple[Floats, Floats]:
        """Return what a step adds to log K+ and log K-, (n,) each.

        Args:
            step: The step.
            row: (n,) numbers of targets, ascending.
            m: (n,) the mean of each that is bet against.
        """
        counting, centre = 1 - step.out, self.centre
        # a target's pseudo-outcomes are linear in m: first with predictions moved, then without
        low = np.stack([step.low - centre * step.tilt, step.low])
        high = np.stack([step.high - centre * step.tilt, step.high])
        slope = np.stack([step.tilt, np.zeros_like(centre)]) - (counting - step.out_now)
        times = np.bincount(row, minlength=len(centre))  # repeating is faster than indexing
        away, counted = m - centre.repeat(times), m * counting.repeat(times)
        bet = self._bets(step.foreseen, times, m)
        down, up = away * step.tilt_bound.repeat(times), away * step.tilt_most.repeat(times)
        room_up, room_down = counted - step.lo.repeat(times), step.hi.repeat(times) - counted
        # figures of inactive targets may exceed their bounds, so select them and never multiply
        on = step.active.repeat(times)
        grown = []
        for room, more, ends, sign in (
            (room_up, np.maximum(down, -up), low, 1.0),
            (room_down, np.maximum(-down, up), high, -1.0),
        ):
            wide = room + more
            # moved predictions make outcomes vary less, but take more room; a bet at its cap is
            # limited by room, so its predictions stay
            moved = (bet * wide <= self.bets.cap * (1 + EDGE)) | self.bets.tilts_capped
            fraction = self._capped(bet, np.where(moved, wide, room))
            place = np.where(moved, row, row + len(centre))
            gain = fraction * sign * (ends.take(place) + m * slope.take(place))
            grown.append(np.log1p(np.where(on, gain, 0.0)))
        return grown[0], grown[1]

    def bound(self, least: Floats, most: Floats) -> None:
        """Clip the intervals to the rates that unanswered questions allow, [least, most], (K,)."""
        lower, upper = np.maximum(self._bet_lower, least), np.minimum(self._bet_upper, most)
        nonempty = lower <= upper + EDGE
        self.lower = np.where(nonempty, lower, self.lower)
        self.upper = np.where(nonempty, upper, self.upper)
        self.emptied |= ~nonempty

    def _bets(self, foreseen: Floats, times: Indices, m: Floats) -> Floats:
        """Return the best bet against each mean ``m``, by variance and skew.

        The means of target k, one after the other, are ``times[k]`` many.

        Kelly's bet against m on a coin of bias m + w is w / (m (1 - m)), and does not depend on
        the coin's outcomes. So the variance is scaled by that of 0/1 losses whose mean is m.
        """
        centre = self.centre
        variance = np.maximum(foreseen * self.stray, MIN_VARIANCE)
        scale = self.bets.eagerness * self.aims * self.share / variance
        skew = m * (1 - m) / (centre * (1 - centre)).repeat(times)
        return scale.repeat(times) / skew.clip(1 / self.bets.most_skew, self.bets.most_skew)

    def _note(self, step: Step) -> None:
        """Update centre, estimate, share and stray by the pseudo-outcomes of a draw."""
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
        self.centre = _filled(mean, 0.5).clip(0.02, 0.98)
        self.share = _filled(share, 1.0).clip(MIN_SHARE, 1)

    def _shrink(self) -> None:
        """Shrink the intervals to the means that the bets leave, and one grid cell beyond."""
        theta = np.stack([self.theta, 1 - self.theta])
        with np.errstate(divide="ignore"):
            enough = 1 / self.alpha
            half = np.log(enough / theta / 2)  # log-wealth of either side that is half of enough
        row, times = self._row, np.bincount(self._row, minlength=len(enough))
        inside = (self._rising < half[0].repeat(times)) & (self._falling < half[1].repeat(times))
        near = np.flatnonzero(~inside)  # few means, which saves exponentials
        target, wealth = row[near], np.exp([self._rising[near], self._falling[near]])
        inside[near] = (theta[:, target] * wealth).sum(axis=0) < enough[target]
        inside |= np.isinf(enough).repeat(times)  # at level 0, where wealth may overflow
        inside &= self._alive
        row, mean = self._row[inside], self._mean[inside]
        empty = self._bet_upper - self._bet_lower > BETWEEN * self._cell
        if len(row):
            starts = np.concatenate(([0], np.flatnonzero(row[1:] != row[:-1]) + 1))
            target = row[starts]  # a target without a mean left keeps its interval
            empty[target] = False
            first = np.minimum.reduceat(mean, starts) - self._cell
            last = np.maximum.reduceat(mean, starts) + self._cell
            self._bet_lower[target] = np.maximum(self._bet_lower[target], first)
            self._bet_upper[target] = np.minimum(self._bet_upper[target], last)
        self.emptied |= empty
        edge = 0.5 * self._cell  # half a cell against rounding
        kept = (self._mean > self._bet_lower[self._row] - edge) & (
            self._mean < self._bet_upper[self._row] + edge
        )
        if np.count_nonzero(kept) < SPARSE * len(kept):
            self._row, self._mean = self._row[kept], self._mean[kept]
            self._rising, self._falling = self._rising[kept], self._falling[kept]
            kept = np.ones(len(self._row), np.bool_)
        self._alive = kept

    def _capped(self, bet: Floats, room: Floats) -> Floats:
        """Return the smaller of ``bet`` and cap / room. Without room a bet cannot lose anything."""
        with np.errstate(divide="ignore"):
            most = np.where(room > 0, self.bets.cap / np.maximum(room, TINY), np.inf)
        return np.minimum(bet, most)


def _filled(values: Floats, filling: float) -> Floats:
    """Return the values with ``filling`` for NaN; ``np.nan_to_num`` takes ten times as long."""
    return np.where(np.isnan(values), filling, values)
