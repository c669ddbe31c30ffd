"""Identity and six graded relations with five severities each.

The strength of a severity is one number, in a unit that does not depend on the image's size: grey
levels on a scale 0..1, degrees, or per cent of the shorter side. Severities are modelled on
ImageNet-C (Hendrycks & Dietterich, 2019); noise and contrast have its values for 224-pixel images.
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
    """Relation that returns a copy of the source image; its only severity is 0."""

    name = "identity"
    severities = (0,)
    about = "the source image, unchanged"

    def transform(self, image: Image, severity: int, rng: Rng) -> Image:
        return image.copy()


@dataclass(frozen=True)
class Graded(Laddered):
    """Relation of a function ``change(image, rng, *parameters)`` of images H x W x C uint8.

    Args:
        name: Name of the relation.
        ladder: Parameters of each severity, mildest first.
        change: Function that returns the changed image in the same shape.
        about: Description in one line.
        severities: Numbers of the severities, one per rung of the ladder.
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
    """Rotation about the centre in a random direction; corners repeat the nearest edge pixel."""

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
    """Return an image rotated counter-clockwise about its centre.

    Args:
        image: Image H x W x C or mask H x W of uint8.
        degrees: Angle in degrees.
        nearest: Whether to take the nearest pixel instead of bilinear interpolation.
    """
    import cv2

    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    flags = cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR
    edge = cv2.BORDER_REPLICATE
    return like(cv2.warpAffine(image, matrix, (width, height), flags=flags, borderMode=edge), image)


def to_bytes(values: npt.NDArray[np.floating[Any]]) -> Image:
    """Return values on the scale 0..255, rounded and clipped to uint8."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8, order="C")


def like(changed: npt.NDArray[Any], image: Image) -> Image:
    """Return ``changed`` in the shape of ``image``: OpenCV drops the axis of a single channel."""
    return changed.reshape(image.shape)


def gaussian_noise(image: Image, rng: Rng, deviation: float) -> Image:
    """Add independent normal noise with standard deviation ``deviation`` on the scale 0..1."""
    return to_bytes(image + 255 * deviation * rng.standard_normal(image.shape))


def brightness_up(image: Image, rng: Rng, amount: float) -> Image:
    """Move all values by the share ``amount`` (0..1) of their distance to white."""
    return to_bytes(image + amount * (255.0 - image))


def brightness_down(image: Image, rng: Rng, amount: float) -> Image:
    """Move all values by the share ``amount`` (0..1) of their distance to black."""
    return to_bytes(image * (1.0 - amount))


def contrast_down(image: Image, rng: Rng, keep: float) -> Image:
    """Multiply the distances of values from their channel's mean by ``keep`` (0..1)."""
    mean = image.mean(axis=(0, 1), keepdims=True)
    return to_bytes(mean + keep * (image - mean))


def defocus_blur(image: Image, rng: Rng, percent: float) -> Image:
    """Convolve with a disc whose radius is ``percent`` of the shorter side."""
    import cv2

    kernel = _disc(round(percent / 100 * min(image.shape[:2]), 6))
    return like(cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REFLECT_101), image)


@lru_cache(maxsize=64)
def _disc(radius: float) -> Floats:
    """Return the kernel of a disc, which sums to 1; its radius is in pixels.

    A pixel's weight is the share of its 9 x 9 sub-pixels in the disc, so the edge is smooth.
    """
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
    (contrast_down, (0.4, 0.3, 0.2, 0.1, 0.05), "towards the channel's mean; share kept"),
)
GRADED: tuple[Graded | Rotation, ...] = (
    *(Graded(f.__name__, tuple((s,) for s in ladder), f, text) for f, ladder, text in _STRENGTHS),
    Rotation(),
)
