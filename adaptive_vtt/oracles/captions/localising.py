"""Where the objects of a caption are: by a detector's names, else by hiding what it found.

After REIC (TSE 2024, section IV-B).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...types import Box
from .base import Same
from .occlusion import VERSIONS, innermost, located


@dataclass(frozen=True)
class Located:
    """An object by its name in the caption, and the boxes it is seen in; none: unlocated."""

    name: str
    boxes: tuple[Box, ...]


def by_detection(names: Sequence[str], boxes: Sequence[Box], same: Same) -> list[Located]:
    """Each name with every box whose label means the same."""
    return [
        Located(name, tuple(b for b in boxes if b.label and same(name, b.label))) for name in names
    ]


def completed(
    detected: Sequence[Located],
    boxes: Sequence[Box],
    hidden: Mapping[int, Sequence[str]],
    same: Same,
) -> tuple[Located, ...]:
    """What was detected, and by occlusion what no box bears the name of."""
    return tuple(
        one if one.boxes or not hidden else by_occlusion(one.name, boxes, hidden, same)
        for one in detected
    )


def by_occlusion(
    name: str, boxes: Sequence[Box], hidden: Mapping[int, Sequence[str]], same: Same
) -> Located:
    """The boxes without which the object is not named any more.

    ``hidden``: what was named when a box was hidden, by box * 3 + version (blur, black,
    inpaint). A box belongs to the object if that is absent from all three; one that was not
    answered proves nothing. Of boxes within each other the inner ones count.
    """
    absent = np.zeros((len(boxes), len(VERSIONS)), dtype=bool)
    for place, names in hidden.items():
        absent[divmod(place, len(VERSIONS))] = not any(same(name, n) for n in names)
    accepted = [box for box, there in zip(boxes, located(absent), strict=True) if there]
    return Located(name, innermost(accepted))


def rounded(box: Box) -> list[float]:
    """The box's edges to a tenth of a pixel, as JSON has them."""
    return [round(float(edge), 1) for edge in box.edges]
