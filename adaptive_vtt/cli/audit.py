"""``avtt audit``: from a SPEC.toml to a certificate and a report."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Out, names
from .signals import interruptible


def audit(  # noqa: PLR0913, PLR0917 - a command's options
    spec: Annotated[
        Path | None,
        typer.Argument(help="What to audit; 'avtt init' writes one.", metavar="SPEC.toml"),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Audit the bundled model.")] = False,
    budget: Annotated[int | None, typer.Option(help="At most so many calls.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="At most so much money, in the unit of the prices.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Which questions come next: see 'avtt list strategies'.")
    ] = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Certify nothing: the paper's loop.")
    ] = False,
    uncertainty: Annotated[
        float | None,
        typer.Option(help="Stop at this share of the prior uncertainty, and certified if asked."),
    ] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Stop when every target is known to this, either way.")
    ] = None,
    at_most: Annotated[
        float | None, typer.Option(help="Stop when every target is surely on one side of this.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Probability that intervals hold at all times.")
    ] = None,
    guarantee: Annotated[
        str | None,
        typer.Option(help="What holds with that probability: all intervals at once, or each."),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="overall, concepts, relations, group:COLUMN ...; commas; see SPEC.toml."),
    ] = None,
    self_taught: Annotated[
        bool | None,
        typer.Option(
            "--self-taught/--no-self-taught",
            help="Predict failures with small nets taught with the labelled images.",
        ),
    ] = None,
    require_certified: Annotated[
        bool,
        typer.Option(
            "--require-certified", help="Exit with 3 if a target is open or contradicted."
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same audit; by default a new one each time.")
    ] = None,
    canaries: Annotated[
        int | None, typer.Option(help="Answered questions asked again, to notice a changed model.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Where the GPs live: auto (CUDA if there is one), cpu, cuda.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--dry-run", help="Say what it may take and cost; ask nothing.")
    ] = False,
    out: Out = Path("runs/audit"),
    as_json: Json = False,
) -> None:
    """Ask a model until a stopping rule is met, and leave a report.

    A SPEC.toml is a program, as a Makefile is: the model it names is run.
    --dry-run checks it and imports none of its models and proxies, only what
    the space and the strategy are made of.

    --half-width, --at-most and --uncertainty are goals: the audit ends when
    all that are given are reached, or at a limit, such as --budget.

    Example: avtt audit SPEC.toml --half-width 0.05 --budget 500 --out runs/first
    """
    changes = {
        "budget": budget,
        "max_cost": max_cost,
        "strategy": strategy,
        "uncertainty": uncertainty,
        "half_width": half_width,
        "at_most": at_most,
        "confidence": confidence,
        "guarantee": guarantee,
        "targets": names(targets),
        "self_taught": self_taught,
        "seed": seed,
        "canaries": canaries,
        "device": device,
    }
    with interruptible(out):
        from .run_folder import begin, one_too_many, read, run_and_report

        if explore and require_certified:
            raise one_too_many("require_certified")
        chosen, base = read(spec, demo, changes, explore)
        if plan:
            from .dry_run import dry_run

            return dry_run(chosen, base, as_json)
        result = run_and_report(begin(chosen, base, out), out, as_json, require_certified)
        reached = chosen.certify.half_width is not None and bool(result.targets["certified"].all())
        if demo and not as_json and reached and result.calls:
            from .uniform_baseline import compare_with_uniform

            compare_with_uniform(chosen, base, out)
