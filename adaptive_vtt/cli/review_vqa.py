"""``avtt review-vqa``: questions are accepted, edited or rejected before a model is asked."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..people.reviewing import Review
from ..results.view.server import Serving
from ..utils.files import whole_folder, write_text
from .build_vqa import QUESTIONS, SPEC, spec_text
from .options import Json, OpenPage, Port, arg, opt
from .view import until_interrupted


def review_vqa(
    directory: Annotated[Path, arg("What build-vqa wrote, or a TSV as EndoBench's.", "DIR")],
    out: Annotated[
        Path | None, opt("Write what was accepted here, a new folder; open no page.")
    ] = None,
    port: Port = 0,
    open_: OpenPage = True,
    as_json: Json = False,
) -> None:
    """Review questions on a page: accept, edit or reject each.

    Decisions stand in review.csv beside the questions as soon as they are
    taken; the same command goes on with the rest. With --out, what was
    accepted or edited becomes a table of its own, and what is left does not.

    Example: avtt review-vqa questions
    """
    table = directory / QUESTIONS if directory.is_dir() else directory
    review = Review(table)
    if out is not None:
        with whole_folder(out) as folder:
            count = review.write(folder / QUESTIONS)
            write_text(folder / SPEC, spec_text())
        told = {"questions": count, **review.counts}
        sentence = f"wrote {out}: {count} questions; {_told(review)}"
        typer.echo(json.dumps(told, indent=1) if as_json else sentence)
        return
    with Serving(review, port) as server:
        address = f"{server.url}{review.key}/"
        served = f"{table}: {address}\n{_told(review)}. Ctrl-C ends it."
        until_interrupted(served, address, open_it=open_)
    typer.echo(_told(review))


def _told(review: Review) -> str:
    counts = review.counts
    return (
        f"{counts['accept']} accepted, {counts['edit']} edited, {counts['reject']} rejected, "
        f"{counts['left']} left"
    )
