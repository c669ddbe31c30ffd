"""Drawn blood: a film that runs over the tissue and absorbs light according to its depth.

It starts at a few positions and runs down the image and into folds, which are darker than their
surroundings, and where it is deepest. The Beer-Lambert law gives the light that passes through it
in each channel. So thin blood is a red glaze, and deep blood nearly black.
"""

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image, Indices, Mask
from .drawn import edge, facing, noise
from .scene import Floats, Scene, folds

ABSORBED = (17.0, 285.0, 337.0)
"""Absorption coefficients of blood in red, green and blue, per centimetre (to the base e).

They are those of oxygenated whole blood with 150 g of haemoglobin per litre at 600, 540 and 450 nm,
from S. Prahl's tables ("Optical Absorption of Hemoglobin", 1999)."""

RETURNED = (0.4, 0.05, 0.055)
"""Share of the light that deep blood reflects, in red, green and blue."""

DEEPEST = (0.03, 0.1)
"""Maximum depth in centimetres, at the mildest and at the strongest severity."""

THIN = 1.7
"""Exponent of the depth's growth from the outline inwards; most of a film is thin."""

FOLDS, DOWN = 0.35, 0.3
"""Force of a fold of usual depth on a trickle, and force down the image."""

STEP, STEPS = 0.02, (10, 60)
"""Length of a step of a trickle, as a share of the shorter side, and range of their number."""

CLEARANCE = 0.03
"""Distance that blood keeps from the protected mask, as a share of the shorter side."""

LUMEN = 0.6
"""Values of the grey mask below this are lumen, too dark for a wall on which blood can lie."""

RIM, RIM_DEPTH = 0.45, 0.015
"""Share of the light that the film's rounded outline deflects, and the depth in centimetres at
which this has fallen to 1 / e."""

CLOTTED = 0.75
"""Share of the maximum depth from which the film has clots."""

_WORK = 256
"""Longer side, in pixels, of the reduced image on which blood runs."""

Place = tuple[float, float]
"""Position (x, y) in pixels."""


