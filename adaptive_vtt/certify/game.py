"""Betting game of K targets: the losses of draws move their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..journal.rows import FIGURES, MoveRow
from ..types import Bools, Floats, Indices
from .rules import Rules
from .sequences import Sequences, Step

RECENT = 0.1
"""Weight of a draw's range in the moving average of ranges."""


@dataclass(frozen=True)
class Bet:
    """Figures that a draw fixes for K targets before its call is sent. All arrays are (K,).

    The letters are those of ``certifier``.

    Attributes:
        active: Whether the draw moves the target, m > 0.
        low_base: r times the sum of F, for a+.
        high_base: The same for a-.
        low_predicted: F_I for a+.
        high_predicted: F_I for a-.
        scale: r / q(I).
        lo: Lower bound of N a+ - S.
        hi: Upper bound of N a- - S.
        foreseen: Expected variance of N a.
        tilt: Change of N a if every f rose by 1, from -``tilt_bound`` to the unseen questions.
        tilt_bound: Largest value of -``tilt``.
        uniform: ``scale`` if the proposal's mass on the target were spread evenly over it.
        next_down: Bound of the next draw's correction downwards, as a share of its questions.
        next_up: The same upwards.
        next_tilt: The same for the tilt.
        next_foreseen: ``foreseen`` of the next draw.
    """

    active: Bools
    low_base: Floats
    high_base: Floats
    low_predicted: Floats
    high_predicted: Floats
    scale: Floats
    lo: Floats
    hi: Floats
    foreseen: Floats
    tilt: Floats
    tilt_bound: Floats
    uniform: Floats
    next_down: Floats
    next_up: Floats
    next_tilt: Floats
    next_foreseen: Floats

    def rows(self, questions: Indices, inside: Bools) -> tuple[MoveRow, ...]:
        """Return one journal row per target; ``inside`` (K x n): which hold which questions."""
        figures = np.stack([getattr(self, name) for name in FIGURES], axis=1)
        return tuple(
            MoveRow(k, tuple(questions[inside[k]].tolist()), bool(self.active[k]), tuple(row))
            for k, row in enumerate(figures.tolist())
        )

    def padded(self, count: int) -> "Bet":
        """Return the bet on ``count`` targets, where the last ones were discovered after the draw.

        The draw does not move them.
        """
        missing = count - len(self.active)
        if not missing:
            return self
        return Bet(**{f.name: np.pad(getattr(self, f.name), (0, missing)) for f in fields(self)})

    @classmethod
    def of(cls, rows: tuple[MoveRow, ...]) -> "Bet":
        """Return the bet of a draw's journal rows."""
        table = np.array([row.figures for row in rows])
        return cls(np.array([r.active for r in rows]), **dict(zip(FIGURES, table.T, strict=True)))


class Game:
    """Losses seen and confidence sequence of every target. All arrays are (K,).

    Args:
        sizes: Questions of each target.
        rules: Goal and constants of the game.
        since: Draw with which bets on each target start; earlier draws only count towards S.
            Empty: all start with draw 0.

    Attributes:
        least: Sum of the losses seen, unanswered ones as 0.
        most: Sum of the losses seen, unanswered ones as 1.
        waiting: Questions without an answer so far.
        out: Questions that turned out not to count.
        moved: Draws that moved each target.
        foreseen: Expected variance of the pseudo-outcomes of the last draw that moved it.
        reach: Moving average of the range of pseudo-outcomes.
    """

    def __init__(self, sizes: Floats, rules: Rules, since: Sequence[int] = ()) -> None:
        count = len(sizes)
        self.sizes = sizes
        self.rules = rules
        first = np.array([*since] or [0] * count, np.int64)
        aims, alphas = np.full(count, rules.aim), rules.alphas(count)
        self.sequences = Sequences(aims, alphas, rules.bets, first, rules.thetas(count))
        self._aim()
        self.decisions = rules.decisions(count)
        self.waiting = sizes.copy()
        self.least, self.most, self.out = np.zeros((3, count))
        self.moved = np.zeros(count)
        self.foreseen, self.reach = np.full(count, 0.25), np.ones(count)

    def play(self, bet: Bet, low: Floats, high: Floats, count: Indices, out: Floats) -> None:
        """Play one draw. Draws must be played in order.

        Args:
            bet: The bet on the draw.
            low: Sum of the losses of its questions, unanswered ones as 0.
            high: The same, unanswered ones as 1.
            count: Number of its questions.
            out: How many of them do not count; their losses are not in the sums.
        """
        bet = bet.padded(len(self.sizes))
        if not self.rules.bets.ratio:
            high, out = high + out, np.zeros_like(out)
        a_low = self.least + bet.low_base + bet.scale * (low - bet.low_predicted)
        a_high = self.most + bet.high_base + bet.scale * (high - bet.high_predicted)
        step = Step(
            active=bet.active,
            low=a_low / self.sizes,
            high=a_high / self.sizes,
            lo=(self.least + bet.lo) / self.sizes,
            hi=(self.most + bet.hi) / self.sizes,
            foreseen=bet.foreseen / self.sizes**2,
            tilt=bet.tilt / self.sizes,
            tilt_bound=bet.tilt_bound / self.sizes,
            tilt_most=self.waiting / self.sizes,
            out=self.out / self.sizes,
            out_now=bet.scale * out / self.sizes,
        )
        if self.decisions is not None:
            targets = np.arange(len(self.sizes))
            limits = np.full(len(targets), self.decisions.limit)
            self.decisions.play(*self.sequences.growth(step, targets, limits))
        self.sequences.move(step)
        self._aim()
        self.moved += step.active
        self.foreseen = np.where(step.active, step.foreseen, self.foreseen)
        rate = np.where(step.active, np.maximum(RECENT, 1 / np.maximum(self.moved, 1)), 0.0)
        self.reach = self.reach + rate * (step.hi - step.lo - self.reach)
        self.least += low
        self.most += high
        self.waiting -= count
        self.out += out
        least, most = self.possible()
        self.sequences.bound(least, most)
        if self.decisions is not None:
            self.decisions.settle(least, most)

    @property
    def ages(self) -> Floats:
        """(K,): draws since bets on each target began."""
        return np.maximum(self.sequences.moves - self.sequences.since, 0).astype(float)

    def _aim(self) -> None:
        """Set the half-widths that bets on the next draw aim at."""
        self.sequences.aims = self.rules.aims(self.sequences.centre, self.sequences.moves)

    @property
    def estimate(self) -> Floats:
        """(K,): weighted mean of the draws, clipped to the interval; 1/2 before any."""
        return np.nan_to_num(self.sequences.estimate, nan=0.5)

    def disagreeing(self) -> Bools:
        """Return which targets' draws disagree with their interval (``Sequences.disagreeing``)."""
        return self.sequences.disagreeing(*self.possible())

    def possible(self) -> tuple[Floats, Floats]:
        """Return the least and the largest rate that unanswered questions allow, (K,) each."""
        counting = self.sizes - self.out
        divisor = np.maximum(counting, 1)
        most = np.where(counting > 0, (self.most + self.waiting) / divisor, 1.0)
        return self.least / divisor, most
