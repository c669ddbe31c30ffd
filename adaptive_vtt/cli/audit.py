"""``avtt audit``: from a SPEC.toml to a certificate and a report."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, Open, Out, Plotly, Set, field, names
from .signals import interruptible

if TYPE_CHECKING:
    from .after import Earlier, Others

ENDS, CERTIFIES, ASKS = "When to end", "What to certify", "How to ask"
"""Headings of the options in ``avtt audit --help``."""


def audit(  # noqa: PLR0913, PLR0917 - a command's options
    spec: Annotated[
        Path | None,
        typer.Argument(
            help="What to audit: images, model, questions. 'avtt init DIR' writes one.",
            metavar="SPEC.toml",
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Audit the bundled model on bundled images instead.")
    ] = False,
    budget: Annotated[int | None, field("audit.budget", "CALLS", ENDS)] = None,
    max_cost: Annotated[float | None, field("audit.max_cost", "MONEY", ENDS)] = None,
    half_width: Annotated[float | None, field("certify.half_width", "SHARE", ENDS)] = None,
    gate: Annotated[list[str] | None, field("stop.gate", "RULE", ENDS)] = None,
    targets: Annotated[str | None, field("certify.targets", "NAME,NAME", CERTIFIES)] = None,
    explore: Annotated[
        bool,
        typer.Option(
            "--explore",
            help="Certify nothing: look for what is uncertain, as the paper does.",
            rich_help_panel=CERTIFIES,
        ),
    ] = False,
    require_certified: Annotated[
        bool,
        typer.Option(
            "--require-certified",
            help="Exit with 3 where a target is open or contradicted in the end, for scripts.",
            rich_help_panel=CERTIFIES,
        ),
    ] = False,
    strategy: Annotated[str | None, field("audit.strategy", "NAME", ASKS)] = None,
    after: Annotated[
        list[Path] | None,
        typer.Option(
            help="Run folder of an audit of an earlier version of the model: what failed there "
            "tells where to look, with draws of its own. Again for three or more other models, a "
            "cohort.",
            metavar="DIR",
            rich_help_panel=ASKS,
        ),
    ] = None,
    seed: Annotated[int | None, field("audit.seed", "NUMBER", ASKS)] = None,
    sets: Set = None,
    plan: Annotated[
        bool, typer.Option("--dry-run", help="Say at once what it may take and cost; ask nothing.")
    ] = False,
    play: Annotated[
        bool, typer.Option("--rehearse", help="Play it through on coins, in minutes; ask nothing.")
    ] = False,
    out: Out = Path("runs/audit"),
    plotly: Plotly = "inline",
    open_it: Open = False,
    as_json: Json = False,
) -> None:
    """Ask a model until a stopping rule is met, and leave a report.

    A SPEC.toml is a program, as a Makefile is: the model it names is run.
    --dry-run and --rehearse check it and import none of its models and proxies,
    only what the space and the strategy are made of.

    --half-width, --gate and --set certify.at_most=0.1 are goals: the audit ends
    when all that are given are reached, or at a limit, such as --budget. Every
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
    with interruptible(out):
        from .spec_changes import one_too_many, read

        if explore and require_certified:
            raise one_too_many("--require-certified")
        if explore and after:
            raise one_too_many("--after")
        earlier = _earlier(after) if after else None
        prior = {} if earlier is None else earlier.changes
        chosen, base = read(spec, demo, {**flags, **prior}, sets, explore=explore)
        if earlier is not None:
            chosen = earlier.seeded(chosen, seed)
        if play:
            from .rehearse import rehearsal

            return rehearsal(chosen, base, as_json)
        if plan:
            from .dry_run import dry_run

            return dry_run(chosen, base, as_json)
        from ..results.report.plotly_library import check_way
        from .run_folder import begin, run_and_report
        from .tracking import check

        check_way(plotly)
        check(chosen.track, out)
        begun = begin(chosen, base, out)
        ending = None if earlier is None else partial(earlier.tell, begun)
        result = run_and_report(
            begun, out, as_json, require_certified, open_it=open_it, plotly=plotly, ending=ending
        )
        reached = chosen.certify.half_width is not None and bool(result.targets["certified"].all())
        if demo and not as_json and reached and result.calls:
            from .baselines import compare_with_random

            compare_with_random(chosen, base, out, plotly)


def _earlier(folders: list[Path]) -> "Earlier | Others":
    from .after import earlier  # imports torch, which --dry-run does without

    return earlier(folders)
