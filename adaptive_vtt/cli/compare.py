"""``avtt compare``: the same space, several strategies, several seeds."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Set, names


def compare(
    spec: Annotated[
        Path | None,
        typer.Argument(help="What to audit; its model must cost nothing.", metavar="SPEC.toml"),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on the bundled model.")] = False,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="Names, separated by commas; 'baselines' stands for all there are. Default: "
            "random, and the one that an audit would take.",
            metavar="NAMES",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Audits per strategy, with the seeds 0, 1, 2 ...")
    ] = 3,
    half_width: Annotated[
        float | None,
        typer.Option(
            help="Certify every target to plus or minus this share (0.05: 5 percentage points), "
            "and count the calls. Default: the spec's, else nothing is certified.",
            metavar="SHARE",
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="What is certified, separated by commas: overall, concepts, relations, "
            "group:COLUMN ... Default: the spec's.",
            metavar="NAMES",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(help="Calls of each audit, at most. Default: the spec's.", metavar="CALLS"),
    ] = None,
    exhaust: Annotated[
        bool,
        typer.Option(
            "--exhaust", help="Ask the model everything once, to compare estimates with the truth."
        ),
    ] = False,
    executor: Annotated[
        str,
        typer.Option(
            help="Where the audits run: in processes, or as tasks of a Ray cluster (ray, or its "
            "address, ray://HOST:PORT).",
            metavar="NAME",
        ),
    ] = "processes",
    out: Annotated[
        Path, typer.Option(help="Folder to write compare.html and compare.json into.")
    ] = Path("runs/compare"),
    sets: Set = None,
    as_json: Json = False,
) -> None:
    """Run several strategies on the same space and show how fast each one learns.

    Example: avtt compare SPEC.toml --strategies random,neyman --half-width 0.05 --repeats 5
    """
    from ..strategies import default
    from .comparison import compare as run_compare
    from .spec_changes import read

    flags = {
        "audit.budget": budget,
        "certify.half_width": half_width,
        "certify.targets": names(targets),
    }
    chosen, base = read(spec, demo, flags, sets)
    compared = names(strategies)
    if compared is None:
        compared = ["random", default(chosen.certify.half_width is not None)]
    run_compare(chosen, base, compared, repeats, out, as_json, exhaust, executor)
