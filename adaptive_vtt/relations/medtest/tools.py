"""Drawn instruments: biopsy forceps, polypectomy snare and clip, each on its sheath.

They are drawn lying along the x axis with the tip to the right, lit from the camera, and
enter the view mostly from below right, where the working channel of a colonoscope is.
"""

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt

from .cutouts import Cutout
from .scene import Floats

HEIGHT, WIDTH, END = 220, 520, 340
"""The canvas in pixels, and where the sheath ends."""

NEAR = 1.6
"""Thickness of the sheath where it enters the view, as a multiple of that at its tip."""

CLOCK = (125.0, 40.0)
"""Where tools enter: degrees clockwise from 12 o'clock, mean and standard deviation."""

SHEATHS = {
    "steel": (168, 170, 176),
    "blue": (62, 88, 128),
    "white": (190, 192, 196),
    "yellow": (188, 166, 104),
    "black": (62, 64, 70),
}

_STEEL = np.array([178, 180, 186], np.float32)

Canvas = tuple[Floats, Floats]
"""Colour H x W x 3 on 0..255, and opacity H x W in 0..1; both are drawn upon in place."""


class Drawn:
    """A random drawn tool."""

    def cutout(self, rng: np.random.Generator) -> Cutout:
        name = str(rng.choice(list(TOOLS)))
        sheath = str(rng.choice(list(SHEATHS)))
        half, bend = float(rng.uniform(20, 27)), float(rng.uniform(-30, 30))
        clock = float(rng.normal(*CLOCK))
        canvas = np.zeros((HEIGHT, WIDTH, 3), np.float32), np.zeros((HEIGHT, WIDTH), np.float32)
        # what the head is made of is drawn first: it comes out of the sheath
        opening = TOOLS[name](canvas, half, rng)
        _sheath(canvas, half, bend, sheath, rng)
        colour, alpha = _out_of_focus(canvas)
        grain = rng.normal(0, 2.5, (HEIGHT, WIDTH, 1)).astype(np.float32)
        angle = np.deg2rad(clock)
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
            draws={
                "clock": clock,
                "sheath": sheath,
                "half_width": half,
                "bend": bend,
                "opening": opening,
            },
        )


def _out_of_focus(canvas: Canvas) -> Canvas:
    """The canvas, softer the nearer to the camera: lenses are focused on the tissue."""
    near = (np.clip(1 - np.arange(WIDTH, dtype=np.float32) / END, 0, 1) ** 1.5)[None]
    colour, alpha = (cv2.GaussianBlur(each, (0, 0), 4.0) for each in canvas)
    return (
        canvas[0] + near[:, :, None] * (colour - canvas[0]),
        canvas[1] + near * (alpha - canvas[1]),
    )


def _sheath(canvas: Canvas, half: float, bend: float, kind: str, rng: np.random.Generator) -> None:
    """A bent cylinder, thicker where it is nearer to the camera; steel ones are wound. What
    shines on it comes and goes, as it is wet."""
    y, x = np.mgrid[:HEIGHT, : END + 1].astype(np.float32)
    along = x / END
    centre = HEIGHT / 2 + bend * (1 - along) ** 2
    radius = half * (NEAR - (NEAR - 1) * along)
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


def _forceps(canvas: Canvas, half: float, rng: np.random.Generator) -> float:
    """Two hollow cups on a pivot, opened by some degrees."""
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
    """One cup on its arm: an ellipse cut lengthwise, a bowl open towards the other one."""
    x, y = _from_end()
    sine, cosine = side * float(np.sin(angle)), float(np.cos(angle))
    u = (x - 18) * cosine + y * sine
    v = side * (y * cosine - (x - 18) * sine)  # grows outwards
    arm, length, depth = 1.0 * half, 2.5 * half, 0.95 * half
    stalk = np.clip(0.3 * half - np.abs(v) + 0.5, 0, 1) * (u > 0) * (u < arm + 0.5 * half)
    _lay(canvas, _metal(v / (0.3 * half)), stalk, END)
    along = (u - arm - length / 2) / (length / 2)
    bowl = np.sqrt(np.clip(1 - along * along, 0, 1)) * depth
    low = -0.28 * bowl
    over = np.clip(bowl - v + 0.5, 0, 1) * np.clip(v - low + 0.5, 0, 1) * (bowl > 1)
    colour = _metal(np.clip(v / np.maximum(bowl, 1), -1, 1))
    inner = np.clip((0.22 * bowl - v) / 2 + 0.5, 0, 1) * (bowl > 0.3 * depth)
    colour *= 1 - 0.78 * inner[:, :, None]
    rim = np.exp(-(((v - 0.24 * bowl) / 1.6) ** 2)) + np.exp(-(((v - low - 1.5) / 1.4) ** 2))
    colour += 0.7 * np.minimum(rim, 1)[:, :, None] * (np.float32(235) - colour)
    _lay(canvas, colour, over, END)


