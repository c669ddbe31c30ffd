"""The betting game of K targets: what their draws' losses make of their intervals."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..types import Bools, Floats
from .sequences import Sequences

if TYPE_CHECKING:
    from .certifier import Move


class Game:
    """S and the confidence sequence of every target; arrays are (K,).

    ``sizes``: how many questions each has; ``aim``: the half-width that bets aim at; ``alpha``: the
    probability with which one target's interval may fail.
    """

    def __init__(self, sizes: Floats, aim: float, alpha: float) -> None:
        self.sizes = sizes
        self.sequences = Sequences(np.full(len(sizes), aim), alpha)
        self.waiting = sizes.copy()  # questions not answered
        self.least = np.zeros(len(sizes))  # S, unanswered losses as 0
        self.most = np.zeros(len(sizes))  # S, unanswered losses as 1

    def play(self, move: "Move", low: Floats, high: Floats, count: npt.NDArray[np.int64]) -> None:
        """One draw: its ``move``, the sums of its losses at least and at most, and how many there
        are. Draws must be played in their order."""
        a_low = self.least + move.low_base + move.scale * (low - move.low_predicted)
        a_high = self.most + move.high_base + move.scale * (high - move.high_predicted)
        self.sequences.move(
            move.active,
            a_low / self.sizes,
            a_high / self.sizes,
            (self.least + move.lo) / self.sizes,
            (self.most + move.hi) / self.sizes,
            move.foreseen / self.sizes**2,
            move.tilt / self.sizes,
            move.tilt_bound / self.sizes,
        )
        self.least += low
        self.most += high
        self.waiting -= count
        self.sequences.bound(self.least / self.sizes, (self.most + self.waiting) / self.sizes)

    @property
    def estimate(self) -> Floats:
        """The weighted mean of the draws, kept within the interval; 1/2 before any."""
        return np.nan_to_num(self.sequences.estimate, nan=0.5)

    def astray(self) -> Bools:
        """Whether each estimate had to be moved to lie within what the bets leave."""
        return self.sequences.astray(
            self.least / self.sizes, (self.most + self.waiting) / self.sizes
        )
