"""Visual prompts: a region to look at is drawn into the image or stated as coordinates.

The kinds are those of EndoBench (results in its Table 3): a box, a contour, several boxes or
contours with letters, and coordinates without a drawing. A connected piece of a sample's mask is a
region. The follow-up's words name it as EndoBench's questions do (appendix A.3): "the region marked
by the green bounding box", "... by the green contour", or by [x1, y1, x2, y2].

EndoBench does not state the unit of its coordinates. Here they are pixels of the image that the
model receives, and the words state its size. The words name no concept, and the question is still
about the whole image, so no answer changes. Question spaces refuse samples without masks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import cv2
import numpy as np

from ..types import FollowUp, Image, Mask, Sample, around
from .base import LabelPreserving, RelationDefaults, Rng

COLOURS = {
    "green": (0, 255, 0),
    "blue": (40, 90, 255),
    "yellow": (255, 255, 0),
    "cyan": (0, 255, 255),
    "magenta": (255, 0, 255),
    "white": (255, 255, 255),
}
"""Colours of the regions in order, which contrast with mucosa."""
LETTERS = "ABCDEF"
"""Letters of the regions in order."""

_FONT = cv2.FONT_HERSHEY_SIMPLEX

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Region:
    """Region that the prompt marks.

    Attributes:
        concept: Concept of the mask.
        box: (x1, y1, x2, y2) in pixels; x2 and y2 are exclusive.
        letter: Letter that is drawn next to the region.
        colour: Name of the colour.
        mask: Mask (H, W) of the region.
    """

    concept: str
    box: Box
    letter: str
    colour: str
    mask: Mask = field(repr=False, compare=False)


def regions(masks: Mapping[str, Mask], most: int = len(LETTERS)) -> tuple[Region, ...]:
    """Return up to ``most`` (1..6) connected pieces of the masks (H, W), largest first.

    Pieces of one concept that are less than 1/50 of the shorter side apart count as one.
    """
    pieces = [(concept, piece) for concept, mask in masks.items() for piece in _pieces(mask)]
    pieces.sort(key=lambda pair: -int(pair[1].sum()))
    return tuple(
        Region(concept, around(piece), letter, colour, piece)
        for (concept, piece), letter, colour in zip(pieces[:most], LETTERS, COLOURS, strict=False)
    )


def draw_contour(image: Image, mask: Mask, colour: str) -> None:
    """Draw a line around ``mask`` into ``image``; at the image's border it is inside the mask."""
    thick = _thickness(image)
    inner = np.zeros_like(mask)
    inside = (slice(thick, -thick), slice(thick, -thick))
    inner[inside] = mask[inside]
    if not inner.any():
        inner = mask
    grown = cv2.dilate(inner.astype(np.uint8), np.ones((2 * thick + 1, 2 * thick + 1), np.uint8))
    image[(grown > 0) & ~inner] = _ink(image, colour)


def draw_box(image: Image, box: Box, colour: str) -> None:
    """Draw a frame around ``box`` into ``image``; at the image's border it is inside the box."""
    x1, y1, x2, y2 = box
    filled = np.zeros(image.shape[:2], bool)
    filled[y1:y2, x1:x2] = True
    draw_contour(image, filled, colour)


def draw_letter(image: Image, region: Region) -> None:
    """Draw the region's letter, black on its colour, above the box or at the image's top."""
    scale, thick = max(0.3, min(image.shape[:2]) / 450), _thickness(image)
    (wide, tall), below = cv2.getTextSize(region.letter, _FONT, scale, thick)
    x = min(region.box[0], max(image.shape[1] - wide, 0))
    y = max(region.box[1] - thick - below, tall)
    cv2.rectangle(image, (x, y - tall), (x + wide, y + below), _ink(image, region.colour), -1)
    cv2.putText(image, region.letter, (x, y), _FONT, scale, (0, 0, 0), thick, cv2.LINE_AA)


def coordinates(marked: Sequence[Region]) -> str:
    """Return the regions in words: "[x1, y1, x2, y2]", with letters if there are several."""
    boxes = [f"[{', '.join(map(str, region.box))}]" for region in marked]
    if len(boxes) == 1:
        return boxes[0]
    return "; ".join(f"{r.letter}: {box}" for r, box in zip(marked, boxes, strict=True))


