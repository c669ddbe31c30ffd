"""Two runs beside each other, and what may be concluded from that.

Each run promises that its intervals hold with probability 1 - alpha at every moment. Both promises
hold together with probability at least 1 - alpha_A - alpha_B (the union bound), whatever the runs
share. While they do, two disjoint intervals of the same target leave no way for the two rates to
be equal. Overlapping ones decide nothing, and a difference of estimates has no interval at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...certify.status import TargetStatus
from ...types import JsonObject
from ...utils.figures import COLOURS, outward, shown
from ..runs import Rates, span_of

DRAWN = 40
"""Targets that the figure shows, at most; the table has them all."""
Verdict = Literal["lower", "higher", "open", "void"]


@dataclass(frozen=True)
class Pair:
    """A target of both runs. ``verdict``: whether B's rate lies "lower" or "higher" than A's, by
    disjoint intervals; "open" where they overlap; "void" where one of them certifies nothing."""

    name: str
    a: TargetStatus
    b: TargetStatus

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
        if self.a.invalidated or self.b.invalidated:
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
    return Comparison(
        pairs,
        together([a, b]),
        "each" in (a.guarantee, b.guarantee),
        len(a.rows) + len(b.rows) - 2 * len(pairs),
        tuple(found),
    )


def figure(found: Comparison, names: tuple[str, str]) -> JsonObject:
    """Both intervals of the first ``DRAWN`` targets, A's above B's, as Plotly takes it."""
    pairs = found.pairs[:DRAWN]
    data = []
    for name, colour, symbol, side, off in (
        (names[0], COLOURS["accent"], "circle", "a", 0.16),
        (names[1], COLOURS["third"], "diamond", "b", -0.16),
    ):
        rates: list[TargetStatus] = [getattr(pair, side) for pair in pairs]
        bar = {"type": "data", "symmetric": False, "color": colour, "thickness": 3, "width": 0}
        bar["array"] = [100 * (rate.upper - rate.estimate) for rate in rates]
        bar["arrayminus"] = [100 * (rate.estimate - rate.lower) for rate in rates]
        said = zip(pairs, rates, strict=True)
        trace: JsonObject = {
            "type": "scatter",
            "mode": "markers",
            "name": f"{side.upper()}: {shown(name)}",
        }
        trace |= {"x": [100 * rate.estimate for rate in rates], "error_x": bar}
        trace |= {"y": [off - k for k in range(len(pairs))]}
        trace |= {"marker": {"color": colour, "symbol": symbol, "size": 9}}
        trace["text"] = [f"{shown(p.name)}<br>{shown(name)}: {span_of(r)}" for p, r in said]
        data.append({**trace, "hovertemplate": "%{text}<extra></extra>"})
    places = [-k for k in range(len(pairs))]
    y = {"tickvals": places, "ticktext": [shown(pair.name) for pair in pairs], "zeroline": False}
    y |= {"range": [0.6 - len(pairs), 0.6], "showgrid": False}
    x = {"title": {"text": "error"}, "ticksuffix": " %", "rangemode": "tozero"}
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, "height": 110 + 40 * len(pairs)}}


def together(runs: Sequence[Rates]) -> float:
    """The probability, at least, with which the promises of all ``runs`` hold: the union bound."""
    return max(0.0, 1 - sum(1 - run.sure for run in runs))
