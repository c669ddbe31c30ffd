"""Counts, from a journal, of what was found in captions and of a judge model's verdicts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from ..journal.rows import AnswerRow, CallRow, DrawRow, JudgingRow
from ..utils.figures import USD, money
from ..utils.web import text_of
from .judge_models import JUDGED

Count = Annotated[int, Field(ge=0)]

# -- captions --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """Counts of the objects in captions."""

    judged: Annotated[Count, Field(description="follow-ups")]
    comparable: Annotated[Count, Field(description="follow-ups that show something comparable")]
    checked: Annotated[Count, Field(description="objects in them that could be checked")]
    ambiguous: Annotated[Count, Field(description="objects partly in view, which may be named")]
    unlocated: Annotated[Count, Field(description="objects that were not located in the image")]
    violations: Count
    distinct: Annotated[Count, Field(description="things (of an image) that violations are about")]

    def __str__(self) -> str:
        checked = f"{self.comparable} of {self.judged} follow-ups could be checked"
        return f"{checked}: {self.violations} violations, of {self.distinct} different things"


def judged(calls: Sequence[CallRow]) -> list[AnswerRow]:
    """Return the answers whose objects were checked, without excluded ones."""
    answers = (a for call in calls for a in call.answers)
    return [a for a in answers if "objects" in (a.details or {}) and not a.excluded]


def caption_findings(calls: Sequence[CallRow], draws: Sequence[DrawRow]) -> Findings | None:
    """Return the counts of a journal's captions, None if nothing was about captions."""
    if not any("objects" in (a.details or {}) for call in calls for a in call.answers):
        return None
    samples = {draw.call: draw.sample for draw in draws}
    answers: list[tuple[str, Any]] = [(samples[a.call], a.details) for a in judged(calls)]
    objects = [(sample, object_) for sample, details in answers for object_ in details["objects"]]
    violations = [(sample, object_) for sample, object_ in objects if object_["rule"] is not None]
    status = Counter(object_["status"] for _, object_ in objects)
    return Findings(
        judged=len(answers),
        comparable=sum(details["comparable"] for _, details in answers),
        checked=status["retained"] + status["disappeared"],
        ambiguous=status["ambiguous"],
        unlocated=status["unlocated"],
        violations=len(violations),
        distinct=len({(sample, thing(object_)) for sample, object_ in violations}),
    )


def thing(object_: Mapping[str, Any]) -> str:
    """Return an object's kind: the detector's label, else its name."""
    return str(object_.get("label") or object_["name"])


# -- the judge model -------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgeFindings:
    """Counts of a judge model's questions and verdicts."""

    asked: Annotated[Count, Field(description="replies that it was asked about")]
    checked: Annotated[Count, Field(description="of these, replies that the rule decided")]
    settled: Annotated[Count, Field(description="replies that it read")]
    failed: Annotated[Count, Field(description="calls that failed: they count as unanswered")]
    compared: Annotated[Count, Field(description="replies with a verdict of rule and judge")]
    agree: Annotated[Count, Field(description="of these, replies with the same verdict")]
    cost: Annotated[float, Field(ge=0, description="its cost; part of the audit's")]

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, currency: str = USD) -> str:
        """Return the counts in one sentence, with the cost in this currency."""
        price = money(self.cost, currency)
        return text_of(__package__, "judge.txt", counts=self, price=price).strip()


def judge_findings(rows: Iterable[JudgingRow], calls: Sequence[CallRow]) -> JudgeFindings | None:
    """Return the counts of a journal's judge, None if none was asked."""
    replies = [row for row in rows if not row.received]
    if not replies:
        return None
    details = (answer.details or {} for call in calls for answer in call.answers)
    verdicts = [answer[JUDGED] for answer in details if JUDGED in answer]
    both = [v for v in verdicts if v["judge"] is not None and v["rule"] is not None]
    return JudgeFindings(
        asked=len(replies),
        checked=sum(verdict["sure"] for verdict in verdicts),
        settled=sum(verdict["judge"] is not None for verdict in verdicts),
        failed=sum(isinstance(row.answers[0], dict) for row in replies),
        compared=len(both),
        agree=sum(verdict["judge"] == verdict["rule"] for verdict in both),
        cost=sum(row.cost for row in replies),
    )
