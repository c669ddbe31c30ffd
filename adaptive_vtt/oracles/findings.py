"""What a journal's captions and its judge model came to: counts, agreement, cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from ..journal import Journal
from ..journal.facts import read_lost
from ..journal.rows import AnswerRow, CallRow, DrawRow, JudgingRow, SourceRow
from ..utils.figures import USD, money
from .judge_models import JUDGED

Count = Annotated[int, Field(ge=0)]

# -- captions --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Findings:
    """What was found in captions."""

    judged: Annotated[Count, Field(description="follow-ups")]
    comparable: Annotated[Count, Field(description="follow-ups that show something comparable")]
    checked: Annotated[Count, Field(description="objects in them that could be checked")]
    ambiguous: Annotated[
        Count, Field(description="objects partly in view: anything may be said of them")
    ]
    unlocated: Annotated[Count, Field(description="objects that were not found in the image")]
    violations: Count
    distinct: Annotated[Count, Field(description="things (of an image) that violations are about")]

    def __str__(self) -> str:
        return (
            f"{self.comparable} of {self.judged} follow-ups could be checked: {self.violations} "
            f"violations, of {self.distinct} different things"
        )


def judged(calls: Sequence[CallRow]) -> list[AnswerRow]:
    """The answers whose objects were checked, those that do not count left out."""
    answers = (a for call in calls for a in call.answers)
    return [a for a in answers if "objects" in (a.details or {}) and not a.excluded]


def found(calls: Sequence[CallRow], draws: Sequence[DrawRow]) -> Findings | None:
    """None where nothing was about captions."""
    captioned = any("objects" in (a.details or {}) for call in calls for a in call.answers)
    if not captioned:
        return None
    samples = {draw.call: draw.sample for draw in draws}
    details: list[tuple[str, Any]] = [(samples[a.call], a.details) for a in judged(calls)]
    every = [(sample, one) for sample, each in details for one in each["objects"]]
    broken = [(sample, one) for sample, one in every if one["rule"] is not None]
    status = [one["status"] for _, one in every]
    return Findings(
        len(details),
        sum(each["comparable"] for _, each in details),
        status.count("retained") + status.count("disappeared"),
        status.count("ambiguous"),
        status.count("unlocated"),
        len(broken),
        len({(sample, thing(one)) for sample, one in broken}),
    )


def thing(one: Mapping[str, Any]) -> str:
    """What an object of the details is: the detector's label, or else its name."""
    return str(one.get("label") or one["name"])


# -- the judge model -------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgeFindings:
    """What a judge model was asked about replies, and what came of it."""

    asked: Annotated[Count, Field(description="replies that it was asked about")]
    checked: Annotated[Count, Field(description="of those the rule was sure, and decided")]
    settled: Annotated[Count, Field(description="it said what they mean")]
    failed: Annotated[Count, Field(description="no answer came from it: they count as unanswered")]
    compared: Annotated[Count, Field(description="rule and judge both had a verdict")]
    agree: Annotated[Count, Field(description="of those the verdict was the same")]
    cost: Annotated[
        float, Field(ge=0, description="of all it was asked; within the cost of the audit")
    ]

    def __str__(self) -> str:
        return self.told()

    def told(self, currency: str = USD) -> str:
        """All of it in words, its cost in this currency."""
        replies = "1 reply" if self.asked == 1 else f"{self.asked:,} replies"
        told = f"the judge was asked about {replies}"
        told += f" ({self.checked:,} of them to check the rule)" * bool(self.checked)
        told += f" and read {self.settled:,}"
        told += f", {self.failed:,} calls of it failed" * bool(self.failed)
        told += f", for {money(self.cost, currency)} of the cost" * bool(self.cost)
        both = f"; where the rule had a verdict they agree in {self.agree:,} of {self.compared:,}"
        return told + both * bool(self.compared)


def found_by_judge(rows: Iterable[JudgingRow], calls: Sequence[CallRow]) -> JudgeFindings | None:
    """What the journal's ``rows`` and answers tell of a judge; None where none was asked."""
    said = [row for row in rows if not row.received]
    if not said:
        return None
    details = (answer.details or {} for call in calls for answer in call.answers)
    told = [found[JUDGED] for found in details if JUDGED in found]
    both = [one for one in told if one["judge"] is not None and one["rule"] is not None]
    return JudgeFindings(
        asked=len(said),
        checked=sum(one["sure"] for one in told),
        settled=sum(one["judge"] is not None for one in told),
        failed=sum(isinstance(row.said[0], dict) for row in said),
        compared=len(both),
        agree=sum(one["judge"] == one["rule"] for one in both),
        cost=sum(row.cost for row in said),
    )


def cost_of(
    calls: Sequence[CallRow], sources: Iterable[SourceRow], judging: Iterable[JudgingRow]
) -> float:
    """What was paid for all that a journal holds: answers that still wait for their judge, and what
    it said of them, are not yet in the cost of a call."""
    return sum(row.cost for row in _paid(calls, sources, judging))


def unconfirmed_of(
    calls: Sequence[CallRow], sources: Iterable[SourceRow], judging: Iterable[JudgingRow]
) -> float:
    """The part of ``cost_of`` that no server confirmed: it may not have been charged."""
    return sum(row.unconfirmed for row in _paid(calls, sources, judging))


def _paid(
    calls: Sequence[CallRow], sources: Iterable[SourceRow], judging: Iterable[JudgingRow]
) -> Iterator[CallRow | SourceRow | JudgingRow]:
    judged = {call.call for call in calls}
    yield from calls
    yield from sources
    yield from (row for row in judging if row.call not in judged)


@dataclass(frozen=True)
class Taken:
    """Money that the answers of a journal cost, ``spent``; that, and what calls without an answer
    may have cost at most, ``money``; and its ``calls``."""

    spent: float
    money: float
    calls: int


def taken(journal: Journal) -> Taken:
    """What a journal at rest tells: answers at what they cost, lost calls at their worst price.

    A call that waits may have been sent, and counts as lost, as it does where the audit goes on.
    """
    lost, calls, sources = read_lost(journal.facts()), journal.calls(), journal.sources()
    draws, judging = journal.draws(proposals=False), journal.judging()
    answered = {row.call for row in calls}
    open_ = [row for row in judging if row.call not in answered]
    spent = cost_of(calls, sources, judging)
    received = {row.call for row in open_ if row.received}
    waiting = {row.call for row in draws} - answered - received - set(lost.counted)
    to_judge = sum(len(row.said) for row in open_ if row.received)
    most = spent + lost.cost + len(waiting) * lost.worst + to_judge * lost.judge_worst
    return Taken(spent, most, len(draws) + len(sources))
