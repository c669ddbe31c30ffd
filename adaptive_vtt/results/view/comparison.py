"""Two runs side by side, and what may be concluded from that.

Each run promises that its intervals hold with probability 1 - alpha at every moment. Both promises
hold together with probability at least 1 - alpha_A - alpha_B (the union bound), whatever the runs
share. While they do, two disjoint intervals of the same target leave no way for the two rates to
be equal. Overlapping ones decide nothing, and a difference of estimates has no interval at all.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ...certify.status import TargetStatus
from ...types import JsonObject
from ...utils.figures import COLOURS, Bar
from ...utils.figures import figure as intervals
from ..runs import Rates

DRAWN = 40
"""Targets that the figure shows, at most; the table has them all."""
Verdict = Literal["lower", "higher", "open", "void"]


class Pair(NamedTuple):
    """A target of both runs."""

    name: str
    a: TargetStatus
    b: TargetStatus

    @property
    def difference(self) -> float:
        """B's estimate less A's: a description, without any guarantee."""
        return self.b.estimate - self.a.estimate

    @property
    def gap(self) -> float:
        """The distance of the intervals, the least difference of the rates; 0 if they overlap."""
        return max(self.a.lower - self.b.upper, self.b.lower - self.a.upper, 0.0)

    @property
    def verdict(self) -> Verdict:
        """The place of B's rate by disjoint intervals, "lower" or "higher" than A's; "open" where
        they overlap; "void" where one of them certifies nothing."""
        if self.a.invalidated or self.b.invalidated:
            return "void"
        if self.b.upper < self.a.lower:
            return "lower"
        return "higher" if self.b.lower > self.a.upper else "open"


class Comparison(NamedTuple):
    """The pairs of two runs.

    Attributes:
        sure: Least probability with which the promises of both runs hold together.
        single: Whether they hold for each target by itself, not for all at once.
        missing: Number of targets that only one run has.
        unlike: Clauses on why rates of one name may mean different things.
    """

    pairs: list[Pair]
    sure: float
    single: bool
    missing: int
    unlike: list[str]

    def count(self, verdict: Verdict) -> int:
        """Return how many pairs have this verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs)


def compare(a: Rates, b: Rates) -> Comparison:
    """Compare the targets that both runs have, in the order of A's certificate."""
    theirs = {row.id: row for row in b.rows}
    pairs = [Pair(row.id.name, row, theirs[row.id]) for row in a.rows if row.id in theirs]
    clauses = {
        "the questions are not the same (other images, labels, relations or seeds of follow-ups), "
        "so that rates may differ because of the questions": a.space != b.space,
        "answers were judged by different oracles, so that a loss is another thing": (
            a.oracle != b.oracle
        ),
        "unanswered questions count differently": a.unanswered != b.unanswered,
    }
    unlike = [clause for clause, holds in clauses.items() if holds]
    missing = len(a.rows) + len(b.rows) - 2 * len(pairs)
    single = "each" in (a.guarantee, b.guarantee)
    return Comparison(pairs, together([a, b]), single, missing, unlike)


def figure(pairs: Sequence[Pair]) -> JsonObject:
    """Return both intervals of the first ``DRAWN`` targets, A's above B's, as Plotly takes it."""
    bars = [
        Bar(f"{side}: {s.name}", s.estimate, s.lower, s.upper, s.certified, signed=s.id.signed)
        for pair in pairs[:DRAWN]
        for side, s in (("A", pair.a), ("B", pair.b))
    ]
    drawn = intervals("", bars)
    # the colours of the letters at the top of the page; Plotly's first row is B's of the last pair
    drawn["data"][0]["marker"]["color"] = [COLOURS["third"], COLOURS["accent"]] * (len(bars) // 2)
    return drawn


def together(runs: Sequence[Rates]) -> float:
    """Return the least probability with which the promises of all ``runs`` hold: the union
    bound."""
    return max(0.0, 1 - sum(1 - run.sure for run in runs))
