"""How every target's interval shrank, draw by draw, computed again from the journal's rows.

The recursions are those of ``certify.sequences``. There they run over targets, one draw at
a time; here over the draws, one target at a time, because bets need only past outcomes and
not the wealth, and what an interval has left behind is never looked at again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..certify import sequences
from ..journal import FIGURES
from ..journal.rows import AnswerRow
from .evidence import Evidence

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

CHUNK = 128
"""Draws taken together; after them the grid is cut to the interval."""
GRID: Floats = np.linspace(0, 1, sequences.GRID)


@dataclass(frozen=True)
class Track:
    """One target after 0 ... T answered draws: ``lower``, ``upper``, ``questions`` (T + 1,).

    ``mean`` is that of the losses seen, NaN before any.
    """

    lower: Floats
    upper: Floats
    questions: Counts
    estimate: float
    mean: float

    @property
    def half_width(self) -> Floats:
        """(T + 1,): half the length of the interval."""
        return (self.upper - self.lower) / 2


def history(evidence: Evidence) -> list[Track]:
    """One track per target, in the order of the certificate."""
    certificate = evidence.certificate
    if certificate is None:
        return []
    answered = {c.call for c in evidence.calls}
    open_ = (i for i, d in enumerate(evidence.draws) if d.call not in answered)
    draws = evidence.draws[: next(open_, len(evidence.draws))]
    losses = {q: _loss(row, certificate["unanswered"] == "both")
              for q, row in evidence.answers.items()}  # fmt: skip
    alpha = (1 - certificate["confidence"]) / len(certificate["sizes"])
    return [
        _track([d.moves[k] for d in draws], losses, size, certificate["aim"], alpha)
        for k, size in enumerate(certificate["sizes"])
    ]


def _loss(row: AnswerRow, both: bool) -> tuple[float, float]:
    """The loss at least and at most."""
    loss = row.loss or 0.0
    return (0.0, 1.0) if row.answer is None and (both or row.excluded) else (loss, loss)


def _track(
    moves: list[Any], losses: Mapping[int, tuple[float, float]], size: int, aim: float, alpha: float
) -> Track:
    figures = np.array([m.figures for m in moves]).reshape(len(moves), FIGURES).T
    active = np.array([m.active for m in moves], bool)
    count = np.array([len(m.members) for m in moves], np.int64)
    least = np.array([sum(losses[q][0] for q in m.members) for m in moves], float)
    most = np.array([sum(losses[q][1] for q in m.members) for m in moves], float)
    game = _Game(size, figures, active, count, least, most)
    lower, upper = game.play(aim, alpha)
    questions = np.concatenate([[0], count.cumsum()])
    seen = questions[-1]
    return Track(
        lower,
        upper,
        questions,
        game.estimate(float(lower[-1]), float(upper[-1])),
        float((least + most).sum() / 2 / seen) if seen else float("nan"),
    )


class _Game:
    """One target's bets over T draws; every array is (T,) and in units of the target's mean."""

    def __init__(
        self,
        size: int,
        figures: Floats,
        active: npt.NDArray[np.bool_],
        count: Counts,
        least: Floats,
        most: Floats,
    ) -> None:
        self.active = active
        low_base, high_base, _, _, scale, lo, hi, foreseen, *tilts = figures[:10] / size
        self.tilt, self.tilt_bound = tilts
        low_predicted, high_predicted = figures[2:4]
        seen_least, seen_most = _before(least) / size, _before(most) / size
        self.low = seen_least + low_base + scale * (least - low_predicted)
        self.high = seen_most + high_base + scale * (most - high_predicted)
        self.lo, self.hi = seen_least + lo, seen_most + hi
        self.foreseen = foreseen / size
        waiting = 1 - count.cumsum() / size
        self.floor = least.cumsum() / size
        self.ceiling = most.cumsum() / size + waiting
        self._learn()

    def _learn(self) -> None:
        """``centre`` (T + 1,) and the variance that bets reckon with, from the past alone."""
        known = np.maximum(self.foreseen, sequences.LEAST_VARIANCE)
        outcome = (self.low + self.high) / 2
        prior = sequences.PRIOR / known[0] if len(known) else 1.0
        self.precision = np.concatenate([[0.0], np.cumsum(self.active / known)])
        self.weighted = np.concatenate([[0.0], np.cumsum(self.active * outcome / known)])
        centre = (self.weighted + 0.5 * prior) / (self.precision + prior)
        self.centre = np.clip(centre, 0.02, 0.98)
        before = self.centre[:-1]
        weight = self.active * before * (1 - before) / known
        self.weight, self.total = float(weight.sum()), float((weight * outcome).sum())
        strayed = np.where(self.active, (outcome - self.centre[:-1]) ** 2 / known, 1.0)
        stray = (sequences.PRIOR + _before(strayed)) / (sequences.PRIOR + np.arange(len(known)))
        self.variance = np.maximum(self.foreseen * stray, sequences.LEAST_VARIANCE)

    def play(self, aim: float, alpha: float) -> tuple[Floats, Floats]:
        """Lower and upper ends (T + 1,) after each draw."""
        lower, upper = [np.zeros(1)], [np.ones(1)]
        rising, falling = np.zeros(len(GRID)), np.zeros(len(GRID))
        for start in range(0, len(self.active), CHUNK):
            part = slice(start, start + CHUNK)
            kept = (lower[-1][-1] <= GRID) & (upper[-1][-1] >= GRID)
            up, down = self._growth(part, GRID[kept], aim)
            up[0] += rising[kept]
            down[0] += falling[kept]
            up, down = up.cumsum(axis=0), down.cumsum(axis=0)
            rising[kept], falling[kept] = up[-1], down[-1]
            inside = np.logaddexp(up, down) - np.log(2) < -np.log(alpha)
            first, last = _ends(inside, GRID[kept])
            lower.append(np.maximum.accumulate(np.maximum(first, lower[-1][-1])))
            upper.append(np.minimum.accumulate(np.minimum(last, upper[-1][-1])))
        low = np.maximum(np.concatenate(lower), np.concatenate([[0.0], self.floor]))
        high = np.minimum(np.concatenate(upper), np.concatenate([[1.0], self.ceiling]))
        # an interval that empties stays the last that was not
        last = np.maximum.accumulate(np.where(low <= high + sequences.EDGE, np.arange(len(low)), 0))
        return low[last], high[last]

    def _growth(self, part: slice, grid: Floats, aim: float) -> tuple[Floats, Floats]:
        """Logarithms, draws x grid, of what each draw multiplies K+ and K- by."""

        def column(values: Floats) -> Floats:
            return values[part, None]

        centre = column(self.centre[:-1])
        away = grid - centre
        swing = np.abs(away) * column(self.tilt_bound)
        skew = grid * (1 - grid) / (centre * (1 - centre))
        skew = np.clip(skew, 1 / sequences.MOST_SKEW, sequences.MOST_SKEW)
        bet = sequences.EAGERNESS * aim / (column(self.variance) * skew)
        below = grid - column(self.lo) + swing
        above = column(self.hi) - grid + swing
        with np.errstate(divide="ignore"):
            most_up = np.where(below > 0, sequences.CAP / below, np.inf)
            most_down = np.where(above > 0, sequences.CAP / above, np.inf)
        lean = away * column(self.tilt) - grid
        up = np.log1p(np.minimum(bet, most_up) * (column(self.low) + lean))
        down = np.log1p(-np.minimum(bet, most_down) * (column(self.high) + lean))
        moved = column(self.active.astype(float))
        return moved * up, moved * down

    def estimate(self, lower: float, upper: float) -> float:
        """The weighted mean of the pseudo-outcomes, kept within the interval."""
        if not self.weight:
            return 0.5
        return float(np.clip(self.total / self.weight, lower, upper))


def _before(values: Floats) -> Floats:
    """(T,): the sum of what came before each place."""
    return np.concatenate([[0.0], values.cumsum()])[:-1]


def _ends(inside: npt.NDArray[np.bool_], grid: Floats) -> tuple[Floats, Floats]:
    """First and last point inside, a grid cell further out; the whole line where none is."""
    cell, some = GRID[1], inside.any(axis=1)
    first = grid[inside.argmax(axis=1)] - cell
    last = grid[inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)] + cell
    return np.where(some, first, -np.inf), np.where(some, last, np.inf)
