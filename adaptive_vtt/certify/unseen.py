"""The rate of a slice's questions that were unseen when it was found.

A slice's interval is about all of its questions. The failures by which it was found are among them,
so a group that chance made look bad is certified as worse than it would be elsewhere. The losses
seen before are known: without them the same interval tells where the rate of the others lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..journal.rows import CallRow
from .tracks import losses_of

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts


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
    found: list[Unseen | None] = []
    for slice_, (lower, upper) in zip(certificate.slices, ends, strict=True):
        left = slice_.size - len(slice_.seen)
        seen = [losses.get(question, PENDING) for question in slice_.seen]
        least, most = (sum(loss[part] for loss in seen) for part in (0, 1))
        if excluded or not left:
            found.append(None)
            continue
        low, high = (lower * slice_.size - least) / left, (upper * slice_.size - most) / left
        found.append(Unseen(left, min(max(0.0, low), 1.0), min(max(0.0, high), 1.0)))
    return found
