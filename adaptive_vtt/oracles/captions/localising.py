"""Locate the objects of a caption: by the labels of boxes, else by hiding boxes.

Source: REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE 2024,
section IV-B3 and Algorithm 1). The paper specifies neither the width of its blur nor the size of
the inpainted area; here they are `BLUR` and `MARGIN`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ...errors import check_known, unexpected
from ...types import Box, Filler, Image
from . import Same

# -- covering a box --------------------------------------------------------------------------------

VERSIONS = ("blur", "black", "inpaint")
"""The three ways to hide a box, in REIC's order."""
HIDDEN = "hidden/"
"""Prefix of the names of versions of an image with a box covered."""
BLUR = 0.25
"""Standard deviation of the blur, as a share of the box's width and height. A pattern of two waves
per side keeps less than 1 % of its contrast, so that only smooth colours remain."""
MARGIN = 3
"""Pixels around a box that are inpainted, too, as soft edges would reveal the object."""
_DETAIL = 64
"""Pixels per side to which a large box is shrunk before the blur, which removes finer detail."""
_RADIUS = 3
"""Radius in pixels of the neighbourhood that inpainting uses."""
_CONTEXT = 2 * _RADIUS
"""Pixels around the inpainted area that are given to the method."""


def inpainted(image: Image, box: Box) -> Image:
    """Return a copy of an image, H x W x C of uint8, with a box and MARGIN pixels around inpainted.

    The method is Telea's (J. Graphics Tools 9, 2004). A box that covers the whole image gets its
    mean colour.
    """
    height, width = image.shape[:2]
    filled = image.copy()
    left, top, right, bottom = pixels(box, height, width)
    if right <= left or bottom <= top:
        return filled
    left, top, right, bottom = pixels(grown(box, MARGIN), height, width)
    x1, y1, x2, y2 = pixels(grown(box, MARGIN + _CONTEXT), height, width)
    around = np.ascontiguousarray(image[y1:y2, x1:x2])
    hole = np.zeros(around.shape[:2], np.uint8)
    hole[top - y1 : bottom - y1, left - x1 : right - x1] = 1
    if hole.all():
        filled[:] = np.rint(image.mean(axis=(0, 1)))
        return filled
    drawn = cv2.inpaint(around, hole, _RADIUS, cv2.INPAINT_TELEA).reshape(around.shape)
    filled[y1:y2, x1:x2][hole > 0] = drawn[hole > 0]
    return filled


def occluded(
    image: Image, box: Box, version: str, *, blur: float = BLUR, fill: Filler = inpainted
) -> Image:
    """Return a copy of an image in which the content of a box is hidden.

    The box is enlarged to whole pixels, and clipped. A box outside the image changes nothing.

    Args:
        image: H x W x C of uint8.
        box: The box to hide.
        version: "blur" (within the box), "black" or "inpaint" (by ``fill``).
        blur: Standard deviation of the blur as a share of the box's sides, above 0.
        fill: Function that paints over a box.

    Raises:
        InputError: There is no such version, or ``blur`` is not above 0.
    """
    check_known("version", version, VERSIONS, "occlusion")
    if not blur > 0:
        raise unexpected("occlusion", "a blur above 0", blur)
    if version == "inpaint":
        return fill(image, box)
    left, top, right, bottom = pixels(box, *image.shape[:2])
    covered = image.copy()
    inside = covered[top:bottom, left:right]
    if version == "black":
        inside[:] = 0
    elif inside.size:
        inside[:] = _blurred(inside, blur)
    return covered


