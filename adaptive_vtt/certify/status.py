"""Status of a target: the one row that engine, verification, results and reports read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import JournalError
from ..families import TargetId
from ..journal.rows import FIGURES, AnswerRow, CallRow, DrawRow, MoveRow
from ..types import JsonObject
from .decisions import ALIKE
from .further import COLUMNS, Range

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts, Constant


ROW = (
    *("estimate", "lower", "upper", "half_width"),
    *("certified", "emptied", "invalidated", "size"),
)
"""Attributes in every target's row of a journal."""
SCALE = FIGURES.index("scale")
Judged = tuple[MoveRow, Sequence[AnswerRow]]
"""A target's part of an answered draw, and the judged questions in it."""


class Difference(NamedTuple):
    """Estimate and interval of R_A - R_B, all in [-1, 1]."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class TargetStatus:
    """Status of one target at one moment.

    Attributes:
        id: Id of the target, with its name.
        estimate: Estimated figure, such as a rate in [0, 1]; NaN before any answer.
        lower: Lower end of its interval; NaN where nothing is certified.
        upper: Upper end of its interval; NaN where nothing is certified.
        certified: Whether the target is as precise as asked, or decided.
        emptied: Whether the interval emptied at some moment.
        invalidated: Whether the interval emptied, or the draws contradict it.
        abandoned: Whether the audit continues without this target.
        size: Questions of the target in the whole space.
        questions: Answered questions.
        excluded: Answered questions that turned out not to count.
        drawn: Estimate from the draws alone, without today's predictions.
        variance_ratio: Variance of the draws over that of uniform draws without predictions.
        effective_draws: Number of uniform draws with the same variance.
        more_calls: Forecast of further calls; None where it is unknown.
        decided: Side of ``at_most``: "above", "below" or "open"; None without a limit.
        decision: Verdict about two models (``certify.decisions``); None where none are compared.
        pivot: Rate at which two models are equally good, and the scale of their difference.
        unanswered: Questions without an answer, in audits that ask everything; else None.
        images: Images that the questions were about, in audits that ask everything; else None.
        any_wrong: Share of images with any wrong label; None where it is unknown.
        baseline: The best constant answer; None where there is none.
    """

    id: TargetId
    estimate: float
    lower: float
    upper: float
    certified: bool = False
    emptied: bool = False
    invalidated: bool = False
    abandoned: bool = False
    size: int = 0
    questions: int = 0
    excluded: int = 0
    drawn: float | None = None
    variance_ratio: float | None = None
    effective_draws: float | None = None
    more_calls: Range | None = None
    decided: str | None = None
    decision: str | None = None
    pivot: tuple[float, float] | None = field(default=None, repr=False)
    unanswered: int | None = None
    images: int | None = None
    any_wrong: float | None = None
    baseline: "Constant | None" = None

    @property
    def name(self) -> str:
        """Name for people."""
        return self.id.name

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return max(self.upper - self.lower, 0) / 2

    @property
    def reached(self) -> bool:
        """True if the target is as precise and decided as was asked."""
        return self.certified and self.decided != "open"

    @property
    def difference(self) -> Difference | None:
        """Estimate and interval of R_A - R_B; None where no models are compared."""
        if self.pivot is None:
            return None
        alike, scale = self.pivot
        ends = scale * (self.lower - alike), scale * (self.upper - alike)
        return Difference(scale * (self.estimate - alike), min(ends), max(ends))

    def row(self) -> JsonObject:
        """Return the row for the journal, without figures that its kind of audit lacks."""
        row: JsonObject = {"target": self.name, **{name: getattr(self, name) for name in ROW}}
        if self.images is not None:
            names = ("questions", "excluded", "unanswered", "images")
            return row | {name: getattr(self, name) for name in names}
        if self.variance_ratio is not None:
            row |= {"variance_ratio": self.variance_ratio, "effective_draws": self.effective_draws}
            row |= dict(zip(COLUMNS, self.more_calls or (None,) * 3, strict=True))
        optional: JsonObject = {"decided": self.decided, "decision": self.decision}
        optional["pseudo_outcome_mean"] = self.drawn
        return row | {name: value for name, value in optional.items() if value is not None}


def read_statuses(
    certificate: "CertificateFacts", rows: Sequence[Mapping[str, Any]]
) -> list[TargetStatus]:
    """Read the statuses of a certificate's targets from the journal.

    Args:
        certificate: The fact "certificate".
        rows: The rows of the fact "intervals", one per target.

    Raises:
        JournalError: A row is missing or damaged.
    """
    try:
        return [
            _status(row, certificate, k)
            for k, (row, _) in enumerate(zip(rows, certificate.ids, strict=True))
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JournalError(
            f"journal: the fact 'intervals' is damaged: expected a row per target, got one that "
            f"does not fit ({error}); restore the journal from a copy"
        ) from None


def _status(row: Mapping[str, Any], certificate: "CertificateFacts", k: int) -> TargetStatus:
    forecast = [row.get(name) for name in COLUMNS]
    names = ("variance_ratio", "effective_draws", "decided", "decision", "unanswered", "images")
    columns: dict[str, Any] = {
        **{name: float(row[name]) for name in ("estimate", "lower", "upper")},
        **{name: bool(row.get(name)) for name in ("certified", "emptied", "invalidated")},
        **{name: int(row.get(name, 0)) for name in ("questions", "excluded")},
        **{name: row.get(name) for name in names},
    }
    return TargetStatus(
        id=certificate.ids[k],
        size=certificate.sizes[k],
        drawn=row.get("pseudo_outcome_mean"),
        more_calls=None if None in forecast else Range(*(int(n or 0) for n in forecast)),
        pivot=certificate.pivot(k),
        **columns,
    )


# -- two models ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """Status of one target of a comparison of models A and B.

    Attributes:
        target: Name of the target.
        delta: Estimate of R_A - R_B in [-1, 1], above 0 where model B is wrong less often.
        lower: Lower end of its interval.
        upper: Upper end of its interval.
        decision: "better" (model B is), "worse", "within" or "open"; for a claim "holds", "fails"
            or "open".
        questions: Judged questions of the target.
        disagreement: Estimated share of the target's questions with different losses, at least
            the size of ``delta``; None where model A was not asked.
        calls_a: Calls of model A with an answer for the target.
        calls_b: Calls of model B with an answer for the target.
    """

    target: str
    delta: float
    lower: float
    upper: float
    decision: str
    questions: int
    disagreement: float | None = None
    calls_a: int = 0
    calls_b: int = 0


def compared(
    certificate: "CertificateFacts | None",
    statuses: Sequence[TargetStatus],
    draws: Sequence[DrawRow],
    calls: Sequence[CallRow],
    known: Collection[int] = (),
) -> list[Compared]:
    """Return one row per target of a comparison, [] where no models are compared.

    Args:
        certificate: The fact "certificate"; None where nothing is certified.
        statuses: One status per target, in the order of the certificate.
        draws: All draws in order.
        calls: All answered calls.
        known: Questions that model A was not asked, because an earlier audit had its answers.
    """
    if certificate is None or certificate.versus is None:
        return []
    answered = {call.call: {row.question: row for row in call.answers} for call in calls}
    paired, rows = certificate.paired, []
    for k, status in enumerate(statuses):
        moved = [(d.moves[k], answered[d.call]) for d in draws if d.call in answered]
        judged = [(m, [rows[q] for q in m.members if q in rows]) for m, rows in moved]
        touching = [d for d in draws if d.moves[k].members and d.call in answered]
        difference = status.difference or Difference(0.0, 0.0, 0.0)
        apart = disagreement(judged, status.size, abs(difference.estimate)) if paired else None
        rows.append(
            Compared(
                status.name,
                *difference,
                decision=str(status.decision),
                questions=sum(len(answers) for _, answers in judged),
                disagreement=apart,
                calls_a=sum(draw.question not in known for draw in touching) if paired else 0,
                calls_b=len(touching),
            )
        )
    return rows


def disagreement(judged: Iterable[Judged], left: int, least: float) -> float | None:
    """Estimate the share of a target's counting questions with different losses.

    Each draw gives unbiased numbers of both kinds of questions, as in ``certifier`` with
    predictions of 0: those of earlier draws, and its own over their probability. A draw weighs more
    the fewer questions were unseen.

    Args:
        judged: The target's part of each answered draw, in order.
        left: Questions of the target.
        least: Least share that is returned.

    Returns:
        The share; None if no judged question counts.
    """
    seen = sums = np.zeros(2)  # each of differing and counting questions
    for move, answers in judged:
        counting = [answer.loss != ALIKE for answer in answers if not answer.excluded]
        new = np.array([sum(counting), len(counting)])
        sums = sums + move.active * (seen + move.figures[SCALE] * new) / max(left, 1)
        seen, left = seen + new, left - len(answers)
    differing, count = sums if left else seen
    return max(float(differing / count), least) if count else None


def calls_of(
    certificate: "CertificateFacts | None",
    draws: Sequence[DrawRow],
    calls: Sequence[CallRow],
    sources: int,
    known: Collection[int] = (),
) -> tuple[int, int]:
    """Return the answered calls of models A and B.

    Args:
        certificate: The fact "certificate"; None where nothing is certified.
        draws: All draws.
        calls: All answered calls.
        sources: Further answered calls about source images, of each model.
        known: Questions that model A was not asked.
    """
    answered = {call.call for call in calls}
    drawn = [draw.question for draw in draws if draw.call in answered]
    asked = sum(question not in known for question in drawn) + sources
    paired = certificate is not None and certificate.paired
    return asked if paired else 0, len(drawn) + sources
