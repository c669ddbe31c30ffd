"""Where a target stands: the one row that engine, verification, results and reports read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import JournalError
from ..families import TargetId
from ..journal.rows import CallRow, DrawRow
from ..types import JsonObject
from .decisions import ALIKE
from .further import COLUMNS, Range

if TYPE_CHECKING:
    from ..journal.facts import CertificateFacts, Constant


ROW = (
    *("estimate", "lower", "upper", "half_width"),
    *("certified", "emptied", "invalidated", "size"),
)
"""Members of every row in a journal."""


class Difference(NamedTuple):
    """An estimate of R_A - R_B and the interval it lies in, all in [-1, 1]."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class TargetStatus:
    """One target at one moment.

    Attributes:
        id: What the target is about.
        estimate: Of its mean loss, NaN before any answer.
        lower: Lower end of its interval, NaN where nothing is certified.
        upper: Upper end, likewise.
        certified: Whether the target is as precise, or decided, as was asked for.
        emptied: Whether nothing was left of the interval at some moment.
        invalidated: Whether that, or the draws contradict the interval.
        abandoned: Whether nothing more is asked of it although the audit goes on.
        size: Questions in the whole space.
        questions: Questions that were answered.
        excluded: Of these, the ones that turned out not to count.
        drawn: Estimate by the draws alone, without today's predictions.
        variance_ratio: Variance of the draws with predictions over that of uniform ones without.
        effective_draws: Uniform draws that would tell as much.
        more_calls: Forecast of further calls; None where nothing can be forecast.
        decided: Side of ``at_most``: "above", "below" or "open"; None where no side is asked for.
        decision: Of two models, see ``certify.decisions``; None where none are compared.
        pivot: Rate at which two models are alike, and the scale of their difference.
        unanswered: Where everything is asked, questions without an answer; else None.
        images: Where everything is asked, images that the questions were about; else None.
        any_wrong: Share of images with any wrong label, where that is known; else None.
        baseline: The best constant answer, None where there is none.
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
        """The target in words, for people."""
        return self.id.name

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return max(self.upper - self.lower, 0) / 2

    @property
    def reached(self) -> bool:
        """Whether all that was asked of the target is known."""
        return self.certified and self.decided != "open"

    @property
    def difference(self) -> Difference | None:
        """R_A - R_B of two models; None where none are compared."""
        if self.pivot is None:
            return None
        alike, scale = self.pivot
        ends = scale * (self.lower - alike), scale * (self.upper - alike)
        return Difference(scale * (self.estimate - alike), min(ends), max(ends))

    def row(self) -> JsonObject:
        """Return the row that a journal keeps; what audits of its kind do not know is left out."""
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


def stated(
    certificate: "CertificateFacts", rows: Sequence[Mapping[str, Any]]
) -> list[TargetStatus]:
    """Return the statuses that a journal states of a certificate's targets.

    Raises:
        JournalError: A row is missing or damaged.
    """
    try:
        return [
            _of(row, certificate, k)
            for k, (row, _) in enumerate(zip(rows, certificate.ids, strict=True))
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JournalError(
            f"journal: the fact 'intervals' is damaged: expected a row per target, got one that "
            f"does not fit ({error}); restore the journal from a copy"
        ) from None


def _of(row: Mapping[str, Any], certificate: "CertificateFacts", k: int) -> TargetStatus:
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
    certificate: "CertificateFacts | None",
    statuses: Sequence[TargetStatus],
    draws: Sequence[DrawRow],
    calls: Sequence[CallRow],
    known: Collection[int] = (),
) -> list[Compared]:
    """A row per target; [] where no models are compared.

    ``statuses``: where every target stands, in the order of the certificate. ``known``: questions
    about which model A was not asked, as an earlier audit had.
    """
    if certificate is None or certificate.versus is None:
        return []
    answered = {call.call: {row.question: row for row in call.answers} for call in calls}
    paired, rows = certificate.paired, []
    for k, status in enumerate(statuses):
        met = [d for d in draws if d.moves[k].members and d.call in answered]
        answers = [
            answered[draw.call][question]
            for draw in met
            for question in draw.moves[k].members
            if question in answered[draw.call]
        ]
        differ = [answer.loss != ALIKE for answer in answers if not answer.excluded]
        asked = sum(draw.question not in known for draw in met)
        rows.append(
            Compared(
                status.name,
                *(status.difference or (0.0, 0.0, 0.0)),
                decision=str(status.decision),
                questions=len(answers),
                disagreement=sum(differ) / len(differ) if paired and differ else None,
                calls_a=asked if paired else 0,
                calls_b=len(met),
            )
        )
    return rows


def calls_of(
    certificate: "CertificateFacts | None",
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
