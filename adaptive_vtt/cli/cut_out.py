"""``avtt cut-out``: objects out of one's own pictures, to be pasted into others."""

from pathlib import Path
from typing import Annotated

import typer

from ..people.cutting import CutOuts
from ..relations.medtest.grabbing import grabbed, saved
from ..results.view.server import Serving
from ..utils.image_files import read_image
from .options import OpenPage, Port, arg, opt
from .view import until_interrupted


def cut_out(
    image: Annotated[Path, arg("File of a picture.", "IMAGE")],
    out: Annotated[Path, opt("Folder for images/ and masks/; new ones are added.")],
    box: Annotated[
        tuple[int, int, int, int] | None,
        opt("Left, top, width and height in pixels, a little larger than the object.", "X Y W H"),
    ] = None,
    click: Annotated[
        tuple[int, int] | None, opt("A pixel of the object, in the box or alone.", "X Y")
    ] = None,
    port: Port = 0,
    open_: OpenPage = True,
) -> None:
    """Cut an object out of a picture, for relations that paste it into others.

    Without a box or a click, a page opens on which boxes are drawn.
    The folder is what SPEC.toml takes as space.medtest.instruments,
    feces or blood, and a dataset of images and masks, whose objects
    (polyps, say) metaic pastes.

    Example: avtt cut-out frame.png --box 120 80 64 200 --out tools
    """
    picture = read_image(image, "cut-out")
    if box is not None or click is not None:
        mask = grabbed(picture, box, click)
        typer.echo(f"wrote {saved(out, image.stem, picture, mask)}, {mask.sum()} pixels of it cut")
        return
    site = CutOuts(picture, image.stem, out)
    with Serving(site, port) as server:
        address = f"{server.url}{site.key}/"
        until_interrupted(f"{image}: {address}\nCtrl-C ends it.", address, open_it=open_)
