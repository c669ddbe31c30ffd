"""Propose boxes around objects of any kind, for images without annotations or a detector.

REIC's occlusion (section IV-B3) needs boxes, but not their labels. A candidate is a connected area
that differs from its surroundings, or has a single hue or shade. Candidates are ranked by the
density of edges inside minus that just outside, times the side of the box, so that an object of
many parts gets one box.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np
import numpy.typing as npt

from ...errors import unexpected
from ...types import Box, Image, Indices
from ...utils.options import Option, check_options

Floats = npt.NDArray[np.float32]

SIDE = 256
"""Longer side in pixels of the shrunk image that is searched."""
SURROUNDINGS = 0.4
"""Side of the square with which a pixel is compared, as a share of the image's longer side."""
OUTSTANDING = (0.30, 0.25, 0.20, 0.15, 0.10, 0.05)
"""Shares of an image's pixels that differ most from their surroundings; each is searched."""
HUES = 8
"""Number of bands of hue of coloured pixels."""
COLOURED = 12
"""Minimum chroma (CIELAB) of a coloured pixel; others are grey."""
SHADES = 4
"""Number of bands of lightness of grey pixels."""
CLOSINGS = (1, 5)
"""Widths in pixels below which gaps in an area are closed; each is searched."""
MIN = 4
"""Minimum side of an area, in pixels of the shrunk image."""


@dataclass(frozen=True)
class Regions:
    """``Detector`` of boxes without labels, with scores relative to that of the first box.

    Args:
        most: Maximum number of boxes.
        smallest: Minimum area of a box, as a share of the image.
        largest: Maximum area of a box, as a share of the image.
        overlap: Maximum intersection over union of two boxes, above which the later one is dropped.

    Raises:
        InputError: The limits exclude all boxes.
    """

    most: Annotated[int, Option("at most so many boxes", ge=1)] = 20
    smallest: float = 0.002
    largest: float = 0.5
    overlap: Annotated[float, Option("of boxes that overlap more one is kept", gt=0, le=1)] = 0.6

    def __post_init__(self) -> None:
        check_options(Regions, vars(self), "regions")
        if not 0 <= self.smallest < self.largest <= 1:
            expected = "0 <= smallest < largest <= 1"
            raise unexpected("regions", expected, f"{self.smallest}, {self.largest}")

    @property
    def fingerprint(self) -> str:
        return repr(self)

    def detect(self, image: Image) -> tuple[Box, ...]:
        """Return boxes in an image (H, W, C) of uint8, the most promising first."""
        lab = _small(image)
        height, width = lab.shape[:2]
        areas = [_areas(mask, closing) for mask in _masks(lab) for closing in CLOSINGS]
        boxes = np.unique(np.concatenate(areas), axis=0)
        sides = boxes[:, 2:] - boxes[:, :2]
        share = sides.prod(axis=1) / (height * width)
        fits = (share >= self.smallest) & (share <= self.largest) & (sides.min(axis=1) >= MIN)
        boxes, sides = boxes[fits], sides[fits]
        if len(boxes) == 0:
            return ()
        scores = np.maximum(_liveliness(lab, boxes), 0)
        scores = scores / max(scores.max(), 1e-9)
        rectangles = np.hstack([boxes[:, :2], sides]).tolist()
        chosen = cv2.dnn.NMSBoxes(rectangles, (scores + 1).tolist(), 0.0, self.overlap)
        order = sorted(np.asarray(chosen).ravel().tolist(), key=lambda k: (-scores[k], k))
        scale = [image.shape[1] / width, image.shape[0] / height] * 2
        rows = np.column_stack([boxes * scale, scores])[order[: self.most]].tolist()
        return tuple(Box("", *row) for row in rows)


def _small(image: Image) -> Floats:
    """Return lightness and colours (h, w, 3) (CIELAB, 0 to 255) of an image shrunk to SIDE."""
    scale = min(1.0, SIDE / max(image.shape[:2]))
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    small = cv2.resize(np.ascontiguousarray(image), (width, height), interpolation=cv2.INTER_AREA)
    if image.shape[2] == 1:
        small = cv2.cvtColor(small, cv2.COLOR_GRAY2RGB)
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2LAB), np.float32)


def _masks(lab: Floats) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield masks (h, w) of areas that may contain things."""
    width = 2 * int(SURROUNDINGS / 2 * max(lab.shape[:2])) + 1
    surroundings = cv2.blur(lab, (width, width), borderType=cv2.BORDER_REFLECT)
    contrast = np.linalg.norm(cv2.GaussianBlur(lab, (0, 0), 1) - surroundings, axis=2)
    for level in np.quantile(contrast, [1 - share for share in OUTSTANDING]):
        yield (contrast > level).astype(np.uint8)
    smooth = cv2.medianBlur(lab.astype(np.uint8), 5).astype(np.float32)
    red, yellow = smooth[:, :, 1] - 128, smooth[:, :, 2] - 128
    turn = np.arctan2(yellow, red) / (2 * np.pi)
    shade = HUES + smooth[:, :, 0] // (256 / SHADES)
    for start in (0, 0.5):  # a colour at the limit of two bands is inside one the second time
        band = np.floor(turn * HUES + start) % HUES
        kinds = np.where(np.hypot(red, yellow) < COLOURED, shade, band)
        for kind in np.unique(kinds):
            yield (kinds == kind).astype(np.uint8)


def _areas(mask: npt.NDArray[np.uint8], closing: int) -> Indices:
    """Return the boxes (n, 4) of a mask's connected parts, after closing gaps of a width."""
    closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((closing, closing), np.uint8))
    parts = cv2.connectedComponentsWithStats(closed)[2][1:, :4].astype(np.int64)
    return np.hstack([parts[:, :2], parts[:, :2] + parts[:, 2:]])


def _liveliness(lab: Floats, boxes: Indices) -> npt.NDArray[np.float64]:
    """Return how much denser edges are in n boxes than in a frame of a quarter of their sides."""
    smooth = cv2.GaussianBlur(lab, (0, 0), 1)
    across, down = (cv2.Sobel(smooth, cv2.CV_32F, *order) for order in ((1, 0), (0, 1)))
    table = cv2.integral(np.hypot(across, down).max(axis=2), sdepth=cv2.CV_64F)
    sides = boxes[:, 2:] - boxes[:, :2]
    frame = np.maximum(2, sides // 4)
    first, last = np.maximum(0, boxes[:, :2] - frame), boxes[:, 2:] + frame
    outer = np.hstack([first, np.minimum([lab.shape[1], lab.shape[0]], last)])
    inside, both = _sums(table, boxes), _sums(table, outer)
    area, whole = sides.prod(axis=1), (outer[:, 2:] - outer[:, :2]).prod(axis=1)
    outside = (both - inside) / np.maximum(whole - area, 1)
    return (inside / area - outside) * np.sqrt(area)


def _sums(table: npt.NDArray[np.float64], boxes: Indices) -> npt.NDArray[np.float64]:
    left, top, right, bottom = boxes.T
    return table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
