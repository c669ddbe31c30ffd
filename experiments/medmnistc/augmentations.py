"""Augmentations of Table 3 of MedMNIST-C, one per image or batch.

MixUp (Zhang et al., ICLR 2018), CutMix (Yun et al., ICCV 2019) and RandAugment (Cubuk et al., 2020)
have the strengths of that table: alpha .2, alpha 1, and one operation per image. The fourteen
operations of RandAugment have the strengths that are usual for magnitude 9 of 30.
"""

from collections.abc import Callable

import cv2
import numpy as np
import torch
from torch import Tensor

from adaptive_vtt.types import Image

MIXUP_ALPHA, CUTMIX_ALPHA = 0.2, 1.0
SHEAR, SHIFT, TURN = 0.09, 0.136, 9.0
"""Shear and shift as shares of an image's width or height, and rotation in degrees."""
ENHANCED = 0.27
"""Difference of the factors of brightness, colour, contrast and sharpness from 1."""
KEPT_BITS, SOLARIZED = 7, 178
"""Bits of a posterised grey level, and the least level that is inverted by solarising."""

Batch = tuple[Tensor, Tensor]
"""Images (n, C, H, W) in [0, 1], and shares of classes (n, classes) that sum to 1."""


def mixup(batch: Batch, rng: np.random.Generator) -> Batch:
    """Blend each image, and its targets, with another of the batch, in the same proportion."""
    images, targets = batch
    share, order = float(rng.beta(MIXUP_ALPHA, MIXUP_ALPHA)), _shuffled(len(images), rng)
    mixed = share * images + (1 - share) * images[order]
    return mixed, share * targets + (1 - share) * targets[order]


def cutmix(batch: Batch, rng: np.random.Generator) -> Batch:
    """Replace the same rectangle of each image by that of another of the batch.

    Targets are blended by area.
    """
    images, targets = batch
    height, width = images.shape[-2:]
    side = np.sqrt(1 - rng.beta(CUTMIX_ALPHA, CUTMIX_ALPHA))
    (top, bottom), (left, right) = (_span(n, side, rng) for n in (height, width))
    order, mixed = _shuffled(len(images), rng), images.clone()
    mixed[..., top:bottom, left:right] = images[order][..., top:bottom, left:right]
    share = 1 - (bottom - top) * (right - left) / (height * width)
    return mixed, share * targets + (1 - share) * targets[order]


def rand_augment(image: Image, rng: np.random.Generator) -> Image:
    """Return an image (H x W x C of uint8) after one of fourteen operations, or the identity."""
    sign = 1.0 if rng.random() < 0.5 else -1.0
    change = OPERATIONS[int(rng.integers(len(OPERATIONS)))]
    changed: Image = np.asarray(change(image, sign)).reshape(image.shape)
    return np.ascontiguousarray(changed)


def _shuffled(count: int, rng: np.random.Generator) -> Tensor:
    return torch.from_numpy(rng.permutation(count))


def _span(length: int, share: float, rng: np.random.Generator) -> tuple[int, int]:
    """Return start and end of a random span of ``share`` of the length, cut off at the ends."""
    middle, half = rng.integers(length), share * length / 2
    return max(0, round(middle - half)), min(length, round(middle + half))


def _moved(image: Image, matrix: list[list[float]]) -> Image:
    """Return the image under an affine map about its centre, black outside."""
    height, width = image.shape[:2]
    about = np.array(matrix, float)
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    about[:, 2] += centre - about[:, :2] @ centre
    return np.asarray(cv2.warpAffine(image, about, (width, height), flags=cv2.INTER_NEAREST))


def _turned(image: Image, sign: float) -> Image:
    angle = np.deg2rad(sign * TURN)
    c, s = float(np.cos(angle)), float(np.sin(angle))
    return _moved(image, [[c, s, 0], [-s, c, 0]])


def _blended(image: Image, other: object, sign: float) -> Image:
    """Return the image moved away from ``other`` or towards it."""
    values = other + (1 + sign * ENHANCED) * (image.astype(float) - other)
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _smoothed(image: Image) -> Image:
    kernel = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
    return np.asarray(cv2.filter2D(image, -1, kernel)).reshape(image.shape)


def _by_channel(image: Image, change: Callable[[Image], Image]) -> Image:
    return np.stack([change(image[..., c]) for c in range(image.shape[2])], axis=2)


def _stretched(channel: Image) -> Image:
    low, high = int(channel.min()), int(channel.max())
    if high == low:
        return channel
    return np.rint((channel.astype(float) - low) * 255 / (high - low)).astype(np.uint8)


OPERATIONS: tuple[Callable[[Image, float], Image], ...] = (
    lambda image, sign: image.copy(),
    lambda image, sign: _moved(image, [[1, sign * SHEAR, 0], [0, 1, 0]]),
    lambda image, sign: _moved(image, [[1, 0, 0], [sign * SHEAR, 1, 0]]),
    lambda image, sign: _moved(image, [[1, 0, sign * SHIFT * image.shape[1]], [0, 1, 0]]),
    lambda image, sign: _moved(image, [[1, 0, 0], [0, 1, sign * SHIFT * image.shape[0]]]),
    _turned,
    lambda image, sign: _blended(image, 0.0, sign),  # brightness
    lambda image, sign: _blended(image, image.mean(axis=2, keepdims=True), sign),  # colour
    lambda image, sign: _blended(image, image.mean(), sign),  # contrast
    lambda image, sign: _blended(image, _smoothed(image).astype(float), sign),  # sharpness
    lambda image, sign: image & np.uint8(256 - 2 ** (8 - KEPT_BITS)),  # fewer grey levels
    lambda image, sign: np.where(image >= SOLARIZED, 255 - image, image),
    lambda image, sign: _by_channel(image, _stretched),
    lambda image, sign: _by_channel(image, lambda c: np.asarray(cv2.equalizeHist(np.array(c)))),
)
"""RandAugment's operations, functions of an image and of the sign of the change, 1 or -1."""
