"""MedTest's relations that change the light (section 3.2) or blur by motion (section 3.3)."""

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image
from ..base import Rng
from .drawn import edge, noise
from .scene import Changed, FieldOf, Floats, MedTest, Scene, fifth, folds

OVEREXPOSURE = (1.1, 1.6)
UNDEREXPOSURE = (0.9, 0.55)
"""Factor of brightness, contrast and saturation, mildest first. The thesis states no range. Below
0.55 nobody can see a polyp, which would change the right answer."""

COLOUR_CAST = (0.65, 0.35)
"""Factor of the two weakened channels, mildest first. The thesis says "approximately half", which
is severity 3 here."""

BLUR_SIGMA = (5.0, 15.0)
"""Standard deviation in pixels of a 512-pixel image (MR2-1), drawn from (5, 15]."""

SMALLEST_SIDE = 256
"""Smaller images are blurred like images of this side, so that kernels can differ in size."""


class _Exposure(MedTest):
    """Base class of relations that multiply brightness, contrast and saturation by one factor.

    Args:
        field: See ``MedTest``.
        clipped: See ``exposed``.
    """

    factors: tuple[float, float]
    drawing = 2

    def __init__(self, field: FieldOf | None = None, clipped: bool = False) -> None:
        super().__init__(field)
        self.clipped = clipped

    @property
    def fingerprint(self) -> str | None:
        return "; ".join(filter(None, [super().fingerprint, "clipped" if self.clipped else ""]))

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        factor = fifth(*self.factors, severity, rng)
        return exposed(scene, factor, self.clipped), {"factor": factor}


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


def exposed(scene: Scene, factor: float, clipped: bool = False) -> Image:
    """Return the image with brightness, contrast and saturation multiplied by ``factor``.

    The three steps are those of torchvision, in this order. Contrast is relative to the field's
    mean grey level, and the black frame does not change.

    Args:
        scene: Scene to change.
        factor: Factor of the three steps.
        clipped: Whether to clip the channels after each step, as torchvision does for integers:
            bright tissue turns yellow, and dark tissue pure red. Otherwise the result has the same
            brightness and the hue of the source. Its difference from grey, which the three steps
            multiply by the cube of ``factor``, is reduced if a channel would leave 0..255.
    """
    levels = np.arange(256, dtype=np.float32)
    brighter = np.clip(levels * factor, 0, 255).astype(np.uint8)
    grey = cv2.cvtColor(cv2.LUT(scene.image, brighter), cv2.COLOR_RGB2GRAY)
    mean = cv2.mean(grey, scene.field.view(np.uint8))[0]
    contrasted = np.clip(factor * brighter + (1 - factor) * mean, 0, 255).astype(np.uint8)
    image = cv2.LUT(scene.image, contrasted)
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    image = cv2.addWeighted(image, factor, grey, 1 - factor, 0)
    if not clipped and factor > 1:  # below 1 nothing leaves the range
        image = _in_hue_of(scene.image, image, factor**3)
    return scene.inside_only(image, of_black=(1 - factor) * mean)


def _in_hue_of(source: Image, bright: Image, chroma: float) -> Image:
    """Return an image with the grey levels of ``bright`` and the hues of ``source``.

    The channels' distances from grey in ``source`` are multiplied by ``chroma``, or by less if a
    channel would leave 0..255.
    """
    grey = cv2.cvtColor(bright, cv2.COLOR_RGB2GRAY).astype(np.float32)
    source_grey = cv2.cvtColor(source, cv2.COLOR_RGB2GRAY).astype(np.float32)
    away = [channel - source_grey for channel in cv2.split(source)]
    above = (255 - grey) / np.maximum(cv2.max(cv2.max(away[0], away[1]), away[2]), 1)
    below = grey / np.maximum(-cv2.min(cv2.min(away[0], away[1]), away[2]), 1)
    factor = np.minimum(np.minimum(above, below), np.float32(chroma))
    return cv2.merge([np.rint(grey + factor * distance).astype(np.uint8) for distance in away])


class WhiteBalance(MedTest):
    """MR1-3: a green or a purple cast, each with probability 1/2.

    A green cast reduces red and blue to about half. The other reduces red and green, which looks
    purple on red tissue.
    """

    name = "medtest/white_balance"
    about = "green or purple cast; factor on the two other channels"
    drawing = 2

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        cast = "green" if rng.random() < 0.5 else "purple"
        factor = fifth(*COLOUR_CAST, severity, rng)
        lut = np.repeat(np.arange(256, dtype=np.float32)[None, :, None], 3, axis=2)
        lut[:, :, [0, 2] if cast == "green" else [0, 1]] *= factor
        image = cv2.LUT(scene.image, np.rint(lut).astype(np.uint8))
        return scene.inside_only(image), {"cast": cast, "factor": factor}


