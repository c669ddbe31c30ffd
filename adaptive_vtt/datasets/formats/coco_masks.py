"""COCO's outlines as masks: polygons, and run lengths written as numbers or as text.

Format: https://cocodataset.org/#format-data and the comments of its ``maskApi.h``: run lengths
go down the columns, outside first; as text, each is five bits per character from "0" on, lowest
first, bit 32 saying that more follow, and from the fourth on the difference to the last but one.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...types import Mask

_FINE = 4
"""Factor by which polygons are drawn larger than the image, to be sampled at pixel centres: a drawn
outline is one pixel wide, which at the image's own size would make masks too large."""


class Outlines:
    """The mask H x W of all outlines together, drawn when it is read as an array."""

    def __init__(self, outlines: Sequence[Any], height: int, width: int, where: str) -> None:
        self._outlines, self._size, self._where = outlines, (height, width), where

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Mask:
        """Raises InputError for an outline that is no COCO segmentation."""
        drawn = np.zeros(self._size, np.bool_)
        try:
            for outline in self._outlines:
                drawn |= mask(outline, *self._size)
        except InputError as error:
            raise InputError(f"{self._where}: {error}") from None
        return drawn


def mask(outline: Any, height: int, width: int) -> Mask:
    """A segmentation as H x W: a list of polygons [x1, y1, x2, y2 ...], or run lengths.

    A pixel is inside where its centre is, corners being rounded to quarters of a pixel.
    Raises InputError for anything else, and for run lengths of another size.
    """
    if isinstance(outline, dict):
        return _runs(outline, height, width)
    if not isinstance(outline, list) or not all(map(_is_polygon, outline)):
        raise InputError(f"expected polygons or run lengths, got {str(outline)[:60]}")
    return _polygons(outline, height, width)


def _is_polygon(numbers: Any) -> bool:
    if not isinstance(numbers, list) or len(numbers) < 6 or len(numbers) % 2:
        return False
    return all(isinstance(n, int | float) and abs(n) < 1e6 for n in numbers)


def _polygons(polygons: Sequence[Sequence[float]], height: int, width: int) -> Mask:
    import cv2

    drawn = np.zeros((height * _FINE, width * _FINE), np.uint8)
    for polygon in polygons:  # one by one: where two overlap is inside, too
        corners = np.rint(np.array(polygon).reshape(-1, 2) * _FINE).astype(np.int32)
        cv2.fillPoly(drawn, [corners], 1)
    return drawn[_FINE // 2 :: _FINE, _FINE // 2 :: _FINE] > 0


def _runs(outline: dict[str, Any], height: int, width: int) -> Mask:
    if outline.get("size") != [height, width]:
        raise InputError(
            f"expected run lengths of size [{height}, {width}], got {str(outline.get('size'))[:60]}"
        )
    counts = outline.get("counts")
    lengths = _lengths(counts) if isinstance(counts, str) else counts
    if not isinstance(lengths, list) or not all(isinstance(n, int) and n >= 0 for n in lengths):
        raise InputError(f"expected run lengths as numbers or text, got {str(counts)[:60]!r}")
    if sum(lengths) != height * width:
        raise InputError(
            f"expected run lengths of {height * width} pixels together, got {sum(lengths)}"
        )
    flat = np.zeros(height * width, np.bool_)
    ends = np.cumsum([0, *lengths]).tolist()
    for start, stop in list(pairwise(ends))[1::2]:
        flat[start:stop] = True
    return flat.reshape(width, height).T


def _lengths(text: str) -> list[int]:
    lengths: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:  # negative
            value -= 1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
        value = shift = 0
    return lengths
