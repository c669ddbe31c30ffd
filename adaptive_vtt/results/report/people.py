"""How real people find the changed pictures.

MedTest asks first whether changed pictures are realistic (RQ1), and answers with a sentence; here
are shares by relation.
"""

import math
from collections.abc import Sequence

import pandas as pd

from ..outcomes import wilson
from .beside_journal import Cell, Realism, Share
from .evidence import Evidence
from .section import Section, figure, percent, span


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
        rows=realism_table(realism),
        readers=realism.readers,
        kappas=[(name, figure(kappa), count) for name, (kappa, count) in realism.kappa.items()],
    )


def realism_table(realism: Realism) -> pd.DataFrame:
    """Return a row per relation, the least realistic first, those nobody judged so last, and one of
    all at the end; shares with Wilson's intervals, of pairs drawn evenly from each cell."""
    relations: dict[str, list[Cell]] = {}
    for cell in realism.cells:
        relations.setdefault(cell.relation, []).append(cell)

    def rank(cells: Sequence[Cell]) -> float:
        yes, count = _sums([cell.realistic for cell in cells])
        return yes / count if count else math.inf

    ranked = sorted(relations.items(), key=lambda item: rank(item[1]))
    everything = [("all", realism.cells)] if len(relations) > 1 else []
    rows = []
    for name, cells in [*ranked, *everything]:
        realistic, same = _sums([c.realistic for c in cells]), _sums([c.same for c in cells])
        severities = sorted((c.severity, c.realistic) for c in cells if name != "all")
        rows.append(
            {
                "relation": name,
                "realistic": _share(*realistic),
                "95 %": _interval(*realistic),
                "same diagnosis": _share(*same),
                "95 % of it": _interval(*same),
                "pairs": max(realistic[1], same[1]),
                "realistic, by severity": ", ".join(f"{s}: {y} of {n}" for s, (y, n) in severities),
            }
        )
    return pd.DataFrame(rows)


def _sums(shares: Sequence[Share]) -> tuple[int, int]:
    yes, count = map(sum, zip(*shares, strict=True))
    return yes, count


def _share(yes: int, count: int) -> str:
    return percent(yes / count) if count else "–"


def _interval(yes: int, count: int) -> str:
    return span(*wilson(yes, count)) if count else "–"
