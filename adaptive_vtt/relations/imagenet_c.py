"""ImageNet-C: eighteen corruptions, and the functions of those that MedMNIST-C does not have.

Source: Hendrycks & Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations" (ICLR 2019): the fifteen standard corruptions, speckle noise, Gaussian blur and
saturation. Spatter is omitted, as its parameters are not available. Names are
"imagenet-c/<corruption>", and the parameters are those for 224 x 224 images. The preparation of the
published files (resize to 256, crop to 224, JPEG at quality 85) is omitted.

Three things differ from the original: frost is drawn, not photographed; the pixels of glass blur
are shuffled in rounds; random numbers come from the caller's generator.

Four corruptions do not become stronger with every severity:

- ``saturate``: severities 1 and 2 reduce the saturation, 3 to 5 increase it.
- ``elastic_transform``: 1 and 2 shift and shear, 3 to 5 ripple.
- ``frost``: 3 and 4 differ only in the weight of the image.
- ``fog``: 3 and 4 differ only in smoothness.
"""

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from ..types import FollowUp, Image, Mask, Sample
from . import corruptions
from .base import Rng, Rung
from .corruptions import IN_BOTH, Corruption, Kinds, enlarged, glass_blur, motion_blur_at, truncated

Floats = npt.NDArray[np.float32]
PANE = 448
"""Side of a sheet of frost in pixels."""
PANES = 5
"""Number of different sheets of frost."""
ICE = np.array([0.88, 0.95, 1.0], np.float32)
"""Colour of frost: red, green and blue in 0..1."""


def fog(image: Image, rng: Rng, amount: float, decay: float) -> Image:
    """Add ``amount`` times a ``plasma`` cloud, then scale to the image's former maximum."""
    height, width = image.shape[:2]
    side = 1 << int(np.ceil(np.log2(max(height, width, 2))))
    cloud = plasma(side, decay, rng)[:height, :width, None]
    highest = image.max() / 255
    return truncated((image + 255 * amount * cloud) * (highest / max(highest + amount, 1e-9)))


def plasma(side: int, decay: float, rng: Rng) -> npt.NDArray[np.float64]:
    """Return a periodic cloud in 0..1, side x side (a power of two), by diamond-square.

    The noise of a grid is uniform in -width^2..width^2. The width is 100 for the coarsest grid, and
    is divided by ``decay`` for the next finer one.
    """
    cloud, width = np.zeros((1, 1)), 100.0

    def wobble(total: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return total / 4 + width * rng.uniform(-width, width, total.shape)

    while len(cloud) < side:
        right, below = np.roll(cloud, -1, axis=1), np.roll(cloud, -1, axis=0)
        middle = wobble(cloud + right + below + np.roll(right, -1, axis=0))
        finer = np.empty((2 * len(cloud), 2 * len(cloud)))
        finer[::2, ::2], finer[1::2, 1::2] = cloud, middle
        finer[::2, 1::2] = wobble(cloud + right + middle + np.roll(middle, 1, axis=0))
        finer[1::2, ::2] = wobble(cloud + below + middle + np.roll(middle, 1, axis=1))
        cloud, width = finer, width / decay
    cloud -= cloud.min()
    return cloud / max(cloud.max(), 1e-9)


def snow(
    image: Image,
    rng: Rng,
    mean: float,
    deviation: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    keep: float,
) -> Image:
    """Add flakes that fall at -135 to -45 degrees to an image with paler colours.

    Flakes are normal noise (``mean``, ``deviation``), enlarged by ``zoom``, set to 0 below
    ``threshold``, blurred (``radius``, ``sigma`` px) and added twice, once rotated by 180 degrees.
    The weight of the image is ``keep``, that of its paler version 1 - ``keep``.
    """
    flakes = rng.normal(mean, deviation, image.shape[:2]).astype(np.float32)
    flakes = enlarged(flakes, zoom)
    flakes[flakes < threshold] = 0
    layer = truncated(255 * flakes)[..., None]
    fallen = motion_blur_at(np.repeat(layer, 3, axis=2), radius, sigma, rng.uniform(-135, -45))
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None].astype(np.float32)
    pale = keep * image + (1 - keep) * np.maximum(image, grey * 1.5 + 127.5)
    return truncated(pale + fallen + fallen[::-1, ::-1])


def frost(image: Image, rng: Rng, keep: float, ice: float) -> Image:
    """Return ``keep`` times the image plus ``ice`` times frost.

    ImageNet-C adds photographs of frost. Here a random part of one of five drawn sheets of ice
    ferns is added, at a scale where 224 px of the sheet cover the image's shorter side.
    """
    height, width = image.shape[:2]
    scale = 224 / min(height, width)
    rows, columns = (min(PANE, max(1, round(side * scale))) for side in (height, width))
    top, left = rng.integers(PANE - rows + 1), rng.integers(PANE - columns + 1)
    part = pane(int(rng.integers(PANES)))[top : top + rows, left : left + columns]
    fitted = cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA)
    return truncated(keep * image + (255 * ice) * fitted[..., None] * ICE)


@lru_cache(maxsize=PANES)
def pane(number: int) -> Floats:
    """Return sheet ``number`` (0..4) of drawn frost, (448, 448) in 0..1; it is not random."""
    rng = np.random.default_rng([number, PANE])
    ferns = np.zeros((PANE, PANE), np.float32)
    for _ in range(110):
        start, angle = rng.uniform(0, PANE, 2), rng.uniform(0, 2 * np.pi)
        _fern(ferns, start, angle, rng.uniform(40, 150), rng)
    soft = cv2.GaussianBlur(ferns, (0, 0), 0.8) + 0.9 * cv2.GaussianBlur(ferns, (0, 0), 6)
    haze = plasma(512, 1.6, rng)[:PANE, :PANE].astype(np.float32)
    sheet = soft * (0.5 + 0.5 * haze) + 0.3 + 0.3 * haze
    return np.clip(sheet / np.quantile(sheet, 0.99), 0, 1)


