"""Draw a phantom frame: albedo times light, plus reflections, and then the instrument and the text.

Each object is drawn onto the canvas by a function that returns its mask. As in the scene, lengths
are shares of the frame's side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from adaptive_vtt.types import Box, Image, Mask, around
from adaptive_vtt.utils.random_streams import generator

from .phantom_scene import Fold, Instrument, Patch, Polyp, Scene

Floats = npt.NDArray[np.float32]


@dataclass
class Canvas:
    """An unfinished frame, S x S, whose picture is colour x light + reflections."""

    albedo: Floats  # S x S x 3, 0..1
    light: Floats
    shine: Floats

    @property
    def size(self) -> int:
        return len(self.light)


def noise(rng: np.random.Generator, cells: int, shape: tuple[int, ...]) -> Floats:
    """Return smooth noise (H x W) of about unit variance, with ``cells`` bumps along either side.

    Its grid does not depend on the shape, so the noise looks the same at every size.
    """
    grid = rng.standard_normal((cells, cells), dtype=np.float32)
    return cv2.resize(grid, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)


Point = npt.NDArray[np.float64]

# -- things --------------------------------------------------------------------------------

_TINT = {"pink": (1.0, 0.82, 0.92), "red": (0.92, 0.55, 0.58), "pale pink": (1.08, 1.30, 1.30)}
"""Polyp colours, as factors on the mucosa's at full contrast."""
_DOME = {"is": 1.0, "ip": 1.15, "iia": 0.4}
"""Paris type -> height of a polyp, as a factor."""
_SHEATHS = np.array([[0.25, 0.42, 0.75], [0.85, 0.85, 0.82], [0.16, 0.16, 0.18]], np.float32)
"""Blue, white and black."""
_METAL = np.array([0.72, 0.73, 0.75], np.float32)


class _Window(NamedTuple):
    """A square part of the canvas, with its pixels' coordinates relative to a centre."""

    rows: slice
    columns: slice
    x: Floats
    y: Floats

    @property
    def at(self) -> tuple[slice, slice]:
        return self.rows, self.columns


def _window(size: int, x: float, y: float, reach: float) -> _Window:
    def span(centre: float) -> tuple[slice, Floats]:
        low, high = int((centre - reach) * size), int((centre + reach) * size) + 2
        low, high = max(low, 0), min(high, size)
        return slice(low, high), ((np.arange(low, high) + 0.5) / size - centre).astype(np.float32)

    (columns, across), (rows, along) = span(x), span(y)
    return _Window(rows, columns, across[None, :], along[:, None])


def _turned(window: _Window, angle: float) -> tuple[Floats, Floats]:
    c, s = np.float32(np.cos(angle)), np.float32(np.sin(angle))
    return c * window.x + s * window.y, c * window.y - s * window.x


def _outline(
    window: _Window, patch: Patch | Polyp, rng: np.random.Generator, rough: float
) -> Floats:
    """Return the distance from the centre, divided by that of the wavy outline.

    ``rough`` scales the waves, which deviate by at most 1.25 times as much.
    """
    u, v = _turned(window, patch.angle)
    v = v / np.float32(patch.aspect)
    away = np.sqrt(u**2 + v**2) + np.float32(1e-6)
    turn = (u + np.complex64(1j) * v) / away
    wave = np.zeros(away.shape, np.float32)
    for order in (2, 3, 5):
        swing = rough * rng.normal(0, 2 / order**2) * np.exp(1j * rng.uniform(0, 2 * np.pi))
        wave += (turn**order * swing).real
    wave = np.clip(wave, -1.25 * rough, 1.25 * rough)
    return (away / (patch.radius * (1 + wave))).astype(np.float32)


def draw_polyp(
    canvas: Canvas, polyp: Polyp, light: tuple[float, float], rng: np.random.Generator
) -> Mask:
    """Draw a lit dome with a soft shadow: on a stalk for the type "ip", and low for "iia"."""
    size = canvas.size
    window = _window(size, polyp.x, polyp.y, polyp.reach + 0.9 * polyp.radius)
    away = _outline(window, polyp, rng, 0.16)
    bumps = noise(rng, 11, away.shape) + 0.7 * noise(rng, 26, away.shape)
    soft = np.float32(polyp.radius * size / 2)
    inside = np.clip((1 - away) * soft + 0.5, 0, 1)
    height = np.sqrt(np.clip(1 - away**2, 0, 1)) + 0.045 * bumps * inside
    shape = inside
    if polyp.paris == "ip":
        stalk, round_ = _stalk(window, polyp, size)
        height = np.where(away < 1, height, 0.5 * round_)
        shape = np.maximum(inside, stalk)
    _shade(canvas, window, polyp, light, shape, height * polyp.radius, bumps)
    mask = np.zeros((size, size), bool)
    _mark(mask, window, shape > 0.5, polyp)
    return mask


