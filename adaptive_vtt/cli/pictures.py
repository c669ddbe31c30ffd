"""``avtt pictures``: what a spec's audit may ask about, as files."""

from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress

from ..export.prompt_images import TABLE, count_pictures, write_pictures
from ..spec import read_spec
from ..spec.building import build_space


def pictures(path: Path, out: Path) -> None:
    """Writes all pictures of the spec at ``path`` to ``out``, and says so."""
    spec = read_spec(path)
    space = build_space(spec, path.parent)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("writing pictures", total=count_pictures(space))
        written = write_pictures(space, out, lambda: bar.advance(task))
    typer.echo(
        f"wrote {out}: {written} pictures; fill in {out / TABLE}, and name it as model.answers "
        "with kind = 'recorded'"
    )
