"""Elastic deformation of ImageNet-C, which moves what is in the image."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from ...types import FollowUp, Image, Mask, Sample
from . import Corruption

Floats = npt.NDArray[np.float32]
LENGTH = 244
"""Unit of the published numbers, in pixels of a 224-pixel image (ImageNet-C's own factor)."""


@dataclass(frozen=True)
class Field:
    """Where everything goes: a 2 x 3 affine map, then the place (x, y) each pixel comes from."""

    affine: npt.NDArray[np.float64]
    x: Floats
    y: Floats

    def moved(self, image: npt.NDArray[np.uint8], interpolation: int) -> npt.NDArray[np.uint8]:
        """``image`` (H x W or H x W x C) after both, mirrored at its edges."""
        turned = cv2.warpAffine(
            image,
            self.affine,
            image.shape[1::-1],
            flags=interpolation,
            borderMode=cv2.BORDER_REFLECT_101,
        )
        bent = cv2.remap(turned, self.x, self.y, interpolation, borderMode=cv2.BORDER_REFLECT)
        return np.asarray(bent).reshape(image.shape)


@dataclass(frozen=True)
class Elastic(Corruption):
    """The elastic deformation as a relation: masks move along with the image."""

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        if sample.image is None:
            return FollowUp(None)
        field = draw(sample.image.shape, rng, *self._parameters(severity))
        image = np.ascontiguousarray(sample.image)
        return FollowUp(field.moved(image, cv2.INTER_LINEAR), {"field": field})

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        """The mask (H x W) moved to the nearest pixel."""
        field: Field = follow_up.details["field"]
        return field.moved(mask.astype(np.uint8), cv2.INTER_NEAREST).astype(bool)


def elastic_transform(
    image: Image, rng: np.random.Generator, alpha: float, sigma: float, shift: float
) -> Image:
    """The image moved by a field drawn for it; the numbers are those of ``draw``."""
    return draw(image.shape, rng, alpha, sigma, shift).moved(image, cv2.INTER_LINEAR)


def draw(
    shape: tuple[int, ...], rng: np.random.Generator, alpha: float, sigma: float, shift: float
) -> Field:
    """A random affine map and smooth random displacements for images of ``shape``.

    Three points around the centre move up to ``shift`` each way; every pixel then moves by
    ``alpha`` times even noise on -1..1 that was smoothed by ``sigma``. All three are in
    ``LENGTH`` and scale with the shorter side.
    """
    height, width = shape[:2]
    unit = LENGTH * min(height, width) / 224
    third = max(1, min(height, width) // 3)
    centre = np.array([width // 2, height // 2], np.float32)
    points = centre + third * np.array([[1, 1], [1, -1], [-1, -1]], np.float32)
    moved = points + rng.uniform(-shift * unit, shift * unit, points.shape).astype(np.float32)
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    x = columns + np.float32(alpha * unit) * _smooth_noise(height, width, sigma * unit, rng)
    y = rows + np.float32(alpha * unit) * _smooth_noise(height, width, sigma * unit, rng)
    return Field(cv2.getAffineTransform(points, moved), x, y)


def _smooth_noise(height: int, width: int, sigma: float, rng: np.random.Generator) -> Floats:
    noise = rng.uniform(-1, 1, (height, width)).astype(np.float32)
    kernel = 2 * int(3 * sigma + 0.5) + 1
    if kernel == 1:
        return noise
    border = cv2.BORDER_REFLECT
    return np.asarray(cv2.GaussianBlur(noise, (kernel, kernel), sigma, borderType=border))