def _mark(mask: Mask, window: _Window, cover: Mask, thing: Patch | Polyp) -> None:
    """Add ``cover`` and the centre's pixel to the mask, so that no object has an empty one."""
    mask[window.at] |= cover
    mask[int(thing.y * len(mask)), int(thing.x * len(mask))] = True


def _stalk(window: _Window, polyp: Polyp, size: int) -> tuple[Floats, Floats]:
    """Return the stalk's cover (0..1) and its roundness across, from the head outwards."""
    u, v = _turned(window, polyp.angle + 0.7)
    length, half = polyp.radius * 2.0, polyp.radius * 0.36
    v = v + 0.12 * polyp.radius * np.sin(u / polyp.radius * 1.8)
    half = half * (1 + 0.5 * np.clip(u / length, 0, 1) ** 3)
    cover = np.clip((half - np.abs(v)) * size / 2 + 0.5, 0, 1)
    cover = cover * np.clip((length - u) / (0.35 * length), 0, 1) * (u > 0)
    return cover.astype(np.float32), np.sqrt(np.clip(1 - (v / half) ** 2, 0, 1))


def _shade(
    canvas: Canvas,
    window: _Window,
    polyp: Polyp,
    light: tuple[float, float],
    shape: Floats,
    height: Floats,
    bumps: Floats,
) -> None:
    """Change the canvas's light, colour and reflections at the polyp and near it."""
    at, strength, dome = window.at, polyp.contrast, _DOME[polyp.paris]
    pixels = polyp.radius * canvas.size
    height = cv2.GaussianBlur(height * dome, (0, 0), 0.1 * pixels + 0.3)
    slope_y, slope_x = np.gradient(height * canvas.size)
    steep = np.sqrt(1 + slope_x**2 + slope_y**2)
    facing = (1 - slope_x * light[0] - slope_y * light[1]) / steep
    lit = 1 + strength * (np.clip(facing, 0.1, 1.5) - 0.82)

    moved = np.array([[1, 0, -light[0] * pixels / 2], [0, 1, -light[1] * pixels / 2]])
    shadow = cv2.warpAffine(shape, moved, shape.shape[::-1])
    crease = cv2.GaussianBlur(shape, (0, 0), 0.07 * pixels + 0.3)
    shadow = cv2.GaussianBlur(shadow, (0, 0), 0.15 * pixels + 0.3)
    shadow = np.maximum(shadow, crease) * (1 - shape)
    wall = canvas.light[at]
    body = (0.25 * wall + 0.75 * float(np.median(wall))) * lit
    canvas.light[at] = wall * (1 - 0.65 * strength * dome * shadow) * (1 - shape) + body * shape

    tint = 1 + strength * (np.array(_TINT[polyp.colour], np.float32) - 1)
    own = np.median(canvas.albedo[at], axis=(0, 1)) * tint * (1 + 0.05 * bumps[:, :, None])
    cover = (shape * (0.5 + 0.5 * strength))[:, :, None]
    canvas.albedo[at] += cover * (own - canvas.albedo[at])

    half = np.array([light[0], light[1], 2.0]) / np.linalg.norm([light[0], light[1], 2.0])
    mirror = (half[2] - slope_x * half[0] - slope_y * half[1]) / steep + 0.012 * bumps
    spot = np.clip((mirror - 0.989) * 130, 0, 1) * (shape > 0.6) * min(1.0, dome + 0.1)
    canvas.shine[at] = canvas.shine[at] * (1 - shape) + spot * strength


