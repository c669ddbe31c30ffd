"""Objects cut out of one's own pictures, into the folders that ``Folder`` reads.

A box, a click or both say where the object is. GrabCut (C. Rother, V. Kolmogorov and A. Blake,
"GrabCut", SIGGRAPH 2004) then says which pixels are it: those whose colours are more like what
is within the box than like what is around it.
"""

from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...types import Image, Mask
from ...utils.files import safe_name, write_bytes
from ...utils.image_codec import png
from .scene import visible_field

SMALLEST_BOX = 4
"""Shortest side of a box, in pixels."""

AROUND_CLICK = 0.15
"""How far around a click the object may reach where no box says it, as a share of the shorter
side of the picture."""

SURE = 0.12
"""What is that near to a click surely is object, as a share of the shorter side of the box."""

LEAST = 0.06
"""Less than this share of the box is no object: a highlight, or the surroundings of a click."""

AROUND_BOX = 0.4
"""How far around a box colours are looked at that are not the object's, as a share of its longer
side."""

LARGEST = 320
"""Longest side of the picture on which GrabCut works; larger ones are shrunk."""

ROUNDS = 5
"""How often GrabCut learns both colour models anew."""

SPECK = 0.05
"""What is smaller than this share of the largest piece is no part of the object."""

Levels = npt.NDArray[np.uint8]
Box = tuple[int, int, int, int]
"""Left, top, width and height in pixels."""


def grabbed(image: Image, box: Box | None = None, click: tuple[int, int] | None = None) -> Mask:
    """The object of H x W x C in a ``box``, or the piece of it at ``click`` (x, y): H x W.

    Same picture, box and click, same mask. Raises InputError for a box or click that is not in the
    picture, for neither, and where nothing stands out.
    """
    if image.shape[2] == 1:
        image = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    left, top, width, height = _checked(image, box, click)
    # what is far away is not learnt from: there may be more of the same
    around = max(SMALLEST_BOX, round(AROUND_BOX * max(width, height)))
    first = max(0, left - around), max(0, top - around)
    window = (slice(first[1], top + height + around), slice(first[0], left + width + around))
    part = image[window]
    scale = min(1.0, LARGEST / max(part.shape[:2]))
    small = cv2.resize(part, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)

    def at(x: int, y: int) -> tuple[int, int]:
        return int((x - first[0]) * scale), int((y - first[1]) * scale)

    marks = np.full(small.shape[:2], cv2.GC_BGD, np.uint8)
    cv2.rectangle(marks, at(left, top), at(left + width - 1, top + height - 1), cv2.GC_PR_FGD, -1)
    seen = visible_field(image)[window].view(np.uint8)
    marks[cv2.resize(seen, small.shape[1::-1], interpolation=cv2.INTER_NEAREST) == 0] = cv2.GC_BGD
    if click is not None:
        radius = max(1, round(SURE * min(width, height) * scale))
        cv2.circle(marks, at(*click), radius, cv2.GC_FGD, -1)
    if np.ptp(marks) == 0:
        raise InputError(
            "--box: expected some tissue within it and some around it, got "
            f"{_told((left, top, width, height))} of {_picture(image)}"
        )
    cv2.setRNGSeed(0)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(small[:, :, ::-1].copy(), marks, None, *models, ROUNDS, cv2.GC_INIT_WITH_MASK)
    found = _pieces((marks & 1).astype(np.uint8), None if click is None else at(*click))
    if found.sum() < LEAST * width * height * scale**2:
        if click is None:  # its colours are no help: what is in the middle may be
            return grabbed(image, box, (left + width // 2, top + height // 2))
        raise InputError(
            f"--box {_told((left, top, width, height))}: expected an object whose colours differ "
            "from what is around it, found none; try a closer box, or a --click on its middle"
        )
    mask = np.zeros(image.shape[:2], np.bool_)
    mask[window] = cv2.resize(found, part.shape[1::-1], interpolation=cv2.INTER_LINEAR) > 0
    return mask


def saved(folder: Path, name: str, image: Image, mask: Mask) -> Path:
    """Writes images/NAME.png and masks/NAME.png into ``folder``, under a name that is new there;
    the first of the two."""
    name, number = safe_name(name), 1
    path = folder / "images" / f"{name}.png"
    while path.exists():
        number += 1
        path = path.with_name(f"{name}-{number}.png")
    write_bytes(folder / "masks" / path.name, png(mask.astype(np.uint8) * np.uint8(255)))
    write_bytes(path, png(image))
    return path


def shown(image: Image, mask: Mask) -> Image:
    """H x W x 3: the object as it is, in an outline, and all else dimmed."""
    colour = image if image.shape[2] == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    dimmed = np.where(mask[:, :, None], colour, colour // 3)
    lines, _ = cv2.findContours(mask.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(dimmed, lines, -1, (255, 212, 0), 1)


def _checked(image: Image, box: Box | None, click: tuple[int, int] | None) -> Box:
    """The box, or the one around the click."""
    rows, columns = image.shape[:2]
    if click is not None and not (0 <= click[0] < columns and 0 <= click[1] < rows):
        raise InputError(f"--click: expected X and Y within {_picture(image)}, got {_told(click)}")
    if box is None:
        if click is None:
            raise InputError("expected --box or --click, got neither")
        reach = max(SMALLEST_BOX, round(AROUND_CLICK * min(rows, columns)))
        left, top = max(0, click[0] - reach), max(0, click[1] - reach)
        right, bottom = min(columns, click[0] + reach), min(rows, click[1] + reach)
        return left, top, right - left, bottom - top
    left, top, width, height = box
    inside = left >= 0 and top >= 0 and left + width <= columns and top + height <= rows
    if not inside or min(width, height) < SMALLEST_BOX:
        raise InputError(
            f"--box: expected X Y W H within {_picture(image)}, {SMALLEST_BOX} or more wide and "
            f"high, got {_told(box)}"
        )
    return box


def _picture(image: Image) -> str:
    return f"the picture of {image.shape[1]} x {image.shape[0]} pixels"


def _told(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


def _pieces(found: Levels, at: tuple[int, int] | None) -> Levels:
    """0 and 1: what was found without its specks and holes, or the piece of it that is ``at``."""
    clean = cv2.morphologyEx(found, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(clean, connectivity=4)
    areas = stats[:, cv2.CC_STAT_AREA]
    areas[0] = 0
    keep = areas > SPECK * areas.max()
    if at is not None:
        keep = np.arange(len(areas)) == labels[at[1], at[0]]
    keep[0] = False
    pieces = keep[labels].astype(np.uint8)
    lines, _ = cv2.findContours(pieces, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    return cv2.drawContours(pieces, lines, -1, 1, -1)
