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
CAP = 0.75
"""c: how much of the way to ruin a single bet may go."""
EAGERNESS = 1.2
"""Bets are best for excluding a mean this many half-widths away."""
LEAST_VARIANCE = 1e-9


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
        self._strayed = np.ones(count)
        self._precision = np.zeros(count)
        self._weighted = np.zeros(count)

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
    def stray(self) -> Floats:
        """(K,): mean square of past pseudo-outcomes about their mean, over that foreseen."""
        return self._strayed / (1 + self.moves)

    def move(
        self, low: Floats, high: Floats, lo: Floats, hi: Floats, foreseen: Floats
    ) -> None:
        """One pair of pseudo-outcomes a+ = ``low`` and a- = ``high`` for every target, all (K,).

        ``lo`` <= a+ and a- <= ``hi`` bound them, ``foreseen`` is their likely variance; the
        three are fixed by the past.
        """
        variance = np.maximum(foreseen * self.stray, LEAST_VARIANCE)
        bet = (EAGERNESS * self.aims / variance)[:, None]
        m = self._grid[None, :]
        with np.errstate(divide="ignore"):
            most_up = np.where(m > lo[:, None], CAP / (m - lo[:, None]), np.inf)
            most_down = np.where(m < hi[:, None], CAP / (hi[:, None] - m), np.inf)
        self._rising += np.log1p(np.minimum(bet, most_up) * (low[:, None] - m))
        self._falling += np.log1p(-np.minimum(bet, most_down) * (high[:, None] - m))
        self._note((low + high) / 2, np.maximum(foreseen, LEAST_VARIANCE))
        self._shrink()

    def bound(self, least: Floats, most: Floats) -> None:
        """Cuts the intervals to [least, most]: what the rest of a finite pool still allows."""
        self.lower = np.maximum(self._bet_lower, least)
        self.upper = np.minimum(self._bet_upper, most)

    def _note(self, outcome: Floats, foreseen: Floats) -> None:
        mean = np.where(
            self._precision > 0, self._weighted / np.maximum(self._precision, 1e-300), 0.5
        )
        self._strayed += np.minimum((outcome - mean) ** 2 / foreseen, 100.0)
        self._precision += 1 / foreseen
        self._weighted += outcome / foreseen
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
