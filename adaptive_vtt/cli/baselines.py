"""What questions drawn at random would have cost: the same audit, really run, twice.

With the same predictions first, which shows what choosing is worth, then without any, which shows
what choosing and predicting are worth together.
"""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from ..config import Spec
from ..config.building import build_audit
from ..results.report.beside_journal import BASELINE_NAMES, BASELINES, Baseline
from ..utils.files import write_text
from .progress import Live
from .run_folder import rewrite
from .signals import Interrupted

RANDOM: dict[str, Any] = {"strategy": "random", "exploration": 1e-6, "stop": None, "goal": None}
"""A exploration has to be above 0; this one changes no draw."""
OPTIONS: dict[str, dict[str, Any]] = {
    "predicted": {"candidates": 512},
    "uniform": {"surrogate": False},
}
"""What sets each of ``BASELINE_NAMES`` apart. A draw that goes by no weights needs few candidates:
they only tell what is predicted of the rest, and fewer are quicker."""
MAX = {"predicted": 2, "uniform": 10}
"""Each gives up at so many times this audit's calls; predictions take nearly all the time."""


def compare_with_random(spec: Spec, base: Path, out: Path, plotly: str = "inline") -> None:
    """Audits to the same half-width with questions drawn at random, says how many calls that took,
    and writes the report anew with it. Raises Interrupted where that is cut short; the audit is
    whole then.

    Nothing is paid for here in the demo; of a paid model one would simulate this with
    ``avtt compare`` on recorded answers.
    """
    calls = json.loads((out / "result.json").read_text())["calls"]
    console = Console(highlight=False)
    console.print(
        "the report is complete; to compare, the same audit is now drawn at random, with the same "
        "predictions, then without any (Ctrl-C leaves that out)",
        markup=False,
    )
    found = []
    try:
        for kind, options in OPTIONS.items():
            found.append(_ran(kind, spec, base, MAX[kind] * calls, options))
    except KeyboardInterrupt as interrupt:
        raise Interrupted.by(
            interrupt, f"the comparison is left out; the audit is complete: {out / 'report.html'}"
        ) from None
    facts = {one.kind: {"calls": one.calls, "certified": one.certified} for one in found}
    write_text(out / BASELINES, json.dumps(facts, indent=1) + "\n")
    console.print(f"for the same guarantee this audit took {calls:,} calls", markup=False)
    for one in found:
        share = f"{calls / one.calls:.0%}"
        console.print(
            f"  {BASELINE_NAMES[one.kind]}: {one.amount}; this audit took {share}", markup=False
        )
    console.print(f"report, with that: {rewrite(out, plotly)}", markup=False)


def _ran(kind: str, spec: Spec, base: Path, most: int, options: dict[str, Any]) -> Baseline:
    """The audit, drawn at random, with at most so many calls."""
    begun = build_audit(spec, base, **{**RANDOM, "budget": most, **options})
    with (
        begun.without_beliefs() as audit,
        Live(audit, quiet=False, what=BASELINE_NAMES[kind]) as live,
    ):
        result = audit.run(live.update)
    return Baseline(kind, result.calls, bool(result.targets["certified"].all()))
