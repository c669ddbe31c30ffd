"""Fog, frost and snow of ImageNet-C (Hendrycks & Dietterich, 2019)."""

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image
from . import truncated
from .blur import enlarged, motion_blur_at

Floats = npt.NDArray[np.float32]
PANE = 448
PANES = 5
ICE = np.array([0.88, 0.95, 1.0], np.float32)


def fog(image: Image, rng: np.random.Generator, amount: float, decay: float) -> Image:
    """Adds ``amount`` times a cloud in 0..1 and scales back to the image's largest value."""
    height, width = image.shape[:2]
    side = 1 << int(np.ceil(np.log2(max(height, width, 2))))
    cloud = plasma(side, decay, rng)[:height, :width, None]
    highest = image.max() / 255
    return truncated((image + 255 * amount * cloud) * (highest / max(highest + amount, 1e-9)))


def plasma(side: int, decay: float, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """A periodic cloud in 0..1, side x side (a power of two), by diamond-square.

    The noise added at each finer grid has the square of a width that starts at 100 and is
    divided by ``decay`` from grid to grid.
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
    rng: np.random.Generator,
    mean: float,
    deviation: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    keep: float,
) -> Image:
    """Flakes falling at -135 to -45 degrees, seen twice, over an image turned pale.

    Flakes are normal noise (``mean``, ``deviation``), enlarged by ``zoom``, black below
    ``threshold`` and smeared (``radius``, ``sigma`` px); ``keep`` of the image stays.
    """
    flakes = rng.normal(mean, deviation, image.shape[:2]).astype(np.float32)
    flakes = enlarged(flakes, zoom)
    flakes[flakes < threshold] = 0
    layer = truncated(255 * flakes)[..., None]
    fallen = motion_blur_at(np.repeat(layer, 3, axis=2), radius, sigma, rng.uniform(-135, -45))
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None].astype(np.float32)
    pale = keep * image + (1 - keep) * np.maximum(image, grey * 1.5 + 127.5)
    return truncated(pale + fallen + fallen[::-1, ::-1])


def frost(image: Image, rng: np.random.Generator, keep: float, ice: float) -> Image:
    """``keep`` of the image plus ``ice`` of a frosted pane.

    ImageNet-C lays photographs of frost over the image. These panes are drawn: five sheets of
    ice ferns, of which a part is cut out at random, 224 px of it to the image's shorter side.
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
    """Sheet ``number`` of drawn frost: 448 x 448, 0..1; always the same one."""
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
    rng: np.random.Generator,
    depth: int = 0,
) -> None:
    """Draws a stem from ``start`` that bends a little and sends off shorter ones at 60 degrees."""
    at, bend, gap = start, rng.normal(0, 0.03), 7.0
    for step in range(max(1, int(length / gap))):
        angle += bend + rng.normal(0, 0.03)
        end = at + gap * np.array([np.cos(angle), np.sin(angle)])
        (x0, y0), (x1, y1) = np.rint(at).astype(int).tolist(), np.rint(end).astype(int).tolist()
        cv2.line(sheet, (x0, y0), (x1, y1), 0.55 + 0.45 / (1 + depth), 1, cv2.LINE_AA)
        rest = 0.38 * (length - gap * step)
        if depth < 2 and rest > gap:
            for side in (-1, 1):
                _fern(
                    sheet, end, angle + side * np.pi / 3, rest * rng.uniform(0.5, 1), rng, depth + 1
                )
        at = end
