"""How every target's interval shrank, draw by draw: the engine's own game, played again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..journal.rows import CallRow, DrawRow
from ..types import Floats
from .certifier import Move
from .game import Game
from .rules import Rules

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Track:
    """One target after 0 ... T answered draws: ``lower``, ``upper``, ``questions`` (T + 1,).

    ``mean`` is that of the losses seen, NaN before any. ``decided`` (T + 1,): 1 where the target
    was decided to lie above the limit by then, -1 for below, else 0. ``emptied``: whether nothing
    was left of the interval at some moment.
    """

    lower: Floats
    upper: Floats
    questions: Counts
    decided: Counts
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
    lower, upper = [game.sequences.lower], [game.sequences.upper]
    decided = [np.zeros(len(sizes), np.int64)]
    questions = [np.zeros(len(certificate.sizes), np.int64)]
    for draw in draws:
        if draw.call not in asked:
            break
        members = members_of(certificate, draw, asked[draw.call])
        least, most, out = (_sums(members, losses, part) for part in range(3))
        count = np.array([len(mine) for mine in members], np.int64)
        game.play(Move.of(draw.moves), least, most, count, out)
        lower.append(game.sequences.lower)
        upper.append(game.sequences.upper)
        questions.append(questions[-1] + count)
        decided.append(_sides(game, decided[0]))
    estimate = game.estimate
    with np.errstate(invalid="ignore"):
        mean = (game.least + game.most) / 2 / (questions[-1] - game.out)
    emptied = game.sequences.emptied
    ends, sides = np.array([lower, upper]), np.stack(decided, axis=1)
    counts = np.stack(questions, axis=1)
    found = [
        Track(
            ends[0, :, k],
            ends[1, :, k],
            counts[k],
            sides[k],
            float(estimate[k]),
            float(mean[k]),
            bool(emptied[k]),
        )
        for k in range(len(sizes))
    ]
    return game, found


def _sides(game: Game, none: Counts) -> Counts:
    """(K,): see ``Track.decided``."""
    made = game.decisions
    return none if made is None else made.above.astype(np.int64) - made.below


def losses_of(calls: Sequence[CallRow], both: bool) -> dict[int, tuple[float, float, float]]:
    """Question -> the loss at least and at most, and 1 where it does not count."""
    found = {}
    for call in calls:
        for row in call.answers:
            loss, open_ = row.loss or 0.0, row.answer is None and both and not row.excluded
            found[row.question] = (*((0.0, 1.0) if open_ else (loss, loss)), float(row.excluded))
    return found


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


def _sums(
    members: Sequence[Sequence[int]], losses: Mapping[int, tuple[float, float, float]], part: int
) -> Floats:
    """(K,): one of the three figures of ``losses_of`` summed over a draw's questions by target."""
    return np.array([sum(losses[q][part] for q in mine) for mine in members], float)
