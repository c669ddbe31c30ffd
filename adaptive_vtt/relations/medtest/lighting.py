"""MedTest's light and motion (sections 3.2 and 3.3): saturation, contrast, white balance, blur."""

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np

from ...types import Image
from .printed import printed
from .scene import MedTest, Scene, fifth

OVEREXPOSURE = (1.1, 1.6)
UNDEREXPOSURE = (0.9, 0.55)
"""Factor on brightness, contrast and saturation alike, mildest first. The thesis gives no range.
Below 0.55 the three together hide a polyp from anyone, so the right answer would change."""

COLOUR_CAST = (0.65, 0.35)
"""Factor on the two weakened channels, mildest first. The thesis says "approximately half", which
is severity 3 here."""

BLUR_SIGMA = (5.0, 15.0)
"""Standard deviation in pixels of a 512-pixel image (MR2-1), drawn from (5, 15]."""

SMALLEST_SIDE = 256
"""Smaller images are blurred like images of this side, or kernels could not differ in size."""


class _Exposure(MedTest):
    """Brightness, contrast and saturation change by one common factor out of ``factors``."""

    factors: tuple[float, float]

    def change(
        self, scene: Scene, severity: int, rng: np.random.Generator
    ) -> tuple[Image, Mapping[str, Any]]:
        factor = fifth(*self.factors, severity, rng)
        return exposed(scene, factor), {"factor": factor}


class Saturation(_Exposure):
    """MR1-1: over-exposure."""

    name = "medtest/saturation"
    about = "over-exposed; one factor on brightness, contrast and saturation"
    factors = OVEREXPOSURE


class Contrast(_Exposure):
    """MR1-2: under-exposure."""

    name = "medtest/contrast"
    about = "under-exposed; one factor on brightness, contrast and saturation"
    factors = UNDEREXPOSURE


def exposed(scene: Scene, factor: float) -> Image:
    """Brightness, contrast (about the field's mean grey) and saturation times ``factor``,
    in this order and as torchvision defines them; the black frame is left alone."""
    levels = np.arange(256, dtype=np.float32)
    brighter = np.clip(levels * factor, 0, 255).astype(np.uint8)
    grey = cv2.cvtColor(cv2.LUT(scene.image, brighter), cv2.COLOR_RGB2GRAY)
    mean = cv2.mean(grey, scene.field.view(np.uint8))[0]
    contrasted = np.clip(factor * brighter + (1 - factor) * mean, 0, 255).astype(np.uint8)
    image = cv2.LUT(scene.image, contrasted)
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return scene.inside_only(cv2.addWeighted(image, factor, grey, 1 - factor, 0))


class WhiteBalance(MedTest):
    """MR1-3: a green cast (red and blue reduced to about half, in proportion) or a purple one
    (red and green reduced; purple on red tissue), either with probability 1/2."""

    name = "medtest/white_balance"
    about = "green or purple cast; factor on the two other channels"

    def change(
        self, scene: Scene, severity: int, rng: np.random.Generator
    ) -> tuple[Image, Mapping[str, Any]]:
        cast = "green" if rng.random() < 0.5 else "purple"
        factor = fifth(*COLOUR_CAST, severity, rng)
        lut = np.repeat(np.arange(256, dtype=np.float32)[None, :, None], 3, axis=2)
        lut[:, :, [0, 2] if cast == "green" else [0, 1]] *= factor
        image = cv2.LUT(scene.image, np.rint(lut).astype(np.uint8))
        return scene.inside_only(image), {"cast": cast, "factor": factor}


class Blur(MedTest):
    """MR2-1: a Gaussian filter, sigma from (5, 15], whose kernel is smaller than sigma: width
    and height are independent odd numbers of [sigma/2, sigma], so that it blurs more one way.

    Lengths are pixels of a 512-pixel image. Text that a device printed upon the picture is not
    blurred: it is not seen through the lens. Equation 2 also adds noise; the implementation
    the thesis describes does not, and neither does this one.
    """

    name = "medtest/blur"
    about = "Gaussian blur, sigma 5 to 15 at 512 pixels, in a kernel no wider than sigma"
    drawing = 2

    def change(
        self, scene: Scene, severity: int, rng: np.random.Generator
    ) -> tuple[Image, Mapping[str, Any]]:
        drawn = fifth(*BLUR_SIGMA, severity, rng)
        sigma = drawn * max(scene.side, SMALLEST_SIDE) / 512
        kernel = (_odd(sigma, rng), _odd(sigma, rng))
        seen = scene.field & ~printed(scene.image)
        if seen.all():
            image = cv2.GaussianBlur(scene.image, kernel, sigma)
        else:  # the lens blurs, and then the frame and the text are laid over the picture
            weight = seen.astype(np.float32)[:, :, None]
            total = cv2.GaussianBlur(scene.image * weight, kernel, sigma)
            share = cv2.GaussianBlur(weight, kernel, sigma).reshape(weight.shape)
            blurred = np.rint(total / np.maximum(share, 1e-6)).astype(np.uint8)
            image = cv2.copyTo(blurred, seen.view(np.uint8), scene.image.copy())
        return image, {"sigma": drawn, "sigma_pixels": sigma, "kernel": list(kernel)}


def _odd(sigma: float, rng: np.random.Generator) -> int:
    """A random odd whole number in [sigma/2, sigma], at least 3."""
    lowest = 2 * int(np.ceil((sigma / 2 - 1) / 2)) + 1
    highest = 2 * int(np.floor((sigma - 1) / 2)) + 1
    count = max(1, (highest - lowest) // 2 + 1)
    return max(3, lowest + 2 * int(rng.random() * count))
