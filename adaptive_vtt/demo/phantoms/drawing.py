"""Draws a scene: albedo times light, plus reflections, then what lies on top.

Lengths are shares of the frame's side, in the code as in the scene.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from ...types import Box, Image, Mask
from ...utils.random_streams import generator
from .canvas import Canvas, Floats, noise
from .objects import draw_blood, draw_instrument, draw_polyp, draw_stool, draw_text
from .scene import Fold, Scene

_STAIN = (0.5, 0.35, 0.15, 0.0)
"""How yellow the wall is, by preparation level."""


@dataclass(frozen=True)
class Drawing:
    """A frame and where things are to be seen in it; ``polyps`` has one mask for each polyp."""

    image: Image
    masks: dict[str, Mask]
    polyps: tuple[Mask, ...]

    @property
    def boxes(self) -> tuple[tuple[int, int, int, int], ...]:
        """Around each polyp: (x1, y1, x2, y2), the last two exclusive."""
        return tuple(map(_around, self.polyps))

    @property
    def labelled(self) -> tuple[Box, ...]:
        """Around each polyp, and around all that is seen of each other concept."""
        others = [Box(c, *_around(m)) for c, m in self.masks.items() if c != "polyp" and m.any()]
        return (*(Box("polyp", *around) for around in self.boxes), *others)


def _around(mask: Mask) -> tuple[int, int, int, int]:
    x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return x, y, x + width, y + height


def draw(scene: Scene, size: int) -> Drawing:
    """The frame of ``scene``, ``size`` x ``size`` x 3."""
    rng = generator(scene.seed, "phantom drawing", scene.index)
    canvas = _mucosa(scene, size, rng)
    view = _view(scene, size)
    polyps = [draw_polyp(canvas, polyp, scene.light, rng) for polyp in scene.polyps]
    blood = draw_blood(canvas, scene.blood, rng)
    stool = draw_stool(canvas, scene.stool, rng)
    picture = _expose(canvas, scene, rng)
    tool = draw_instrument(picture, scene.instrument)
    picture *= view[:, :, None]
    image = np.clip(picture * 255, 0, 255).astype(np.uint8)
    text = draw_text(image, scene.text)
    seen = (view > 0.5) & ~tool & ~stool
    masks = {
        "polyp": np.logical_or.reduce([np.zeros_like(tool), *polyps]) & seen,
        "instrument": tool & (view > 0.5),
        "stool": stool & (view > 0.5) & ~tool,
        "blood": blood & seen,
        "text": text,
    }
    return Drawing(image, masks, tuple(mask & seen for mask in polyps))


def _places(size: int) -> tuple[Floats, Floats]:
    """The pixels' x (1, size) and y (size, 1), in shares of the side."""
    at = ((np.arange(size) + 0.5) / size).astype(np.float32)
    return at[None, :], at[:, None]


