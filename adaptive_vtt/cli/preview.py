"""``avtt preview``: relations drawn on one image."""

from pathlib import Path

import numpy as np
import typer

from ..config.building import build_relations
from ..datasets.table import same_size
from ..errors import InputError
from ..relations import Identity, RelationDefaults
from ..relations.graded import GRADED
from ..types import Mask, Sample
from ..utils.files import write_bytes
from ..utils.image_files import read_image
from ..utils.mask_values import read_mask
from ..utils.random_streams import generator
from .options import names
from .sheets import Cell, Row, Sheet
from .spec_changes import read, settings


def preview(
    image: Path,
    *,
    out: Path = Path("preview.png"),
    relations: str | None = None,
    spec: Path | None = None,
    set_: list[str] | None = None,
    mask: Path | None = None,
    seed: int = 0,
) -> None:
    """Write a sheet of relations at every severity, of one image.

    Example: avtt preview photo.jpg --relations medtest --set space.medtest.clipped=true

    Args:
        image (IMAGE): File of any image.
        out: Where to write the sheet (.png or .html).
        relations: Names and families, separated by commas (default: those of --spec, or graded
            ones).
        spec (SPEC.toml): Take relations and their options from its [space].
        mask (MASK): Image of the size of IMAGE, white on black; relations leave the white alone.
        seed: Same seed, same sheet.
    """
    write_preview(image, out, _chosen(names(relations), spec, set_), mask, seed)
    typer.echo(f"wrote {out}")


UNMARKED = "not shown: nothing is marked; --mask says what"


def _chosen(
    named: list[str] | None, spec: Path | None, sets: list[str] | None
) -> list[RelationDefaults]:
    """The relations named, else those of the spec, else identity and the graded ones; with the
    options that the spec and the command line give them."""
    if not named and spec is None and "relations" not in settings(sets).get("space", {}):
        named = [Identity().name, *(relation.name for relation in GRADED)]
    read_in, base = read(spec, spec is None, {"space.relations": named or None}, sets)
    return build_relations(read_in.space, lambda: read_in.dataset.build(base), base)


def write_preview(
    path: Path, out: Path, relations: list[RelationDefaults], mask: Path | None, seed: int
) -> None:
    """Writes a PNG or HTML sheet: one row per relation, one column per severity.

    ``mask``: a file that shows what relations keep off and what prompts are drawn around.
    """
    ending = out.suffix.lower()
    if ending not in (".png", ".html"):
        raise InputError(f"--out: expected a file ending in .png or .html, got {str(out)!r}")
    image = read_image(path, "preview")
    masks: dict[str, Mask] = {}
    if mask is not None:
        masks["marked"] = read_mask(mask, "--mask")
        same_size(masks["marked"].shape, image.shape[:2], f"--mask {str(mask)!r}")
    source = Sample(path.name, image, {}, masks=masks)
    sheet = Sheet(source, image, [_row(source, relation, seed) for relation in relations], seed)
    write_bytes(out, sheet.png() if ending == ".png" else sheet.html().encode())


def _row(source: Sample, relation: RelationDefaults, seed: int) -> Row:
    cells = [_cell(source, relation, severity, seed) for severity in relation.severities]
    return Row(relation.name, relation.about, cells)


def _cell(source: Sample, relation: RelationDefaults, severity: int, seed: int) -> Cell:
    rng = generator(seed, f"preview/{relation.name}", severity)
    try:
        follow_up = relation.apply(source, severity, rng)
    except InputError as error:
        return Cell(severity, None, str(error))
    before, image, details = source.image, follow_up.image, follow_up.details
    if before is None or image is None:
        return Cell(severity, None, "makes no image")
    if details.get("regions") == ():
        return Cell(severity, None, UNMARKED)
    if "coordinates" in details:
        return Cell(severity, image, str(details["coordinates"]))
    if follow_up.words:
        return Cell(severity, image, follow_up.words)
    same = relation.name != Identity().name and np.array_equal(image, before)
    return Cell(severity, image, "unchanged" if same else "")
