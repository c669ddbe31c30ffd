"""Sources of drawn cut-outs: stool, and instruments on their sheaths.

Stool is smooth noise, cut into pieces, coloured by its relief, and lit as a wet surface. Biopsy
forceps, polypectomy snare and clip are drawn along the x axis with the tip to the right, lit from
the camera. They mostly enter from below right, the working channel of a colonoscope.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ..base import Rng
from .cutouts import Cutout
from .scene import Floats

SIDE = 224
"""Side of the canvas of stool in pixels."""

_STOOL = np.array([(64, 36, 16), (120, 72, 32), (164, 110, 50), (198, 150, 80)], np.float32)
_LIQUID = np.array([(128, 78, 28), (164, 106, 44), (194, 138, 64), (214, 170, 104)], np.float32)
"""Colours of the relief from low to high."""


class DrawnStool:
    """Source of drawn stool: a solid lump, liquid, or scattered crumbs."""

    def cutout(self, rng: Rng) -> Cutout:
        kind = str(rng.choice(list(STOOLS), p=[0.4, 0.4, 0.2]))
        return STOOLS[kind](rng)


def _lump(rng: Rng) -> Cutout:
    body = _blob(rng)
    body += 0.06 * np.clip(1 - np.abs(body) * 2, 0, 1) * noise(rng, (12, 24), 0.6)
    height = 1.5 * np.sqrt(np.clip(body, 0, 1)) + 0.1 * noise(rng, (6, 11, 20), 0.6)
    level = 0.44 + 0.09 * noise(rng, (4, 8, 28), 0.6)
    alpha = 0.97 * edge(body, 0.12)
    return _lit("lump", _coloured(level, _STOOL), alpha, height, relief=0.7, wet=0.3, casts=0.35)


def _liquid(rng: Rng) -> Cutout:
    body = _puddle(rng)
    inside = cv2.distanceTransform((body > 0).view(np.uint8), cv2.DIST_L2, 5)
    # depth 0..1 grows with the distance from the outline in pixels
    deep = 1 - np.exp(-cv2.GaussianBlur(inside, (0, 0), 2.0) / np.float32(20))
    depth = np.clip(deep * (1 + 0.18 * noise(rng, (4, 8), 0.6)), 0, 1)
    level = 0.55 + 0.11 * noise(rng, (4, 9, 27), 0.7) - 0.25 * depth
    alpha = edge(body, 0.4) * (0.66 + 0.3 * depth)
    height = 0.45 * np.tanh(2 * depth) + 0.05 * noise(rng, (5, 9), 0.6)
    colour = _coloured(level, _LIQUID)
    return _lit("liquid", colour, alpha, height, relief=0.4, wet=0.5, casts=0, film=0.25)


def _crumbs(rng: Rng) -> Cutout:
    body = noise(rng, (11, 19), 0.6) + np.minimum(0.9 * _dome() - 1.1, 12 * _dome() - 0.4)
    level = 0.42 + 0.16 * noise(rng, (8, 16, 40), 0.7)
    height = 0.9 * np.sqrt(np.clip(body, 0, 1)) + 0.04 * noise(rng, (24,), 1)
    alpha = 0.95 * edge(body, 0.25)
    return _lit("crumbs", _coloured(level, _STOOL), alpha, height, relief=0.6, wet=0.3, casts=0.3)


STOOLS = {"lump": _lump, "liquid": _liquid, "crumbs": _crumbs}


def _puddle(rng: Rng) -> Floats:
    """Return a puddle of drops that merge, along winding paths from the middle.

    Values are 0 on its rounded outline, up to about 1/2 inside, and negative outside. A few drops
    lie around it.
    """
    canvas = np.zeros((SIDE, SIDE), np.uint8)
    for _ in range(int(rng.integers(4, 7))):
        start = SIDE / 2 + rng.normal(0, 14, 2)
        count = int(rng.integers(2, 5))
        _drops(canvas, rng, start, rng.uniform(0, 2 * np.pi), rng.uniform(18, 32), count)
    for x, y, radius in rng.uniform((-80, -80, 2), (80, 80, 6), (int(rng.integers(1, 5)), 3)):
        if np.hypot(x, y) < 85:
            cv2.circle(canvas, (round(SIDE / 2 + x), round(SIDE / 2 + y)), round(radius), 255, -1)
    # the outline is the level 0.42 of the blurred drops, displaced by about ten pixels
    columns, rows = np.meshgrid(*(np.arange(SIDE, dtype=np.float32),) * 2)
    columns += np.float32(10) * noise(rng, (4, 9), 0.6)
    rows += np.float32(10) * noise(rng, (4, 9), 0.6)
    soft = cv2.GaussianBlur(canvas, (0, 0), 8.0)
    soft = cv2.remap(soft, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT)
    return soft.astype(np.float32) / 255 - np.float32(0.42) - 0.05 * noise(rng, (6,), 1)


def _drops(
    canvas: npt.NDArray[np.uint8],
    rng: Rng,
    at: npt.NDArray[np.float64],
    heading: float,
    radius: float,
    count: int,
) -> None:
    """Draw overlapping drops along a winding path that stays well within the canvas."""
    smallest, largest = 0.55 * radius, 1.5 * radius
    for turn, growth in zip(rng.normal(0, 0.4, count), rng.normal(0, 0.2, count), strict=True):
        cv2.circle(canvas, (round(at[0]), round(at[1])), max(2, round(radius)), 255, -1)
        heading += turn
        ahead = at + 0.75 * radius * np.array([np.cos(heading), np.sin(heading)])
        if np.hypot(*(ahead - SIDE / 2)) > 0.4 * SIDE - radius:
            break
        at, radius = ahead, float(np.clip(radius * np.exp(growth), smallest, largest))


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
    """Return a piece in light from above left.

    Args:
        name: Name of the cut-out.
        colour: Colours (H, W, 3) on 0..255.
        alpha: Opacity (H, W) in 0..1.
        height: Relief (H, W); 1 is 30 pixels.
        relief: Strength of the shading.
        wet: Strength of the highlights.
        casts: See ``Cutout``.
        film: See ``Cutout``.
    """
    alpha = alpha * edge(_dome() + 0.25, 0.3)  # fades before the straight edges of the canvas
    lit = facing(cv2.GaussianBlur(height, (0, 0), 2.2) * 30)
    colour = colour * np.clip(1 + relief * (lit - 0.78), 0.35, 1.25)[:, :, None]
    shine = edge(lit - 0.955, 0.045) * wet * (alpha > 0.6)
    colour += cv2.GaussianBlur(shine, (0, 0), 1.0)[:, :, None] * (np.float32(245) - colour)
    patch = np.clip(colour, 0, 255).astype(np.uint8), alpha.astype(np.float32)
    place = (SIDE / 2, SIDE / 2), np.zeros((0, 2), np.float32)
    return Cutout(name, *patch, *place, brightness=0.75, casts=casts, film=film, reflects=0.2)


def facing(height: Floats) -> Floats:
    """Return the cosines (H, W) between a surface's normals and light from above left.

    Args:
        height: Height (H, W) of the surface in pixels.
    """
    slope_x, slope_y = cv2.Sobel(height, cv2.CV_32F, 1, 0), cv2.Sobel(height, cv2.CV_32F, 0, 1)
    steep = np.sqrt((slope_x**2 + slope_y**2) / 64 + 1)
    return ((0.38 * slope_x + 0.5 * slope_y) / 8 + 0.78) / steep


def _blob(rng: Rng) -> Floats:
    """Return 1 in the middle, 0 on a lobed outline within the canvas, negative values outside."""
    x, y = _plane()
    angle, outline = np.arctan2(y, x), np.zeros_like(x)
    for lobes in (1, 2, 3, 4):
        phase, size = rng.uniform(0, 2 * np.pi), rng.normal(0, 0.42) / (lobes + 0.6)
        outline += np.float32(size) * np.cos(lobes * angle + np.float32(phase))
    return 1 - np.hypot(x, y) / (0.62 * (1 + 0.42 * np.tanh(1.8 * outline)))


@cache
def _dome() -> Floats:
    """Return 1 in the middle, 0 on a circle within the canvas, negative values outside."""
    x, y = _plane()
    dome = 1 - 1.3 * (x * x + y * y)
    dome.flags.writeable = False
    return dome


@cache
def _plane() -> tuple[Floats, Floats]:
    at = (np.arange(SIDE, dtype=np.float32) + 0.5) / SIDE * 2 - 1
    x, y = np.meshgrid(at, at)
    x.flags.writeable = y.flags.writeable = False
    return x, y


def edge(body: Floats, softness: float) -> Floats:
    """Return the smoothstep of ``body``: 0 up to 0, rising smoothly to 1 at ``softness``."""
    t = np.clip(body / softness, 0, 1)
    return t * t * (3 - 2 * t)


def noise(
    rng: Rng, cells: tuple[int, ...], fade: float, shape: tuple[int, ...] = (SIDE, SIDE)
) -> Floats:
    """Return smooth noise (``shape``) with mean 0 and standard deviation about 1.

    Args:
        rng: Generator.
        cells: Sides of the grids of random numbers that are enlarged and summed.
        fade: Factor of the weight from one grid to the next.
        shape: Rows and columns of the noise.
    """
    total, weight, squares = np.zeros(shape, np.float32), 1.0, 0.0
    for n in cells:
        grid = rng.standard_normal((n, n), np.float32)
        total += weight * cv2.resize(grid, shape[::-1], interpolation=cv2.INTER_CUBIC)
        squares += weight * weight
        weight *= fade
    return total / np.float32(0.75 * np.sqrt(squares))


def _coloured(level: Floats, palette: npt.NDArray[np.float32]) -> Floats:
    """Return the colours (H, W, 3) of levels (H, W) in 0..1, by linear interpolation."""
    at = np.clip(level, 0, 1) * (len(palette) - 1)
    steps = np.arange(len(palette))
    return np.stack([np.interp(at, steps, palette[:, c]) for c in range(3)], axis=2).astype(
        np.float32
    )


# -- instruments ---------------------------------------------------------------------------

HEIGHT, WIDTH, END = 220, 520, 340
"""Size of the canvas of a tool, and column in which the sheath ends, in pixels."""

NEAR = 1.6
"""Thickness of the sheath at the left edge of the canvas, as a multiple of that at its end."""

HALFWAY = (1 + NEAR) / 2
"""Relative thickness of a tool that is as bright as the wall around it."""

CLOCK = (125.0, 40.0)
"""Direction from which tools enter, in degrees clockwise from 12 o'clock: mean and standard
deviation."""

SHEATHS = {
    "steel": (168, 170, 176), "blue": (62, 88, 128), "white": (190, 192, 196),
    "yellow": (188, 166, 104), "black": (62, 64, 70),
}  # fmt: skip
"""Colours of sheaths by name."""

_STEEL = np.array([178, 180, 186], np.float32)

Canvas = tuple[Floats, Floats]
"""Colour (H, W, 3) on 0..255, and opacity (H, W) in 0..1; both are changed in place."""


class DrawnTool:
    """Source of drawn tools."""

    def cutout(self, rng: Rng) -> Cutout:
        name = str(rng.choice(list(TOOLS)))
        sheath = str(rng.choice(list(SHEATHS)))
        half, bend = float(rng.uniform(20, 27)), float(rng.uniform(-30, 30))
        clock = float(rng.normal(*CLOCK))
        canvas = np.zeros((HEIGHT, WIDTH, 3), np.float32), np.zeros((HEIGHT, WIDTH), np.float32)
        # the head is drawn first, so that the sheath covers its base
        opening = TOOLS[name](canvas, half, rng)
        _sheath(canvas, half, bend, sheath, rng)
        canvas[0][...] *= _nearness(np.arange(WIDTH, dtype=np.float32))[:, None] / HALFWAY
        colour, alpha = _out_of_focus(canvas)
        grain = rng.normal(0, 2.5, (HEIGHT, WIDTH, 1)).astype(np.float32)
        angle = np.deg2rad(clock)
        draws = dict(clock=clock, sheath=sheath, half_width=half, bend=bend, opening=opening)
        return Cutout(
            name,
            np.clip(colour + grain, 0, 255).astype(np.uint8),
            alpha,
            anchor=(2.0, HEIGHT / 2 + bend),
            tail=np.argwhere(alpha[:, :3] > 0.05)[:, ::-1].astype(np.float32),
            position=(0.5 + 0.5 * float(np.sin(angle)), 0.5 - 0.5 * float(np.cos(angle))),
            turn=(clock + 90 + float(rng.normal(0, 10))) % 360,
            brightness=0.7,
            casts=0.55,
            reflects=0.25,
            draws=draws,
        )


def _out_of_focus(canvas: Canvas) -> Canvas:
    """Return the canvas, blurred near the camera, as the lens is focused on the tissue."""
    near = (np.clip(1 - np.arange(WIDTH, dtype=np.float32) / END, 0, 1) ** 1.5)[None]
    colour, alpha = (cv2.GaussianBlur(layer, (0, 0), 4.0) for layer in canvas)
    colour = canvas[0] + near[:, :, None] * (colour - canvas[0])
    return colour, canvas[1] + near * (alpha - canvas[1])


def _sheath(canvas: Canvas, half: float, bend: float, kind: str, rng: Rng) -> None:
    """Draw a bent wet cylinder that is thicker near the camera; steel sheaths are wound wires."""
    y, x = np.mgrid[:HEIGHT, : END + 1].astype(np.float32)
    along = x / END
    centre = HEIGHT / 2 + bend * (1 - along) ** 2
    radius = half * _nearness(x)
    across = (y - centre) / radius
    light = _cylinder(across)
    if kind == "steel":
        light *= 0.86 + 0.14 * np.sin((x + 0.35 * radius * across) * (2 * np.pi / 7))
    else:
        light *= 1 + 0.1 * cv2.GaussianBlur(rng.standard_normal(x.shape, np.float32), (0, 0), 6)
    wet = cv2.resize(rng.random((1, 14), np.float32), (END + 1, 1), interpolation=cv2.INTER_CUBIC)
    shine = _shine(across, -0.32, 0.1) * wet * (0.8 if kind == "steel" else 0.6)
    base = np.array(SHEATHS[kind], np.float32)
    ring = (x > END - 12) & (kind != "steel")  # a metal rim ends a plastic sheath
    colour = np.where(ring[:, :, None], _STEEL, base) * light[:, :, None]
    colour += shine[:, :, None] * (255 - colour)
    _lay(canvas, colour, np.clip((1 - np.abs(across)) * radius + 0.5, 0, 1), 0)


def _nearness(x: Floats) -> Floats:
    """Return the relative thickness and brightness of a tool in column ``x``.

    They are 1 at the end of the sheath and less beyond. Thickness falls with the distance from the
    camera, and the lamp's light with its square. With a gamma of about 2, grey levels then fall
    like the thickness.
    """
    return np.float32(NEAR) - np.float32((NEAR - 1) / END) * x


def _forceps(canvas: Canvas, half: float, rng: Rng) -> float:
    """Draw two hollow cups on a pivot and return their opening in degrees."""
    opening = float(rng.uniform(16, 34))
    x, y = _from_end()
    neck = 0.6 * half
    _lay(canvas, _metal(y / neck), np.clip(neck - np.abs(y) + 0.5, 0, 1) * (x < 30), END)
    for side in (-1, 1):
        _cup(canvas, half, side, np.deg2rad(opening))
    pivot = (END + 18, HEIGHT // 2)
    cv2.circle(canvas[0], pivot, round(0.3 * half), (66, 66, 70), -1, cv2.LINE_AA)
    cv2.circle(canvas[0], pivot, round(0.16 * half), (190, 190, 196), -1, cv2.LINE_AA)
    return opening


def _cup(canvas: Canvas, half: float, side: int, angle: float) -> None:
    """Draw a cup on its arm: half an ellipse that is open towards the other cup."""
    x, y = _from_end()
    sine, cosine = side * float(np.sin(angle)), float(np.cos(angle))
    # u runs along the opened cup from the pivot, v across it and outwards
    u = (x - 18) * cosine + y * sine
    v = side * (y * cosine - (x - 18) * sine)
    arm, length, depth = 1.0 * half, 2.5 * half, 0.95 * half
    stalk = np.clip(0.3 * half - np.abs(v) + 0.5, 0, 1) * (u > 0) * (u < arm + 0.5 * half)
    _lay(canvas, _metal(v / (0.3 * half)), stalk, END)
    # the outline: half an ellipse outwards, flat inwards
    along = (u - arm - length / 2) / (length / 2)
    bowl = np.sqrt(np.clip(1 - along * along, 0, 1)) * depth
    low = -0.28 * bowl
    over = np.clip(bowl - v + 0.5, 0, 1) * np.clip(v - low + 0.5, 0, 1) * (bowl > 1)
    # polished metal, dark in the hollow, with bright edges around it
    colour = _metal(np.clip(v / np.maximum(bowl, 1), -1, 1))
    inner = np.clip((0.22 * bowl - v) / 2 + 0.5, 0, 1) * (bowl > 0.3 * depth)
    colour *= 1 - 0.78 * inner[:, :, None]
    rim = np.exp(-(((v - 0.24 * bowl) / 1.6) ** 2)) + np.exp(-(((v - low - 1.5) / 1.4) ** 2))
    colour += 0.7 * np.minimum(rim, 1)[:, :, None] * (np.float32(235) - colour)
    _lay(canvas, colour, over, END)


def _from_end() -> tuple[Floats, Floats]:
    """Return x and y of the pixels right of the sheath, relative to the middle of its end."""
    rows, columns = np.arange(HEIGHT, dtype=np.float32), np.arange(WIDTH - END, dtype=np.float32)
    x, y = np.meshgrid(columns, rows - HEIGHT / 2)
    return x, y


def _snare(canvas: Canvas, half: float, rng: Rng) -> float:
    """Draw a loop of braided wire and return its relative opening, 0.5..1."""
    opening = float(rng.uniform(0.5, 1.0))
    angle = np.linspace(0, 2 * np.pi, 160)
    length, reach = 150.0, 62 * opening
    x = END - 6 + length * (1 - np.cos(angle)) / 2
    y = HEIGHT / 2 + reach * np.sin(angle) * np.sin(angle / 2) ** 0.8
    _wire(canvas, np.stack([x, y], axis=1), 0.27 * half, braided=True)
    return opening


def _clip(canvas: Canvas, half: float, rng: Rng) -> float:
    """Draw two flat prongs with inward hooks on a sleeve and return their opening in pixels."""
    opening = float(rng.uniform(24, 44))
    middle = HEIGHT / 2
    x, y = _from_end()
    sleeve = 0.7 * half
    shape = np.clip(sleeve - np.abs(y) + 0.5, 0, 1) * (x < 36)
    prong = [(20, 4), (62, 0.45 * opening), (112, opening), (122, opening * 0.62)]
    for side in (-1, 1):
        wire = np.array([(END + along, middle + side * away) for along, away in prong])
        _wire(canvas, wire, 0.46 * half, braided=False)
    _lay(canvas, _metal(y / sleeve), shape, END)
    return opening


TOOLS: dict[str, Callable[[Canvas, float, Rng], float]] = {
    "biopsy forceps": _forceps,
    "polyp snare": _snare,
    "metal clip": _clip,
}
"""Name in MEDVQA-GI's answers -> function that draws a tool's head and returns its opening."""


def _wire(canvas: Canvas, points: npt.NDArray[np.float64], width: float, braided: bool) -> None:
    """Draw a metal wire along points (n, 2), dark at its edges and bright in the middle."""
    colour, alpha = canvas
    line = np.rint(points * 16).astype(np.int32)[:, None]  # in sixteenths of a pixel, 2**4

    def draw(layer: Floats, line: npt.NDArray[np.int32], value: Any, thickness: float) -> None:
        cv2.polylines(layer, [line], False, value, max(1, round(thickness)), cv2.LINE_AA, 4)

    over = np.zeros_like(alpha)
    draw(over, line, 1.0, max(2, width))
    np.maximum(alpha, np.clip(over, 0, 1), out=alpha)
    draw(colour, line, (84, 84, 90), max(1, round(width)) + 2)
    draw(colour, line, (158, 158, 164), 0.62 * width)
    if braided:
        for start in range(0, len(line) - 2, 4):
            draw(colour, line[start : start + 3], (214, 214, 218), 0.62 * width)
    # the highlight lies towards the light, above left
    draw(colour, line - np.int32(round(width * 16 * 0.12)), (240, 240, 244), 0.2 * width)


def _metal(across: Floats) -> Floats:
    """Return polished steel (H, W, 3): a cylinder with two bright lines and a dark one."""
    light = _cylinder(across) * (1 - 0.45 * _shine(across, 0.3, 0.16))
    colour = _STEEL * light[:, :, None]
    shine = _shine(across, -0.3, 0.12) * 0.8 + _shine(across, 0.68, 0.07) * 0.4
    return colour + np.minimum(shine, 1)[:, :, None] * (255 - colour)


def _cylinder(across: Floats) -> Floats:
    """Return the diffuse light on a cylinder at positions -1..1 across it."""
    return 0.22 + 0.78 * np.sqrt(np.clip(1 - across * across, 0, 1))


def _shine(across: Floats, at: float, width: float) -> Floats:
    return np.exp(-(((across - at) / width) ** 2))


def _lay(canvas: Canvas, colour: Floats, over: Floats, left: int) -> None:
    """Draw a shape onto the canvas from column ``left`` on."""
    columns = slice(left, left + over.shape[1])
    below, alpha = canvas[0][:, columns], canvas[1][:, columns]
    below += over[:, :, None] * (colour - below)
    np.maximum(alpha, over, out=alpha)
