"""What may lie beside a journal: what people said of its pictures, and what random draws
took. Whoever reads a run folder need not trust them: they are checked, and small.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, TypeAdapter

from ...journal.facts import Facts
from ...utils.files import text_in, write_text
from .section import amount

# -- what people said ------------------------------------------------------------------------------


REALISM = "realism.json"
"""``avtt label --realism --summary`` writes it."""
MAX_BYTES = 4 * 2**20

Count = Annotated[int, Field(ge=0)]
Share = tuple[Count, Count]
"""How many pairs most readers say yes of, and how many were judged."""
Kappa = tuple[Annotated[float, Field(ge=-1, le=1)] | None, Count]
"""Fleiss' kappa, None where it is not defined, and of how much that all readers judged."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Cell(_Data):
    """The pairs of one relation at one severity: how many are realistic, and show the same."""

    relation: str
    severity: int
    realistic: Share
    same: Share


class Realism(_Data):
    """``audit``: which (``identity``). ``readers``: pairs per reader. ``kappa``: by question."""

    audit: str
    readers: dict[str, Count]
    cells: list[Cell]
    kappa: dict[str, Kappa]


def said_of_realism(folder: Path, facts: Facts) -> Realism | None:
    """Return what lies in a run folder about this audit; None for what is not as it should be."""
    try:
        realism = Realism.model_validate_json(_small(folder / REALISM))
    except (OSError, ValueError):
        return None
    return realism if realism.audit == identity(facts) else None


def write(realism: Realism, folder: Path) -> None:
    """Replace the file in one step."""
    write_text(folder / REALISM, realism.model_dump_json(indent=1) + "\n")


def identity(facts: Facts) -> str:
    """What tells this audit from others."""
    return f"{facts.space.fingerprint} {facts.key}"


# -- what random draws took ------------------------------------------------------------------------


BASELINES = "baselines.json"
"""Beside the report; ``cli/audit.py`` writes it."""
BASELINE_NAMES = {
    "predicted": "random sampling, same predictions",
    "uniform": "random sampling, no predictions",
}
"""By what they are called in the file, the stronger first."""


class _Took(_Data):
    model_config = ConfigDict(strict=True)

    calls: PositiveInt
    certified: bool


_Baselines = TypeAdapter(dict[str, _Took])


@dataclass(frozen=True)
class Baseline:
    """``calls`` of a ``kind`` in ``NAMES``; ``certified`` whether those were enough."""

    kind: str
    calls: int
    certified: bool

    @property
    def amount(self) -> str:
        """How many calls it takes."""
        return f"{'' if self.certified else 'more than '}{amount(self.calls)}"


def baselines(folder: Path) -> tuple[Baseline, ...]:
    """Those that were measured; none where the file is no such measurement."""
    try:
        told = _Baselines.validate_json(_small(folder / BASELINES))
    except (OSError, ValueError):
        return ()
    return tuple(Baseline(k, told[k].calls, told[k].certified) for k in BASELINE_NAMES if k in told)


def _small(path: Path) -> str:
    """What a file holds; raises ValueError for one that is larger than any of these."""
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path}: expected at most {MAX_BYTES} bytes")
    return text_in(path)
