"""Drawn stool and blood: noise shaped into pieces, coloured by their depth, lit as wet."""

import cv2
import numpy as np
import numpy.typing as npt

from .cutouts import Cutout
from .scene import Floats

SIDE = 224
"""The canvas in pixels."""

_STOOL = np.array([(64, 36, 16), (120, 72, 32), (164, 110, 50), (198, 150, 80)], np.float32)
_LIQUID = np.array([(128, 78, 28), (164, 106, 44), (194, 138, 64), (214, 170, 104)], np.float32)
_BLOOD = np.array([(176, 38, 32), (142, 14, 14), (104, 4, 8), (66, 2, 5)], np.float32)
"""Colours from low to high: for stool of its relief, for blood of its depth."""


class DrawnStool:
    """Solid lumps, liquid, or scattered crumbs."""

    def cutout(self, rng: np.random.Generator) -> Cutout:
        kind = str(rng.choice(list(STOOLS), p=[0.4, 0.4, 0.2]))
        return STOOLS[kind](rng)


def _lump(rng: np.random.Generator) -> Cutout:
    body = _blob(rng)
    body += 0.06 * np.clip(1 - np.abs(body) * 2, 0, 1) * _noise(rng, (12, 24), 0.6)
    height = 1.5 * np.sqrt(np.clip(body, 0, 1)) + 0.1 * _noise(rng, (6, 11, 20), 0.6)
    level = 0.44 + 0.09 * _noise(rng, (4, 8, 28), 0.6)
    alpha = 0.97 * _edge(body, 0.12)
    return _lit("lump", _coloured(level, _STOOL), alpha, height, relief=0.7, wet=0.3, casts=0.35)


def _liquid(rng: np.random.Generator) -> Cutout:
    body = _blob(rng)
    body += 0.3 * np.clip(1 - np.abs(body) * 1.2, 0, 1) * _noise(rng, (4, 8), 0.6)
    level = 0.45 + 0.12 * _noise(rng, (3, 6, 12), 0.6) + 0.2 * _edge(body, 0.8)
    alpha = _edge(body, 0.2) * (0.68 + 0.2 * _edge(body, 0.7))
    height = 0.5 * _edge(body, 0.3) + 0.05 * _noise(rng, (5, 9), 0.6)
    return _lit("liquid", _coloured(level, _LIQUID), alpha, height, relief=0.5, wet=0.45, casts=0)


def _crumbs(rng: np.random.Generator) -> Cutout:
    body = _noise(rng, (11, 19), 0.6) + np.minimum(0.9 * _dome() - 1.1, 12 * _dome() - 0.4)
    level = 0.42 + 0.16 * _noise(rng, (8, 16, 40), 0.7)
    height = 0.9 * np.sqrt(np.clip(body, 0, 1)) + 0.04 * _noise(rng, (24,), 1)
    alpha = 0.95 * _edge(body, 0.25)
    return _lit("crumbs", _coloured(level, _STOOL), alpha, height, relief=0.6, wet=0.3, casts=0.3)


STOOLS = {"lump": _lump, "liquid": _liquid, "crumbs": _crumbs}


class DrawnBlood:
    """Pools, and streaks that run one way: a film that darkens with its depth."""

    def cutout(self, rng: np.random.Generator) -> Cutout:
        kind = str(rng.choice(["pool", "streaks"]))
        depth = _pool(rng) if kind == "pool" else _streaks(rng)
        alpha = 0.97 * (1 - np.exp(-4.5 * depth))
        ripple = _noise(rng, (4, 7), 0.6)
        colour = _coloured(0.85 * depth + 0.06 * ripple, _BLOOD)
        height = 0.5 * np.tanh(3 * depth) + 0.05 * ripple
        return _lit(kind, colour, alpha, height, relief=0.35, wet=0.5, casts=0)


def _pool(rng: np.random.Generator) -> Floats:
    """Depth of a puddle with lobes and a thin margin."""
    body = _blob(rng)
    body += 0.1 * np.clip(1 - np.abs(body), 0, 1) * _noise(rng, (6, 12, 24), 0.6)
    thin = 0.1 * _edge(body + 0.06, 0.15) * np.clip(1 + 0.5 * _noise(rng, (9, 16), 0.7), 0, 2)
    return np.clip(body, 0, None) ** 1.2 * 1.3 + thin


