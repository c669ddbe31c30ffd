"""``avtt init``: a folder that runs as it is."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    directory: Annotated[Path, typer.Argument(help="Folder to write into.", metavar="DIR")],
) -> None:
    """Write a commented SPEC.toml, a model stub and a few images that run as they are.

    Example: avtt init my-audit && avtt audit my-audit/SPEC.toml
    """
    from .start_folder import write_start

    typer.echo(f"wrote {write_start(directory)}\nnext: avtt audit {directory / 'SPEC.toml'}")
