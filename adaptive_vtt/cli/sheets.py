"""Contact sheets: relations x severities of one image, as a PNG or a page of its own."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import cv2
import numpy as np

from ..relations.visual_prompts import draw_contour
from ..types import Image, Sample
from ..utils.image_codec import jpeg, png
from ..utils.web import templates_of

CELL = 160
"""Pixels of a picture's longer side in a PNG sheet."""
SHOWN = 280
"""The same on a page, where pictures may be smaller but not larger."""
TINY = 96
"""Pictures up to this many pixels are enlarged pixel by pixel."""
GAP = 8
MARGIN = 16
COLUMNS = 5
INK, FAINT, PAPER = (27, 33, 41), (100, 110, 122), 255
PAGE = Path(__file__).parent / "preview.html"


@dataclass(frozen=True)
class Cell:
    """One severity: its picture (None where there can be none), and what to mind, or ""."""

    severity: int
    image: Image | None
    note: str = ""

    @property
    def tiny(self) -> bool:
        return self.image is not None and max(self.image.shape[:2]) <= TINY

    @property
    def address(self) -> str:
        return "" if self.image is None else _address(self.image)


@dataclass(frozen=True)
class Row:
    """One relation."""

    name: str
    about: str
    cells: Sequence[Cell]

    @property
    def family(self) -> str:
        """What stands before the last "/"; "" for relations that belong to none."""
        return self.name.rpartition("/")[0]

    @property
    def note(self) -> str:
        """What is to be minded of every cell; "" where they differ."""
        notes = {cell.note for cell in self.cells}
        return notes.pop() if len(notes) == 1 else ""

    @property
    def shown(self) -> bool:
        return any(cell.image is not None for cell in self.cells)

    def told(self, cell: Cell) -> str:
        note = f": {cell.note}" if cell.note and not self.note else ""
        return f"{cell.severity}{note}" if len(self.cells) > 1 else ""


@dataclass(frozen=True)
class Sheet:
    """``rows`` of follow-ups of the ``image`` of ``source``, whose masks are outlined."""

    source: Sample
    image: Image
    rows: Sequence[Row]
    seed: int

    def png(self) -> bytes:
        """An RGB picture, one row per relation and one column per severity."""
        columns = max(COLUMNS, *(len(row.cells) for row in self.rows))
        width = 2 * MARGIN + columns * CELL + (columns - 1) * GAP
        outlined = Row("source", self._size(), [Cell(0, self._outlined())])
        bands = [_band(row, width) for row in [outlined, *self.rows]]
        return png(np.vstack([*bands, np.full((MARGIN, width, 3), PAPER, np.uint8)]))

    def html(self) -> str:
        """A page with everything inside, for any width, light and dark."""

        groups = [(name, list(rows)) for name, rows in groupby(self.rows, lambda r: r.family)]
        page = templates_of(PAGE.parent).get_template(PAGE.name)
        return page.render(
            source=Cell(0, self._outlined()),
            name=self.source.id,
            size=self._size(),
            masks=len(self.source.masks),
            seed=self.seed,
            groups=groups,
            count=len(self.rows),
        )

    def _size(self) -> str:
        height, width, channels = self.image.shape
        return f"{width} x {height} pixels, {'colour' if channels == 3 else 'grey'}"

    def _outlined(self) -> Image:
        image = self.image.copy()
        for mask in self.source.masks.values():
            draw_contour(image, mask, "green")
        return image


def _band(row: Row, width: int) -> Image:
    pictures = [None if c.image is None else _fitted(c.image, CELL) for c in row.cells]
    tall = max((len(picture) for picture in pictures if picture is not None), default=0)
    top = 56 if len(row.cells) > 1 and tall else 38
    band = np.full((top + tall, width, 3), PAPER, np.uint8)
    about = row.about if not row.note else f"{row.about} ({row.note})"
    _write(band, row.name, MARGIN, 28, INK, 0.5)
    _write(band, about, MARGIN + _wide(row.name, 0.5) + 12, 28, FAINT, 0.42)
    for place, (cell, picture) in enumerate(zip(row.cells, pictures, strict=True)):
        left = MARGIN + place * (CELL + GAP)
        if tall:
            _write(band, row.told(cell), left, 48, FAINT, 0.4)
        if picture is not None:
            band[top : top + len(picture), left : left + picture.shape[1]] = picture
    return band


def _write(
    image: Image, text: str, x: int, y: int, colour: tuple[int, int, int], scale: float
) -> None:
    cv2.putText(image, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, colour, 1, cv2.LINE_AA)


def _wide(text: str, scale: float) -> int:
    return int(cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, scale, 1)[0][0])


def _fitted(image: Image, side: int) -> Image:
    """The image with its longer side ``side`` pixels long, as RGB."""
    scale = side / max(image.shape[:2])
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    fitted = cv2.resize(image, size, interpolation=way).reshape(size[1], size[0], -1)
    return np.broadcast_to(fitted, (size[1], size[0], 3))


def _address(image: Image) -> str:
    """A JPEG, or for tiny pictures a PNG, as a data address."""
    if max(image.shape[:2]) <= TINY:
        kind, data = "png", png(image)
    else:
        small = _fitted(image, SHOWN) if max(image.shape[:2]) > SHOWN else image
        kind, data = "jpeg", jpeg(np.ascontiguousarray(small))
    return f"data:image/{kind};base64,{b64encode(data).decode('ascii')}"