def _mucosa(scene: Scene, size: int, rng: np.random.Generator) -> Canvas:
    """The bare wall: colour, vessels, the tube's light and its folds."""
    coarse = max(size // 2, 48)
    x, y = _places(coarse)
    x = x + 0.02 * noise(rng, 6, (coarse, coarse))
    y = y + 0.02 * noise(rng, 6, (coarse, coarse))
    away = np.hypot(x - scene.lumen[0], y - scene.lumen[1])
    tube = away**2 / (away**2 + (1.3 * scene.lumen_radius) ** 2)
    near = 1.12 - 0.55 * ((x - 0.5) ** 2 + (y - 0.5) ** 2) / 0.5
    light = (0.05 + tube) * near
    rims = np.zeros_like(light)
    for fold in scene.folds:
        shade, rim = _fold(fold, x, y)
        light *= shade
        rims = np.maximum(rims, rim)
    light, rims, tube = (
        cv2.resize(each, (size, size), interpolation=cv2.INTER_LINEAR)
        for each in (light, rims, tube)
    )
    relief = 0.6 * noise(rng, 14, (size, size)) + 0.25 * noise(rng, 48, (size, size))
    light *= 1 + 0.05 * relief
    shine = _shine(rng, size, rims + relief * 0.35, tube, scene.gloss)
    return Canvas(_colour(scene, size, tube, rng), light, shine)


def _fold(fold: Fold, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Factors on the light (dark behind the rim, lit before it), and the lit rim itself."""
    across, along = x - np.float32(fold.x), y - np.float32(fold.y)
    away = np.sqrt(across**2 + along**2) + np.float32(1e-6)
    c, s = across / away, along / away
    c2, s2 = c * c - s * s, 2 * c * s
    two, three = fold.waves
    waves = 1 + two[0] * c2 + two[1] * s2 + three[0] * (c * c2 - s * s2)
    waves += three[1] * (s * c2 + c * s2)
    before = away / (fold.radius * waves) - 1
    turned = c * np.float32(np.cos(fold.facing)) + s * np.float32(np.sin(fold.facing))
    there = np.clip(1.3 * (fold.extent + (1 - fold.extent) * turned), 0, 1)
    there *= np.exp(-6 * np.abs(before))
    lit = np.clip(0.5 + before * (20 * max(fold.radius, 0.15)), 0, 1)
    shade = 1 + there * ((0.35 + fold.depth) * lit - fold.depth)
    return shade, there * lit


def _colour(scene: Scene, size: int, tube: Floats, rng: np.random.Generator) -> Floats:
    """Redder in places, deeper with depth, crossed by vessels, stained when badly prepared."""
    red = 0.6 * noise(rng, 5, (size, size)) + 0.4 * noise(rng, 9, (size, size))
    ink = np.clip(1 - 0.10 * red, 0.6, 1.3) * (0.82 + 0.18 * tube)
    vessels = _vessels(size, rng) * (scene.vessels * (0.3 + 0.7 * tube))
    stain = (
        np.clip(0.5 + 0.5 * noise(rng, 7, (size, size)), 0, 1)
        * (0.5, 0.35, 0.15, 0)[scene.preparation]
    )
    albedo = np.empty((size, size, 3), np.float32)
    r, g, b = scene.mucosa
    albedo[..., 0] = r * (1 - 0.22 * vessels) * (1 - 0.15 * stain)
    albedo[..., 1] = g * ink * (1 - 0.55 * vessels) * (1 - 0.05 * stain)
    albedo[..., 2] = b * ink * (1 - 0.50 * vessels) * (1 - 0.7 * stain)
    return albedo


def _vessels(size: int, rng: np.random.Generator) -> Floats:
    """Branching lines, 0..1: nine trees wander, and each branch has three thinner ones."""
    layer = np.zeros((size, size), np.uint8)
    starts, headings = rng.random((9, 2)), rng.uniform(0, 2 * np.pi, 9)
    for width in (0.007, 0.0042, 0.0025):
        turns = headings[:, None] + np.cumsum(rng.normal(0, 0.28, (len(starts), 16)), axis=1)
        steps = 0.022 * np.stack([np.cos(turns), np.sin(turns)], axis=2)
        points = starts[:, None] + np.cumsum(steps, axis=1)
        thick = max(1, round(width * size))
        ink = 255 * min(1.0, 0.35 + 0.5 * width * size / thick)
        pixels = np.rint(points * size * 16).astype(np.int32)
        cv2.polylines(layer, list(pixels), False, ink, thick, cv2.LINE_AA, 4)
        tree, at = np.repeat(np.arange(len(starts)), 3), rng.integers(2, 16, 3 * len(starts))
        starts = points[tree, at]
        headings = turns[tree, at] + rng.choice([-1, 1], len(at)) * rng.uniform(0.4, 1, len(at))
    return cv2.GaussianBlur(layer, (0, 0), 0.0022 * size + 0.2).astype(np.float32) / 255


def _shine(
    rng: np.random.Generator, size: int, relief: Floats, tube: Floats, gloss: float
) -> Floats:
    """Reflections of the lamp: small, hard-edged, on rims and near walls."""
    field = relief + 0.5 * noise(rng, 34, (size, size)) + 0.45 * tube
    return np.clip((field - (2.25 - 0.65 * gloss)) * 4, 0, 1)


def _expose(canvas: Canvas, scene: Scene, rng: np.random.Generator) -> Floats:
    """Light onto colour, reflections, the lens's softness and the sensor's noise."""
    size = canvas.size
    lit = np.clip(canvas.light, 0.02, 1.25)
    picture = canvas.albedo * lit[:, :, None]
    picture += (1.02 - picture) * (0.95 * canvas.shine)[:, :, None]
    picture = cv2.GaussianBlur(picture, (0, 0), 0.0022 * size + 0.15)
    picture += (0.006 * noise(rng, 160, (size, size)))[:, :, None]
    return picture


def _view(scene: Scene, size: int) -> Floats:
    """1 where the tissue is seen, 0 in the black frame, a soft edge between."""
    x, y = _places(size)
    across, along = np.abs(x - 0.5), np.abs(y - 0.5)
    if scene.frame == "circular":
        edge = np.maximum(np.hypot(across, along) - 0.49, np.maximum(across, along) - 0.475)
    elif scene.frame == "octagonal":
        edge = np.maximum(np.maximum(across, along) - 0.48, (across + along) * 0.7071 - 0.56)
    else:
        inner = np.hypot(np.maximum(across - 0.4, 0), np.maximum(along - 0.4, 0))
        edge = inner - 0.08
    if scene.corner is not None:
        side = x if scene.corner == "lower-left" else 1 - x
        edge = np.maximum(edge, np.minimum(0.22 - side, y - 0.8))
    return np.clip(0.5 - edge * size / 2, 0, 1).astype(np.float32)