def pixels(box: Box, height: int, width: int) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom of the pixels that a box touches in an image H x W; the last
    two are exclusive."""
    left, right = (min(max(side, 0), width) for side in (box.left, box.right))
    top, bottom = (min(max(side, 0), height) for side in (box.top, box.bottom))
    return math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)


def grown(box: Box, margin: float) -> Box:
    """Return a box that is larger by ``margin`` pixels on each side."""
    left, top, right, bottom = box.edges
    edges = left - margin, top - margin, right + margin, bottom + margin
    return Box(box.label, *edges, box.score)


def innermost(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """Return the boxes that contain no other box, in their order (REIC, Algorithm 1, line 10).

    Of nested boxes the inner one is more likely the object's. The first of equal boxes is kept.
    """
    # a box contains another if it reaches as far in each direction
    reach = np.array([box.edges for box in boxes]).reshape(-1, 4) * [-1, -1, 1, 1]
    contains = (reach[:, None] >= reach).all(axis=2)
    earlier = np.tri(len(boxes), k=-1, dtype=bool)
    outer = (contains & (~contains.T | earlier)).any(axis=1)
    return tuple(boxes[k] for k in np.flatnonzero(~outer).tolist())


def _blurred(image: Image, blur: float) -> Image:
    """Return a blurred image; for speed, it is shrunk to _DETAIL pixels per side before."""
    height, width = image.shape[:2]
    tall, wide = min(height, _DETAIL), min(width, _DETAIL)
    small = cv2.resize(np.ascontiguousarray(image), (wide, tall), interpolation=cv2.INTER_AREA)
    border = cv2.BORDER_REPLICATE
    soft = cv2.GaussianBlur(small, (0, 0), blur * wide, sigmaY=blur * tall, borderType=border)
    drawn = cv2.resize(soft, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(drawn, np.uint8).reshape(image.shape)


# -- the boxes of each name ------------------------------------------------------------------------


@dataclass(frozen=True)
class Located:
    """An object that a caption names.

    Attributes:
        name: The name in the caption.
        boxes: Its boxes; () if it was not located.
        visible: Share of it that the follow-up shows, in [0, 1]; None: unknown.
        status: Its status in the follow-up: "retained", "ambiguous", "disappeared" or "unlocated".
    """

    name: str
    boxes: tuple[Box, ...]
    visible: float | None = None
    status: str = "unlocated"


def by_detection(names: Sequence[str], boxes: Sequence[Box], same: Same) -> list[Located]:
    """Return each name with the boxes whose label means the same."""
    return [
        Located(name, tuple(b for b in boxes if b.label and same(name, b.label))) for name in names
    ]


def completed(
    detected: Sequence[Located],
    boxes: Sequence[Box],
    hidden: Mapping[int, Sequence[str]],
    same: Same,
) -> list[Located]:
    """Return the objects, where those without a box of their name are located by occlusion.

    Args:
        detected: The objects with the boxes of their names.
        boxes: As the following, an argument of ``by_occlusion``.
        hidden: See there.
        same: See there.
    """
    return [
        object_ if object_.boxes or not hidden else by_occlusion(object_.name, boxes, hidden, same)
        for object_ in detected
    ]


def by_occlusion(
    name: str, boxes: Sequence[Box], hidden: Mapping[int, Sequence[str]], same: Same
) -> Located:
    """Return an object with the boxes without which captions do not name it.

    A box belongs to the object if the captions of all three versions do not name it (REIC,
    Algorithm 1, line 6). Of nested boxes the inner ones count.

    Args:
        name: The object's name.
        boxes: All boxes of the image.
        hidden: box * 3 + version (blur, black, inpaint) -> names in the caption with that box
            hidden; versions without a caption are missing.
        same: Function that decides whether two names mean the same.
    """
    absent = np.zeros((len(boxes), len(VERSIONS)), dtype=bool)
    for place, names in hidden.items():
        absent[divmod(place, len(VERSIONS))] = not any(same(name, n) for n in names)
    accepted = np.flatnonzero(absent.all(axis=1)).tolist()
    return Located(name, innermost([boxes[k] for k in accepted]))


def rounded(box: Box) -> list[float]:
    """Return the edges of a box, rounded to a tenth of a pixel, as JSON."""
    return [round(float(edge), 1) for edge in box.edges]
