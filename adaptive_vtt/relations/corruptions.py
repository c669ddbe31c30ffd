"""Functions that corrupt images, and relations with one tuple of their parameters per severity.

A function ``change(image, rng, *parameters)`` takes an RGB image H x W x 3 of uint8 and returns a
new array of the same shape and type. Parameters keep their published units: noise on the scale
0..1, and lengths of blurs in pixels, which were chosen for images of 224 x 224.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from ..types import Image, JsonObject
from .base import Rng, Rung
from .graded import Graded

LUMA = np.array([[19595, 38470, 7471, 32768]]) / 65536
"""Weights of red, green and blue in a grey level (ITU-R BT.601), and 1/2, which turns truncation
into rounding."""


@dataclass(frozen=True)
class Corruption(Graded):
    """Corruption of RGB images with one tuple of parameters per severity.

    A grey image (H x W x 1) is repeated to three channels, corrupted and converted back by
    ``grey``. So noise is drawn per channel and averaged, as in MedMNIST-C's grey data sets.

    Args:
        in_order: Whether a higher severity changes images more.
    """

    in_order: bool = True

    def changed(self, image: Image, parameters: Rung, rng: Rng) -> Image:
        image = np.ascontiguousarray(image)
        if image.shape[2] == 3:
            return np.ascontiguousarray(self.change(image, rng, *parameters))
        return grey(self.change(np.repeat(image, 3, axis=2), rng, *parameters))


@cache
def published(paper: str) -> JsonObject:
    """Return the contents of data/PAPER.json, which are cached and must not be changed."""
    text = files(__package__).joinpath(f"data/{paper}.json").read_text(encoding="utf-8")
    parameters: JsonObject = json.loads(text)
    return parameters


def grey(image: Image) -> Image:
    """Return the grey levels (H x W x 1, uint8) of an RGB image, rounded as in Pillow's mode L."""
    # the levels are multiples of 2**-16 below 256, which 32-bit floats represent exactly
    levels = cv2.transform(image.astype(np.float32), LUMA)
    return levels.astype(np.uint8).reshape(*image.shape[:2], 1)


def truncated(values: npt.NDArray[Any]) -> Image:
    """Return values on the scale 0..255, clipped and truncated to uint8, as in MedMNIST-C."""
    return np.clip(values, 0, 255).astype(np.uint8)


# -- noise, independent for all values of the image -----------------------------------------

CELLS = 1024
"""Cells of the unit interval in the table of ``shot_noise``."""


def gaussian_noise(images: Image, rng: Rng, deviation: float) -> Image:
    """Add normal noise with standard deviation ``deviation`` on the scale 0..1."""
    noise = rng.standard_normal(images.shape, np.float32)
    noise *= np.float32(255 * deviation)
    noise += images
    return truncated(noise)


def speckle_noise(images: Image, rng: Rng, deviation: float) -> Image:
    """Add normal noise whose standard deviation is ``deviation`` times the value."""
    noise = rng.standard_normal(images.shape, np.float32)
    noise *= np.float32(deviation)
    noise += 1
    noise *= images
    return truncated(noise)


def impulse_noise(images: Image, rng: Rng, amount: float) -> Image:
    """Replace the share ``amount`` (0..1) of all values, half by 255 and half by 0."""
    chance = rng.random(images.shape, np.float32)
    changed = images.copy()
    changed[chance < amount] = 0
    changed[chance < amount / 2] = 255
    return changed


def shot_noise(images: Image, rng: Rng, photons: float) -> Image:
    """Replace values by Poisson counts with mean ``photons`` at white; fewer are stronger noise.

    The counts come from exact inversion of the cumulative distribution. A table gives the count for
    a value and a cell of the unit interval; only cells in which it changes are searched.
    """
    uniform = rng.random(images.shape)
    lowest, highest, cumulative = _counts(photons)
    index = images.astype(np.intp)
    index *= CELLS
    index += (uniform * CELLS).astype(np.intp)
    counts = lowest.take(index)
    unsure = counts != highest.take(index)
    counts[unsure] = (uniform[unsure][:, None] >= cumulative[images[unsure]]).sum(axis=1)
    levels = np.arange(cumulative.shape[1] + 1) * (255 / photons)
    return truncated(levels + 1e-9).take(counts)