def _fern(
    sheet: Floats,
    start: npt.NDArray[np.float64],
    angle: float,
    length: float,
    rng: Rng,
    depth: int = 0,
) -> None:
    """Draw a slightly bent stem from ``start``, with shorter branches at 60 degrees."""
    at, bend, gap = start, rng.normal(0, 0.03), 7.0
    for step in range(max(1, int(length / gap))):
        angle += bend + rng.normal(0, 0.03)
        end = at + gap * np.array([np.cos(angle), np.sin(angle)])
        (x0, y0), (x1, y1) = np.rint(at).astype(int).tolist(), np.rint(end).astype(int).tolist()
        cv2.line(sheet, (x0, y0), (x1, y1), 0.55 + 0.45 / (1 + depth), 1, cv2.LINE_AA)
        longest = 0.38 * (length - gap * step)
        if depth < 2 and longest > gap:
            for side in (-1, 1):
                branch = angle + side * np.pi / 3
                _fern(sheet, end, branch, longest * rng.uniform(0.5, 1), rng, depth + 1)
        at = end


LENGTH = 244
"""Unit of ``draw``'s parameters, in pixels of a 224-pixel image (ImageNet-C's factor)."""


@dataclass(frozen=True)
class Field:
    """Deformation of an image: an affine map, then a displacement of all pixels.

    Attributes:
        affine: The affine map (2, 3).
        x: Columns (H, W) in the mapped image from which pixels are taken.
        y: Rows (H, W) in the mapped image from which pixels are taken.
    """

    affine: npt.NDArray[np.float64]
    x: Floats
    y: Floats

    def moved(self, image: npt.NDArray[np.uint8], interpolation: int) -> npt.NDArray[np.uint8]:
        """Return ``image`` (H, W) or (H, W, C) after the deformation, mirrored at its edges."""
        size, border = image.shape[1::-1], cv2.BORDER_REFLECT_101
        turned = cv2.warpAffine(image, self.affine, size, flags=interpolation, borderMode=border)
        bent = cv2.remap(turned, self.x, self.y, interpolation, borderMode=cv2.BORDER_REFLECT)
        return np.asarray(bent).reshape(image.shape)


@dataclass(frozen=True)
class Elastic(Corruption):
    """Elastic deformation, which is applied to masks as well."""

    def made(self, sample: Sample, parameters: Rung, rng: Rng) -> FollowUp:
        image = np.ascontiguousarray(sample.require_image())
        field = draw(image.shape, rng, *parameters)
        return FollowUp(field.moved(image, cv2.INTER_LINEAR), {"field": field})

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        """Return the mask (H, W) after the deformation, with nearest-pixel interpolation."""
        field: Field = follow_up.details["field"]
        return field.moved(mask.astype(np.uint8), cv2.INTER_NEAREST).astype(bool)


def elastic_transform(image: Image, rng: Rng, alpha: float, sigma: float, shift: float) -> Image:
    """Return the image after a random deformation; ``draw`` explains the parameters."""
    return draw(image.shape, rng, alpha, sigma, shift).moved(image, cv2.INTER_LINEAR)


def draw(shape: tuple[int, ...], rng: Rng, alpha: float, sigma: float, shift: float) -> Field:
    """Return a random deformation for images of ``shape``.

    The affine map moves three points around the centre by up to ``shift`` along both axes. The
    displacement of a pixel is ``alpha`` times uniform noise on -1..1, smoothed with a Gaussian of
    standard deviation ``sigma``. The unit of all three is LENGTH times the shorter side / 224.
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


def _smooth_noise(height: int, width: int, sigma: float, rng: Rng) -> Floats:
    noise = rng.uniform(-1, 1, (height, width)).astype(np.float32)
    kernel = 2 * int(3 * sigma + 0.5) + 1
    if kernel == 1:
        return noise
    border = cv2.BORDER_REFLECT
    return np.asarray(cv2.GaussianBlur(noise, (kernel, kernel), sigma, borderType=border))


KINDS: Kinds = {
    **IN_BOTH,
    "glass_blur": (glass_blur, "shuffled pixels; strength: deviation and reach in px, rounds"),
    "gaussian_blur": (corruptions.gaussian_blur_sigma, "normal blur; strength: deviation in px"),
    "snow": (snow, "falling flakes, colours turned pale"),
    "frost": (frost, "a frosted pane, drawn, not photographed; strength: its weight"),
    "fog": (fog, "a cloud; strength: its weight and smoothness"),
    "brightness": (corruptions.value_up, "brighter; strength: added to the value of HSV, 0..1"),
    "contrast": (corruptions.contrast_by_channel, "less contrast; strength: share per channel"),
    "elastic_transform": (elastic_transform, "bent; strength: reach, smoothness, shift"),
    "saturate": (corruptions.saturate_linear, "colour taken or added; strength: S becomes a S + b"),
}
NOT_IN_ORDER = ("saturate", "elastic_transform", "frost", "fog")


def relations() -> list[Corruption]:
    """Return the eighteen corruptions with the parameters of data/imagenet_c.json."""
    listed: list[Corruption] = []
    for name, ladder in corruptions.published("imagenet_c").items():
        change, about = KINDS[name]
        kind = Elastic if change is elastic_transform else Corruption
        rungs, in_order = tuple(map(tuple, ladder)), name not in NOT_IN_ORDER
        listed.append(kind(f"imagenet-c/{name}", rungs, change, about, in_order=in_order))
    return listed