def bleed(
    scene: Scene, share: float, deepest: float, seeds: Indices
) -> tuple[Image, Floats, list[Place], bool]:
    """Return a scene with blood.

    Args:
        scene: Scene to change.
        share: Approximate share of the field to cover.
        deepest: Maximum depth of the blood in centimetres.
        seeds: One seed per trickle.

    Returns:
        The image; the opacity (H, W) of the blood in 0..1; the start (x, y) of the trickles in
        pixels; and whether there was enough room.
    """
    height, width = scene.field.shape
    scale = min(1.0, _WORK / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    field, kept_off = (
        cv2.resize(mask.view(np.uint8), size, interpolation=cv2.INTER_NEAREST)
        for mask in (scene.field, scene.protected)
    )
    # blood cannot lie on the open lumen, which is the darkest part of the field
    kept_off |= (cv2.resize(scene.grey_mask, size) < LUMEN).view(np.uint8)
    away = cv2.distanceTransform(1 - kept_off, cv2.DIST_L2, 3).clip(max=max(size))
    away /= np.float32(CLEARANCE * min(size))
    free = (field > 0) & (away > 1)
    if not free.any():
        return scene.image.copy(), np.zeros(scene.field.shape, np.float32), [], False
    fold = folds(cv2.resize(scene.light, size))
    dry, starts = _trickles(scene, fold, free, seeds)
    rng = np.random.default_rng(seeds[0])
    wanted = int(share * np.count_nonzero(field))
    distance = cv2.distanceTransform(dry, cv2.DIST_L2, 5) / np.float32(np.sqrt(wanted) / 4 + 1)
    # blood fills the lowest ground: near trickles, in folds, away from the protected mask
    ground = distance - FOLDS * fold + 0.3 * noise(rng, (6, 13, 27), 0.7, free.shape)
    ground += 2 * np.exp(-away)
    order = np.sort(ground[free])
    level = order[min(wanted, len(order) - 1)]
    filled = np.where(away > 0, level - ground, 0).clip(0) / max(float(level - order[0]), 1e-6)
    filled = cv2.GaussianBlur(filled, (0, 0), 0.6)
    depth = np.float32(deepest) * filled ** np.float32(THIN)
    lumps, ripple = noise(rng, (19, 41), 0.7, free.shape), noise(rng, (13, 29), 0.8, free.shape)
    clots = edge(filled - np.float32(CLOTTED) + 0.16 * lumps, 0.2)
    sheen = edge(facing(16 * filled + 0.9 * ripple) - 0.98, 0.02) * edge(filled - 0.15, 0.1)
    layers = (cv2.resize(a, (width, height)) * ~scene.protected for a in (depth, clots, sheen))
    image, opacity = _seen_through(scene, *layers)
    return image, opacity, [(x / scale, y / scale) for x, y in starts], wanted < len(order)


def _trickles(
    scene: Scene, fold: Floats, free: Mask, seeds: Indices
) -> tuple[npt.NDArray[np.uint8], list[Place]]:
    """Return a map (h, w), 0 on trickles and 1 elsewhere, and the starts of the trickles.

    A trickle starts at a random free pixel, with a probability in proportion to the grey mask.
    """
    smooth = cv2.GaussianBlur(fold, (0, 0), 2)
    slopes = 6 * np.stack([cv2.Sobel(smooth, cv2.CV_32F, *axis) for axis in ((1, 0), (0, 1))])
    likely = np.where(free, cv2.resize(scene.grey_mask, free.shape[::-1]) + 1e-6, 0)
    sums = np.cumsum(likely.astype(np.float64))
    dry, starts = np.ones(free.shape, np.uint8), []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        row, column = divmod(int(np.searchsorted(sums, rng.random() * sums[-1])), free.shape[1])
        dry[row, column] = 0
        starts.append((float(column), float(row)))
        at, heading = np.array(starts[-1]), rng.normal(0, 1, 2)
        step = STEP * min(free.shape)
        for width in step * rng.uniform(0.05, 0.7, int(rng.integers(*STEPS))):
            x, y = at.astype(int).tolist()
            heading = 0.6 * heading + FOLDS * slopes[:, y, x] + (0, DOWN) + rng.normal(0, 0.6, 2)
            at = at + step * heading / max(float(np.hypot(*heading)), 1e-6)
            column, row = at.astype(int).tolist()
            inside = 0 <= row < free.shape[0] and 0 <= column < free.shape[1]
            if not inside or not free[row, column]:
                break
            cv2.line(dry, (x, y), (column, row), 0, 2 * max(1, round(width)))
    return dry, starts


def _seen_through(
    scene: Scene, depth: Floats, clots: Floats, sheen: Floats
) -> tuple[Image, Floats]:
    """Return the image seen through the film, which light passes twice, and the film's opacity."""
    image = scene.image.copy()
    opacity = (1 - np.exp(np.float32(-2 * ABSORBED[1]) * depth)) * (scene.shown > 0)
    kept = 1 - np.float32(RIM) * opacity * np.exp(depth * np.float32(-1 / RIM_DEPTH))
    light = scene.light * scene.grey_mask * np.float32(255) * (scene.shown > 0)
    for channel, (absorbed, returned) in enumerate(zip(ABSORBED, RETURNED, strict=True)):
        below = scene.image[:, :, channel]
        through = np.exp(np.float32(-2 * absorbed) * depth) * (1 - 0.8 * clots)
        own = np.float32(returned) * light * (1 - 0.4 * clots) * scene.shown
        mixed = own + through * (below - own)
        mixed *= kept
        mixed += 0.7 * sheen * (light * scene.shown - mixed).clip(0)
        image[:, :, channel] = np.where(scene.shown > 0, np.rint(mixed), below)
    return image, opacity
