"""How every target's interval shrank, draw by draw: the engine's own game, played again.

``unseen`` gives the rate of a slice's questions that were unseen when it began. Its interval is
about all of its questions. The failures that gave rise to it are among them, so a group that
chance made look bad is certified as worse than it would be elsewhere. The losses seen before are
known: without them the same interval bounds the rate of the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..journal.rows import CallRow, DrawRow
from ..types import Floats, Indices
from .game import Bet, Game
from .rules import Rules
from .status import TargetStatus

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts


@dataclass(frozen=True)
class Track:
    """One target after 0 ... T answered draws: ``lower``, ``upper``, ``questions`` (T + 1,).

    ``mean`` is that of the losses seen, NaN before any. ``decided`` (T + 1,): 1 where the target
    was decided to lie above the limit by then, -1 for below, else 0. ``emptied``: whether nothing
    was left of the interval at some moment.
    """

    lower: Floats
    upper: Floats
    questions: Indices
    decided: Indices
    estimate: float
    mean: float
    emptied: bool

    @property
    def half_width(self) -> Floats:
        """(T + 1,): half the length of the interval."""
        return (self.upper - self.lower) / 2


def tracks(
    certificate: "CertificateFacts", draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> list[Track]:
    """One per target, in the order of the certificate, from a journal's rows; see ``played``."""
    return played(certificate, draws, calls)[1]


def played(
    certificate: "CertificateFacts", draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> tuple[Game, list[Track]]:
    """The game as it stands in the end, and the track of every target.

    Draws count up to the first whose call is not answered, as nothing later is learnt from yet.
    """
    sizes = np.array(certificate.sizes, float)
    game = Game(sizes, Rules.of(certificate), certificate.since)
    losses = losses_of(calls, certificate.both)
    asked = {c.call: [row.question for row in c.answers] for c in calls}
    nothing = np.zeros(len(sizes), np.int64)
    history = [(game.sequences.lower, game.sequences.upper, nothing, nothing)]
    for draw in draws:
        if draw.call not in asked:
            break
        members = members_of(certificate, draw, asked[draw.call])
        sums = [[sum(losses[q][part] for q in mine) for mine in members] for part in range(3)]
        least, most, out = np.array(sums, float)
        count = np.array([len(mine) for mine in members], np.int64)
        game.play(Bet.of(draw.moves), least, most, count, out)
        made, decided = game.decisions, nothing
        if made is not None:
            decided = made.above.astype(np.int64) - made.below
        ends = game.sequences.lower, game.sequences.upper
        history.append((*ends, history[-1][2] + count, decided))
    lower, upper, questions, sides = (np.stack(part, axis=1) for part in zip(*history, strict=True))
    measures = [target.measured for target in certificate.ids]
    with np.errstate(invalid="ignore"):
        mean = (game.least + game.most) / 2 / (questions[:, -1] - game.out)
    means = zip(lower, upper, game.estimate.tolist(), mean.tolist(), strict=True)
    figures = [map(of, each) for of, each in zip(measures, means, strict=True)]
    rest = zip(questions, sides, game.sequences.emptied.tolist(), strict=True)
    return game, [
        Track(low, high, seen, decided, estimate, raw, emptied)
        for (low, high, estimate, raw), (seen, decided, emptied) in zip(figures, rest, strict=True)
    ]


def counted_track(status: TargetStatus) -> Track:
    """Where a target stands of which every question is asked: at the start, and now."""
    questions = np.array([0, status.questions])
    mean = status.estimate if status.questions > status.excluded else float("nan")
    ends = np.array([0.0, status.lower]), np.array([1.0, status.upper])
    return Track(*ends, questions, np.zeros(2, np.int64), status.estimate, mean, emptied=False)


def losses_of(calls: Sequence[CallRow], both: bool) -> dict[int, tuple[float, float, float]]:
    """Question -> the loss at least and at most, and 1 where it does not count."""
    losses = {}
    for call in calls:
        for row in call.answers:
            loss, open_ = row.loss or 0.0, row.answer is None and both and not row.excluded
            losses[row.question] = (*((0.0, 1.0) if open_ else (loss, loss)), float(row.excluded))
    return losses


def members_of(
    certificate: "CertificateFacts", draw: DrawRow, asked: Iterable[int]
) -> list[Sequence[int]]:
    """The draw's questions by target, of those ``asked`` the ones of slices that were discovered
    later included."""
    later = [slice_ for slice_ in certificate.slices if slice_.since > draw.draw]
    return [
        *(move.members for move in draw.moves),
        *([q for q in asked if q in slice_.before] for slice_ in later),
    ]


PENDING = (1.0, 0.0, 0.0)
"""What is subtracted for a question whose answer is still to come: what makes the ends widest. One
that will stay unanswered, and counts both ways, is subtracted as it was counted, end by end."""


@dataclass(frozen=True)
class Unseen:
    """The rate of ``questions`` questions lies between ``lower`` and ``upper``, as surely as that
    of the whole slice does."""

    questions: int
    lower: float
    upper: float


def unseen(
    certificate: "CertificateFacts", calls: Sequence[CallRow], ends: Sequence[tuple[float, float]]
) -> list[Unseen | None]:
    """One per slice, of which the interval's ``ends`` are given. None where no question was unseen,
    and where some turned out not to count: nobody knows how many of the others will."""
    losses = losses_of(calls, certificate.both)
    excluded = any(out for _, _, out in losses.values())
    rates: list[Unseen | None] = []
    for slice_, (lower, upper) in zip(certificate.slices, ends, strict=True):
        left = slice_.size - len(slice_.seen)
        seen = [losses.get(question, PENDING) for question in slice_.seen]
        least, most = (sum(loss[part] for loss in seen) for part in (0, 1))
        if excluded or not left:
            rates.append(None)
            continue
        low, high = (lower * slice_.size - least) / left, (upper * slice_.size - most) / left
        rates.append(Unseen(left, min(max(0.0, low), 1.0), min(max(0.0, high), 1.0)))
    return rates
