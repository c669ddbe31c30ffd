"""What uniform questions took, where that was measured beside the audit."""

import json
from dataclasses import dataclass
from pathlib import Path

FILE = "uniform.json"
"""Beside the report; ``cli/uniform_baseline.py`` writes it."""
MOST_BYTES = 10_000


@dataclass(frozen=True)
class Uniform:
    """``calls`` of uniform questions; ``certified`` whether those were enough."""

    calls: int
    certified: bool


def read(folder: Path) -> Uniform | None:
    """None where it was not measured, or where the file is no such measurement."""
    try:
        path = folder / FILE
        if path.stat().st_size > MOST_BYTES:
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
        calls, certified = found["calls"], found["certified"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        return None
    return Uniform(calls, certified is True)
