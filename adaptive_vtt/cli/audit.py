"""``avtt audit``: from a SPEC.toml to a certificate and a report."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from ..audit import Audit
from ..config import Spec
from ..config.building import build_audit
from ..results.report.beside_journal import BASELINE_NAMES, BASELINES, Baseline
from ..results.report.plotly_library import check_way
from ..utils.files import write_text
from .after import Before
from .options import Json, Open, Out, Plotly, arg, names, opt
from .plan import estimate
from .printing import plain_console
from .progress import Live
from .run_folder import begin, named, rewrite, run_and_report
from .signals import Interrupted, interruptible
from .spec_changes import Set, field, one_too_many, read

ENDS, CERTIFIES, ASKS = "When to end", "What to certify", "How to ask"
"""Headings of the options in ``avtt audit --help``."""


def audit(  # noqa: PLR0913, PLR0917 - a command's options
    spec: Annotated[
        Path | None,
        arg("What to audit: images, model, questions. 'avtt init DIR' writes one.", "SPEC.toml"),
    ] = None,
    demo: Annotated[bool, opt("Audit the bundled model on bundled images instead.")] = False,
    budget: Annotated[int | None, field("audit.budget", "CALLS", ENDS)] = None,
    max_cost: Annotated[float | None, field("audit.max_cost", "MONEY", ENDS)] = None,
    half_width: Annotated[float | None, field("certify.half_width", "SHARE", ENDS)] = None,
    gate: Annotated[list[str] | None, field("stop.gate", "RULE", ENDS)] = None,
    targets: Annotated[str | None, field("certify.targets", "NAME,NAME", CERTIFIES)] = None,
    explore: Annotated[
        bool,
        opt(
            "Certify nothing: look for what is uncertain, as the paper does.",
            rich_help_panel=CERTIFIES,
        ),
    ] = False,
    require_certified: Annotated[
        bool,
        opt(
            "Exit with 3 where a target is open or invalidated in the end, for scripts.",
            rich_help_panel=CERTIFIES,
        ),
    ] = False,
    strategy: Annotated[str | None, field("audit.strategy", "NAME", ASKS)] = None,
    after: Annotated[
        list[Path] | None,
        opt(
            "Run folder of an audit of an earlier version of the model: what failed there "
            "tells where to look, with draws of its own. Again for three or more other models, a "
            "cohort.",
            "DIR",
            rich_help_panel=ASKS,
        ),
    ] = None,
    seed: Annotated[int | None, field("audit.seed", "NUMBER", ASKS)] = None,
    sample: Annotated[
        bool,
        opt(
            "Draw questions even where asking everything takes less time than that.",
            rich_help_panel=ASKS,
        ),
    ] = False,
    sets: Set = None,
    dry_run: Annotated[
        bool, opt("Estimate calls and cost as 'avtt plan' does; ask nothing.")
    ] = False,
    out: Out = Path("runs/audit"),
    plotly: Plotly = "inline",
    open_it: Open = False,
    as_json: Json = False,
) -> None:
    """Run an audit and write a report.

    A SPEC.toml is a program, as a Makefile is: the model it names is run.
    --dry-run checks it and imports none of its models and proxies, only what the
    space and the strategy are made of.

    --half-width, --gate and --set certify.at_most=0.1 are goals: the audit ends
    when one that is given is reached, or at a limit, such as --budget. Every
    other field of SPEC.toml is set by --set.

    Example: avtt audit SPEC.toml --half-width 0.05 --budget 500 --out runs/first
    """
    flags = {
        "audit.budget": budget,
        "audit.max_cost": max_cost,
        "certify.half_width": half_width,
        "stop.gate": gate or None,
        "certify.targets": names(targets),
        "audit.strategy": strategy,
        "audit.seed": seed,
    }
    begun: Audit | None = None
    with interruptible(out, begun=lambda: begun is not None):
        if explore and require_certified:
            raise one_too_many("--require-certified")
        if explore and after:
            raise one_too_many("--after")
        before = Before.of(after) if after else None
        prior = {} if before is None else before.changes
        chosen, base = read(spec, demo, {**flags, **prior}, sets, explore=explore)
        if before is not None:
            chosen = before.seeded(chosen, seed)
        if dry_run:
            return estimate(chosen, base, as_json)
        check_way(plotly)
        words = named(spec, sets, names(targets))
        begun = begin(chosen, base, out, words, sample=sample or demo)
        result = run_and_report(
            begun,
            out,
            as_json,
            require_certified,
            open_it=open_it,
            plotly=plotly,
            ending=None if before is None else partial(before.tell, begun),
        )
        reached = chosen.certify.half_width is not None and bool(result.targets["certified"].all())
        if demo and not as_json and reached and result.calls:
            compare_with_random(chosen, base, out, plotly)


# -- the demo: the same audit, really run twice more, with questions drawn at random ----------

RANDOM: dict[str, Any] = {"strategy": "random", "exploration": 1e-6, "stop": None, "goal": None}
"""An exploration has to be above 0; this one changes no draw."""
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
    console = plain_console()
    console.print(
        "the report is complete; to compare, the same audit is now drawn at random, with the same "
        "predictions, then without any (Ctrl-C leaves that out)"
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
    console.print(f"for the same guarantee this audit took {calls:,} calls")
    for one in found:
        share = f"{calls / one.calls:.0%}"
        console.print(f"  {BASELINE_NAMES[one.kind]}: {one.amount}; this audit took {share}")
    console.print(f"report, with that: {rewrite(out, plotly)}")


def _ran(kind: str, spec: Spec, base: Path, most: int, options: dict[str, Any]) -> Baseline:
    """The audit, drawn at random, with at most so many calls."""
    begun = build_audit(spec, base, **{**RANDOM, "budget": most, **options})
    with (
        begun.without_beliefs() as audit,
        Live(audit, quiet=False, what=BASELINE_NAMES[kind]) as live,
    ):
        result = audit.run(live.update)
    return Baseline(kind, result.calls, bool(result.targets["certified"].all()))