def draw_blood(canvas: Canvas, patches: Sequence[Patch], rng: np.random.Generator) -> Mask:
    """Draw dark red pools that shine, and through which the wall's relief is visible."""
    mask = np.zeros((canvas.size, canvas.size), bool)
    for patch in patches:
        window = _window(canvas.size, patch.x, patch.y, patch.radius * 1.9)
        at = window.at
        away = _outline(window, patch, rng, 0.35)
        away += 0.13 * np.abs(noise(rng, 10, away.shape)) * np.clip(away, 0, 1)
        cover = np.clip((1 - away) * 4, 0, 1)
        deep = (0.75 + 0.25 * np.clip(away, 0, 1))[:, :, None]
        colour = np.array([0.55, 0.05, 0.045], np.float32) * deep
        canvas.albedo[at] += (0.9 * cover)[:, :, None] * (colour - canvas.albedo[at])
        gleam = np.clip((noise(rng, 16, away.shape) - 1.9) * 4, 0, 1)
        canvas.shine[at] = np.maximum(canvas.shine[at] * (1 - cover), 0.8 * gleam * (cover > 0.9))
        _mark(mask, window, cover > 0.4, patch)
    return mask


def draw_stool(canvas: Canvas, patches: Sequence[Patch], rng: np.random.Generator) -> Mask:
    """Draw yellow to brown residue with a lumpy, lit surface and a thin shadow."""
    size = canvas.size
    mask = np.zeros((size, size), bool)
    brown = np.array(((0.50, 0.31, 0.12), (0.70, 0.50, 0.18))[int(rng.integers(2))], np.float32)
    for patch in patches:
        window = _window(size, patch.x, patch.y, patch.radius * 2)
        at = window.at
        away = _outline(window, patch, rng, 0.4)
        lumps = noise(rng, 6, away.shape) + 0.5 * noise(rng, 14, away.shape)
        away += 0.08 * np.abs(lumps) * np.clip(away, 0, 1)
        cover = np.clip((1 - away) * (patch.radius * size / 2) + 0.5, 0, 1)
        height = np.sqrt(np.clip(1 - away**2, 0, 1)) + 0.12 * lumps
        lit = 1 + 0.22 * (np.roll(height, -1, axis=0) - height) * patch.radius * size / 2
        canvas.light[at] *= 1 - 0.35 * np.clip(1.25 - away, 0, 0.25) * 4 * (1 - cover)
        canvas.light[at] *= 1 + cover * (np.clip(lit, 0.55, 1.3) - 1)
        tone = (1 + 0.08 * lumps)[:, :, None] * brown
        canvas.albedo[at] += (0.95 * cover)[:, :, None] * (tone - canvas.albedo[at])
        canvas.shine[at] *= 1 - cover
        _mark(mask, window, cover > 0.5, patch)
    return mask


def draw_instrument(picture: Floats, tool: Instrument | None) -> Mask:
    """Draw a sheath, shaded as a cylinder, with a metal end, and jaws, a loop or a needle."""
    mask = np.zeros(picture.shape[:2], bool)
    if tool is None:
        return mask
    start, end = np.array([tool.x0, tool.y0]), np.array([tool.x1, tool.y1])
    way = (end - start) / np.linalg.norm(end - start) * tool.width
    side = np.array([-way[1], way[0]])
    mask |= _rod(picture, start, end - 0.9 * way, tool.width / 2, _SHEATHS[tool.colour])
    mask |= _rod(picture, end - 0.9 * way, end, 0.4 * tool.width, _METAL)
    if tool.kind == "polyp snare":
        turn = np.linspace(0, 2 * np.pi, 40)[:, None]
        wide = 1.6 * tool.opening
        loop = end + 1.5 * way * (1 - np.cos(turn)) + wide * side * np.sin(turn)
        return mask | _wire(picture, loop, 0.1 * tool.width, _METAL)
    if tool.kind == "injection needle":
        return mask | _rod(picture, end, end + 1.8 * way, 0.11 * tool.width, _METAL)
    for sign in (-1, 1):
        jaw = end + 1.3 * way + sign * tool.opening * side
        mask |= _rod(picture, end, jaw, 0.21 * tool.width, _METAL)
        mask |= _rod(picture, jaw, jaw + 0.5 * way - sign * 0.2 * side, 0.15 * tool.width, _METAL)
    return mask


