"""Two runs beside each other, and what may be concluded from that.

Each run promises that its intervals hold with probability 1 - alpha at every moment. Both promises
hold together with probability at least 1 - alpha_A - alpha_B (the union bound), whatever the runs
share. While they do, two disjoint intervals of the same target leave no way for the two rates to
be equal. Overlapping ones decide nothing, and a difference of estimates has no interval at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..runs import Rate, Rates
from ..utils.rounding import outward

Verdict = Literal["lower", "higher", "open", "void"]


@dataclass(frozen=True)
class Pair:
    """A target of both runs. ``verdict``: whether B's rate lies "lower" or "higher" than A's, by
    disjoint intervals; "open" where they overlap; "void" where one of them certifies nothing."""

    name: str
    a: Rate
    b: Rate

    @property
    def difference(self) -> float:
        """B's estimate less A's: a description, without any guarantee."""
        return self.b.estimate - self.a.estimate

    @property
    def gap(self) -> float:
        """By how much the two rates differ at least: what lies between the intervals, 0 where they
        overlap."""
        return max(self.a.lower - self.b.upper, self.b.lower - self.a.upper, 0.0)

    @property
    def least(self) -> float:
        """The gap to three decimals, rounded down."""
        return outward(self.gap, 1.0)[0]

    @property
    def verdict(self) -> Verdict:
        if not (self.a.valid and self.b.valid):
            return "void"
        if self.b.upper < self.a.lower:
            return "lower"
        return "higher" if self.b.lower > self.a.upper else "open"


@dataclass(frozen=True)
class Comparison:
    """``sure``: the probability, at least, with which both runs' promises hold together.

    ``single``: whether that is so for each target by itself alone, not for all at once.
    ``missing``: how many targets one of the runs has and the other has not. ``unlike``: what
    makes rates of one name different things, a clause each.
    """

    pairs: tuple[Pair, ...]
    sure: float
    single: bool
    missing: int
    unlike: tuple[str, ...]

    def count(self, verdict: Verdict) -> int:
        """How many pairs have this verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs)


def compare(a: Rates, b: Rates) -> Comparison:
    """The targets that both runs have, in the order of A's certificate."""
    theirs = {row.id: row for row in b.rows}
    pairs = tuple(Pair(r.id.name, r, theirs[r.id]) for r in a.rows if r.id in theirs)
    return Comparison(
        pairs,
        together([a, b]),
        "each" in (a.guarantee, b.guarantee),
        len(a.rows) + len(b.rows) - 2 * len(pairs),
        tuple(_unlike(a, b)),
    )


def together(runs: Sequence[Rates]) -> float:
    """The probability, at least, with which the promises of all ``runs`` hold: the union bound."""
    return max(0.0, 1 - sum(1 - run.sure for run in runs))


def _unlike(a: Rates, b: Rates) -> list[str]:
    found = []
    if a.space != b.space:
        found.append(
            "the questions are not the same (other images, labels, relations or seeds of "
            "follow-ups), so that rates may differ because of the questions"
        )
    if a.oracle != b.oracle:
        found.append("answers were judged by different oracles, so that a loss is another thing")
    if a.unanswered != b.unanswered:
        found.append("unanswered questions count differently")
    return found