@dataclass(frozen=True)
class Prompt(LabelPreserving):
    """Relation of one kind of visual prompt; its only severity is 1.

    ``details`` of a follow-up hold the ``regions`` and, if nothing is drawn, their ``coordinates``.

    Args:
        name: Name of the relation.
        drawn: "box", "contour", or "" for coordinates in words.
        several: Whether to mark up to six regions with letters, or else the largest without one.
        mark: Name of the drawing in the question; "" for coordinates.
        about: Description in one line.
    """

    name: str
    drawn: Literal["box", "contour", ""]
    several: bool
    mark: str
    about: str
    severities: tuple[int, ...] = (1,)
    needs_region: ClassVar[bool] = True

    @property
    def in_words(self) -> Literal["also", "only"]:  # type: ignore[override]  # follows from drawn
        return "also" if self.drawn else "only"

    @property
    def fingerprint(self) -> str:
        """The name of the drawing, which is part of the questions."""
        return f"says {self.mark}"

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        self.check(severity)
        if sample.image is None:
            return FollowUp(None)
        image = sample.image.copy(order="C")
        marked = regions(sample.masks, len(LETTERS) if self.several else 1)
        details: dict[str, Any] = {"regions": marked}
        if not self.drawn:
            details["coordinates"] = coordinates(marked)
        for region in marked if self.drawn else ():
            if self.drawn == "box":
                draw_box(image, region.box, region.colour)
            else:
                draw_contour(image, region.mask, region.colour)
        for region in marked if self.several else ():
            draw_letter(image, region)
        return FollowUp(image, details, self._words(image, marked))

    def _words(self, image: Image, marked: Sequence[Region]) -> str:
        if not marked:
            return ""
        if not self.mark:
            height, width = image.shape[:2]
            return (
                f"Look at the region {coordinates(marked)}, given as [x1, y1, x2, y2] in pixels "
                f"from the upper left corner of this image, which is {width} pixels wide and "
                f"{height} high."
            )
        coloured = image.shape[2] == 3
        if self.several:
            named = [f"{r.letter} ({r.colour})" if coloured else r.letter for r in marked]
            return f"Look at the regions marked by {self.mark} with letters: {', '.join(named)}."
        colour = f"{marked[0].colour} " if coloured else ""
        return f"Look at the region marked by the {colour}{self.mark}."


KINDS: Mapping[str, tuple[Literal["box", "contour", ""], bool, str, str]] = {
    "box": ("box", False, "bounding box", "a box around the largest region"),
    "contour": ("contour", False, "contour", "the outline of the largest region"),
    "multi-box": ("box", True, "bounding boxes", "boxes with letters around up to six regions"),
    "multi-contour": ("contour", True, "contours", "outlines with letters, up to six regions"),
    "coordinates": ("", False, "", "the largest region's box, given in words and not drawn"),
}
"""Kind -> the arguments ``drawn``, ``several``, ``mark`` and ``about`` of ``Prompt``."""


def relations() -> list[RelationDefaults]:
    """Return the five kinds of visual prompts."""
    return [Prompt(f"prompt/{kind}", *parts) for kind, parts in KINDS.items()]


def _pieces(mask: Mask) -> list[Mask]:
    near = 2 * (min(mask.shape) // 100) + 1
    bits = np.ascontiguousarray(mask, np.uint8)
    joined = cv2.dilate(bits, np.ones((near, near), np.uint8))
    count, labels = cv2.connectedComponents(joined)
    return [mask & (labels == label) for label in range(1, count)]


def _thickness(image: Image) -> int:
    return max(1, round(min(image.shape[:2]) / 150))


def _ink(image: Image, colour: str) -> tuple[int, ...]:
    """Return the colour in the image's channels; for a grey image its luminance."""
    red, green, blue = COLOURS[colour]
    if image.shape[2] == 3:
        return red, green, blue
    return (round(0.299 * red + 0.587 * green + 0.114 * blue),)
