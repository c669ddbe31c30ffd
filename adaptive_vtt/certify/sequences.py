"""Betting confidence sequences for many targets at once.

Source: Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting
(JRSS-B 2024). For every target and every m on a grid

    K+(m) = prod (1 + L+ (a+ - m)),   0 <= L+ <= c / (m - lo)
    K-(m) = prod (1 - L- (a- - m)),   0 <= L- <= c / (hi - m)

are nonnegative supermartingales when m is the true mean R, E[a+] <= R <= E[a-] given the
past, lo <= a+, a- <= hi, and everything but a+ and a- is fixed by the past. Then
{m : (K+ + K-) / 2 < 1 / alpha} holds R at all times with probability 1 - alpha.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

GRID = 1001
CAP = 0.9
"""c: how much of the way to ruin a single bet may go."""
EAGERNESS = 1.2
"""Bets are best for excluding a mean this many half-widths away."""
LEAST_VARIANCE = 1e-9
MOST_SKEW = 3.0
PRIOR = 8.0
"""Outcomes that the first guesses of centre and variance count for."""


class Sequences:
    """K confidence sequences, each at level ``alpha`` and aimed at its half-width ``aims`` (K,).

    Intervals only ever shrink; each is one grid cell wider than what the bets exclude.
    """

    def __init__(self, aims: Floats, alpha: float, grid: int = GRID) -> None:
        count = len(aims)
        self.alpha = alpha
        self.aims = aims
        self.moves = 0
        self._grid = np.linspace(0, 1, grid)
        self._rising = np.zeros((count, grid))  # log K+
        self._falling = np.zeros((count, grid))  # log K-
        self._bet_lower = np.zeros(count)
        self._bet_upper = np.ones(count)
        self.lower = np.zeros(count)
        self.upper = np.ones(count)
        # how far past pseudo-outcomes strayed, in units of the variance foreseen for them
        self._strayed = np.full(count, PRIOR)
        self._precision = np.zeros(count)
        self._weighted = np.zeros(count)
        self._prior = np.zeros(count)

    @property
    def half_width(self) -> Floats:
        """(K,): half the length of each interval."""
        return (self.upper - self.lower) / 2

    @property
    def estimate(self) -> Floats:
        """(K,): mean of the pseudo-outcomes by foreseen precision, kept within the interval."""
        with np.errstate(invalid="ignore"):
            mean = self._weighted / self._precision
        return np.where(self._precision > 0, np.clip(mean, self.lower, self.upper), np.nan)

    @property
    def centre(self) -> Floats:
        """(K,): the estimate before it is sure of itself: drawn to 1/2 as by PRIOR outcomes."""
        with np.errstate(invalid="ignore"):
            mean = (self._weighted + 0.5 * self._prior) / (self._precision + self._prior)
        return np.clip(np.nan_to_num(mean, nan=0.5), 0.02, 0.98)

    @property
    def stray(self) -> Floats:
        """(K,): mean square of past pseudo-outcomes about the centre, over that foreseen."""
        return self._strayed / (PRIOR + self.moves)

    def move(
        self,
        active: npt.NDArray[np.bool_],
        low: Floats,
        high: Floats,
        lo: Floats,
        hi: Floats,
        foreseen: Floats,
        tilt: Floats,
        tilt_bound: Floats,
    ) -> None:
        """One pair of pseudo-outcomes a+ = ``low`` and a- = ``high`` for every target, all (K,).

        ``lo`` <= a+ and a- <= ``hi``; ``foreseen`` is their likely variance. Against the mean
        m they are used with predictions moved by m - centre, which adds (m - centre) *
        ``tilt``; a tilt has mean 0 and lies within +- ``tilt_bound``. All but ``low``,
        ``high`` and ``tilt`` are fixed by the past. Targets that are not ``active`` stay.
        """
        away = self._grid[None, :] - self.centre[:, None]
        swing = np.abs(away) * tilt_bound[:, None]
        bottom, top = lo[:, None] - swing, hi[:, None] + swing
        rise = low[:, None] + away * tilt[:, None]
        fall = high[:, None] + away * tilt[:, None]
        variance = np.maximum(foreseen * self.stray, LEAST_VARIANCE)[:, None] * self._skew()
        bet = EAGERNESS * self.aims[:, None] / variance
        m = self._grid[None, :]
        with np.errstate(divide="ignore"):
            most_up = np.where(m > bottom, CAP / (m - bottom), np.inf)
            most_down = np.where(m < top, CAP / (top - m), np.inf)
        on = active[:, None]
        self._rising += on * np.log1p(np.minimum(bet, most_up) * (rise - m))
        self._falling += on * np.log1p(-np.minimum(bet, most_down) * (fall - m))
        self._note(active, (low + high) / 2, np.maximum(foreseen, LEAST_VARIANCE))
        self._shrink()

    def bound(self, least: Floats, most: Floats) -> None:
        """Cuts the intervals to [least, most]: what the rest of a finite pool still allows."""
        self.lower = np.maximum(self._bet_lower, least)
        self.upper = np.minimum(self._bet_upper, most)

    def _skew(self) -> Floats:
        """K x grid: the variance of 0/1 losses if m were their mean, over that at the estimate.

        Kelly's bet against m on a coin of bias m + w is w / (m (1 - m)), whatever the coin
        does; betting by the variance at the estimate would ignore the skew.
        """
        centre = self.centre[:, None]
        spread = self._grid * (1 - self._grid)
        return np.clip(spread / (centre * (1 - centre)), 1 / MOST_SKEW, MOST_SKEW)

    def _note(self, active: npt.NDArray[np.bool_], outcome: Floats, foreseen: Floats) -> None:
        if self.moves == 0:
            self._prior = PRIOR / foreseen
        self._strayed += np.where(active, (outcome - self.centre) ** 2 / foreseen, 1.0)
        self._precision += active / foreseen
        self._weighted += active * outcome / foreseen
        self.moves += 1

    def _shrink(self) -> None:
        """Drops what is excluded by now, but for one grid cell; what is dropped stays so."""
        wealth = np.logaddexp(self._rising, self._falling) - np.log(2)
        inside = wealth < -np.log(self.alpha)
        cell = self._grid[1]
        first = self._grid[inside.argmax(axis=1)] - cell
        last = self._grid[inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)] + cell
        some = inside.any(axis=1)  # nothing left has probability alpha; the last set stands
        self._bet_lower = np.where(some, np.maximum(self._bet_lower, first), self._bet_lower)
        self._bet_upper = np.where(some, np.minimum(self._bet_upper, last), self._bet_upper)
