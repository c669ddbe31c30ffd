"""MedMNIST-C: 21 corruptions in 12 profiles, one per data set (Di Salvo et al., 2024).

Source: arXiv 2406.17536, with the values of the registry of medmnistc 0.1.0: 131 pairs of data set
and corruption, five severities each. The names are "medmnistc/<flag>/<corruption>".

The published behaviour is kept, also where it is surprising:

- results are truncated to whole grey levels, not rounded;
- grey images are repeated to three channels first, so that noise is drawn three times and
  averaged: its deviation shrinks to 0.67, and impulses have eight levels of grey;
- black_corner of dermamnist is stronger at severity 4 (0.9) than at 5 (0.95);
- stain_deposit of bloodmnist has the same number of marks at severities 3 to 5, and only
  severity 5 has larger marks; retinamnist darkens and fades but never brightens;
- gamma_corr_up darkens and gamma_corr_down brightens.

Random numbers come from the caller's generator, not from one stream through the whole set.

The values are for 224 x 224. On other sizes, lengths of blurs stay in pixels. Marks, bubbles and
characters scale with the shorter side, as they would not fit otherwise. Everything else is relative
to the image.
"""

from functools import lru_cache

import cv2
import numpy as np

from ..errors import check_known
from ..types import Image, Mask
from . import corruptions
from .base import Rng
from .corruptions import IN_BOTH, Corruption, Kinds, published

PUBLISHED = 224
"""Side in pixels of the images for which the values were published."""
MARGIN = 10
"""Minimum distance of ink marks and words from the image's edge, in pixels of PUBLISHED."""
MARKS = 10
"""Number of different ink marks per size."""
VEILS = {
    opacity: np.rint(np.arange(256) + np.arange(255, -1, -1) * (opacity / 255)).astype(np.uint8)
    for opacity in (100, 130)
}
"""Opacity in 255ths -> the 256 grey levels under white of that opacity."""


def stain_deposit(image: Image, rng: Rng, most: float, side: float = 24) -> Image:
    """Add one to ``most`` black ink marks in patches of ``side`` px, away from the edge.

    The published marks are pictures; these are drawn and look similar. A mark is the largest piece
    of smooth noise under a round window. It covers 48 to 78 per cent of a patch of 24 px, and 48 to
    61 per cent of a patch of 32 px.
    """
    changed, scale = image.copy(), _scale(image)
    marks = _marks(max(1, round(side * scale)), 0.61 if side > 24 else 0.78)
    for _ in range(int(rng.integers(1, int(most), endpoint=True))):
        mark = marks[int(rng.integers(len(marks)))]
        high, wide = mark.shape
        y = _within(rng, MARGIN * scale, image.shape[0] - high - MARGIN * scale)
        x = _within(rng, MARGIN * scale, image.shape[1] - wide - MARGIN * scale)
        changed[y : y + high, x : x + wide][mark] = 0
    return changed


@lru_cache(maxsize=64)
def _marks(side: int, most: float) -> tuple[Mask, ...]:
    """Return the ten ink marks (side, side), which cover 0.48 to ``most`` of the square."""
    shares = np.linspace(0.48, most, MARKS)
    return tuple(
        _mark(side, float(s), np.random.default_rng([side, i])) for i, s in enumerate(shares)
    )


def _mark(side: int, share: float, rng: Rng) -> Mask:
    noise = cv2.GaussianBlur(rng.standard_normal((side, side)), (0, 0), max(0.5, side / 9))
    noise /= noise.std() + 1e-9
    at = (np.arange(side) - (side - 1) / 2) / max(1, side / 2)
    height = noise - 2.2 * (at[:, None] ** 2 + at[None, :] ** 2)
    ink = (height >= np.quantile(height, 1 - share)).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    return np.asarray(labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA])))


def bubble(image: Image, rng: Rng, largest: float, most: float) -> Image:
    """Add seven to ``most`` whitish discs of radius 3 to ``largest`` px with a rim of 2 px.

    A disc replaces the parts of earlier discs below it. Its opacity is 100 / 255, that of the rim
    130 / 255.
    """
    height, width = image.shape[:2]
    scale = _scale(image)
    veil = np.zeros((height, width), np.uint8)
    for _ in range(int(rng.integers(7, int(most), endpoint=True))):
        radius = max(1, round(int(rng.integers(3, int(largest), endpoint=True)) * scale))
        centre = _within(rng, radius, width - radius), _within(rng, radius, height - radius)
        cv2.circle(veil, centre, radius + max(1, round(2 * scale)), 130, -1)
        cv2.circle(veil, centre, radius, 100, -1)
    changed = image.copy()
    for opacity, whiter in VEILS.items():
        cv2.copyTo(cv2.LUT(image, whiter), (veil == opacity).view(np.uint8), changed)
    return changed


