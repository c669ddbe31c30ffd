"""What questions drawn at random took, where that was measured beside the audit."""

import json
from dataclasses import dataclass
from pathlib import Path

from .section import amount

FILE = "baselines.json"
"""Beside the report; ``cli/audit.py`` writes it."""
NAMES = {
    "predicted": "drawn at random, same predictions",
    "uniform": "drawn at random, no predictions",
}
"""By what they are called in the file, the stronger first."""
MAX_BYTES = 10_000


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


def read(folder: Path) -> tuple[Baseline, ...]:
    """Those that were measured; none where the file is no such measurement."""
    try:
        path = folder / FILE
        if path.stat().st_size > MAX_BYTES:
            return ()
        told = json.loads(path.read_text(encoding="utf-8"))
        found = [Baseline(k, told[k]["calls"], told[k]["certified"]) for k in NAMES if k in told]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()
    whole = all(type(b.calls) is int and b.calls > 0 and type(b.certified) is bool for b in found)
    return tuple(found) if whole else ()
