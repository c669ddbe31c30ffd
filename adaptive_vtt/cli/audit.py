"""``avtt audit``: from a SPEC.toml to a certificate and a report."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Json, Open, Out, Plotly, Track, names
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
    budget: Annotated[
        int | None,
        typer.Option(
            help="A limit: calls of the model, at most. Default: the spec's, else none.",
            metavar="CALLS",
            rich_help_panel=ENDS,
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="A limit: money, at most, in the unit of the model's prices.",
            metavar="MONEY",
            rich_help_panel=ENDS,
        ),
    ] = None,
    half_width: Annotated[
        float | None,
        typer.Option(
            help="A goal: every target's rate is known to plus or minus this share; 0.05 is 5 "
            "percentage points.",
            metavar="SHARE",
            rich_help_panel=ENDS,
        ),
    ] = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            help="A goal: of every target's rate it is sure whether it lies above this share.",
            metavar="SHARE",
            rich_help_panel=ENDS,
        ),
    ] = None,
    uncertainty: Annotated[
        float | None,
        typer.Option(
            help="A goal: the model's mean uncertainty fell to this share of what it was at first.",
            metavar="SHARE",
            rich_help_panel=ENDS,
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule such as 'overall <= 0.1' ('avtt gate'); again for more: the audit ends "
            "once all are decided.",
            metavar="RULE",
            rich_help_panel=ENDS,
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="Groups of questions whose rates are certified, separated by commas: overall, "
            "concepts, concept:NAME, relations, severities, group:COLUMN ... Default: "
            "concepts,relations.",
            metavar="NAMES",
            rich_help_panel=CERTIFIES,
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Probability that the intervals hold, at every moment. Default: 0.95.",
            metavar="SHARE",
            rich_help_panel=CERTIFIES,
        ),
    ] = None,
    guarantee: Annotated[
        str | None,
        typer.Option(
            help="What holds with it: all intervals at once (all), or each by itself (each). "
            "Default: all.",
            metavar="all|each",
            rich_help_panel=CERTIFIES,
        ),
    ] = None,
    discover: Annotated[
        int | None,
        typer.Option(
            help="Look for up to so many slices, groups in which failures concentrate, and certify "
            "them, too ('avtt slices').",
            metavar="COUNT",
            rich_help_panel=CERTIFIES,
        ),
    ] = None,
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
    strategy: Annotated[
        str | None,
        typer.Option(
            help="How the next question is chosen; 'avtt list strategies' has all. Default: "
            "certify where there is a half-width or at-most.",
            metavar="NAME",
            rich_help_panel=ASKS,
        ),
    ] = None,
    self_taught: Annotated[
        bool | None,
        typer.Option(
            "--self-taught/--no-self-taught",
            help="Predict failures with small nets taught with the labelled images. Default: "
            "where labels are enough.",
            rich_help_panel=ASKS,
        ),
    ] = None,
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
    canaries: Annotated[
        int | None,
        typer.Option(
            help="Answered questions that are asked again, to notice a model that changes. "
            "Default: 0.",
            metavar="CALLS",
            rich_help_panel=ASKS,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Same seed, same audit. Default: a new one each time, journaled.",
            metavar="NUMBER",
            rich_help_panel=ASKS,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Where predictions are computed: cpu, cuda, or auto, CUDA if there is one. "
            "Default: auto.",
            metavar="NAME",
            rich_help_panel=ASKS,
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--dry-run", help="Say at once what it may take and cost; ask nothing.")
    ] = False,
    play: Annotated[
        bool, typer.Option("--rehearse", help="Play it through on coins, in minutes; ask nothing.")
    ] = False,
    out: Out = Path("runs/audit"),
    track: Track = None,
    plotly: Plotly = "inline",
    open_it: Open = False,
    as_json: Json = False,
) -> None:
    """Ask a model until a stopping rule is met, and leave a report.

    A SPEC.toml is a program, as a Makefile is: the model it names is run.
    --dry-run and --rehearse check it and import none of its models and proxies,
    only what the space and the strategy are made of.

    --half-width, --at-most and --uncertainty are goals: the audit ends when
    all that are given are reached, or at a limit, such as --budget.

    Example: avtt audit SPEC.toml --half-width 0.05 --budget 500 --out runs/first
    """
    changes = {
        "budget": budget,
        "max_cost": max_cost,
        "strategy": strategy,
        "uncertainty": uncertainty,
        "gate": gate or None,
        "half_width": half_width,
        "discover": discover,
        "at_most": at_most,
        "confidence": confidence,
        "guarantee": guarantee,
        "targets": names(targets),
        "self_taught": self_taught,
        "seed": seed,
        "canaries": canaries,
        "device": device,
        "to": track,
    }
    with interruptible(out):
        from .spec_changes import one_too_many, read

        if explore and require_certified:
            raise one_too_many("require_certified")
        if explore and after:
            raise one_too_many("after")
        earlier = _earlier(after) if after else None
        prior = {} if earlier is None else earlier.changes
        chosen, base = read(spec, demo, {**changes, **prior}, explore)
        if earlier is not None:
            chosen = earlier.seeded(chosen, seed)
        if play:
            from .rehearse import rehearsal

            return rehearsal(chosen, base, as_json)
        if plan:
            from .dry_run import dry_run

            return dry_run(chosen, base, as_json)
        from ..report.plotly_library import check_way
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
