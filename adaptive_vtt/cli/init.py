"""``avtt init``: a folder that runs as it is, or a SPEC.toml for images that are there."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError


def init(
    directory: Annotated[Path, typer.Argument(help="Folder to write into.", metavar="DIR")],
    data: Annotated[
        Path | None,
        typer.Option(help="Your images: a folder, or a table of labels. Default: those in DIR."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(help="A spec to start from instead: see 'avtt list specs'.", metavar="NAME"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Every field that there is, described, with defaults.")
    ] = False,
) -> None:
    """Write a SPEC.toml and a model stub: for your images, or a few to try.

    Class folders, images beside masks, PASCAL VOC's boxes, a CSV or Parquet
    table of labels beside images, and images alone are recognised.

    Example: avtt init my-audit && avtt audit my-audit/SPEC.toml
    """
    if like is not None:
        if data is not None or full:
            raise InputError("--like: expected neither --data nor --full beside it")
        from .bundled_specs import write_like

        path = write_like(directory, like)
        name = shlex.quote(str(path))
        typer.echo(f"wrote {path}\nnext:\n  change what is marked with <- in {name}")
        typer.echo(f"  avtt audit {name} --dry-run    # what it may take\n  avtt audit {name}")
        return
    from .start_folder import write_first

    written = write_first(directory, data, full)
    spec, model = (shlex.quote(str(written.spec.with_name(n))) for n in ("SPEC.toml", "model.py"))
    if written.found is None:
        typer.echo(f"wrote {written.spec}, a model and images to try it on\nnext:")
    else:
        typer.echo(f"found {written.found}\nwrote {written.spec}\nnext:")
        typer.echo(f"  make predict in {model} call your model")
    typer.echo(f"  avtt audit {spec} --dry-run    # what it may take\n  avtt audit {spec}")
