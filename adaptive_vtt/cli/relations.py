"""``avtt relations``: what makes follow-up images, listed and drawn."""

from pathlib import Path
from typing import Annotated

import typer

from .options import Json, names

app = typer.Typer(
    help="What makes follow-up images.\n\nExample: avtt relations list", no_args_is_help=True
)


@app.command("list")
def list_relations(
    family: Annotated[
        str | None, typer.Argument(help="List the relations of this one.", metavar="FAMILY")
    ] = None,
    as_json: Json = False,
) -> None:
    """Name the built-in relations and families; those of a family with severities and meaning.

    Example: avtt relations list medtest
    """
    from .previews import list_relations as show

    show(family, as_json)


@app.command()
def preview(
    image: Annotated[Path, typer.Argument(help="File of any image.", metavar="IMAGE")],
    out: Annotated[Path, typer.Option(help="Where to write the sheet (.png or .html).")] = Path(
        "preview.png"
    ),
    relations: Annotated[
        str | None,
        typer.Option(help="Names and families, separated by commas (default: the graded ones)."),
    ] = None,
    mask: Annotated[
        Path | None,
        typer.Option(
            help="Image of the size of IMAGE, white on black; relations leave the white alone.",
            metavar="MASK",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same sheet.")] = 0,
) -> None:
    """Write a sheet of relations at every severity, applied to one image.

    Example: avtt relations preview photo.jpg --relations medtest,imagenet-c/fog --out sheet.html
    """
    from .previews import preview as draw

    draw(image, out, names(relations), mask, seed)
    typer.echo(f"wrote {out}")
