"""What a journal of two models says of their difference, target by target, from its rows alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..journal.facts import CertificateFacts
from ..journal.rows import CallRow, DrawRow
from .comparison import Comparison

ALIKE = 0.5
"""The loss of a pair where both models lost alike."""


@dataclass(frozen=True)
class Compared:
    """How one target of a comparison stands.

    ``delta``: the estimated R_A - R_B, above 0 where model B errs less; ``lower`` and ``upper``,
    its interval, in [-1, 1]; ``decision``: "better" (B errs less), "worse", "within" or
    "open"; of a claim "holds", "fails" or "open".
    ``questions``: of it that were judged. ``disagreement``: the share of those that count which
    the models lost differently, no rate of the whole target; None where model A was not asked.
    ``calls_a`` and ``calls_b``: calls of each model that brought an answer to it.
    """

    target: str
    delta: float
    lower: float
    upper: float
    decision: str
    questions: int
    disagreement: float | None
    calls_a: int
    calls_b: int


def compared(
    certificate: CertificateFacts | None,
    rows: Sequence[Mapping[str, Any]],
    draws: Sequence[DrawRow],
    calls: Sequence[CallRow],
    known: Collection[int] = (),
) -> list[Compared]:
    """A row per target; [] where no models are compared.

    ``rows``: where every target stands, in the order of the certificate. ``known``: questions
    about which model A was not asked, as an earlier audit had.
    """
    if certificate is None or certificate.versus is None:
        return []
    comparison = Comparison.of(certificate.versus)
    answered = {call.call: {row.question: row for row in call.answers} for call in calls}
    paired, found = certificate.paired, []
    for k, row in enumerate(rows):
        met = [d for d in draws if d.moves[k].members and d.call in answered]
        told = [
            answered[draw.call][question]
            for draw in met
            for question in draw.moves[k].members
            if question in answered[draw.call]
        ]
        differ = [answer.loss != ALIKE for answer in told if not answer.excluded]
        asked = sum(draw.question not in known for draw in met)
        found.append(
            Compared(
                str(row["target"]),
                *comparison.ends(k, row["estimate"], row["lower"], row["upper"]),
                decision=str(row["decision"]),
                questions=len(told),
                disagreement=sum(differ) / len(differ) if paired and differ else None,
                calls_a=asked if paired else 0,
                calls_b=len(met),
            )
        )
    return found


def calls_of(
    certificate: CertificateFacts | None,
    draws: Sequence[DrawRow],
    calls: Sequence[CallRow],
    sources: int,
    known: Collection[int] = (),
) -> tuple[int, int]:
    """Answered calls of model A, and of model B, ``sources`` about source images among them."""
    answered = {call.call for call in calls}
    drawn = [draw.question for draw in draws if draw.call in answered]
    asked = sum(question not in known for question in drawn) + sources
    paired = certificate is not None and certificate.paired
    return asked if paired else 0, len(drawn) + sources
