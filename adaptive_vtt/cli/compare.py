"""``avtt compare``: the same space, several strategies, several seeds."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Out, names


def compare(
    spec: Annotated[Path | None, typer.Argument(help="What to audit.", metavar="SPEC.toml")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on the bundled model.")] = False,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="Names, separated by commas; baselines: all there is to compare; by default "
            "random and the strategy that an audit would take."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Audits per strategy, each with its seed.")] = 3,
    half_width: Annotated[
        float | None, typer.Option(help="Certify every target to this, against uniform questions.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(help="overall, concepts, relations, group:COLUMN ...; commas; see SPEC.toml."),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="At most so many calls each.")] = None,
    exhaust: Annotated[
        bool,
        typer.Option("--exhaust", help="Ask the model everything once, to know the truth."),
    ] = False,
    out: Out = Path("runs/compare"),
    as_json: Json = False,
) -> None:
    """Run several strategies on the same space and show how fast each one learns.

    Example: avtt compare SPEC.toml --strategies random,neyman --half-width 0.05 --repeats 5
    """
    from ..strategies import default
    from .comparison import compare as run_compare
    from .spec_changes import read

    changes = {"budget": budget, "half_width": half_width, "targets": names(targets)}
    chosen, base = read(spec, demo, changes)
    compared = names(strategies)
    if compared is None:
        compared = ["random", default(chosen.certify.half_width is not None)]
    run_compare(chosen, base, compared, repeats, out, as_json, exhaust)