def _rod(picture: Floats, start: Point, end: Point, half: float, colour: Floats) -> Mask:
    """Draw a straight cylinder that is lit along its upper side."""
    size = len(picture)
    centre, way = (start + end) / 2, end - start
    length = float(np.linalg.norm(way))
    window = _window(size, centre[0], centre[1], float(np.abs(way).max()) / 2 + half)
    u, v = _turned(window, float(np.arctan2(way[1], way[0])))
    across = v / half
    outside = np.maximum(np.abs(v) - half, np.abs(u) - length / 2)
    cover = np.clip(0.5 - outside * size, 0, 1)
    tone = 0.25 + 0.65 * np.sqrt(np.clip(1 - across**2, 0, 1))
    upper = np.sign(way[0]) or 1.0  # the lamp stands above
    gleam = 0.5 * np.exp(-30 * (upper * across + 0.35) ** 2)
    painted = colour * tone[:, :, None] + gleam[:, :, None]
    picture[window.at] += cover[:, :, None] * (painted - picture[window.at])
    mask = np.zeros((size, size), bool)
    mask[window.at] = cover > 0.5
    return mask


def _wire(picture: Floats, points: Point, width: float, colour: Floats) -> Mask:
    """Draw a thin line through points."""
    size = len(picture)
    layer = np.zeros((size, size), np.uint8)
    pixels = np.rint(points * size * 16).astype(np.int32)
    cv2.polylines(layer, [pixels], False, 255, max(1, round(width * size)), cv2.LINE_AA, 4)
    cover = layer.astype(np.float32)[:, :, None] / 255
    picture += cover * (colour - picture)
    return layer > 127


def draw_text(image: Image, lines: Sequence[str]) -> Mask:
    """Draw lines of overlay text at the upper left."""
    size = len(image)
    layer = np.zeros((size, size), np.uint8)
    for row, line in enumerate(lines):
        place = (round(0.012 * size), round((0.035 + 0.036 * row) * size))
        thick = max(1, round(size / 500))
        cv2.putText(
            layer, line, place, cv2.FONT_HERSHEY_SIMPLEX, size / 900, 255, thick, cv2.LINE_AA
        )
    if lines:
        np.maximum(image, (0.9 * layer).astype(np.uint8)[:, :, None], out=image)
    return layer > 127


# -- the frame -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """A frame.

    Attributes:
        image: The frame, S x S x 3.
        masks: Concept -> its visible pixels, S x S.
        polyps: Visible pixels of each polyp, S x S.
    """

    image: Image
    masks: dict[str, Mask]
    polyps: tuple[Mask, ...]

    @property
    def boxes(self) -> tuple[tuple[int, int, int, int], ...]:
        """The box of each polyp: left, top, right, bottom (the last two exclusive)."""
        return tuple(map(around, self.polyps))

    @property
    def labelled(self) -> tuple[Box, ...]:
        """The box of each polyp, and for each other concept one box around all its pixels."""
        others = [Box(c, *around(m)) for c, m in self.masks.items() if c != "polyp" and m.any()]
        return (*(Box("polyp", *around) for around in self.boxes), *others)


def draw(scene: Scene, size: int) -> Drawing:
    """Return the frame of ``scene``, ``size`` x ``size`` x 3."""
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
    """Return the pixels' x (1, size) and y (size, 1), in shares of the side."""
    at = ((np.arange(size) + 0.5) / size).astype(np.float32)
    return at[None, :], at[:, None]


def _mucosa(scene: Scene, size: int, rng: np.random.Generator) -> Canvas:
    """Draw the bare wall: its colour, vessels, folds, and the light in the tube."""
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
    """Return factors of the light (dark behind the rim, bright before it), and the bright rim."""
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
    """Return the wall's colour.

    It varies in red, is deeper far from the lens, and has vessels and, by bad preparation, stains.
    """
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
    """Return branching lines, 0..1, of nine trees; each branch has three thinner ones."""
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
    """Return the lamp's reflections, which are small and hard-edged, on rims and near walls."""
    field = relief + 0.5 * noise(rng, 34, (size, size)) + 0.45 * tube
    return np.clip((field - (2.25 - 0.65 * gloss)) * 4, 0, 1)


def _expose(canvas: Canvas, scene: Scene, rng: np.random.Generator) -> Floats:
    """Combine light, colour and reflections, with the lens's softness and the sensor's noise."""
    size = canvas.size
    lit = np.clip(canvas.light, 0.02, 1.25)
    picture = canvas.albedo * lit[:, :, None]
    picture += (1.02 - picture) * (0.95 * canvas.shine)[:, :, None]
    picture = cv2.GaussianBlur(picture, (0, 0), 0.0022 * size + 0.15)
    picture += (0.006 * noise(rng, 160, (size, size)))[:, :, None]
    return picture


def _view(scene: Scene, size: int) -> Floats:
    """Return 1 where the tissue is visible and 0 in the black frame, with a soft edge."""
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
