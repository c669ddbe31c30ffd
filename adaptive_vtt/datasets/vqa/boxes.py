"""Wrong boxes: of similar size as the right one, elsewhere in the visible field."""

import numpy as np

from ...relations.medtest import visible_field
from ...relations.visual_prompts import Box
from ...types import Image

TRIES = 400
INSIDE = 0.9
"""Least share of a wrong box's area that lies in the visible field (or the right box's share, if
that is less): a box on the black frame would give itself away as wrong."""


def distractors(
    image: Image,
    right: Box,
    count: int,
    similar: tuple[float, float],
    overlap: float,
    rng: np.random.Generator,
) -> list[Box] | None:
    """``count`` boxes (x1, y1, x2, y2), the last two exclusive; None where they do not fit.

    Sides are those of ``right`` times a factor from ``similar`` each; no two boxes, the
    right one included, share more than ``overlap`` of the smaller one's area.
    """
    height, width = image.shape[:2]
    field = visible_field(image) if image.shape[2] == 3 else np.ones((height, width), bool)
    least = min(INSIDE, _visible(field, right))
    sides = np.array([right[2] - right[0], right[3] - right[1]])
    found: list[Box] = []
    for _ in range(TRIES):
        wide, tall = np.maximum(1, np.rint(sides * rng.uniform(*similar, 2))).astype(int).tolist()
        if wide >= width or tall >= height:
            continue
        x, y = int(rng.integers(width - wide + 1)), int(rng.integers(height - tall + 1))
        box = (x, y, x + wide, y + tall)
        apart = all(shared(box, other) <= overlap for other in (right, *found))
        if apart and _visible(field, box) >= least:
            found.append(box)
        if len(found) == count:
            return found
    return None


Edges = tuple[float, float, float, float]


def shared(one: Edges, other: Edges) -> float:
    """The area that two boxes share, over that of the smaller one."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return max(0, width) * max(0, height) / smaller


def _visible(field: np.ndarray, box: Box) -> float:
    x1, y1, x2, y2 = box
    return float(field[y1:y2, x1:x2].mean())
