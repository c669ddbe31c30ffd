"""What storing an image does to it: coarse pixels and JPEG blocks."""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image

Indices = npt.NDArray[np.intp]


def pixelate(image: Image, rng: np.random.Generator, factor: float) -> Image:
    """Shrinks to the share ``factor`` of width and height and enlarges again, both by boxes.

    Shrinking averages whole pixels along rows, then columns, rounding after each; enlarging
    repeats pixels. These are Pillow's rules for its BOX filter.
    """
    height, width = image.shape[:2]
    rows, columns = max(1, int(height * factor)), max(1, int(width * factor))
    # columns are worked on as the rows of the transposed image: whole rows are quick to move
    narrow = cv2.transpose(_averages(cv2.transpose(image), columns))
    low = _averages(narrow, rows)[_nearest(height, rows)]
    return np.asarray(cv2.transpose(cv2.transpose(low)[_nearest(width, columns)]))


def _averages(image: Image, rows: int) -> Image:
    """``rows`` averages of neighbouring rows (H x W x 3), in 22-bit fixed point."""
    starts, sizes = _boxes(len(image), rows)
    sums = np.zeros((rows, *image.shape[1:]), np.int32)
    for step in range(int(sizes.max())):
        if step < sizes.min():
            sums += image[starts + step]
        else:
            wide = sizes > step
            sums[wide] += image[starts[wide] + step]
    sums *= np.rint(2**22 / sizes).astype(np.int32)[:, None, None]
    sums += 1 << 21
    return (sums >> 22).astype(np.uint8)


@lru_cache(maxsize=256)
def _boxes(length: int, count: int) -> tuple[Indices, Indices]:
    """Where each of ``count`` boxes starts and how many pixels it takes."""
    bounds = (np.arange(count + 1) * (length / count) + 0.5).astype(np.intp)
    return bounds[:-1], np.diff(bounds)


@lru_cache(maxsize=256)
def _nearest(length: int, count: int) -> Indices:
    """Which of ``count`` pixels lies under each of ``length``."""
    return ((np.arange(length) + 0.5) * (count / length)).astype(np.intp)


def jpeg_compression(image: Image, rng: np.random.Generator, quality: float) -> Image:
    """JPEG at ``quality`` (1..100), colour at half the resolution (4:2:0), and back."""
    options = [
        cv2.IMWRITE_JPEG_QUALITY,
        int(quality),
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    ]
    _, coded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    return np.asarray(cv2.cvtColor(cv2.imdecode(coded, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))
