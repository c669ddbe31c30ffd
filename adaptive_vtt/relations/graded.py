"""Identity and six graded relations, five severities each.

Every strength is one number per severity in a unit that does not depend on the image's
size: grey levels on a 0..1 scale, degrees, or per cent of the shorter side. The ladders
follow the spirit of ImageNet-C (Hendrycks & Dietterich, 2019); the noise and contrast
ladders are its values for 224-pixel images.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..types import Floats, FollowUp, Image, Mask, Sample
from .base import LabelPreserving, Laddered, Rng, Rung


class Identity(LabelPreserving):
    """The source image itself: relation 0, with the single severity 0."""

    name = "identity"
    severities = (0,)
    about = "the source image, unchanged"

    def transform(self, image: Image, severity: int, rng: Rng) -> Image:
        return image.copy()


@dataclass(frozen=True)
class Graded(Laddered):
    """A relation that a function ``change(image, rng, *parameters)`` makes of H x W x C uint8.

    Args:
        name: Name of the relation.
        ladder: The parameters of each severity, mildest first.
        change: Returns the changed image, of the same shape.
        about: A description in a line.
        severities: One per rung of the ladder.
    """

    name: str
    ladder: tuple[tuple[float, ...], ...]
    change: Callable[..., Image]
    about: str = ""
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)

    def made(self, sample: Sample, parameters: Rung, rng: Rng) -> FollowUp:
        return FollowUp(self.changed(sample.require_image(), parameters, rng))

    def transform(self, image: Image, severity: int, rng: Rng) -> Image:
        return self.changed(image, self.rung(severity), rng)

    def changed(self, image: Image, parameters: Rung, rng: Rng) -> Image:
        """Return the changed image H x W x C, a new array."""
        return self.change(image, rng, *parameters)


class Rotation(Laddered):
    """Rotation about the centre, either way, filled from the nearest edge pixel, with masks."""

    name = "rotation"
    ladder = ((5.0,), (10.0,), (20.0,), (30.0,), (45.0,))
    about = "about the centre, either way; strength: degrees"

    def made(self, sample: Sample, parameters: Rung, rng: Rng) -> FollowUp:
        degrees = parameters[0] if rng.random() < 0.5 else -parameters[0]
        return FollowUp(turned(sample.require_image(), degrees), {"degrees": degrees})

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        degrees = follow_up.details["degrees"]
        return turned(mask.astype(np.uint8), degrees, nearest=True).astype(bool)


def turned(image: Image, degrees: float, *, nearest: bool = False) -> Image:
    """Return an image turned counter-clockwise about its centre, between pixels linearly unless
    ``nearest``."""
    import cv2

    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    flags = cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR
    edge = cv2.BORDER_REPLICATE
    return like(cv2.warpAffine(image, matrix, (width, height), flags=flags, borderMode=edge), image)


def to_bytes(values: npt.NDArray[np.floating[Any]]) -> Image:
    """Return values on the 0..255 scale, clipped and rounded to uint8."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8, order="C")


def like(changed: npt.NDArray[Any], image: Image) -> Image:
    """Return an image with the channel axis that OpenCV drops from one-channel images."""
    return changed.reshape(image.shape)


def gaussian_noise(image: Image, rng: Rng, deviation: float) -> Image:
    """Add independent normal noise; ``deviation`` on the 0..1 scale."""
    return to_bytes(image + 255 * deviation * rng.standard_normal(image.shape))


def brightness_up(image: Image, rng: Rng, amount: float) -> Image:
    """Move every value ``amount`` (0..1) of the way to white."""
    return to_bytes(image + amount * (255.0 - image))


def brightness_down(image: Image, rng: Rng, amount: float) -> Image:
    """Move every value ``amount`` (0..1) of the way to black."""
    return to_bytes(image * (1.0 - amount))


def contrast_down(image: Image, rng: Rng, keep: float) -> Image:
    """Keep the share ``keep`` (0..1) of each value's distance from the channel's mean."""
    mean = image.mean(axis=(0, 1), keepdims=True)
    return to_bytes(mean + keep * (image - mean))


def defocus_blur(image: Image, rng: Rng, percent: float) -> Image:
    """Convolve with a disc whose radius is ``percent`` of the shorter side."""
    import cv2

    kernel = _disc(round(percent / 100 * min(image.shape[:2]), 6))
    return like(cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REFLECT_101), image)


@lru_cache(maxsize=64)
def _disc(radius: float) -> Floats:
    """Return a disc of any radius in pixels, its edge smoothed by 9 x 9 sub-pixels; sums to one."""
    fine, half = 9, int(np.ceil(radius))
    side = (2 * half + 1) * fine
    at = (np.arange(side) + 0.5) / fine - half - 0.5
    inside = (at[:, None] ** 2 + at[None, :] ** 2 <= radius**2).astype(float)
    kernel = inside.reshape(2 * half + 1, fine, 2 * half + 1, fine).sum(axis=(1, 3))
    return np.asarray(kernel / kernel.sum())


_STRENGTHS: tuple[tuple[Callable[..., Image], Rung, str], ...] = (
    (gaussian_noise, (0.08, 0.12, 0.18, 0.26, 0.38), "normal noise; strength: deviation on 0..1"),
    (defocus_blur, (3.0, 4.5, 6.0, 8.0, 10.0), "disc blur; radius in per cent of the shorter side"),
    (brightness_up, (0.1, 0.2, 0.3, 0.4, 0.5), "towards white; strength: share of the way"),
    (brightness_down, (0.15, 0.3, 0.45, 0.6, 0.75), "towards black; strength: share of the way"),
    (
        contrast_down,
        (0.4, 0.3, 0.2, 0.1, 0.05),
        "towards the channel's mean; share kept",
    ),
)
GRADED: tuple[Graded | Rotation, ...] = (
    *(Graded(f.__name__, tuple((s,) for s in ladder), f, text) for f, ladder, text in _STRENGTHS),
    Rotation(),
)
