"""``avtt preview``: relations x severities of one image, as a PNG or a page."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import typer

from ..config.building import build_relations
from ..datasets.table import same_size
from ..errors import InputError
from ..relations import Identity, RelationDefaults
from ..relations.base import follow_up_of
from ..relations.graded import GRADED
from ..relations.visual_prompts import draw_contour
from ..results.report.frame import framed
from ..types import Image, Mask, Sample
from ..utils.files import write_bytes
from ..utils.image_codec import data_address, jpeg, png
from ..utils.image_files import read_image
from ..utils.mask_values import read_mask
from ..utils.random_streams import generator
from .options import names
from .spec_changes import read, settings

SMALLEST, LARGEST = 160, 1024
"""Range of a picture's longer side in pixels: smaller ones are enlarged pixel by pixel, larger ones
averaged."""
GAP, MARGIN, COLUMNS = 8, 16, 5
INK, FAINT, PAPER = (27, 33, 41), (100, 110, 122), 255
FONT = cv2.FONT_HERSHEY_SIMPLEX
HERE = Path(__file__).parent
IDENTITY = Identity().name
UNMARKED = "not shown: nothing is marked; --mask says what"


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
        image (IMAGE): An image file.
        out: File to write the sheet into (.png or .html).
        relations: Names and families, separated by commas. Default: those of --spec, or graded
            ones.
        spec (SPEC.toml): Take relations and their options from its [space].
        mask (MASK): Image as large as IMAGE, white on black. Relations that keep or mark regions
            take the white part.
        seed: Same seed, same sheet.
    """
    chosen = names(relations)
    if not chosen and spec is None and "relations" not in settings(set_).get("space", {}):
        chosen = [IDENTITY, *(relation.name for relation in GRADED)]
    whole, base = read(spec, spec is None, {"space.relations": chosen or None}, set_)
    parts = build_relations(whole.space, lambda: whole.dataset.build(base), base)
    if (ending := out.suffix.lower()) not in (".png", ".html"):
        raise InputError(f"--out: expected a file ending in .png or .html, got {str(out)!r}")
    pixels, masks = read_image(image, "preview"), dict[str, Mask]()
    if mask is not None:
        masks["marked"] = read_mask(mask, "--mask")
        same_size(masks["marked"].shape, pixels.shape[:2], f"--mask {str(mask)!r}")
    source = Sample(image.name, pixels, {}, masks=masks)
    rows = []
    for relation in parts:
        cells = [_cell(source, relation, severity, seed) for severity in relation.severities]
        rows.append(Row(relation.name, relation.about, cells))
    outlined, (height, width, channels) = pixels.copy(), pixels.shape
    for each in masks.values():
        draw_contour(outlined, each, "green")
    size = f"{width} x {height} pixels, {'colour' if channels == 3 else 'grey'}"
    first = Row("source", size, [Cell(0, _fitted(outlined))])
    sheet = _png([first, *rows]) if ending == ".png" else _html(source, first, rows, seed).encode()
    write_bytes(out, sheet)
    typer.echo(f"wrote {out}")


class Cell(NamedTuple):
    """One severity: its RGB picture (None if there can be none), and a note, or ""."""

    severity: int
    picture: Image | None
    note: str = ""

    @property
    def address(self) -> str:
        """The picture as a data address: a JPEG, or a PNG where pixels may have been enlarged."""
        if self.picture is None:
            return ""
        encode = png if max(self.picture.shape) <= SMALLEST else jpeg
        return data_address(encode(self.picture))


class Row(NamedTuple):
    """One relation."""

    name: str
    about: str
    cells: Sequence[Cell]

    @property
    def note(self) -> str:
        """The note that all cells have; "" if they differ."""
        notes = {cell.note for cell in self.cells}
        return notes.pop() if len(notes) == 1 else ""

    @property
    def shown(self) -> bool:
        """True if there is a picture."""
        return any(cell.picture is not None for cell in self.cells)

    def caption(self, cell: Cell) -> str:
        """Return the text under a cell: its severity, and its note unless all have that."""
        note = f": {cell.note}" if cell.note and not self.note else ""
        return f"{cell.severity}{note}" if len(self.cells) > 1 else ""


def _cell(source: Sample, relation: RelationDefaults, severity: int, seed: int) -> Cell:
    rng = generator(seed, f"preview/{relation.name}", severity)
    try:
        follow_up = follow_up_of(relation, source, severity, rng)
    except InputError as error:
        return Cell(severity, None, str(error))
    before, image, details = source.image, follow_up.image, follow_up.details
    if before is None or image is None:
        return Cell(severity, None, "makes no image")
    if details.get("regions") == ():
        return Cell(severity, None, UNMARKED)
    same = relation.name != IDENTITY and np.array_equal(image, before)
    note = follow_up.words or ("unchanged" if same else "")
    return Cell(severity, _fitted(image), str(details.get("coordinates", note)))


def _fitted(image: Image) -> Image:
    """Return the image as RGB, its longer side of SMALLEST to LARGEST pixels."""
    longer = max(image.shape[:2])
    scale = min(max(SMALLEST, longer), LARGEST) / longer
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    fitted = cv2.resize(image, size, interpolation=method).reshape(size[1], size[0], -1)
    return np.ascontiguousarray(np.broadcast_to(fitted, (size[1], size[0], 3)))


def _html(source: Sample, first: Row, rows: Sequence[Row], seed: int) -> str:
    """Return a page with everything inside, for any width, light and dark."""
    families = groupby(rows, lambda row: row.name.rpartition("/")[0])
    return framed(
        HERE / "preview.html",
        styles=[HERE / "preview.css"],
        title=f"Relations, applied to {source.id}",
        source=source,
        first=first,
        rows=rows,
        seed=seed,
        groups=[(family, [*members]) for family, members in families],
    )


def _png(rows: Sequence[Row]) -> bytes:
    """Return an RGB picture, one row per relation and one column per severity."""
    columns = max(COLUMNS, *(len(row.cells) for row in rows))
    pictures = [cell.picture for row in rows for cell in row.cells]
    side = max(max(picture.shape) for picture in pictures if picture is not None)
    width = 2 * MARGIN + columns * side + (columns - 1) * GAP
    bands = [_band(row, width, side) for row in rows]
    return png(np.vstack([*bands, np.full((MARGIN, width, 3), PAPER, np.uint8)]))


def _band(row: Row, width: int, side: int) -> Image:
    tall = max(0 if cell.picture is None else len(cell.picture) for cell in row.cells)
    top = 56 if len(row.cells) > 1 and tall else 38
    band = np.full((top + tall, width, 3), PAPER, np.uint8)

    def write(text: str, left: int, bottom: int, colour: tuple[int, int, int], size: float) -> None:
        cv2.putText(band, text, (left, bottom), FONT, size, colour, 1, cv2.LINE_AA)

    wide = int(cv2.getTextSize(row.name, FONT, 0.5, 1)[0][0])
    write(row.name, MARGIN, 28, INK, 0.5)
    about = f"{row.about} ({row.note})" if row.note else row.about
    write(about, MARGIN + wide + 12, 28, FAINT, 0.42)
    for place, cell in enumerate(row.cells):
        left = MARGIN + place * (side + GAP)
        if tall:
            write(row.caption(cell), left, 48, FAINT, 0.4)
        if (picture := cell.picture) is not None:
            band[top : top + len(picture), left : left + picture.shape[1]] = picture
    return band
