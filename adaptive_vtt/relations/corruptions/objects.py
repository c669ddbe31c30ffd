"""Things that lie in the way: ink, bubbles, dark corners, burnt-in characters.

Their lengths are shares of the shorter side, given as pixels of a 224-pixel image: at that
size they are the published ones, on others they scale, because they would not fit otherwise.
"""

from functools import lru_cache

import cv2
import numpy as np

from ...types import Image, Mask

PUBLISHED = 224
MARGIN = 10
MARKS = 10
VEILS = {
    opacity: np.rint(np.arange(256) + np.arange(255, -1, -1) * (opacity / 255)).astype(np.uint8)
    for opacity in (100, 130)
}
"""Opacity in 255ths -> the 256 grey levels as they look under white of that opacity."""


def stain_deposit(image: Image, rng: np.random.Generator, most: float, side: float = 24) -> Image:
    """One to ``most`` black ink marks in patches of ``side`` px, kept off the edge.

    The published marks are pictures; these are drawn in their likeness: smooth noise under a
    round window, cut so that a mark covers 48 to 78 (24 px) or 47 to 61 per cent (32 px) of
    its patch, ten marks per size; only the largest piece of each is kept.
    """
    changed, scale = image.copy(), _scale(image)
    bank = _marks(max(1, round(side * scale)), 0.61 if side > 24 else 0.78)
    for _ in range(int(rng.integers(1, int(most), endpoint=True))):
        mark = bank[int(rng.integers(len(bank)))]
        high, wide = mark.shape
        y = _within(rng, MARGIN * scale, image.shape[0] - high - MARGIN * scale)
        x = _within(rng, MARGIN * scale, image.shape[1] - wide - MARGIN * scale)
        changed[y : y + high, x : x + wide][mark] = 0
    return changed


@lru_cache(maxsize=64)
def _marks(side: int, most: float) -> tuple[Mask, ...]:
    """Ten ink marks, side x side, that cover up to ``most`` of it; always the same ones."""
    shares = np.linspace(0.48, most, MARKS)
    return tuple(
        _mark(side, float(s), np.random.default_rng([side, i])) for i, s in enumerate(shares)
    )


def _mark(side: int, share: float, rng: np.random.Generator) -> Mask:
    noise = cv2.GaussianBlur(rng.standard_normal((side, side)), (0, 0), max(0.5, side / 9))
    noise /= noise.std() + 1e-9
    at = (np.arange(side) - (side - 1) / 2) / max(1, side / 2)
    height = noise - 2.2 * (at[:, None] ** 2 + at[None, :] ** 2)
    ink = (height >= np.quantile(height, 1 - share)).astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    return np.asarray(labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA])))


def bubble(image: Image, rng: np.random.Generator, largest: float, most: float) -> Image:
    """Seven to ``most`` whitish discs of 3 to ``largest`` px with a brighter rim of 2 px.

    A later disc hides what lies under it of an earlier one; opacity 130 / 255 in the rim
    and 100 / 255 within.
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


def black_corner(image: Image, rng: np.random.Generator, share: float) -> Image:
    """Black outside a centred disc of ``share`` times half the shorter side."""
    height, width = image.shape[:2]
    centre = (width // 2, height // 2)
    radius = min(*centre, width - centre[0], height - centre[1])
    disc = np.zeros((height, width), np.uint8)
    cv2.circle(disc, centre, int(radius * share), 255, -1)
    return np.asarray(cv2.bitwise_and(image, image, mask=disc)).reshape(image.shape)


def characters(
    image: Image, rng: np.random.Generator, words: float, letters: float, size: float
) -> Image:
    """One to ``words`` words of 3 to ``letters`` random small letters, a colour each.

    OpenCV's duplex font, anti-aliased, thickness 1, at a font scale of 0.14 to ``size``.
    Letters of 224-pixel images are three pixels high, and so they stay on smaller ones.
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
        cv2.putText(
            changed, word, (x, y), cv2.FONT_HERSHEY_DUPLEX, font * scale, colour, 1, cv2.LINE_AA
        )
    return changed


def _scale(image: Image) -> float:
    return min(image.shape[:2]) / PUBLISHED


def _within(rng: np.random.Generator, low: float, high: float) -> int:
    """A whole number from low to high, both included; what is too large to fit stays at low."""
    first = max(0, round(low))
    return int(rng.integers(first, max(first, round(high)), endpoint=True))
