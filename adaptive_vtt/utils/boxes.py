"""Boxes as pixels, and what two of them share."""

from collections.abc import Sequence

import numpy as np

from ..types import Box, Mask


def mask_of(boxes: Sequence[Box], height: int, width: int) -> Mask:
    """M_loc: the pixels of H x W whose centres lie in any of the boxes."""
    found = np.zeros((height, width), dtype=bool)
    for box in boxes:
        left, top = (max(0, int(np.ceil(edge - 0.5))) for edge in (box.left, box.top))
        right, bottom = (max(0, int(np.ceil(edge - 0.5))) for edge in (box.right, box.bottom))
        found[top:bottom, left:right] = True
    return found


def around(mask: Mask) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of what is in a mask (H x W), the last two exclusive; all 0 where
    nothing is."""
    import cv2

    left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return left, top, left + width, top + height


def common(one: Box, other: Box) -> float:
    """What is in both boxes, in square pixels."""
    across = min(one.right, other.right) - max(one.left, other.left)
    down = min(one.bottom, other.bottom) - max(one.top, other.top)
    return max(0.0, across) * max(0.0, down)
