"""Every interval anew, from the rows of a journal, by code that shares nothing with the engine.

One target at a time, one draw at a time, as the docstrings of
``certifier`` and ``sequences`` define it: no GP, no candidates, no vectors over targets.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import JournalError
from ..journal import FIGURES, Journal, check_chain, with_law
from ..journal.facts import read_facts
from ..journal.migrations import check_old_seals
from ..journal.rows import EXCLUDED, CallRow, DrawRow, MoveRow
from .verify_draws import check_draws

if TYPE_CHECKING:
    from ..journal.facts import BetFacts, CertificateFacts

GRID = [i / 1000 for i in range(1001)]
BETWEEN = 3.5
LEAST = 1e-9
NOTHING = 1e-300
"""Where a bet has less room than this, or none, nothing can be lost: its cap is out of reach."""
AGREE = 1e-7
"""Sums taken in another order differ by rounding; by no more than this."""


@dataclass(frozen=True)
class Interval:
    """What one target's rows come to."""

    target: str
    lower: float
    upper: float
    estimate: float
    emptied: bool = False
    astray: bool = False


def verify(journal: Journal) -> list[Interval]:
    """Checks every row, and recomputes every interval.

    Raises JournalError naming the first thing that is wrong: a damaged file, a row that is
    missing, was added or was altered, a law that does not sum to one, a draw that does not
    follow from the key and its law (see ``verify_draws``), a question that counts for a target
    twice, an interval that is not what the rows come to. Finds damage and careless edits;
    against someone who rewrites the whole chain, compare ``journal.head`` with a copy kept
    elsewhere.
    """
    journal.check_storage()
    draws, calls = journal.draws(laws=False), journal.calls()
    check_chain(journal, draws, calls)
    check_old_seals(journal)
    _check_draws(draws, calls)
    facts = read_facts(journal.facts())
    certificate = facts.certificate
    losses = _losses(calls, certificate is not None and certificate.both)
    whole = (with_law(journal, draw) for draw in draws)
    check_draws(facts, whole, {c.call for c in calls}, losses)
    intervals = recompute(certificate, draws, calls)
    if certificate is not None and facts.intervals is not None:
        _compare(intervals, facts.intervals, certificate.aim)
    return intervals


def recompute(
    certificate: "CertificateFacts | None", draws: list[DrawRow], calls: list[CallRow]
) -> list[Interval]:
    """Every target's interval from a journal's fact "certificate" and its rows; [] where the
    audit certifies nothing."""
    if certificate is None:
        return []
    losses = _losses(calls, certificate.both)
    there = {c.call for c in calls}
    answered = []
    for draw in draws:
        if draw.call not in there:
            break  # what comes after an open call is not learnt from yet
        answered.append(draw)
    return [
        _interval(name, k, certificate, answered, losses)
        for k, name in enumerate(certificate.targets)
    ]


def _losses(calls: list[CallRow], both: bool) -> dict[int, tuple[float, float]]:
    """Question -> the loss at least and at most."""
    found = {}
    for call in calls:
        for row in call.answers:
            if row.loss is not None:
                if not 0 <= row.loss <= 1:  # NaN is not
                    raise JournalError(
                        f"verify: question {row.question}: expected a loss in 0..1, got {row.loss}"
                    )
                excluded = (row.unanswered or "").startswith(EXCLUDED)
                open_ = row.answer is None and (both or excluded)
                found[row.question] = (0.0, 1.0) if open_ else (row.loss, row.loss)
    return found


