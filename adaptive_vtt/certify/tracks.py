"""Tracks: the interval of every target after each draw, from the engine's game played again.

A slice's interval covers all its questions, also the failures that led to its discovery. So a group
that only looks bad by chance has a higher rate than on other questions. ``unseen`` gives the rate
of the questions that were unseen when the slice began. The losses seen before are known, and the
same interval bounds the rate of the others once these are subtracted.
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
    """One target after 0 to T answered draws.

    Attributes:
        lower: (T + 1,) lower ends of its interval.
        upper: (T + 1,) upper ends.
        questions: (T + 1,) answered questions.
        decided: (T + 1,) 1 once the target is decided to lie above the limit, -1 once below it,
            else 0.
        estimate: Estimate after all draws.
        mean: Mean of the losses seen, NaN before any.
        emptied: Whether the interval emptied at some moment.
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
        """(T + 1,): half the lengths of the intervals."""
        return (self.upper - self.lower) / 2


def tracks(
    certificate: "CertificateFacts", draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> list[Track]:
    """Return one track per target, in the order of the certificate; see ``played``."""
    return played(certificate, draws, calls)[1]


def played(
    certificate: "CertificateFacts", draws: Sequence[DrawRow], calls: Sequence[CallRow]
) -> tuple[Game, list[Track]]:
    """Play the game again from a journal's rows.

    Draws count up to the first without an answer, as the engine learns in their order.

    Args:
        certificate: The fact "certificate".
        draws: All draws in order.
        calls: All answered calls.

    Returns:
        The game after all draws, and one track per target.
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
        sums = np.zeros((3, len(sizes)))
        for k, own in enumerate(members):
            sums[:, k] = [sum(losses[q][part] for q in own) for part in range(3)]
        least, most, out = sums
        count = np.array([len(own) for own in members], np.int64)
        game.play(Bet.of(draw.moves), least, most, count, out)
        decisions, decided = game.decisions, nothing
        if decisions is not None:
            decided = decisions.above.astype(np.int64) - decisions.below
        ends = game.sequences.lower, game.sequences.upper
        history.append((*ends, history[-1][2] + count, decided))
    lower, upper, questions, sides = (np.stack(part, axis=1) for part in zip(*history, strict=True))
    with np.errstate(invalid="ignore"):
        mean = (game.least + game.most) / 2 / (questions[:, -1] - game.out)
    estimates, means = game.estimate.tolist(), mean.tolist()
    tracks_of_targets = []
    for k, target in enumerate(certificate.ids):
        ends = target.measured(lower[k]), target.measured(upper[k])
        figures = target.measured(estimates[k]), target.measured(means[k])
        emptied = bool(game.sequences.emptied[k])
        tracks_of_targets.append(Track(*ends, questions[k], sides[k], *figures, emptied))
    return game, tracks_of_targets


def counted_track(status: TargetStatus) -> Track:
    """Return the track of a target in an audit that asks everything: at the start, and now."""
    questions = np.array([0, status.questions])
    mean = status.estimate if status.questions > status.excluded else float("nan")
    ends = np.array([0.0, status.lower]), np.array([1.0, status.upper])
    return Track(*ends, questions, np.zeros(2, np.int64), status.estimate, mean, emptied=False)


def losses_of(calls: Sequence[CallRow], both: bool) -> dict[int, tuple[float, float, float]]:
    """Return question -> least loss, largest loss, and 1 if the question does not count, else 0.

    ``both``: whether unanswered questions count as 0 and as 1.
    """
    losses = {}
    for call in calls:
        for row in call.answers:
            least = most = row.loss or 0.0
            if row.answer is None and both and not row.excluded:
                least, most = 0.0, 1.0
            losses[row.question] = least, most, float(row.excluded)
    return losses


def members_of(
    certificate: "CertificateFacts", draw: DrawRow, asked: Iterable[int]
) -> list[Sequence[int]]:
    """Return a draw's questions of every target, also of slices discovered after it.

    Args:
        certificate: The fact "certificate".
        draw: The draw.
        asked: All questions of its call.
    """
    later = [slice_ for slice_ in certificate.slices if slice_.since > draw.draw]
    return [
        *(move.members for move in draw.moves),
        *([q for q in asked if q in slice_.before] for slice_ in later),
    ]


PENDING = (1.0, 0.0, 0.0)
"""Least and largest loss to subtract for a question whose answer has not come: those that widen the
interval. (Unanswered questions that count both ways are subtracted as counted, end by end.)"""


@dataclass(frozen=True)
class Unseen:
    """Interval of the rate of a slice's questions that were unseen when it began.

    It holds whenever the slice's own interval holds.

    Attributes:
        questions: Number of these questions.
        lower: Lower end, in [0, 1].
        upper: Upper end, in [0, 1].
    """

    questions: int
    lower: float
    upper: float


def unseen(
    certificate: "CertificateFacts", calls: Sequence[CallRow], ends: Sequence[tuple[float, float]]
) -> list[Unseen | None]:
    """Return the rate of each slice's questions that were unseen when it began.

    Args:
        certificate: The fact "certificate".
        calls: All answered calls.
        ends: Lower and upper end of the interval of each slice.

    Returns:
        One rate per slice. None where all its questions had been seen, or where some of the
        audit's questions turned out not to count: how many of the unseen ones do is unknown.
    """
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
