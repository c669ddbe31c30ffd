"""``avtt pictures``: what a spec's audit may ask about, as files."""

from pathlib import Path
from typing import Annotated

import typer


def pictures(
    spec: Annotated[
        Path, typer.Argument(help="Whose questions: nothing is asked.", metavar="SPEC.toml")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write into; new, or empty.")],
) -> None:
    """Write every picture an audit may ask about, with a table for a model's answers.

    Example: avtt pictures SPEC.toml --out pictures
    """
    from rich.console import Console
    from rich.progress import Progress

    from ..export.prompt_images import TABLE, count_pictures, write_pictures
    from ..spec import read_spec
    from ..spec.building import build_space

    space = build_space(read_spec(spec), spec.parent)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("writing pictures", total=count_pictures(space))
        written = write_pictures(space, out, lambda: bar.advance(task))
    typer.echo(
        f"wrote {out}: {written} pictures; fill in {out / TABLE}, and name it as model.answers "
        "with kind = 'recorded'"
    )
