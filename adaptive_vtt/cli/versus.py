"""``avtt versus``: two models asked the same drawn questions, until it is known which errs less."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Open, Set, names
from .signals import interruptible


def versus(  # noqa: PLR0913, PLR0917 - a command's options
    spec_a: Annotated[
        Path,
        typer.Argument(
            help="The old model A, and all settings: how sure, how to ask.", metavar="SPEC_A.toml"
        ),
    ],
    spec_b: Annotated[
        Path, typer.Argument(help="The new model B, on the same questions.", metavar="SPEC_B.toml")
    ],
    margin: Annotated[
        float,
        typer.Option(
            help="A difference of error rates that does not matter; 0.02 is 2 percentage points. "
            "Default: 0, any matters, and a limit is needed.",
            metavar="SHARE",
        ),
    ] = 0.0,
    at_least: Annotated[
        float | None,
        typer.Option(
            help="A claim to be decided instead, by how much less often B errs: -0.02 says at "
            "most 2 percentage points more often. It takes fewer calls than an interval.",
            metavar="SHARE",
        ),
    ] = None,
    recorded_a: Annotated[
        Path | None,
        typer.Option(
            help="Model A's answers to every question (CSV): only B is asked.", metavar="TABLE"
        ),
    ] = None,
    journal_a: Annotated[
        Path | None,
        typer.Option(help="Run folder of an earlier audit of model A.", metavar="DIR"),
    ] = None,
    use: Annotated[
        str,
        typer.Option(
            help="What is made of it: its answers stand, and cost nothing (condition); B is first "
            "asked what A was, in that order (replay; for a model B made without it); or what it "
            "found are hints alone (proxy).",
            metavar="condition|replay|proxy",
        ),
    ] = "condition",
    gate: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule such as 'versus:overall <= +0.01', at most 1 point more errors; again for "
            "more: it ends once all are decided, and no sooner.",
            metavar="RULE",
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="Groups of questions on which the models are compared, separated by commas: "
            "overall, relations, group:COLUMN ... Default: overall.",
            metavar="NAMES",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(help="A limit: calls of both models together, at most.", metavar="CALLS"),
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="A limit: money for both models, at most.", metavar="MONEY")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Same seed, same comparison. Default: a new one.", metavar="NUMBER"),
    ] = None,
    require_decided: Annotated[
        bool,
        typer.Option("--require-decided", help="Exit with 4 where a target stays open."),
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder to write journal.db, result.json and report.html into.")
    ] = Path("runs/versus"),
    sets: Set = None,
    open_it: Open = False,
    as_json: Json = False,
) -> None:
    """Ask two models the same drawn questions until it is known which errs less.

    Better, worse, within (the margin) or open, per target: B against A; with
    --at-least whether that claim holds, fails or is open. The
    same command again goes on with the comparison in --out; no answer that
    came back is paid for twice. The half-width and targets of the specs are
    about one model, and not used here.

    Example: avtt versus old.toml new.toml --margin 0.02 --budget 2000 --out runs/new
    """
    way = "the same command goes on where this stopped"
    with interruptible(out, way):
        from .spec_changes import read
        from .versus_run import Asked, run

        asked = Asked(margin, at_least, recorded_a, journal_a, use, names(targets), gate or [])
        flags = {"audit.budget": budget, "audit.max_cost": max_cost, "audit.seed": seed}
        specs = read(spec_a, False, flags, sets), read(spec_b, False, {})
        verdict = run(*specs, asked, out, as_json)
        if open_it:
            from .browser import open_report

            open_report(out / "report.html")
        if require_decided and not verdict.decided:
            count = int((verdict.targets["decision"] == "open").sum())
            typer.echo(f"avtt: {count} of {len(verdict.targets)} targets are open", err=True)
            raise typer.Exit(4)
