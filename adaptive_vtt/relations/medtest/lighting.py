"""MedTest's light (section 3.2) and motion (section 3.3)."""

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image
from .scene import Changed, FieldOf, Floats, MedTest, Scene, fifth

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
    """Brightness, contrast and saturation change by one common factor out of ``factors``.

    ``clipped``: channels are clipped one by one, as torchvision does; else colours keep their hue.
    """

    factors: tuple[float, float]
    drawing = 2

    def __init__(self, field: FieldOf | None = None, clipped: bool = False) -> None:
        super().__init__(field)
        self.clipped = clipped

    @property
    def fingerprint(self) -> str | None:
        return "; ".join(filter(None, [super().fingerprint, "clipped" if self.clipped else ""]))

    def change(self, scene: Scene, severity: int, rng: np.random.Generator) -> Changed:
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
    """Brightness, contrast (about the field's mean grey) and saturation times ``factor``, in this
    order and as torchvision defines them; the black frame is left alone.

    ``clipped``: as torchvision has it for whole numbers, which clips each channel after each step:
    bright tissue turns yellow, dark tissue pure red. Else the result is as bright as that, and in
    the hue of the source: its difference from grey, which the three steps multiply by the cube of
    ``factor``, is shortened where a channel would leave the range.
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
    """As bright as ``bright``, each pixel as far from its grey as in ``source`` times ``chroma``,
    or as far as the range allows."""
    grey = cv2.cvtColor(bright, cv2.COLOR_RGB2GRAY).astype(np.float32)
    own = cv2.cvtColor(source, cv2.COLOR_RGB2GRAY).astype(np.float32)
    away = [channel - own for channel in cv2.split(source)]
    above = (255 - grey) / np.maximum(cv2.max(cv2.max(away[0], away[1]), away[2]), 1)
    below = grey / np.maximum(-cv2.min(cv2.min(away[0], away[1]), away[2]), 1)
    reach = np.minimum(np.minimum(above, below), np.float32(chroma))
    return cv2.merge([np.rint(grey + reach * each).astype(np.uint8) for each in away])


class WhiteBalance(MedTest):
    """MR1-3: a green cast (red and blue reduced to about half, in proportion) or a purple one
    (red and green reduced; purple on red tissue), either with probability 1/2."""

    name = "medtest/white_balance"
    about = "green or purple cast; factor on the two other channels"
    drawing = 2

    def change(self, scene: Scene, severity: int, rng: np.random.Generator) -> Changed:
        cast = "green" if rng.random() < 0.5 else "purple"
        factor = fifth(*COLOUR_CAST, severity, rng)
        lut = np.repeat(np.arange(256, dtype=np.float32)[None, :, None], 3, axis=2)
        lut[:, :, [0, 2] if cast == "green" else [0, 1]] *= factor
        image = cv2.LUT(scene.image, np.rint(lut).astype(np.uint8))
        return scene.inside_only(image), {"cast": cast, "factor": factor}


class Blur(MedTest):
    """MR2-1: a Gaussian filter, sigma from (5, 15], whose kernel is smaller than sigma: width
    and height are independent odd numbers of [sigma/2, sigma], so that it blurs more one way.

    Lengths are pixels of a 512-pixel image. Equation 2 also adds noise; the implementation
    the thesis describes does not, and neither does this one.
    """

    name = "medtest/blur"
    about = "Gaussian blur, sigma 5 to 15 at 512 pixels, in a kernel no wider than sigma"
    drawing = 3

    def change(self, scene: Scene, severity: int, rng: np.random.Generator) -> Changed:
        drawn = fifth(*BLUR_SIGMA, severity, rng)
        sigma = drawn * max(scene.side, SMALLEST_SIDE) / 512
        kernel = (_odd(sigma, rng), _odd(sigma, rng))
        weight = scene.shown[:, :, None]
        seen = weight > 0
        if weight.all():
            image = cv2.GaussianBlur(scene.image, kernel, sigma)
        else:  # the lens blurs, and then the frame and the text are laid over the picture
            total = cv2.GaussianBlur(scene.image * np.float32(seen), kernel, sigma)
            share = cv2.GaussianBlur(weight, kernel, sigma).reshape(weight.shape)
            blurred = np.rint(np.minimum(weight * total / np.maximum(share, 1e-6), 255))
            image = np.where(seen, blurred, scene.image).astype(np.uint8)
        return image, {"sigma": drawn, "sigma_pixels": sigma, "kernel": list(kernel)}


def _odd(sigma: float, rng: np.random.Generator) -> int:
    """A random odd whole number in [sigma/2, sigma], at least 3."""
    lowest = 2 * int(np.ceil((sigma / 2 - 1) / 2)) + 1
    highest = 2 * int(np.floor((sigma - 1) / 2)) + 1
    count = max(1, (highest - lowest) // 2 + 1)
    return max(3, lowest + 2 * int(rng.random() * count))


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
    drawing = 2

    def change(self, scene: Scene, severity: int, rng: np.random.Generator) -> Changed:
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
    return (opacity * np.sqrt(scene.grey_mask) * scene.shown).astype(np.float32)
