"""What people said of the changed pictures: are they realistic, and is the diagnosis the same?

MedTest asks it first (RQ1), and answers with a sentence; here are shares by relation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .evidence import Evidence
from .findings import wilson
from .people import Cell, Realism, Share
from .section import Section, figure, fragment, percent, span


@dataclass(frozen=True)
class Row:
    """A relation, or all: both shares with their intervals, and the first by severity."""

    name: str
    realistic: str
    realistic_interval: str
    same: str
    same_interval: str
    pairs: int
    by_severity: str


def section(evidence: Evidence) -> Section | None:
    """None where nobody judged pictures of this audit."""
    realism = evidence.people.realism
    if realism is None or not realism.cells:
        return None
    html = fragment(
        "realism.html",
        rows=rows(realism),
        readers=realism.readers,
        kappas=[(name, figure(kappa), count) for name, (kappa, count) in realism.kappa.items()],
    )
    return Section("Realism", "realism", html)


def rows(realism: Realism) -> list[Row]:
    """A row per relation, the least realistic first, those nobody judged so last, and one of all at
    the end."""
    relations: dict[str, list[Cell]] = {}
    for cell in realism.cells:
        relations.setdefault(cell.relation, []).append(cell)

    def rank(item: tuple[str, list[Cell]]) -> float:
        rate = _rate([cell.realistic for cell in item[1]])
        return math.inf if rate is None else rate

    found = sorted(relations.items(), key=rank)
    every = [("all", realism.cells)] if len(relations) > 1 else []
    return [_row(name, cells) for name, cells in [*found, *every]]


def _row(name: str, cells: Sequence[Cell]) -> Row:
    realistic, same = [c.realistic for c in cells], [c.same for c in cells]
    severities = sorted((c.severity, c.realistic) for c in cells)
    shown = ", ".join(f"{s}: {yes} of {n}" for s, (yes, n) in severities)
    return Row(
        name,
        percent(_rate(realistic)),
        _interval(realistic),
        percent(_rate(same)),
        _interval(same),
        max(sum(n for _, n in realistic), sum(n for _, n in same)),
        shown if name != "all" else "",
    )


def _rate(shares: Sequence[Share]) -> float | None:
    """None where nobody judged any."""
    yes, count = map(sum, zip(*shares, strict=True))
    return yes / count if count else None


def _interval(shares: Sequence[Share]) -> str:
    """Wilson's, of pairs that were drawn evenly from each cell."""
    yes, count = map(sum, zip(*shares, strict=True))
    return span(*wilson(yes, count)) if count else "–"
