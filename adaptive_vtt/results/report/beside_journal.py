"""What may lie beside a journal: what people said of its pictures and questions, and what random
draws took. Whoever reads a run folder need not trust them: they are checked, and small.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, TypeAdapter

from ...journal.facts import Facts
from ...utils.files import write_text
from .section import amount

# -- what people said ------------------------------------------------------------------------------


REALISM = "realism.json"
"""``avtt label --realism --summary`` writes it."""
READERS = "readers.json"
"""``avtt label --questions --summary`` writes it."""
MAX_BYTES = 4 * 2**20

Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, le=1)]
Share = tuple[Count, Count]
"""How many pairs most readers say yes of, and how many were judged."""
Interval = tuple[Rate, Rate, Rate]
"""An estimate and the ends of its interval."""
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


class Compared(_Data):
    """A target's loss: the model's, a reader's, and the model's less the reader's (None: not
    compared), with the ``decision`` of a comparison, "better" where the reader errs less."""

    target: str
    model: Interval
    reader: Interval
    difference: tuple[float, float, float] | None = None
    decision: str = ""


class Reader(_Data):
    """``answered``: cards; ``certified``: those before the first gap, by which the intervals go;
    ``wrong``: of the questions on these the mean loss, None of none."""

    name: str
    answered: Count
    certified: Count
    wrong: Rate | None
    targets: list[Compared]
    notes: list[str]


class Reading(_Data):
    """What several ``readers`` answered to the questions of the audit ``audit``."""

    audit: str
    confidence: Rate | None
    readers: list[Reader]
    kappa: Kappa


@dataclass(frozen=True)
class People:
    """What there is beside a journal; None: nothing."""

    realism: Realism | None = None
    reading: Reading | None = None


AnyData = TypeVar("AnyData", Realism, Reading)


def said_by_people(folder: Path, facts: Facts) -> People:
    """What lies in a run folder about this audit; what is not as it should be is left out."""
    return People(_read(Realism, folder / REALISM, facts), _read(Reading, folder / READERS, facts))


def write(found: Realism | Reading, folder: Path) -> None:
    """Replaces the file in one step."""
    name = REALISM if isinstance(found, Realism) else READERS
    write_text(folder / name, found.model_dump_json(indent=1) + "\n")


def identity(facts: Facts) -> str:
    """What tells this audit from others."""
    return f"{facts.space.fingerprint} {facts.key}"


def _read(kind: type[AnyData], path: Path, facts: Facts) -> AnyData | None:
    try:
        found = kind.model_validate_json(_small(path))
    except (OSError, ValueError):
        return None
    return found if found.audit == identity(facts) else None


# -- what random draws took ------------------------------------------------------------------------


BASELINES = "baselines.json"
"""Beside the report; ``cli/audit.py`` writes it."""
BASELINE_NAMES = {
    "predicted": "drawn at random, same predictions",
    "uniform": "drawn at random, no predictions",
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
    return path.read_text(encoding="utf-8")