Counts = npt.NDArray[np.int16]


@lru_cache(maxsize=64)
def _counts(photons: float) -> tuple[Counts, Counts, npt.NDArray[np.float64]]:
    """Return lowest and highest count per value and cell, and the cumulative distributions.

    Counts above ``photons`` are all white, so the last count stands for them.
    """
    mean = np.arange(256)[:, None] / 255 * photons
    cumulative = np.asarray(pdtr(np.arange(int(np.ceil(photons))), mean))
    edges = np.arange(CELLS + 1) / CELLS
    counts = np.stack([np.searchsorted(row, edges, side="right") for row in cumulative])
    lowest, highest = counts[:, :-1].astype(np.int16), counts[:, 1:].astype(np.int16)
    return lowest.ravel(), highest.ravel(), cumulative


Floats = npt.NDArray[np.float32]
# -- blurs ---------------------------------------------------------------------------------

TINY = 1e-4
"""Added before truncation, so that rounding errors do not lower whole numbers by 1."""


def gaussian_blur(image: Image, rng: Rng, kernel: float) -> Image:
    """Apply a Gaussian blur of ``kernel`` px (3 or more; even sizes are reduced by 1).

    Its standard deviation is 0.15 times the kernel size plus 0.35 (torchvision).
    """
    odd = int(kernel) - 1 + int(kernel) % 2
    blurred = cv2.GaussianBlur(image.astype(np.float32), (odd, odd), 0.15 * odd + 0.35)
    return np.rint(blurred).astype(np.uint8)


def gaussian_blur_sigma(image: Image, rng: Rng, sigma: float) -> Image:
    """Apply a Gaussian blur of ``sigma`` px whose kernel ends at four sigma (ImageNet-C)."""
    kernel = 2 * int(4 * sigma + 0.5) + 1
    floats = image.astype(np.float32)
    border = cv2.BORDER_REPLICATE
    blurred = cv2.GaussianBlur(floats, (kernel, kernel), sigma, borderType=border)
    return truncated(blurred + np.float32(TINY))


def defocus_blur(image: Image, rng: Rng, radius: float, alias: float) -> Image:
    """Convolve with a disc of ``radius`` px whose edge is smoothed by ``alias`` px."""
    # 64-bit floats, since truncation may depend on the last digit
    blurred = cv2.filter2D(image / 255.0, -1, disc(radius, alias))
    blurred *= 255
    return truncated(blurred)


@lru_cache(maxsize=64)
def disc(radius: float, alias: float) -> Floats:
    """Return the kernel of ``defocus_blur``: the grid points within ``radius``, with sum 1."""
    half, window = (8, 3) if radius <= 8 else (int(np.ceil(radius)), 5)
    squared = np.arange(-half, half + 1) ** 2
    inside = (squared[:, None] + squared[None, :] <= radius**2).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(inside / inside.sum(), (window, window), alias))


def motion_blur(image: Image, rng: Rng, radius: float, sigma: float) -> Image:
    """Apply ``motion_blur_at`` at a uniform angle from -45 to 45 degrees."""
    return motion_blur_at(image, radius, sigma, rng.uniform(-45, 45))