def _interval(
    name: str,
    k: int,
    certificate: "CertificateFacts",
    draws: list[DrawRow],
    losses: dict[int, tuple[float, float]],
) -> Interval:
    alpha = (1 - certificate.confidence) / len(certificate.sizes)
    game = _Game(certificate.sizes[k], certificate.aim, alpha, certificate.bets)
    lower, upper = 0.0, 1.0
    seen: set[int] = set()
    for draw in draws:
        row = draw.moves[k]
        if seen.intersection(row.members):
            raise JournalError(f"verify: draw {draw.draw} counts a question of {name!r} twice")
        seen.update(row.members)
        least = sum(losses[q][0] for q in row.members)
        most = sum(losses[q][1] for q in row.members)
        game.play(row, least, most)
        low, high = game.interval(len(seen))
        if low <= high + LEAST:  # an interval that empties stays the last that was not
            lower, upper = low, high
        else:
            game.emptied = True
    estimate = min(max(game.estimate(), lower), upper)
    return Interval(name, lower, upper, estimate, game.emptied, game.astray(len(seen)))


class _Game:
    """The two bettors of one target, against the means ``m`` that are still possible."""

    def __init__(self, size: int, aim: float, alpha: float, bets: "BetFacts") -> None:
        self.size, self.aim, self.alpha = size, aim, alpha
        self.cap, self.eagerness = bets.cap, bets.eagerness
        self.first, self.most_skew = bets.prior, bets.most_skew
        self.rising = np.zeros(len(GRID))
        self.falling = np.zeros(len(GRID))
        self.m = np.array(GRID)
        self.spread = self.m * (1 - self.m)
        self.least = self.most = 0.0
        self.lower, self.upper = 0.0, 1.0
        self.emptied = False
        self.strayed, self.plays = self.first, 0
        self.precision = self.weighted = self.prior = 0.0
        self.weight = self.total = 0.0

    def centre(self) -> float:
        if self.precision + self.prior == 0:
            return 0.5
        mean = (self.weighted + 0.5 * self.prior) / (self.precision + self.prior)
        return min(max(mean, 0.02), 0.98)

    def estimate(self) -> float:
        return self.total / self.weight if self.weight else 0.5

    def play(self, row: MoveRow, least: float, most: float) -> None:
        """One draw: bets fixed by the past, then the losses."""
        move = dict(zip(FIGURES, row.figures, strict=True))
        size, centre = self.size, self.centre()
        foreseen = move["foreseen"] / size**2
        low = self.least + move["low_base"] + move["scale"] * (least - move["low_predicted"])
        high = self.most + move["high_base"] + move["scale"] * (most - move["high_predicted"])
        low, high = low / size, high / size
        if row.active:
            away = self.m - centre
            swing = abs(away) * (move["tilt_bound"] / size)
            above = self.m - (self.least + move["lo"]) / size + swing
            below = (self.most + move["hi"]) / size + swing - self.m
            bet = self._bet(foreseen, centre)
            up = np.minimum(bet, self.cap / np.maximum(above, NOTHING))
            down = np.minimum(bet, self.cap / np.maximum(below, NOTHING))
            from_mean = away * (move["tilt"] / size) - self.m
            self.rising += np.log1p(up * (from_mean + low))
            self.falling += np.log1p(-down * (from_mean + high))
        self._note(row.active, (low + high) / 2, max(foreseen, LEAST), centre)
        if row.active:
            self._cut()
        self.least += least
        self.most += most

    def _bet(self, foreseen: float, centre: float) -> Any:
        skew = self.spread / (centre * (1 - centre))
        skew = np.minimum(np.maximum(skew, 1 / self.most_skew), self.most_skew)
        variance = max(foreseen * self.strayed / (self.first + self.plays), LEAST)
        return self.eagerness * self.aim / (variance * skew)

    def _note(self, active: bool, outcome: float, foreseen: float, centre: float) -> None:
        if self.plays == 0:
            self.prior = self.first / foreseen
        self.strayed += (outcome - centre) ** 2 / foreseen if active else 1.0
        if active:
            weight = centre * (1 - centre) / foreseen
            self.weight += weight
            self.total += weight * outcome
            self.precision += 1 / foreseen
            self.weighted += outcome / foreseen
        self.plays += 1

    def _cut(self) -> None:
        """Narrows the interval; means outside never come back, and are bet against no more."""
        places = range(len(self.m))
        first, last = self._left_among(places), self._left_among(reversed(places))
        if first is None or last is None:
            self.emptied |= self.upper - self.lower > BETWEEN * GRID[1]
            return
        lower, upper = max(self.lower, first - GRID[1]), min(self.upper, last + GRID[1])
        if (lower, upper) == (self.lower, self.upper):
            return
        self.lower, self.upper = lower, upper
        edge = GRID[1] / 2
        start, stop = np.searchsorted(self.m, [lower - edge, upper + edge])
        columns = (self.m, self.spread, self.rising, self.falling)
        self.m, self.spread, self.rising, self.falling = (c[start:stop] for c in columns)

    def _left_among(self, places: Iterable[int]) -> float | None:
        """The first mean, of those at ``places``, that the two bettors have not ruled out."""
        for place in places:
            wealth = np.logaddexp(self.rising[place], self.falling[place]) - math.log(2)
            if wealth < -math.log(self.alpha):
                return float(self.m[place])
        return None

    def interval(self, seen: int) -> tuple[float, float]:
        """What the bets leave, and what the questions seen leave."""
        least, most = self._left(seen)
        return max(self.lower, least), min(self.upper, most)

    def astray(self, seen: int) -> bool:
        """Whether the draws' mean, as far as questions seen allow it, lies outside the bets'."""
        least, most = self._left(seen)
        mean = min(max(self.estimate(), least), max(least, most))
        return self.weight > 0 and not self.lower - LEAST <= mean <= self.upper + LEAST

    def _left(self, seen: int) -> tuple[float, float]:
        return self.least / self.size, (self.most + self.size - seen) / self.size


