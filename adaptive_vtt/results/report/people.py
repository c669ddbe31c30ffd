"""How real people find the changed pictures.

MedTest asks first whether changed pictures are realistic (RQ1), and answers with a sentence; here
are shares by relation.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..outcomes import wilson
from .beside_journal import Cell, Realism, Share
from .evidence import Evidence
from .section import Section, figure, percent, span


class RealismRow(NamedTuple):
    """A relation, or all: both shares with their intervals, and the first by severity."""

    name: str
    realistic: str
    realistic_interval: str
    same: str
    same_interval: str
    pairs: int
    by_severity: str


def realism_section(evidence: Evidence) -> Section | None:
    """Show what people said; None where nobody judged pictures of this audit."""
    realism = evidence.realism
    if realism is None or not realism.cells:
        return None
    return Section.of(
        evidence,
        "Realism",
        "realism",
        "realism.html",
        rows=realism_rows(realism),
        readers=realism.readers,
        kappas=[(name, figure(kappa), count) for name, (kappa, count) in realism.kappa.items()],
    )


def realism_rows(realism: Realism) -> list[RealismRow]:
    """Return a row per relation, the least realistic first, those nobody judged so last, and one of
    all at the end."""
    relations: dict[str, list[Cell]] = {}
    for cell in realism.cells:
        relations.setdefault(cell.relation, []).append(cell)

    def rank(cells: Sequence[Cell]) -> float:
        yes, count = _sums([cell.realistic for cell in cells])
        return yes / count if count else math.inf

    rows = [*sorted(relations.items(), key=lambda item: rank(item[1]))]
    rows += [("all", realism.cells)] if len(relations) > 1 else []
    return [_realism_row(name, cells) for name, cells in rows]


def _realism_row(name: str, cells: Sequence[Cell]) -> RealismRow:
    realistic, same = _sums([c.realistic for c in cells]), _sums([c.same for c in cells])
    severities = sorted((c.severity, c.realistic) for c in cells if name != "all")
    shown = ", ".join(f"{s}: {yes} of {n}" for s, (yes, n) in severities)
    return RealismRow(name, *_rate(*realistic), *_rate(*same), max(realistic[1], same[1]), shown)


def _sums(shares: Sequence[Share]) -> tuple[int, int]:
    yes, count = map(sum, zip(*shares, strict=True))
    return yes, count


def _rate(yes: int, count: int) -> tuple[str, str]:
    """Return the share with Wilson's interval, of pairs that were drawn evenly from each cell."""
    return (percent(yes / count), span(*wilson(yes, count))) if count else ("–", "–")
