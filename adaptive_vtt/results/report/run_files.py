"""Files next to a journal: people's judgements of its pictures, and calls of random draws.

Nobody who reads a run folder need trust them: they are checked, and small.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, TypeAdapter

from ...journal.facts import Facts
from ...utils.files import text_in, write_text
from ..outcomes import wilson
from .section import THIN, amount, percent, span

REALISM = "realism.json"
"""``avtt label --realism --summary`` writes it."""
BASELINES = "baselines.json"
"""``cli/audit.py`` writes it."""
BASELINE_NAMES = {
    "predicted": "random sampling, same predictions",
    "uniform": "random sampling, no predictions",
}
"""Kind of a baseline in the file -> its name; the stronger first."""
MAX_BYTES = 4 * 2**20

Content = TypeVar("Content")
Count = Annotated[int, Field(ge=0)]
Share = tuple[Count, Count]
"""Number of pairs with a yes of most readers, and of pairs that were judged."""
Kappa = tuple[Annotated[float, Field(ge=-1, le=1)] | None, Count]
"""Fleiss' kappa, None if it is not defined, and pairs that all readers judged."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cell(_Data):
    """The pairs of one relation at one severity: how many are realistic, and show the same."""

    relation: str
    severity: int
    realistic: Share
    same: Share


class Realism(_Data):
    """``audit``: its ``identity``. ``readers``: pairs per reader. ``kappa``: by question."""

    audit: str
    readers: dict[str, Count]
    cells: list[Cell]
    kappa: dict[str, Kappa]


class Baseline(_Data):
    """The ``calls`` that random draws took; ``certified``: whether they were enough."""

    model_config = ConfigDict(strict=True)

    calls: PositiveInt
    certified: bool

    @property
    def amount(self) -> str:
        """The calls that the certificate takes, in words."""
        return f"{'' if self.certified else 'more than '}{amount(self.calls)}"

    def share(self, calls: int, space: str = THIN) -> str:
        """Return the share of its calls that ``calls`` are, at most if it was not certified."""
        share = 100 * calls / self.calls
        return f"{share:.0f}{space}%" if self.certified else f"at most {math.ceil(share)}{space}%"


_REALISM, _BASELINES = TypeAdapter(Realism), TypeAdapter(dict[str, Baseline])


def realism_of(folder: Path, facts: Facts) -> Realism | None:
    """Return people's judgements of this audit in a run folder; None for a damaged file."""
    realism = _read(folder / REALISM, _REALISM)
    return realism if realism and realism.audit == identity(facts) else None


def baselines(folder: Path) -> dict[str, Baseline]:
    """Return the baselines in a run folder by their names; {} for a damaged file."""
    measured = _read(folder / BASELINES, _BASELINES) or {}
    return {name: measured[kind] for kind, name in BASELINE_NAMES.items() if kind in measured}


def write(realism: Realism, folder: Path) -> None:
    """Replace the file in one step."""
    write_text(folder / REALISM, realism.model_dump_json(indent=1) + "\n")


def identity(facts: Facts) -> str:
    """Return the text that sets this audit apart from others."""
    return f"{facts.space.fingerprint} {facts.key}"


def realism_table(realism: Realism) -> pd.DataFrame:
    """Return a row per relation, the least realistic first and those nobody judged so last, and one
    of all at the end; shares with Wilson's intervals, of pairs drawn evenly from each cell."""

    def total(shares: Sequence[Share]) -> tuple[int, int]:
        return sum(yes for yes, _ in shares), sum(count for _, count in shares)

    rows = []
    relations = [*dict.fromkeys(cell.relation for cell in realism.cells)]
    for name in [*relations, *(["all"] if len(relations) > 1 else [])]:
        cells = [c for c in realism.cells if name in (c.relation, "all")]
        realistic, same = total([c.realistic for c in cells]), total([c.same for c in cells])
        by_severity = sorted((c.severity, *c.realistic) for c in cells if name != "all")
        row = {"relation": name, "rank": realistic[0] / realistic[1] if realistic[1] else math.inf}
        asked = (("realistic", "95 %", realistic), ("same diagnosis", "95 % of it", same))
        for title, interval, (yes, count) in asked:
            row[title] = percent(yes / count) if count else "–"
            row[interval] = span(*wilson(yes, count)) if count else "–"
        row["pairs"] = max(realistic[1], same[1])
        row["realistic, by severity"] = ", ".join(f"{s}: {y} of {n}" for s, y, n in by_severity)
        rows.append(row)
    rows.sort(key=lambda row: (row["relation"] == "all", row["rank"]))
    return pd.DataFrame(rows).drop(columns="rank")


def _read(path: Path, kind: TypeAdapter[Content]) -> Content | None:
    try:
        return kind.validate_json(text_in(path)) if path.stat().st_size <= MAX_BYTES else None
    except (OSError, ValueError):
        return None