def _check_draws(draws: list[DrawRow], calls: list[CallRow]) -> None:
    for number, draw in enumerate(draws):
        if draw.draw != number:
            raise JournalError(f"verify: draw {number} is missing")
    numbers = {draw.call for draw in draws}
    for call in calls:
        if call.call not in numbers:
            raise JournalError(f"verify: the draw of call {call.call} is missing")


def _compare(intervals: list[Interval], stated: list[dict[str, Any]], aim: float) -> None:
    for found, row in zip(intervals, stated, strict=True):
        width = (found.upper - found.lower) / 2
        ours = {
            "target": found.target,
            "lower": found.lower,
            "upper": found.upper,
            "half_width": width,
        }
        # in journals of earlier versions the draws' own mean is the only estimate
        drawn = "pseudo_outcome_mean" if "pseudo_outcome_mean" in row else "estimate"
        ours[drawn] = found.estimate
        if abs(width - aim) > AGREE:  # else rounding decides
            ours["certified"] = width <= aim and not (found.emptied or found.astray)
        wrong = [name for name, value in ours.items() if not _agrees(value, row.get(name))]
        if wrong:
            raise JournalError(
                f"verify: {found.target!r}: the rows come to [{found.lower:.4f}, "
                f"{found.upper:.4f}] around {found.estimate:.4f}, the journal says otherwise: "
                + ", ".join(f"{name} {row.get(name)}" for name in wrong)
            )
        _check_estimate(found, row.get("estimate"))


def _check_estimate(found: Interval, estimate: Any) -> None:
    """Raises JournalError where the estimate is no number within the interval. Predictions
    entered it that no journal holds, so that it cannot be recomputed."""
    number = isinstance(estimate, int | float) and not isinstance(estimate, bool)
    if not number or not found.lower - AGREE <= estimate <= found.upper + AGREE:
        raise JournalError(
            f"verify: {found.target!r}: expected an estimate within [{found.lower:.4f}, "
            f"{found.upper:.4f}], the journal says {estimate}"
        )


def _agrees(found: Any, stated: Any) -> bool:
    if isinstance(found, float) and isinstance(stated, float):
        return abs(found - stated) <= AGREE
    return bool(found == stated)