def _streaks(rng: np.random.Generator) -> Floats:
    """Depth of a few threads of blood that wind along the x axis, merge, and end thicker."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    depth = np.zeros((SIDE, SIDE), np.float32)
    for _ in range(int(rng.integers(3, 6))):
        start, end = rng.uniform(8, 70), rng.uniform(140, 210)
        path = SIDE / 2 + rng.normal(0, 16) + 7 * _line(rng.standard_normal(5))
        width = rng.uniform(4, 11) * _line(rng.uniform(0.5, 1.5, 9))
        along = np.clip((x - start) / (end - start), 0, 1)
        width = np.maximum(width * (0.35 + 0.75 * along), 1.5)
        beyond = np.maximum(
            np.maximum((start - x) / 4, x - end), 0
        )  # the end a drop, the start not
        off = ((y - path) / width) ** 2 + (beyond / width) ** 2
        depth += rng.uniform(0.3, 0.7) * np.exp(-1.3 * off)
    grain = np.clip(0.8 + 0.3 * _noise(rng, (9, 18), 0.7), 0.2, None)
    return np.clip(depth * grain - 0.05, 0, None)


def _line(values: npt.NDArray[np.float64]) -> Floats:
    """A smooth line through a few values, 1 x SIDE."""
    return cv2.resize(values[None].astype(np.float32), (SIDE, 1), interpolation=cv2.INTER_CUBIC)


def _lit(
    name: str,
    colour: Floats,
    alpha: Floats,
    height: Floats,
    *,
    relief: float,
    wet: float,
    casts: float,
) -> Cutout:
    """The piece under light from above left: shaded by its ``relief``, shining where ``wet``."""
    alpha = alpha * _edge(_dome() + 0.25, 0.3)  # no straight edges where the canvas ends
    height = cv2.GaussianBlur(height, (0, 0), 2.2) * 30
    slope_x, slope_y = cv2.Sobel(height, cv2.CV_32F, 1, 0), cv2.Sobel(height, cv2.CV_32F, 0, 1)
    steep = np.sqrt((slope_x**2 + slope_y**2) / 64 + 1)
    facing = ((0.38 * slope_x + 0.5 * slope_y) / 8 + 0.78) / steep
    colour = colour * np.clip(1 + relief * (facing - 0.78), 0.35, 1.25)[:, :, None]
    shine = _edge(facing - 0.955, 0.045) * wet * (alpha > 0.6)
    colour += cv2.GaussianBlur(shine, (0, 0), 1.0)[:, :, None] * (np.float32(245) - colour)
    return Cutout(
        name,
        np.clip(colour, 0, 255).astype(np.uint8),
        alpha.astype(np.float32),
        anchor=(SIDE / 2, SIDE / 2),
        tail=np.zeros((0, 2), np.float32),
        brightness=0.75,
        casts=casts,
    )


def _blob(rng: np.random.Generator) -> Floats:
    """1 in the middle, 0 on a lobed outline that stays within the canvas, negative beyond."""
    x, y = _plane()
    angle, outline = np.arctan2(y, x), np.zeros_like(x)
    for lobes in (1, 2, 3, 4):
        phase, size = rng.uniform(0, 2 * np.pi), rng.normal(0, 0.42) / (lobes + 0.6)
        outline += np.float32(size) * np.cos(lobes * angle + np.float32(phase))
    return 1 - np.hypot(x, y) / (0.62 * (1 + 0.42 * np.tanh(1.8 * outline)))


def _dome() -> Floats:
    """1 in the middle, 0 on a circle within the canvas, negative beyond."""
    x, y = _plane()
    return 1 - 1.3 * (x * x + y * y)


def _plane() -> tuple[Floats, Floats]:
    """x and y of each pixel, -1..1."""
    at = (np.arange(SIDE, dtype=np.float32) + 0.5) / SIDE * 2 - 1
    x, y = np.meshgrid(at, at)
    return x, y


def _edge(body: Floats, softness: float) -> Floats:
    """Opacity: 0 below 0, rising smoothly to 1 at ``softness``."""
    t = np.clip(body / softness, 0, 1)
    return t * t * (3 - 2 * t)


def _noise(rng: np.random.Generator, cells: tuple[int, ...], fade: float) -> Floats:
    """Smooth noise of mean 0 and deviation about 1: a sum of ever finer and weaker grids."""
    total, weight, squares = np.zeros((SIDE, SIDE), np.float32), 1.0, 0.0
    for n in cells:
        grid = rng.standard_normal((n, n), np.float32)
        total += weight * cv2.resize(grid, (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
        squares += weight * weight
        weight *= fade
    return total / np.float32(0.75 * np.sqrt(squares))


def _coloured(level: Floats, palette: npt.NDArray[np.float32]) -> Floats:
    """H x W x 3: ``level`` (0..1) looked up in a palette, in between by straight lines."""
    at = np.clip(level, 0, 1) * (len(palette) - 1)
    steps = np.arange(len(palette))
    return np.stack([np.interp(at, steps, palette[:, c]) for c in range(3)], axis=2).astype(
        np.float32
    )
