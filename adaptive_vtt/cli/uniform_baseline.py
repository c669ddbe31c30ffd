"""What uniform questioning would have cost: the same audit, asked at random, really run."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from ..spec import Spec
from ..spec.building import build_audit
from ..utils.files import write_text
from .progress import Live
from .run_folder import rewrite
from .signals import Interrupted

FILE = "uniform.json"
"""Beside result.json, in which every field follows from the audit's own journal."""
MOST = 10
"""The uniform audit gives up at this many times the adaptive one's calls."""


def compare_with_uniform(spec: Spec, base: Path, out: Path, plotly: str = "inline") -> None:
    """Audits to the same half-width with uniform questions, says how many it took, and writes the
    report anew with that. Raises Interrupted where that is cut short; the audit is whole then.

    Nothing is paid for here in the demo; of a paid model one would simulate this with
    ``avtt compare`` on recorded answers.
    """
    calls = json.loads((out / "result.json").read_text())["calls"]
    options: dict[str, Any] = {
        "strategy": "random",
        "surrogate": False,
        "floor": 1e-6,
        "budget": MOST * calls,
        "stop": None,
        "goal": None,
    }
    console = Console(highlight=False)
    console.print(
        "the report is complete; to compare, the same audit is now asked uniform questions "
        "(Ctrl-C leaves that out)",
        markup=False,
    )
    try:
        with build_audit(spec, base, **options) as audit:
            live = Live(audit, quiet=False, what="uniform")
            with live:
                uniform = audit.run(live.update)
    except KeyboardInterrupt as interrupt:
        raise Interrupted.by(
            interrupt, f"the comparison is left out; the audit is complete: {out / 'report.html'}"
        ) from None
    certified = bool(uniform.targets["certified"].all())
    took = f"{uniform.calls:,}" if certified else f"more than {uniform.calls:,}"
    found = {"calls": uniform.calls, "certified": certified}
    write_text(out / FILE, json.dumps(found, indent=1) + "\n")
    console.print(
        f"uniform questioning took {took} calls for the same guarantee; this audit {calls:,}",
        markup=False,
    )
    console.print(f"report, with that: {rewrite(out, plotly)}", markup=False)