def black_corner(image: Image, rng: Rng, share: float) -> Image:
    """Blacken the image outside a centred disc of ``share`` times half the shorter side."""
    height, width = image.shape[:2]
    centre = (width // 2, height // 2)
    radius = min(*centre, width - centre[0], height - centre[1])
    disc = np.zeros((height, width), np.uint8)
    cv2.circle(disc, centre, int(radius * share), 255, -1)
    return np.asarray(cv2.bitwise_and(image, image, mask=disc)).reshape(image.shape)


def characters(image: Image, rng: Rng, words: float, letters: float, size: float) -> Image:
    """Add one to ``words`` words of 3 to ``letters`` random small letters in random colours.

    The font is OpenCV's duplex, anti-aliased, of thickness 1 and a scale of 0.14 to ``size``.
    Letters are three pixels high in 224-pixel images, and also in smaller images.
    """
    changed, scale = image.copy(), max(1.0, _scale(image))
    height, width = image.shape[:2]
    for _ in range(int(rng.integers(1, int(words), endpoint=True))):
        count = int(rng.integers(3, int(letters), endpoint=True))
        font = int(rng.integers(14, int(100 * size), endpoint=True)) / 100
        word = "".join(chr(97 + int(letter)) for letter in rng.integers(26, size=count))
        x = _within(rng, MARGIN * _scale(image), width - 8 * count * scale)
        y = _within(rng, MARGIN * _scale(image), height - MARGIN * _scale(image))
        colour = rng.integers(256, size=3).tolist()
        style = cv2.FONT_HERSHEY_DUPLEX, font * scale, colour, 1, cv2.LINE_AA
        cv2.putText(changed, word, (x, y), *style)
    return changed


def _scale(image: Image) -> float:
    return min(image.shape[:2]) / PUBLISHED


def _within(rng: Rng, low: float, high: float) -> int:
    """Return a random integer in low..high, both included, or low if high is lower."""
    first = max(0, round(low))
    return int(rng.integers(first, max(first, round(high)), endpoint=True))


KINDS: Kinds = {
    **IN_BOTH,
    "gaussian_blur": (corruptions.gaussian_blur, "normal blur; strength: kernel size, px"),
    "brightness_up": (corruptions.brightness, "brighter; strength: factor"),
    "brightness_down": (corruptions.brightness, "darker; strength: factor"),
    "contrast_up": (corruptions.contrast, "more contrast; strength: factor about the mean grey"),
    "contrast_down": (corruptions.contrast, "less contrast; strength: factor about the mean grey"),
    "saturate": (corruptions.saturate, "more colour; strength: added to saturation, 0..1"),
    "gamma_corr_up": (corruptions.gamma_correction, "darker mid-tones; strength: gamma"),
    "gamma_corr_down": (corruptions.gamma_correction, "brighter mid-tones; strength: gamma"),
    "stain_deposit": (stain_deposit, "ink marks; strength: most marks, their side in px"),
    "bubble": (bubble, "whitish discs; strength: largest radius in px, most discs"),
    "black_corner": (black_corner, "black outside a disc; strength: share of half a side"),
    "characters": (characters, "words; strength: most words, most letters, font scale"),
}

CATEGORIES = {
    "digital": ("pixelate", "jpeg_compression"),
    "noise": ("gaussian_noise", "speckle_noise", "impulse_noise", "shot_noise"),
    "blur": ("defocus_blur", "motion_blur", "gaussian_blur", "zoom_blur"),
    "color": (
        *("brightness_up", "brightness_down", "contrast_up", "contrast_down", "saturate"),
        *("gamma_corr_up", "gamma_corr_down"),
    ),
    "task-specific": ("stain_deposit", "bubble", "black_corner", "characters"),
}
"""Category -> corruptions (the paper's Table 1; the registry lists gamma as task-specific)."""


NOT_IN_ORDER = ("medmnistc/bloodmnist/stain_deposit", "medmnistc/dermamnist/black_corner")


def flags() -> list[str]:
    """Return the names of the twelve data sets."""
    return [*published("medmnistc")]


def relations(flag: str) -> list[Corruption]:
    """Return MedMNIST-C's corruptions of a data set, in the registry's order.

    Args:
        flag: Name of the data set, such as "pathmnist".

    Raises:
        InputError: The flag is unknown.
    """
    check_known("MedMNIST-C data set", flag, flags())
    listed = []
    for kind, ladder in published("medmnistc")[flag]["corruptions"].items():
        (change, about), name = KINDS[kind], f"medmnistc/{flag}/{kind}"
        in_order = name not in NOT_IN_ORDER
        listed.append(Corruption(name, tuple(map(tuple, ladder)), change, about, in_order=in_order))
    return listed
