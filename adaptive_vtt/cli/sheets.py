"""Contact sheets: relations x severities of one image, as a PNG or a page of its own."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import cv2
import numpy as np

from ..relations.visual_prompts import draw_contour
from ..results.report.frame import framed
from ..types import Image, Sample
from ..utils.image_codec import jpeg, png

SMALLEST, LARGEST = 160, 1024
"""Pixels of a picture's longer side: smaller ones are enlarged pixel by pixel, larger ones
averaged, and all others shown as they are."""
GAP = 8
MARGIN = 16
COLUMNS = 5
INK, FAINT, PAPER = (27, 33, 41), (100, 110, 122), 255
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Cell:
    """One severity: its picture (None where there can be none), and what to mind, or ""."""

    severity: int
    image: Image | None
    note: str = ""

    @cached_property
    def shown(self) -> Image | None:
        """The picture at the size at which it is shown, as RGB."""
        return None if self.image is None else _fitted(self.image)

    @property
    def address(self) -> str:
        """As a data address: a JPEG, and a PNG where pixels were enlarged."""
        if self.image is None or self.shown is None:
            return ""
        enlarged = max(self.image.shape[:2]) < SMALLEST
        kind, data = ("png", png(self.shown)) if enlarged else ("jpeg", jpeg(self.shown))
        return f"data:image/{kind};base64,{b64encode(data).decode('ascii')}"


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
        rows = [Row("source", self._size(), [Cell(0, self._outlined())]), *self.rows]
        columns = max(COLUMNS, *(len(row.cells) for row in rows))
        pictures = [cell.shown for row in rows for cell in row.cells]
        side = max(max(picture.shape) for picture in pictures if picture is not None)
        width = 2 * MARGIN + columns * side + (columns - 1) * GAP
        bands = [_band(row, width, side) for row in rows]
        return png(np.vstack([*bands, np.full((MARGIN, width, 3), PAPER, np.uint8)]))

    def html(self) -> str:
        """A page with everything inside, for any width, light and dark."""
        return framed(
            HERE / "preview.html",
            styles=[HERE / "preview.css"],
            title=f"Relations, applied to {self.source.id}",
            sheet=self,
            outlined=Cell(0, self._outlined()),
            size=self._size(),
            groups=[(name, [*rows]) for name, rows in groupby(self.rows, lambda r: r.family)],
        )

    def _size(self) -> str:
        height, width, channels = self.image.shape
        return f"{width} x {height} pixels, {'colour' if channels == 3 else 'grey'}"

    def _outlined(self) -> Image:
        image = self.image.copy()
        for mask in self.source.masks.values():
            draw_contour(image, mask, "green")
        return image


def _band(row: Row, width: int, side: int) -> Image:
    pictures = [cell.shown for cell in row.cells]
    tall = max((len(picture) for picture in pictures if picture is not None), default=0)
    top = 56 if len(row.cells) > 1 and tall else 38
    band = np.full((top + tall, width, 3), PAPER, np.uint8)
    about = row.about if not row.note else f"{row.about} ({row.note})"
    _write(band, row.name, MARGIN, 28, INK, 0.5)
    _write(band, about, MARGIN + _wide(row.name, 0.5) + 12, 28, FAINT, 0.42)
    for place, (cell, picture) in enumerate(zip(row.cells, pictures, strict=True)):
        left = MARGIN + place * (side + GAP)
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


def _fitted(image: Image) -> Image:
    """The image as RGB, its longer side of SMALLEST to LARGEST pixels."""
    longer = max(image.shape[:2])
    scale = min(max(SMALLEST, longer), LARGEST) / longer
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    fitted = cv2.resize(image, size, interpolation=way).reshape(size[1], size[0], -1)
    return np.ascontiguousarray(np.broadcast_to(fitted, (size[1], size[0], 3)))
