"""What uniform questioning would have cost: the same audit, asked at random, really run."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from ..spec import Spec
from ..spec.building import build_audit
from ..utils.files import write_text
from .progress import Live

FILE = "uniform.json"
"""Beside result.json, in which every field follows from the audit's own journal."""
MOST = 10
"""The uniform audit gives up at this many times the adaptive one's calls."""


def compare_with_uniform(spec: Spec, base: Path, out: Path) -> None:
    """Audits to the same half-width with uniform questions, and says how many it took.

    Nothing is paid for here in the demo; of a paid model one would simulate this with
    ``avtt compare`` on recorded answers.
    """
    result = json.loads((out / "result.json").read_text())
    options: dict[str, Any] = {
        "strategy": "random",
        "surrogate": False,
        "floor": 1e-6,
        "budget": MOST * result["calls"],
        "stop": None,
        "goal": None,
    }
    with build_audit(spec, base, **options) as audit, Live(audit, quiet=False) as live:
        live.console.print("the same audit with uniform questions, for comparison:", markup=False)
        uniform = audit.run(live.update)
    certified = bool(uniform.targets["certified"].all())
    calls = str(uniform.calls) if certified else f"more than {uniform.calls}"
    found = {"calls": uniform.calls, "certified": certified}
    write_text(out / FILE, json.dumps(found, indent=1) + "\n")
    Console(highlight=False).print(
        f"uniform questioning took {calls} calls for the same guarantee; this audit "
        f"{result['calls']}",
        markup=False,
    )
