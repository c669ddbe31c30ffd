"""The cost of everything in a journal: calls, source images, and replies of a judge model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .base import Journal
from .facts import read_lost
from .rows import CallRow, JudgingRow, SourceRow


@dataclass(frozen=True)
class Spent:
    """The cost of answers.

    ``unconfirmed`` is the part that no server confirmed and that may not have been charged.
    """

    cost: float
    unconfirmed: float


def costs_of(
    calls: Sequence[CallRow], sources: Iterable[SourceRow], judging: Iterable[JudgingRow]
) -> Spent:
    """Return the cost of all rows of a journal.

    The cost of a call is journaled once it is judged. Until then its parts are in ``judging``.
    """
    judged = {call.call for call in calls}
    waiting = [row for row in judging if row.call not in judged]
    rows: list[CallRow | SourceRow | JudgingRow] = [*calls, *sources, *waiting]
    return Spent(sum(row.cost for row in rows), sum(row.unconfirmed for row in rows))


def most_spent(journal: Journal) -> float:
    """Return the most that a journal may have cost which no audit is writing.

    Lost calls count at their worst price. A pending call may have been sent, so it counts as
    lost, as it does when the audit is resumed.
    """
    lost, calls, judging = read_lost(journal.facts()), journal.calls(), journal.judging()
    answered = {row.call for row in calls}
    unjudged = [row for row in judging if row.call not in answered and row.received]
    settled = answered | {row.call for row in unjudged} | set(lost.counted)
    pending = {row.call for row in journal.draws(proposals=False)} - settled
    to_judge = sum(len(row.answers) for row in unjudged)
    known = costs_of(calls, journal.sources(), judging).cost
    return known + lost.cost + len(pending) * lost.worst + to_judge * lost.judge_worst
