"""``avtt label``: people as readers of an audit's captions, pictures and questions."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, RunDir


def label(
    directory: RunDir,
    inspector: Annotated[
        str | None,
        typer.Option(
            "--inspector",
            "--reader",
            help="Who labels or reads; each one's answers are kept apart.",
            metavar="NAME",
        ),
    ] = None,
    realism: Annotated[
        bool,
        typer.Option(
            "--realism",
            help="Of any audit: pairs of source and follow-up. Realistic? Same diagnosis?",
        ),
    ] = False,
    questions: Annotated[
        bool,
        typer.Option(
            "--questions",
            help="A reader study: people answer what the model was asked, in that order, and "
            "their error rates are certified by the same draws.",
        ),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Also everything in so many follow-ups drawn at random (default: 0); so many "
            "pairs (--realism; default: 60); the first so many questions (--questions; all)."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also everything in all follow-ups; all pairs.")
    ] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Write a page to label on, instead of asking here.")
    ] = False,
    take: Annotated[
        Path | None, typer.Option(help="Add labels that such a page saved.", metavar="FILE")
    ] = None,
    summary: Annotated[
        bool,
        typer.Option("--summary", help="Say what all labels and answers come to so far."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Label, judge or answer as a person what an audit found, made or asked.

    By default violations that an audit of captions found are confirmed or
    corrected. With --realism changed pictures of any audit are judged, with
    --questions the model's questions are answered; --summary then writes both
    into the report.

    Example: avtt label runs/first --realism --reader ann --html
    """
    from .label_desk import Wanted
    from .label_desk import label as run_label

    wanted = Wanted(inspector, sample, everything, html, take, summary, as_json)
    run_label(directory, wanted, realism=realism, questions=questions)
