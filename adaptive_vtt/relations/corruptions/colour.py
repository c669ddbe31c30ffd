"""Changes of brightness, contrast and colour, without chance.

Functions whose result depends on one value alone go through a table of 256 entries.
"""

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image
from . import grey, truncated

LEVELS = np.arange(256, dtype=np.float32)
Floats = npt.NDArray[np.float32]


def brightness(images: Image, rng: np.random.Generator, factor: float) -> Image:
    """Multiplies by ``factor`` (Pillow's Brightness). Takes stacks."""
    return _table(images, LEVELS * np.float32(factor))


def gamma_correction(images: Image, rng: np.random.Generator, gamma: float) -> Image:
    """floor(255.999 (x / 255) ** gamma); a gamma above 1 darkens. Takes stacks."""
    return _table(images, 255.999 * (np.arange(256) / 255) ** gamma)


def contrast(image: Image, rng: np.random.Generator, factor: float) -> Image:
    """``factor`` times the distance from the image's one mean grey (Pillow's Contrast)."""
    mean = np.float32(int(grey(image).mean() + 0.5))
    return _table(image, mean + np.float32(factor) * (LEVELS - mean))


def saturate(image: Image, rng: np.random.Generator, more: float) -> Image:
    """Adds ``more`` (0..1) to the saturation S of HSV; what has no hue turns red."""
    return saturate_linear(image, rng, 1.0, more)


def saturate_linear(image: Image, rng: np.random.Generator, factor: float, more: float) -> Image:
    """S becomes ``factor`` S + ``more``, within 0..1; hue and value of HSV stay.

    With V the largest and m the smallest channel, S = (V - m) / V, and every channel's
    distance from V grows as S does.
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


def value_up(image: Image, rng: np.random.Generator, amount: float) -> Image:
    """Adds ``amount`` (0..1) to the value V of HSV; hue and saturation stay."""
    scaled = image.astype(np.float32)
    value = scaled.max(axis=2, keepdims=True)
    raised = np.minimum(value + np.float32(255 * amount), 255)
    growth = np.divide(raised, value, out=np.zeros_like(value), where=value > 0)
    changed = np.where(value > 0, scaled * growth, raised)
    return truncated(changed + np.float32(1e-3))


def contrast_by_channel(image: Image, rng: np.random.Generator, factor: float) -> Image:
    """``factor`` times the distance from each channel's own mean."""
    mean = image.mean(axis=(0, 1), keepdims=True)
    return truncated((image - mean) * factor + mean)


def _table(images: Image, values: npt.NDArray[np.floating]) -> Image:
    """Every value looked up in 256 ``values``, cut down to uint8."""
    table = truncated(values)
    flat = images.reshape(-1, images.shape[-1])  # OpenCV knows no stacks
    return np.asarray(cv2.LUT(flat, table)).reshape(images.shape)
