"""What everything in a journal cost: calls, source images, and the replies of a judge model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .base import Journal
from .facts import read_lost
from .rows import CallRow, JudgingRow, SourceRow


@dataclass(frozen=True)
class Spent:
    """Money that answers cost; ``unconfirmed``: the part that no server confirmed, which may not
    have been charged."""

    cost: float
    unconfirmed: float


def costs_of(
    calls: Sequence[CallRow], sources: Iterable[SourceRow], judging: Iterable[JudgingRow]
) -> Spent:
    """Return what was paid for all that a journal holds.

    Answers that still wait for their judge, and its replies, are not yet in the cost of a call.
    """
    judged = {call.call for call in calls}
    waiting = [row for row in judging if row.call not in judged]
    rows: list[CallRow | SourceRow | JudgingRow] = [*calls, *sources, *waiting]
    return Spent(sum(row.cost for row in rows), sum(row.unconfirmed for row in rows))


def most_spent(journal: Journal) -> float:
    """Return the most that a journal at rest may have cost: answers, and lost calls at their worst
    price.

    A call that waits may have been sent, and counts as lost, as it does where the audit goes on.
    """
    lost, calls, judging = read_lost(journal.facts()), journal.calls(), journal.judging()
    answered = {row.call for row in calls}
    open_ = [row for row in judging if row.call not in answered and row.received]
    settled = answered | {row.call for row in open_} | set(lost.counted)
    waiting = {row.call for row in journal.draws(proposals=False)} - settled
    to_judge = sum(len(row.said) for row in open_)
    known = costs_of(calls, journal.sources(), judging).cost
    return known + lost.cost + len(waiting) * lost.worst + to_judge * lost.judge_worst
