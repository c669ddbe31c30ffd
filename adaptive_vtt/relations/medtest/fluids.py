"""Drawn stool and blood: noise shaped into pieces, coloured by their depth, lit as wet."""

from functools import cache

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
    body = _ran_together(rng, arms=(4, 7), width=(18, 32), steps=(2, 5))
    depth = _depth(rng, body, 20)
    level = 0.55 + 0.11 * _noise(rng, (4, 9, 27), 0.7) - 0.25 * depth
    alpha = _edge(body, 0.4) * (0.66 + 0.3 * depth)
    height = 0.45 * np.tanh(2 * depth) + 0.05 * _noise(rng, (5, 9), 0.6)
    colour = _coloured(level, _LIQUID)
    return _lit("liquid", colour, alpha, height, relief=0.4, wet=0.5, casts=0, film=0.25)


def _crumbs(rng: np.random.Generator) -> Cutout:
    body = _noise(rng, (11, 19), 0.6) + np.minimum(0.9 * _dome() - 1.1, 12 * _dome() - 0.4)
    level = 0.42 + 0.16 * _noise(rng, (8, 16, 40), 0.7)
    height = 0.9 * np.sqrt(np.clip(body, 0, 1)) + 0.04 * _noise(rng, (24,), 1)
    alpha = 0.95 * _edge(body, 0.25)
    return _lit("crumbs", _coloured(level, _STOOL), alpha, height, relief=0.6, wet=0.3, casts=0.3)


STOOLS = {"lump": _lump, "liquid": _liquid, "crumbs": _crumbs}


class DrawnBlood:
    """Pools, and rivulets that run one way: a film that darkens with its depth."""

    def cutout(self, rng: np.random.Generator) -> Cutout:
        kind = str(rng.choice(["pool", "streaks"]))
        if kind == "pool":
            body = _ran_together(rng, arms=(4, 7), width=(15, 30), steps=(2, 7))
        else:
            body = _rivulets(rng)
        depth = _depth(rng, body, 22 if kind == "pool" else 11)
        alpha = _edge(body, 0.35) * (0.6 + 0.38 * np.clip(2.2 * depth, 0, 1))
        ripple = _noise(rng, (4, 7), 0.6)
        colour = _coloured(0.3 + 0.6 * depth + 0.05 * ripple, _BLOOD)
        height = 0.5 * np.tanh(2.5 * depth) + 0.05 * ripple
        return _lit(kind, colour, alpha, height, relief=0.35, wet=0.6, casts=0, film=0.9)


Range = tuple[int, int]


def _ran_together(rng: np.random.Generator, arms: Range, width: Range, steps: Range) -> Floats:
    """A puddle: drops along a few winding ways from the middle, run together.

    0 on the outline, up to about 1/2 within; rounded, as surface tension has it, with a few
    drops beside it.
    """
    canvas = np.zeros((SIDE, SIDE), np.uint8)
    for _ in range(int(rng.integers(*arms))):
        start = SIDE / 2 + rng.normal(0, 14, 2)
        count = int(rng.integers(*steps))
        _drops(canvas, rng, start, rng.uniform(0, 2 * np.pi), rng.uniform(*width), count, 0.4)
    for x, y, radius in rng.uniform((-80, -80, 2), (80, 80, 6), (int(rng.integers(1, 5)), 3)):
        if np.hypot(x, y) < 85:
            cv2.circle(canvas, (round(SIDE / 2 + x), round(SIDE / 2 + y)), round(radius), 255, -1)
    return _melted(rng, canvas, 8.0, 10.0)


def _rivulets(rng: np.random.Generator) -> Floats:
    """One to three threads that wind down from about one place, merge, and end in a drop."""
    canvas = np.zeros((SIDE, SIDE), np.uint8)
    start = SIDE / 2 + np.array([-58.0, rng.normal(0, 8)])
    for _ in range(int(rng.integers(1, 4))):
        begin = start + rng.normal(0, (5, 8))
        count = int(rng.integers(28, 52))
        end = _drops(canvas, rng, begin, rng.normal(0, 0.2), rng.uniform(5, 9), count, 0.13)
        cv2.circle(canvas, (round(end[0]), round(end[1])), round(rng.uniform(5, 9)), 255, -1)
    return _melted(rng, canvas, 3.2, 4.0)