def motion_blur_at(image: Image, radius: float, sigma: float, angle: float) -> Image:
    """Blur along ``angle`` (degrees) with weights of a one-sided normal density of ``sigma`` px.

    There are 2 radius + 1 weights, the largest for the pixel itself. Edge pixels are repeated
    outside. Steps, width and rounding are those of ImageMagick's motion blur.
    """
    steps = np.arange(2 * int(np.ceil(radius)) + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    right = np.ceil(steps * np.cos(np.deg2rad(angle)) - 0.5).astype(int)
    down = np.ceil(steps * np.sin(np.deg2rad(angle)) - 0.5).astype(int)
    height, width = image.shape[:2]
    top, left = -min(0, down.min()), -min(0, right.min())
    edges = (top, max(0, down.max()), left, max(0, right.max()))
    padded = cv2.copyMakeBorder(image, *edges, cv2.BORDER_REPLICATE).astype(np.float32)
    total = np.full(image.shape, TINY, np.float32)
    for weight, x, y in zip(weights, right + left, down + top, strict=True):
        total = cv2.scaleAdd(padded[y : y + height, x : x + width], float(weight), total)
    return truncated(total)


def zoom_blur(image: Image, rng: Rng, stop: float, step: float) -> Image:
    """Return the mean of the image and its enlargements by 1, 1 + step, ... up to about ``stop``.

    The factors are ``numpy.arange(1, stop, step)``, which may contain ``stop`` by rounding, as it
    does 1.11 at the mildest published severity.
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
    """Return the centre of ``source`` enlarged by ``factor`` >= 1, bilinearly, to the same size."""
    (y_step, y_start), (x_step, x_start) = (_grid(side, factor) for side in source.shape[:2])
    matrix = np.array([[x_step, 0, x_start], [0, y_step, y_start]])
    height, width = source.shape[:2]
    flags, border = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, cv2.BORDER_REPLICATE
    larger = cv2.warpAffine(source, matrix, (width, height), flags=flags, borderMode=border)
    return np.asarray(larger).reshape(source.shape)


def _grid(side: int, factor: float) -> tuple[float, float]:
    """Return step and start of the sampled coordinates, from corner to corner of the crop."""
    crop = int(np.ceil(side / factor))
    full = round(crop * factor)
    step = (crop - 1) / max(1, full - 1)
    return step, (side - crop) // 2 + (full - side) // 2 * step


def glass_blur(image: Image, rng: Rng, sigma: float, reach: float, rounds: float) -> Image:
    """Blur, move each pixel ``rounds`` times by up to ``reach`` px, and blur again.

    ImageNet-C swaps pixels one by one, from the bottom right. Here a round takes all pixels at once
    from uniform positions in the same square. That looks the same and takes 1 % of the time.
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


# -- brightness, contrast and colour, not random -------------------------------------------

LEVELS = np.arange(256, dtype=np.float32)


def brightness(images: Image, rng: Rng, factor: float) -> Image:
    """Multiply by ``factor`` (Pillow's Brightness)."""
    return _table(images, LEVELS * np.float32(factor))


def gamma_correction(images: Image, rng: Rng, gamma: float) -> Image:
    """Replace values x by floor(255.999 (x / 255) ** gamma); a gamma above 1 darkens."""
    return _table(images, 255.999 * (np.arange(256) / 255) ** gamma)


def contrast(image: Image, rng: Rng, factor: float) -> Image:
    """Multiply distances from the image's mean grey level by ``factor`` (Pillow's Contrast)."""
    mean = np.float32(int(grey(image).mean() + 0.5))
    return _table(image, mean + np.float32(factor) * (LEVELS - mean))


def saturate(image: Image, rng: Rng, more: float) -> Image:
    """Add ``more`` (0..1) to the saturation S of HSV; grey pixels turn red."""
    return saturate_linear(image, rng, 1.0, more)


def saturate_linear(image: Image, rng: Rng, factor: float, more: float) -> Image:
    """Replace S of HSV by ``factor`` S + ``more``, clipped to 0..1, and keep hue and value.

    With V the largest and m the smallest channel, S = (V - m) / V, and the channels' distances
    from V are proportional to S.
    """
    planes = [plane.astype(np.float32) for plane in cv2.split(image)]
    value = cv2.max(cv2.max(*planes[:2]), planes[2])
    spread = value - cv2.min(cv2.min(*planes[:2]), planes[2])
    coloured = spread > 0
    grown = np.minimum(np.float32(factor) * spread + np.float32(more) * value, value)
    growth = np.divide(grown, spread, out=np.zeros_like(spread), where=coloured)
    colours = [value - (value - plane) * growth for plane in planes]
    if more and not coloured.all():  # hue 0
        for plane in colours[1:]:
            np.copyto(plane, value - grown, where=~coloured)
    return truncated(cv2.merge(colours) + np.float32(1e-3))


def value_up(image: Image, rng: Rng, amount: float) -> Image:
    """Add ``amount`` (0..1) to the value V of HSV, and keep hue and saturation."""
    scaled = image.astype(np.float32)
    value = scaled.max(axis=2, keepdims=True)
    raised = np.minimum(value + np.float32(255 * amount), 255)
    growth = np.divide(raised, value, out=np.zeros_like(value), where=value > 0)
    changed = np.where(value > 0, scaled * growth, raised)
    return truncated(changed + np.float32(1e-3))


def contrast_by_channel(image: Image, rng: Rng, factor: float) -> Image:
    """Multiply distances from the channels' means by ``factor``."""
    mean = image.mean(axis=(0, 1), keepdims=True)
    return truncated((image - mean) * factor + mean)


def _table(images: Image, values: npt.NDArray[np.floating]) -> Image:
    """Replace the values k of an image by ``values[k]``, truncated to uint8."""
    table = truncated(values)
    flat = images.reshape(-1, images.shape[-1])
    return np.asarray(cv2.LUT(flat, table)).reshape(images.shape)


Indices = npt.NDArray[np.intp]


def pixelate(image: Image, rng: Rng, factor: float) -> Image:
    """Reduce width and height to the share ``factor`` and enlarge again with Pillow's BOX filter.

    The reduction averages whole pixels along rows and then along columns, and rounds after both.
    The enlargement repeats pixels.
    """
    height, width = image.shape[:2]
    rows, columns = max(1, int(height * factor)), max(1, int(width * factor))
    # columns become rows of the transposed image, since rows are contiguous and thus fast
    narrow = cv2.transpose(_averages(cv2.transpose(image), columns))
    low = _averages(narrow, rows)[_nearest(height, rows)]
    return np.asarray(cv2.transpose(cv2.transpose(low)[_nearest(width, columns)]))


def _averages(image: Image, rows: int) -> Image:
    """Return ``rows`` averages of neighbouring rows of an image, in 22-bit fixed point."""
    starts, sizes = _boxes(len(image), rows)
    sums = np.zeros((rows, *image.shape[1:]), np.int32)
    for step in range(int(sizes.max())):
        if step < sizes.min():
            sums += image[starts + step]
        else:
            larger = sizes > step
            sums[larger] += image[starts[larger] + step]
    sums *= np.rint(2**22 / sizes).astype(np.int32)[:, None, None]
    sums += 1 << 21
    return (sums >> 22).astype(np.uint8)


@lru_cache(maxsize=256)
def _boxes(length: int, count: int) -> tuple[Indices, Indices]:
    """Return the starts and sizes in pixels of ``count`` boxes that divide ``length`` pixels."""
    bounds = (np.arange(count + 1) * (length / count) + 0.5).astype(np.intp)
    return bounds[:-1], np.diff(bounds)


@lru_cache(maxsize=256)
def _nearest(length: int, count: int) -> Indices:
    """Return the source pixels, of ``count``, of an enlargement to ``length`` pixels."""
    return ((np.arange(length) + 0.5) * (count / length)).astype(np.intp)


def jpeg_compression(image: Image, rng: Rng, quality: float) -> Image:
    """Encode as JPEG at ``quality`` (1..100) with chroma subsampling 4:2:0, and decode."""
    options = [cv2.IMWRITE_JPEG_QUALITY, int(quality)]
    options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420]
    _, coded = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    return np.asarray(cv2.cvtColor(cv2.imdecode(coded, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))


Kinds = dict[str, tuple[Callable[..., Image], str]]
"""Name of a corruption -> its function and description."""
IN_BOTH: Kinds = {
    "pixelate": (pixelate, "coarse pixels; strength: share of the resolution kept"),
    "jpeg_compression": (jpeg_compression, "JPEG; strength: quality"),
    "gaussian_noise": (gaussian_noise, "normal noise; strength: deviation on 0..1"),
    "speckle_noise": (speckle_noise, "noise in proportion; strength: deviation"),
    "impulse_noise": (impulse_noise, "black and white dots; strength: share of values"),
    "shot_noise": (shot_noise, "Poisson noise; strength: photons at white"),
    "defocus_blur": (defocus_blur, "disc blur; strength: radius and edge smoothing, px"),
    "motion_blur": (motion_blur, "one-sided smear; strength: radius and deviation, px"),
    "zoom_blur": (zoom_blur, "mean of enlargements; strength: last factor and step"),
}
"""Corruptions with the same definition in ImageNet-C and MedMNIST-C."""