class Blur(MedTest):
    """MR2-1: a Gaussian blur with sigma in (5, 15], as pixels of a 512-pixel image.

    The kernel is smaller than usual: its width and height are independent odd numbers in
    [sigma/2, sigma], so that one direction is blurred more. Equation 2 of the thesis adds noise,
    but the implementation that it describes and this one do not.
    """

    name = "medtest/blur"
    about = "Gaussian blur, sigma 5 to 15 at 512 pixels, in a kernel no wider than sigma"
    drawing = 3

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        drawn = fifth(*BLUR_SIGMA, severity, rng)
        sigma = drawn * max(scene.side, SMALLEST_SIDE) / 512
        kernel = (_odd(sigma, rng), _odd(sigma, rng))
        weight = scene.shown[:, :, None]
        tissue = weight > 0
        if weight.all():
            image = cv2.GaussianBlur(scene.image, kernel, sigma)
        else:  # only tissue is blurred: the frame and printed text lie in front of it
            total = cv2.GaussianBlur(scene.image * np.float32(tissue), kernel, sigma)
            share = cv2.GaussianBlur(weight, kernel, sigma).reshape(weight.shape)
            blurred = np.rint(np.minimum(weight * total / np.maximum(share, 1e-6), 255))
            image = np.where(tissue, blurred, scene.image).astype(np.uint8)
        return image, {"sigma": drawn, "sigma_pixels": sigma, "kernel": list(kernel)}