def _drops(
    canvas: npt.NDArray[np.uint8],
    rng: np.random.Generator,
    at: npt.NDArray[np.float64],
    heading: float,
    radius: float,
    count: int,
    winding: float,
) -> npt.NDArray[np.float64]:
    """Overlapping drops along a winding way that stays well within the canvas; where it ends."""
    smallest, largest = 0.55 * radius, 1.5 * radius
    for turn, growth in zip(rng.normal(0, winding, count), rng.normal(0, 0.2, count), strict=True):
        cv2.circle(canvas, (round(at[0]), round(at[1])), max(2, round(radius)), 255, -1)
        heading += turn
        ahead = at + 0.75 * radius * np.array([np.cos(heading), np.sin(heading)])
        if np.hypot(*(ahead - SIDE / 2)) > 0.4 * SIDE - radius:
            break
        at, radius = ahead, float(np.clip(radius * np.exp(growth), smallest, largest))
    return at


def _melted(
    rng: np.random.Generator, canvas: npt.NDArray[np.uint8], blur: float, bent: float
) -> Floats:
    """Drops run together: blurred, bent by up to some ``bent`` pixels, and cut off anew."""
    x, y = np.meshgrid(*(np.arange(SIDE, dtype=np.float32),) * 2)
    x += np.float32(bent) * _noise(rng, (4, 9), 0.6)
    y += np.float32(bent) * _noise(rng, (4, 9), 0.6)
    soft = cv2.GaussianBlur(canvas, (0, 0), blur)
    soft = cv2.remap(soft, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    return soft.astype(np.float32) / 255 - np.float32(0.42) - 0.05 * _noise(rng, (6,), 1)


def _depth(rng: np.random.Generator, body: Floats, reach: float) -> Floats:
    """Depth 0..1 of a puddle: grows with the distance from its outline, in ``reach`` pixels."""
    inside = cv2.distanceTransform((body > 0).view(np.uint8), cv2.DIST_L2, 5)
    deep = 1 - np.exp(-cv2.GaussianBlur(inside, (0, 0), 2.0) / np.float32(reach))
    return np.clip(deep * (1 + 0.18 * _noise(rng, (4, 8), 0.6)), 0, 1)


def _lit(
    name: str,
    colour: Floats,
    alpha: Floats,
    height: Floats,
    *,
    relief: float,
    wet: float,
    casts: float,
    film: float = 0.0,
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
        film=film,
        reflects=0.2,
    )


def _blob(rng: np.random.Generator) -> Floats:
    """1 in the middle, 0 on a lobed outline that stays within the canvas, negative beyond."""
    x, y = _plane()
    angle, outline = np.arctan2(y, x), np.zeros_like(x)
    for lobes in (1, 2, 3, 4):
        phase, size = rng.uniform(0, 2 * np.pi), rng.normal(0, 0.42) / (lobes + 0.6)
        outline += np.float32(size) * np.cos(lobes * angle + np.float32(phase))
    return 1 - np.hypot(x, y) / (0.62 * (1 + 0.42 * np.tanh(1.8 * outline)))


@cache
def _dome() -> Floats:
    """1 in the middle, 0 on a circle within the canvas, negative beyond."""
    x, y = _plane()
    dome = 1 - 1.3 * (x * x + y * y)
    dome.flags.writeable = False
    return dome


@cache
def _plane() -> tuple[Floats, Floats]:
    """x and y of each pixel, -1..1."""
    at = (np.arange(SIDE, dtype=np.float32) + 0.5) / SIDE * 2 - 1
    x, y = np.meshgrid(at, at)
    x.flags.writeable = y.flags.writeable = False
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
