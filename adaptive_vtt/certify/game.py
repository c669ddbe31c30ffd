"""The betting game of K targets: what their draws' losses make of their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..journal.rows import FIGURES, MoveRow
from ..types import Bools, Floats, Indices
from .rules import Rules
from .sequences import Sequences, Step

RECENT = 0.1
"""Weight of a draw's range in the mean of recent ones."""


@dataclass(frozen=True)
class Bet:
    """What a draw fixes for K targets before its call is sent; arrays are (K,).

    ``active``: m > 0. ``low_base`` and ``high_base`` are r times the sum of F, for a+ and
    a-; ``low_predicted`` and ``high_predicted`` are F_I; ``scale`` is r / q(I). ``lo`` <=
    N a+ - S and N a- - S <= ``hi``. ``foreseen`` is the likely variance of N a. ``tilt`` is
    what moving every f by one adds to N a; it lies between -``tilt_bound`` and the target's
    unseen questions. ``uniform`` is what ``scale`` would be were the proposal's mass on the target
    spread evenly over it. The last four are for the draw after.
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
        """One row per target for the journal; ``inside`` K x n says whose the questions are."""
        figures = np.stack([getattr(self, name) for name in FIGURES], axis=1)
        return tuple(
            MoveRow(k, tuple(questions[inside[k]].tolist()), bool(self.active[k]), tuple(row))
            for k, row in enumerate(figures.tolist())
        )

    def padded(self, count: int) -> "Bet":
        """The bet on a draw that was made before the last of ``count`` targets were discovered:
        it does not move them."""
        missing = count - len(self.active)
        if not missing:
            return self
        return Bet(**{f.name: np.pad(getattr(self, f.name), (0, missing)) for f in fields(self)})

    @classmethod
    def of(cls, rows: tuple[MoveRow, ...]) -> "Bet":
        """The bet that ``rows`` tell of."""
        table = np.array([row.figures for row in rows])
        active = np.array([row.active for row in rows])
        return cls(active, **dict(zip(FIGURES, table.T, strict=True)))


class Game:
    """S and the confidence sequence of every target; arrays are (K,).

    ``sizes``: how many questions each has; ``rules``: what is aimed at, and how surely; ``since``:
    the draw that each target's bets start with (``Sequences``). Before it only S is counted.
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
        self.waiting = sizes.copy()  # questions not answered
        self.least = np.zeros(len(sizes))  # S, unanswered losses as 0
        self.most = np.zeros(len(sizes))  # S, unanswered losses as 1
        self.out = np.zeros(len(sizes))  # questions that turned out not to count
        self.moved = np.zeros(count)  # draws that each target was bet on
        self.foreseen, self.reach = np.full(count, 0.25), np.ones(count)  # of recent ones

    def play(self, bet: Bet, low: Floats, high: Floats, count: Indices, out: Floats) -> None:
        """One draw: its ``bet``, the sums of its losses at least and at most, how many there are,
        and how many of them do not count (``out``; their losses are not in the sums). Draws must be
        played in their order."""
        bet = bet.padded(len(self.sizes))
        if not self.rules.bets.ratio:
            high, out = high + out, np.zeros_like(out)
        a_low = self.least + bet.low_base + bet.scale * (low - bet.low_predicted)
        a_high = self.most + bet.high_base + bet.scale * (high - bet.high_predicted)
        step = Step(
            bet.active,
            a_low / self.sizes,
            a_high / self.sizes,
            (self.least + bet.lo) / self.sizes,
            (self.most + bet.hi) / self.sizes,
            bet.foreseen / self.sizes**2,
            bet.tilt / self.sizes,
            bet.tilt_bound / self.sizes,
            self.waiting / self.sizes,
            self.out / self.sizes,
            bet.scale * out / self.sizes,
        )
        if self.decisions is not None:
            everywhere = np.full(len(self.sizes), self.decisions.limit)
            self.decisions.play(
                *self.sequences.growth(step, np.arange(len(self.sizes)), everywhere)
            )
        self.sequences.move(step)
        self._aim()
        self._note(step)
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
        """(K,): draws since each target's bets began."""
        return np.maximum(self.sequences.moves - self.sequences.since, 0).astype(float)

    def _note(self, step: Step) -> None:
        """What is known of the draws to come: variance and range of the pseudo-outcomes."""
        on = step.active
        self.moved += on
        self.foreseen = np.where(on, step.foreseen, self.foreseen)
        weight = np.where(on, np.maximum(RECENT, 1 / np.maximum(self.moved, 1)), 0.0)
        self.reach = self.reach + weight * (step.hi - step.lo - self.reach)

    def _aim(self) -> None:
        """Sets what the bets on the next draw aim at."""
        self.sequences.aims = self.rules.aims(self.sequences.centre, self.sequences.moves)

    @property
    def estimate(self) -> Floats:
        """The weighted mean of the draws, kept within the interval; 1/2 before any."""
        return np.nan_to_num(self.sequences.estimate, nan=0.5)

    def disagreeing(self) -> Bools:
        """Whether each estimate had to be moved to lie within what the bets leave."""
        return self.sequences.disagreeing(*self.possible())

    def possible(self) -> tuple[Floats, Floats]:
        """(K,) each: the least and the largest rate that the questions not answered yet allow."""
        counting = self.sizes - self.out
        some = np.maximum(counting, 1)
        return self.least / some, np.where(counting > 0, (self.most + self.waiting) / some, 1.0)