def _odd(sigma: float, rng: Rng) -> int:
    """Return a random odd integer in [sigma/2, sigma], at least 3."""
    lowest = 2 * int(np.ceil((sigma / 2 - 1) / 2)) + 1
    highest = 2 * int(np.floor((sigma - 1) / 2)) + 1
    count = max(1, (highest - lowest) // 2 + 1)
    return max(3, lowest + 2 * int(rng.random() * count))


CLUSTERS = (1.0, 5.0)
"""Range of the number of clusters, which the thesis does not state."""
SPOTS = (3.0, 12.0)
"""Range of the number of spots per cluster, which the thesis does not state."""

LAMBDA = 0.02
"""Maximum half axis of a spot, as a share of the image's height."""

EPSILON = 1e-3
"""Length added to both half axes (equation 1), as a share of the image's height, so that no spot is
empty."""

SPREAD = 0.045
"""Standard deviation of the spots' distance from their cluster's centre, as a share of the image's
height."""

CLEARANCE = 0.02
"""Distance from the protected mask in which spots fade away, as a share of the shorter side."""

GLARING = (170, 230)
"""Grey levels from which spots fade, and from which there are none: highlights are invisible on
white."""

_ONE = 16
"""Sub-pixel units per pixel in cv2.ellipse (shift=4)."""

_CELLS = 64
"""Maximum number of cells along a side of the small image on which positions are compared."""


class Specularity(MedTest):
    """MR1-4: highlights, which are blurred ellipses around a few centres, scaled by the grey mask.

    Centres lie on bright crests of folds, which reflect light straight back. Clusters and spots are
    aligned with the folds, unlike the upright ellipses of equation 1. Spots merge, have ragged
    edges like a wet wall, and fade into it.
    """

    name = "medtest/specularity"
    about = "clusters of highlights along folds, off the protected mask; more at higher severities"
    drawing = 3

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        takes = _takes_light(scene)
        spots = _spots(scene, takes, severity, rng)
        opacity = takes * _opacity(scene, spots, rng)
        image = scene.image + opacity[:, :, None] * (np.float32(255) - scene.image)
        return np.rint(image).astype(np.uint8), {
            "clusters": int(spots[-1, 5]) + 1,
            "spots": np.round(spots[:, :5], 4).tolist(),
        }


def _takes_light(scene: Scene) -> Floats:
    """Return the maximum opacity of highlights, H x W in 0..1.

    It is lower in the dark, and 0 on the protected mask, on white pixels and outside the field.
    """
    grey = cv2.cvtColor(scene.image, cv2.COLOR_RGB2GRAY)
    levels = np.arange(256, dtype=np.float32)
    fades = edge(np.float32(GLARING[1]) - levels, GLARING[1] - GLARING[0])
    takes = cv2.LUT(grey, fades) * np.sqrt(scene.grey_mask) * scene.shown
    if scene.protected.any():
        away = cv2.distanceTransform((~scene.protected).view(np.uint8), cv2.DIST_L2, 3)
        takes *= edge(away - 1, CLEARANCE * scene.side)
    return takes


def _spots(scene: Scene, takes: Floats, severity: int, rng: Rng) -> npt.NDArray[np.float64]:
    """Return n spots, (n, 6): centre x and y, two half axes, angle and number of the cluster.

    Lengths are in pixels, the angle in degrees.
    """
    most = (round(CLUSTERS[1]), round(SPOTS[1]))
    clusters = round(fifth(*CLUSTERS, severity, rng))
    counts = [round(fifth(*SPOTS, severity, rng)) for _ in range(most[0])]
    height, width = scene.field.shape
    size = (min(width, _CELLS), min(height, _CELLS))
    light, shows = (
        cv2.resize(values, size, interpolation=cv2.INTER_AREA).reshape(size[::-1])
        for values in (scene.light, takes)
    )
    cell = np.array([width / size[0], height / size[1]])
    along_folds = _along_folds(light, cell)

    def angles(places: npt.NDArray[np.float64]) -> Floats:
        columns, rows = np.moveaxis((places / cell).astype(int).clip(0, np.array(size) - 1), -1, 0)
        return along_folds[rows, columns]

    crests = light * light * shows * np.exp2(-2 * folds(light))
    centres = cell * _drawn_places(crests, rng.random((most[0], 2)))
    offsets = rng.standard_normal((*most, 2)) * (1.0, 0.25)  # clusters are elongated, like folds
    # the distribution has many small spots and few large ones
    longer = LAMBDA * rng.beta(1.3, 2.0, most) + EPSILON
    shorter = longer * rng.uniform(0.22, 0.6, most)
    tilts = rng.normal(0, 12, most)
    turn = np.deg2rad(angles(centres))
    along = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    across = np.stack([-np.sin(turn), np.cos(turn)], axis=1)
    away = offsets[:, :, :1] * along[:, None] + offsets[:, :, 1:] * across[:, None]
    places = centres[:, None] + SPREAD * height * away
    cluster = np.repeat(np.arange(most[0])[:, None], most[1], axis=1)
    axes = (longer * height, shorter * height)
    spots = np.dstack([places, *axes, angles(places) + tilts, cluster])
    return np.concatenate([spots[c, : counts[c]] for c in range(clusters)])


def _drawn_places(likely: Floats, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return n positions (n, 2), x and y in cells, drawn in proportion to ``likely`` (H, W)."""
    sums = np.cumsum(likely.reshape(-1).astype(np.float64) + 1e-9)
    chosen = np.searchsorted(sums, uniform[:, 0] * sums[-1])
    rows, columns = np.divmod(np.minimum(chosen, likely.size - 1), likely.shape[1])
    return np.stack([columns + uniform[:, 1], rows + 0.5], axis=1)


def _along_folds(light: Floats, per_cell: npt.NDArray[np.float64]) -> Floats:
    """Return the direction (H, W) in degrees in which the light changes least."""
    slope_x = cv2.Sobel(light, cv2.CV_32F, 1, 0) / np.float32(per_cell[0])
    slope_y = cv2.Sobel(light, cv2.CV_32F, 0, 1) / np.float32(per_cell[1])
    return np.rad2deg(np.arctan2(slope_y, slope_x)) + 90


def _opacity(scene: Scene, spots: npt.NDArray[np.float64], rng: Rng) -> Floats:
    """Return the opacity of the spots, (H, W) in 0..1, with ragged edges and a faint halo."""
    drawn = np.zeros(scene.field.shape, np.uint8)
    for spot in spots:
        x, y, longer, shorter = (round(length * _ONE) for length in spot[:4])
        cv2.ellipse(drawn, (x, y), (longer, shorter), spot[4], 0, 360, 255, -1, cv2.LINE_AA, 4)
    height, width = scene.field.shape
    sigma = max(0.5, 0.0045 * scene.side)
    soft = cv2.GaussianBlur(drawn, (0, 0), sigma) / np.float32(255)
    soft *= 1 + 0.25 * noise(rng, (45, 90), 0.8, drawn.shape)
    # the same blur on a quarter of the size is four times as wide
    quarter = (-(-width // 4), -(-height // 4))
    small = cv2.resize(drawn, quarter, interpolation=cv2.INTER_AREA)
    halo = cv2.resize(cv2.GaussianBlur(small, (0, 0), sigma), (width, height)) / np.float32(255)
    return np.minimum(0.95 * edge(soft - 0.03, 0.85) + 0.6 * halo, 1)
