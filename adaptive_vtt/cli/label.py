"""``avtt label``: people confirm or correct what an audit of captions reports."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, RunDir


def label(
    directory: RunDir,
    inspector: Annotated[
        str | None,
        typer.Option(help="Who labels; each inspector's labels are kept apart.", metavar="NAME"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Also everything in so many follow-ups drawn at random. Default: 0."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also everything in all follow-ups.")
    ] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Write a page to label on, instead of asking here.")
    ] = False,
    take: Annotated[
        Path | None, typer.Option(help="Add labels that such a page saved.", metavar="FILE")
    ] = None,
    summary: Annotated[
        bool,
        typer.Option("--summary", help="Say precision, recall, error types and agreement so far."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Confirm or correct, as a person, the violations that an audit of captions found.

    Example: avtt label runs/captions --inspector ann --sample 50
    """
    from .label_desk import label as run_label

    run_label(
        directory,
        inspector=inspector,
        sample=sample,
        everything=everything,
        html=html,
        take=take,
        summary=summary,
        as_json=as_json,
    )