def _from_end() -> tuple[Floats, Floats]:
    """x and y of the pixels right of the sheath, from the middle of its end."""
    rows, columns = np.arange(HEIGHT, dtype=np.float32), np.arange(WIDTH - END, dtype=np.float32)
    x, y = np.meshgrid(columns, rows - HEIGHT / 2)
    return x, y


def _snare(canvas: Canvas, half: float, rng: np.random.Generator) -> float:
    """A loop of braided wire, more or less open."""
    opening = float(rng.uniform(0.5, 1.0))
    angle = np.linspace(0, 2 * np.pi, 160)
    length, reach = 150.0, 62 * opening
    x = END - 6 + length * (1 - np.cos(angle)) / 2
    y = HEIGHT / 2 + reach * np.sin(angle) * np.sin(angle / 2) ** 0.8
    _wire(canvas, np.stack([x, y], axis=1), 0.27 * half, braided=True)
    return opening


def _clip(canvas: Canvas, half: float, rng: np.random.Generator) -> float:
    """Two flat prongs with inward hooks, on a sleeve."""
    opening = float(rng.uniform(24, 44))
    middle = HEIGHT / 2
    x, y = _from_end()
    sleeve = 0.7 * half
    shape = np.clip(sleeve - np.abs(y) + 0.5, 0, 1) * (x < 36)
    for side in (-1, 1):
        points = [(END + 20, middle + side * 4), (END + 62, middle + side * 0.45 * opening)]
        points += [
            (END + 112, middle + side * opening),
            (END + 122, middle + side * opening * 0.62),
        ]
        _wire(canvas, np.array(points), 0.46 * half, braided=False)
    _lay(canvas, _metal(y / sleeve), shape, END)
    return opening


TOOLS: dict[str, Callable[[Canvas, float, np.random.Generator], float]] = {
    "biopsy forceps": _forceps,
    "polyp snare": _snare,
    "metal clip": _clip,
}
"""Names as in MEDVQA-GI's answers. Each draws what comes out of the sheath and
says how far it is open."""


def _wire(canvas: Canvas, points: npt.NDArray[np.float64], width: float, braided: bool) -> None:
    """A metal wire along points (n x 2): dark at its edges, bright in the middle."""
    colour, alpha = canvas
    fixed = np.rint(points * 16).astype(np.int32)[:, None]
    over = np.zeros_like(alpha)
    cv2.polylines(over, [fixed], False, 1.0, max(2, round(width)), cv2.LINE_AA, 4)
    np.maximum(alpha, np.clip(over, 0, 1), out=alpha)
    cv2.polylines(colour, [fixed], False, (84, 84, 90), max(3, round(width) + 2), cv2.LINE_AA, 4)
    inner = max(1, round(0.62 * width))
    cv2.polylines(colour, [fixed], False, (158, 158, 164), inner, cv2.LINE_AA, 4)
    if braided:
        for start in range(0, len(fixed) - 2, 4):
            part = fixed[start : start + 3]
            cv2.polylines(colour, [part], False, (214, 214, 218), inner, cv2.LINE_AA, 4)
    light = fixed - np.int32(round(width * 16 * 0.12))
    cv2.polylines(
        colour, [light], False, (240, 240, 244), max(1, round(0.2 * width)), cv2.LINE_AA, 4
    )


def _metal(across: Floats) -> Floats:
    """Polished steel, H x W x 3: a cylinder with two bright lines and a dark one."""
    light = _cylinder(across) * (1 - 0.45 * _shine(across, 0.3, 0.16))
    colour = _STEEL * light[:, :, None]
    shine = _shine(across, -0.3, 0.12) * 0.8 + _shine(across, 0.68, 0.07) * 0.4
    return colour + np.minimum(shine, 1)[:, :, None] * (255 - colour)


def _cylinder(across: Floats) -> Floats:
    """Diffuse light on a cylinder seen across (-1..1 from edge to edge)."""
    return 0.22 + 0.78 * np.sqrt(np.clip(1 - across * across, 0, 1))


def _shine(across: Floats, at: float, width: float) -> Floats:
    return np.exp(-(((across - at) / width) ** 2))


def _lay(canvas: Canvas, colour: Floats, over: Floats, left: int) -> None:
    """Lays a shape upon the canvas from column ``left`` on."""
    columns = slice(left, left + over.shape[1])
    below, alpha = canvas[0][:, columns], canvas[1][:, columns]
    below += over[:, :, None] * (colour - below)
    np.maximum(alpha, over, out=alpha)
