"""``avtt pictures``: what a spec's audit may ask about, as files."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from ..config import read_spec
from ..config.building import build_space
from ..errors import InputError
from ..results.export.prompt_images import TABLE, Which, count_pictures, write_pictures
from .options import arg, opt


def pictures(
    spec: Annotated[Path, arg("Whose questions: nothing is asked.", "SPEC.toml")],
    out: Annotated[Path, opt("Folder to write into; new, or empty.")],
    sources: Annotated[
        bool, opt("Only the images as they are: for captions in \\[space].", flags="--sources")
    ] = False,
    hidden: Annotated[
        bool, opt("With --sources: their versions with a box hidden, too.", flags="--hidden")
    ] = False,
) -> None:
    """Write every picture an audit may ask about, with a table for a model's answers.

    Example: avtt pictures SPEC.toml --out pictures
    """
    if hidden and not sources:
        raise InputError("--hidden: expected --sources beside it; without that all is written")
    which = (Which.VERSIONS if hidden else Which.SOURCES) if sources else Which.ALL
    read = read_spec(spec)
    if sources:  # captions of these may be what space.captions is to name
        read = read.model_copy(update={"space": read.space.model_copy(update={"captions": None})})
    space = build_space(read, spec.parent)
    if hidden and not space.oracle.most_versions(space.dataset):
        raise InputError("--hidden: [oracle] hides no boxes of these images; leave it out")
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("writing pictures", total=count_pictures(space, which))
        written = write_pictures(space, out, lambda: bar.advance(task), which)
    use = "space.captions" if sources else "model.answers with kind = 'recorded'"
    typer.echo(f"wrote {out}: {written} pictures; fill in {out / TABLE}, and name it as {use}")
