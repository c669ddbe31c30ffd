"""MedTest's specularity (section 3.2.4): white spots in clusters, as moist tissue shows them."""

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image
from .scene import Floats, MedTest, Scene, fifth

CLUSTERS = (1.0, 5.0)
SPOTS = (3.0, 12.0)
"""How many clusters, and spots in each: the thesis gives neither."""

LAMBDA = 0.02
"""The longest half axis of a spot, as a share of the image's height."""

EPSILON = 1e-3
"""Length added to both half axes (equation 1), as a share of the image's height, so that no spot is
empty."""

SPREAD = 0.045
"""Standard deviation of the spots' distance from their cluster's centre, as a share of the image's
height."""

MAX_COVERED = 0.05
"""The largest share of the protected mask that spots may cover. Polyps do shine; beyond
this share, spots on the mask are left out altogether."""

_ONE = 16
"""Sub-pixel units per pixel in cv2.ellipse (shift=4)."""


class Specularity(MedTest):
    """MR1-4: ellipses near a few cluster centres, blurred, and scaled by the grey mask.

    Centres are drawn where it is bright, as light that is reflected straight back falls
    there. Spots are turned, alike within a cluster, where equation 1 has them upright.
    """

    name = "medtest/specularity"
    about = "clusters of white elliptical highlights; more of them at higher severities"

    def change(
        self, scene: Scene, severity: int, rng: np.random.Generator
    ) -> tuple[Image, Mapping[str, Any]]:
        spots = _spots(scene, severity, rng)
        opacity = _opacity(scene, spots)
        covered = opacity[scene.protected]
        if covered.size and np.mean(covered > 0.1) > MAX_COVERED:
            opacity[scene.protected] = 0
        image = scene.image + opacity[:, :, None] * (np.float32(255) - scene.image)
        return np.rint(image).astype(np.uint8), {
            "clusters": int(spots[-1, 5]) + 1,
            "spots": np.round(spots[:, :5], 4).tolist(),
        }


def _spots(scene: Scene, severity: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """n x 6: centre x and y in pixels, two half axes in pixels, angle in degrees, cluster."""
    most = (round(CLUSTERS[1]), round(SPOTS[1]))
    clusters = round(fifth(*CLUSTERS, severity, rng))
    counts = [round(fifth(*SPOTS, severity, rng)) for _ in range(most[0])]
    centres = _bright_places(scene, rng.random((most[0], 2)))
    angles = rng.uniform(0, 180, most[0])
    offsets = rng.standard_normal((*most, 2)) * (1.0, 0.45)  # clusters are longish, like folds
    # many small spots, few large ones
    longer = LAMBDA * rng.beta(1.3, 2.0, most) + EPSILON
    shorter = longer * rng.uniform(0.25, 0.85, most)
    tilts = rng.normal(0, 20, most)
    found, height = [], scene.image.shape[0]
    for c in range(clusters):
        turn = np.deg2rad(angles[c])
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        for s in range(counts[c]):
            x, y = centres[c] + SPREAD * height * rotation @ offsets[c, s]
            axes = (longer[c, s] * height, shorter[c, s] * height)
            found.append((x, y, *axes, angles[c] + tilts[c, s], c))
    return np.array(found)


def _bright_places(scene: Scene, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """n x 2 pixel positions in the field, the likelier the brighter it is there."""
    height, width = scene.field.shape
    size = (min(width, 64), min(height, 64))
    weight = np.where(scene.field, scene.light * scene.light * scene.grey_mask, 0)
    cells = cv2.resize(weight, size, interpolation=cv2.INTER_AREA).reshape(-1).astype(np.float64)
    sums = np.cumsum(cells + 1e-9)
    chosen = np.searchsorted(sums, uniform[:, 0] * sums[-1])
    rows, columns = np.divmod(np.minimum(chosen, len(cells) - 1), size[0])
    places = np.stack([columns + uniform[:, 1], rows + 0.5], axis=1)
    return places * (width / size[0], height / size[1])


def _opacity(scene: Scene, spots: npt.NDArray[np.float64]) -> Floats:
    """H x W in 0..1: sharp, saturated cores in a faint halo, within the visible field."""
    drawn = np.zeros(scene.field.shape, np.uint8)
    for x, y, longer, shorter, angle, _ in spots:
        centre, axes = (
            (round(x * _ONE), round(y * _ONE)),
            (round(longer * _ONE), round(shorter * _ONE)),
        )
        cv2.ellipse(drawn, centre, axes, angle, 0, 360, 255, -1, cv2.LINE_AA, 4)
    core = cv2.GaussianBlur(drawn, (0, 0), max(0.5, 0.0016 * scene.side))
    halo = cv2.GaussianBlur(drawn, (0, 0), max(0.8, 0.007 * scene.side))
    opacity = np.minimum(1.15 * core.astype(np.float32) + 0.3 * halo, 255) / 255
    return np.where(scene.field, opacity * np.sqrt(scene.grey_mask), 0).astype(np.float32)
