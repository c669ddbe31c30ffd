"""Where a concept is in a sample: the connected pieces of its mask, or its annotated boxes.

Wrong boxes, too: of similar size as the right one, elsewhere in the visible field.
"""

import math

import numpy as np
from numpy.random import Generator

from ...relations.medtest import visible_field
from ...relations.visual_prompts import COLOURS, LETTERS, Region, regions
from ...relations.visual_prompts import Box as Corners
from ...types import Image, Sample

TRIES = 400
INSIDE = 0.9
"""Least share of a wrong box's area that lies in the visible field (or the right box's share, if
that is less): a box on the black frame would give itself away as wrong."""

Range = tuple[float, float]
Edges = tuple[float, float, float, float]


def distractors(
    image: Image, right: Corners, count: int, similar: Range, overlap: float, rng: Generator
) -> list[Corners] | None:
    """Return ``count`` boxes (x1, y1, x2, y2), the last two exclusive; None where they do not fit.

    Sides are those of ``right`` times a factor from ``similar`` each; no two boxes, the
    right one included, share more than ``overlap`` of the smaller one's area.
    Were factors drawn around 1, the right box would mostly be of middle size among the four, which
    gives it away. So all four are drawn from one range, half as wide, in which the right one stands
    anywhere.
    """
    height, width = image.shape[:2]
    field = visible_field(image) if image.shape[2] == 3 else np.ones((height, width), bool)
    least = min(INSIDE, _visible(field, right))
    sides = np.array([right[2] - right[0], right[3] - right[1]])
    boxes = [right]
    half_range = (np.log(similar[1]) - np.log(similar[0])) / 2
    smallest = np.log(similar[0]) + half_range * rng.uniform(size=2)
    for _ in range(TRIES):
        factors = np.exp(smallest + half_range * rng.uniform(size=2))
        wide, tall = np.maximum(1, np.rint(sides * factors)).astype(int).tolist()
        if wide >= width or tall >= height:
            continue
        x, y = int(rng.integers(width - wide + 1)), int(rng.integers(height - tall + 1))
        box = (x, y, x + wide, y + tall)
        if all(shared(box, b) <= overlap for b in boxes) and _visible(field, box) >= least:
            boxes.append(box)
        if len(boxes) > count:
            return boxes[1:]
    return None


def shared(one: Edges, other: Edges) -> float:
    """Return the area that two boxes share, over that of the smaller one."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return max(0, width) * max(0, height) / smaller


def _visible(field: np.ndarray, box: Corners) -> float:
    x1, y1, x2, y2 = box
    return float(field[y1:y2, x1:x2].mean())


def is_boxed(sample: Sample, concept: str) -> bool:
    """Return whether boxes alone say where the concept is."""
    return concept not in sample.masks and any(box.label == concept for box in sample.boxes)


def places(sample: Sample, concept: str) -> tuple[Region, ...]:
    """Return the regions of a concept, largest first: at most six of a mask, all of its boxes."""
    if concept in sample.masks:
        return regions({concept: sample.masks[concept]})
    marked = []
    for box in sorted((b for b in sample.boxes if b.label == concept), key=lambda b: -b.area):
        left, top = math.floor(box.left), math.floor(box.top)
        right, bottom = math.ceil(box.right), math.ceil(box.bottom)
        mask = np.zeros(sample.require_image().shape[:2], np.bool_)
        mask[top:bottom, left:right] = True
        corners = (left, top, right, bottom)
        marked.append(Region(concept, corners, LETTERS[0], next(iter(COLOURS)), mask))
    return tuple(marked)


def reaches(sample: Sample, concept: str, region: Region, overlap: float) -> bool:
    """Return whether some of a concept is in a marked region, so that its name is no wrong answer.

    Of a mask any pixel in the region's box counts; of boxes, which hold more than the thing, one
    that covers more than the share ``overlap`` of the smaller of the two.
    """
    if concept in sample.masks:
        x1, y1, x2, y2 = region.box
        return bool(sample.masks[concept][y1:y2, x1:x2].any())
    boxes = (b.edges for b in sample.boxes if b.label == concept)
    return any(shared(region.box, edges) > overlap for edges in boxes)
