"""Blurs. Their lengths are pixels, as published for 224 x 224, whatever the image's size."""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image
from . import truncated

Floats = npt.NDArray[np.float32]
TINY = 1e-4
"""Grey levels added before cutting, so that a whole number stays one after rounding errors."""


def gaussian_blur(image: Image, rng: np.random.Generator, kernel: float) -> Image:
    """Normal blur with the odd kernel size of ``kernel`` or just below it (3 or more); its
    deviation is 0.15 times that, plus 0.35 (torchvision)."""
    odd = int(kernel) - 1 + int(kernel) % 2
    blurred = cv2.GaussianBlur(image.astype(np.float32), (odd, odd), 0.15 * odd + 0.35)
    return np.rint(blurred).astype(np.uint8)


def gaussian_blur_sigma(image: Image, rng: np.random.Generator, sigma: float) -> Image:
    """Normal blur of ``sigma`` px, its kernel cut at four deviations (ImageNet-C)."""
    kernel = 2 * int(4 * sigma + 0.5) + 1
    floats = image.astype(np.float32)
    border = cv2.BORDER_REPLICATE
    blurred = cv2.GaussianBlur(floats, (kernel, kernel), sigma, borderType=border)
    return truncated(blurred + np.float32(TINY))


def defocus_blur(image: Image, rng: np.random.Generator, radius: float, alias: float) -> Image:
    """Convolves with a disc of ``radius`` px whose edge is smoothed by ``alias`` px."""
    # 64-bit floats: what is cut off at the end may hang on the last digit
    blurred = cv2.filter2D(image / 255.0, -1, disc(radius, alias))
    blurred *= 255
    return truncated(blurred)


@lru_cache(maxsize=64)
def disc(radius: float, alias: float) -> Floats:
    """The kernel of ``defocus_blur``: whole grid points within ``radius``; sums to one."""
    half, window = (8, 3) if radius <= 8 else (int(np.ceil(radius)), 5)
    squared = np.arange(-half, half + 1) ** 2
    inside = (squared[:, None] + squared[None, :] <= radius**2).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(inside / inside.sum(), (window, window), alias))


def motion_blur(image: Image, rng: np.random.Generator, radius: float, sigma: float) -> Image:
    """Smears along a line at -45 to 45 degrees, drawn evenly; see ``motion_blur_at``."""
    return motion_blur_at(image, radius, sigma, rng.uniform(-45, 45))


def motion_blur_at(image: Image, radius: float, sigma: float, angle: float) -> Image:
    """Half a normal bell of ``sigma`` px over 2 radius + 1 steps along ``angle`` (degrees).

    One-sided, the pixel itself weighing most; the nearest edge pixel stands in outside.
    As ImageMagick's motion blur in steps, width and rounding.
    """
    steps = np.arange(2 * int(np.ceil(radius)) + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    right = np.ceil(steps * np.cos(np.deg2rad(angle)) - 0.5).astype(int)
    down = np.ceil(steps * np.sin(np.deg2rad(angle)) - 0.5).astype(int)
    height, width = image.shape[:2]
    top, left = -min(0, down.min()), -min(0, right.min())
    edges = (top, max(0, down.max()), left, max(0, right.max()))
    wide = cv2.copyMakeBorder(image, *edges, cv2.BORDER_REPLICATE).astype(np.float32)
    total = np.full(image.shape, TINY, np.float32)
    for weight, x, y in zip(weights, right + left, down + top, strict=True):
        total = cv2.scaleAdd(wide[y : y + height, x : x + width], float(weight), total)
    return truncated(total)


def zoom_blur(image: Image, rng: np.random.Generator, stop: float, step: float) -> Image:
    """The mean of the image and its enlargements by 1, 1 + step, ... up to about ``stop``.

    ``numpy.arange(1, stop, step)`` says which, so that rounding lets 1.11 into the first of
    the usual lists. Other shapes than squares are enlarged along each side by its own length.
    """
    factors = np.arange(1, stop, step)
    source = image.astype(np.float32)
    total = source.copy()
    for factor in factors:
        total += enlarged(source, float(factor))
    total /= len(factors) + 1
    total += TINY
    return truncated(total)


def enlarged(source: Floats, factor: float) -> Floats:
    """The centre of ``source`` enlarged by ``factor`` >= 1, bilinearly, to the same size."""
    (y_step, y_start), (x_step, x_start) = (_grid(side, factor) for side in source.shape[:2])
    matrix = np.array([[x_step, 0, x_start], [0, y_step, y_start]])
    height, width = source.shape[:2]
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(
            source, matrix, (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE
        )
    ).reshape(source.shape)


def _grid(side: int, factor: float) -> tuple[float, float]:
    """Step and start of the sampled places: the crop's corners fall on the enlargement's."""
    crop = int(np.ceil(side / factor))
    full = round(crop * factor)
    step = (crop - 1) / max(1, full - 1)
    return step, (side - crop) // 2 + (full - side) // 2 * step


def glass_blur(
    image: Image, rng: np.random.Generator, sigma: float, reach: float, rounds: float
) -> Image:
    """Blurs, swaps each pixel ``rounds`` times with one up to ``reach`` px away, blurs again.

    ImageNet-C swaps pixels one after the other from the bottom right; here each round moves
    all of them at once to places drawn evenly from the same square, which looks the same
    and takes a hundredth of the time.
    """
    near = int(reach)
    height, width = image.shape[:2]
    rows, columns = np.mgrid[:height, :width]
    moved = gaussian_blur_sigma(image, rng, sigma)
    for _ in range(int(rounds)):
        shift = rng.integers(-near, near + 1, (2, height, width))
        y = np.clip(rows + shift[0], 0, height - 1)
        x = np.clip(columns + shift[1], 0, width - 1)
        moved = moved[y, x]
    return gaussian_blur_sigma(moved, rng, sigma)
