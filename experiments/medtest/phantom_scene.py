"""Plan the content of a phantom frame from a seed, before anything is drawn.

Lengths and positions are shares of the frame's side, x to the right and y down, so a scene looks
the same at every size. Angles are radians. All frames, measures and frequencies are invented; none
is from a patient.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from adaptive_vtt.utils.random_streams import generator

FRAMES = ("octagonal", "circular", "rounded")
INSTRUMENTS = ("biopsy forceps", "polyp snare", "injection needle")
PARIS = ("is", "ip", "iia")
COLOURS = ("pink", "red", "pale pink")
MAX_POLYPS = 5

_VIEW = 0.4
"""Largest distance of an object's centre from the frame's, so that no black frame hides it."""


@dataclass(frozen=True)
class Polyp:
    """A polyp; ``contrast`` in 0..1 is the strength of its colour and relief against the wall."""

    x: float
    y: float
    radius: float
    aspect: float
    angle: float
    paris: str
    colour: str
    millimetres: float
    contrast: float

    @property
    def size(self) -> str:
        """The size class, as MEDVQA-GI names it."""
        bounds = ((5, "< 5mm"), (10.5, "5-10mm"), (20.5, "11-20mm"))
        return next((name for bound, name in bounds if self.millimetres < bound), ">20mm")

    @property
    def position(self) -> str:
        """The ninth of the frame that its centre is in, as MEDVQA-GI names it, in lower case."""
        row = ("upper", "center", "lower")[min(int(3 * self.y), 2)]
        column = ("left", "center", "right")[min(int(3 * self.x), 2)]
        return "center" if row == column == "center" else f"{row}-{column}"

    @property
    def reach(self) -> float:
        """The largest distance of a part of the polyp from its centre."""
        return self.radius * (2.2 if self.paris == "ip" else 1.2)


@dataclass(frozen=True)
class Instrument:
    """A straight tool that enters at (x0, y0), outside the frame, and ends at (x1, y1)."""

    kind: str
    x0: float
    y0: float
    x1: float
    y1: float
    width: float
    colour: int
    opening: float

    def distance(self, x: float, y: float) -> float:
        """Return the distance of a point from the tool's centre line, with its tip."""
        start, end = np.array([self.x0, self.y0]), np.array([self.x1, self.y1])
        way = end - start
        way *= 1 + 3.2 * self.width / np.linalg.norm(way)
        share = np.clip(((x, y) - start) @ way / (way @ way), 0, 1)
        return float(np.linalg.norm(start + share * way - (x, y)))


@dataclass(frozen=True)
class Patch:
    """A roundish patch of blood or stool on the mucosa."""

    x: float
    y: float
    radius: float
    aspect: float
    angle: float


@dataclass(frozen=True)
class Fold:
    """A haustral fold: a wavy ring around (x, y), strongest at the angle ``facing``.

    ``waves`` has the cosine and sine parts of the second and third harmonics of the radius.
    """

    x: float
    y: float
    radius: float
    depth: float
    facing: float
    extent: float
    waves: tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Scene:
    """All properties of frame ``index`` of the phantom with this ``seed``."""

    seed: int
    index: int
    lumen: tuple[float, float]
    lumen_radius: float
    mucosa: tuple[float, float, float]
    light: tuple[float, float]
    vessels: float
    gloss: float
    folds: tuple[Fold, ...]
    frame: str
    corner: str | None
    preparation: int
    polyps: tuple[Polyp, ...] = ()
    instrument: Instrument | None = None
    stool: tuple[Patch, ...] = ()
    blood: tuple[Patch, ...] = ()
    text: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prevalence:
    """Shares of frames with each object; ``preparation`` has those of levels 0 (worst) to 3."""

    polyp: float = 0.5
    instrument: float = 0.25
    blood: float = 0.15
    text: float = 0.3
    preparation: tuple[float, ...] = field(default=(0.1, 0.2, 0.3, 0.4))


def plan(seed: int, index: int, prevalence: Prevalence) -> Scene:
    """Return scene ``index`` of a seed, which depends on the arguments only."""
    rng = generator(seed, "phantom scene", index)
    lumen, radius = _lumen(rng)
    level = int(rng.choice(4, p=np.asarray(prevalence.preparation)))
    polyps = _polyps(rng, lumen, radius) if rng.random() < prevalence.polyp else ()
    instrument = _instrument(rng, polyps) if rng.random() < prevalence.instrument else None
    stool = _stool(rng, level, polyps, instrument)
    bleeding, marks = int(rng.integers(1, 5)), (0.025, 0.16)
    return Scene(
        seed,
        index,
        lumen,
        radius,
        mucosa=_mucosa(rng),
        light=(float(rng.uniform(-0.6, 0.6)), float(rng.uniform(-0.7, 0.2))),
        vessels=float(rng.uniform(0.15, 1)),
        gloss=float(rng.uniform(0, 1)),
        folds=_folds(rng, lumen, radius),
        frame=str(rng.choice(FRAMES)),
        corner=str(rng.choice(["lower-left", "lower-right"])) if rng.random() < 0.3 else None,
        preparation=level,
        polyps=polyps,
        instrument=instrument,
        stool=stool,
        blood=_patches(rng, bleeding, marks, (), instrument, stool)
        if rng.random() < prevalence.blood
        else (),
        text=_text(rng) if rng.random() < prevalence.text else (),
    )


def _lumen(rng: np.random.Generator) -> tuple[tuple[float, float], float]:
    away, angle = min(abs(rng.normal(0, 0.22)), 0.55), rng.uniform(0, 2 * np.pi)
    centre = (float(0.5 + away * np.cos(angle)), float(0.5 + away * np.sin(angle)))
    return centre, float(rng.uniform(0.06, 0.13))


def _mucosa(rng: np.random.Generator) -> tuple[float, float, float]:
    """Return red, green and blue, from orange to pink and from pale to deep."""
    red = rng.uniform(0.80, 0.98)
    green = red * rng.uniform(0.46, 0.66)
    return float(red), float(green), float(green * rng.uniform(0.62, 0.98))


def _folds(rng: np.random.Generator, lumen: tuple[float, float], inner: float) -> tuple[Fold, ...]:
    """Return rings from the lumen outwards, with growing distances."""
    folds, radius, (x, y) = [], inner * rng.uniform(1.1, 1.6), lumen
    bend = rng.normal(0, 0.1, 2)
    while radius < 1.0:
        waves = rng.normal(0, 0.07, (2, 2)).tolist()
        folds.append(
            Fold(
                float(x),
                float(y),
                float(radius),
                float(rng.uniform(0.3, 0.7)),
                float(rng.uniform(0, 2 * np.pi)),
                float(rng.uniform(0.0, 1.0)),
                (tuple(waves[0]), tuple(waves[1])),
            )
        )
        step = rng.uniform(1.3, 1.85)
        x, y = np.array([x, y]) + (step - 1) * radius * bend
        radius *= step
    return tuple(folds)


def _polyps(
    rng: np.random.Generator, lumen: tuple[float, float], inner: float
) -> tuple[Polyp, ...]:
    """Return one to five polyps that do not touch, fewer if there is no room."""
    wanted = 1 + min(int(rng.geometric(0.65)) - 1, MAX_POLYPS - 1)
    polyps: list[Polyp] = []
    for _ in range(200):
        polyp = _polyp(rng, lumen)
        deep = float(np.hypot(polyp.x - lumen[0], polyp.y - lumen[1]))
        apart = all(np.hypot(polyp.x - p.x, polyp.y - p.y) > polyp.reach + p.reach for p in polyps)
        if apart and deep > inner + 0.6 * polyp.radius:
            polyps.append(polyp)
        if len(polyps) == wanted:
            break
    return tuple(polyps)


def _polyp(rng: np.random.Generator, lumen: tuple[float, float]) -> Polyp:
    x, y = _within(rng, _VIEW)
    # Polyps deeper in the tunnel look smaller.
    scale = (0.6 + np.hypot(x - lumen[0], y - lumen[1])) / 85
    radius = float(np.clip(scale * np.exp(rng.normal(np.log(13), 0.7)), 0.022, 0.24))
    paris = str(rng.choice(PARIS, p=[0.55, 0.2, 0.25]))
    return Polyp(
        x,
        y,
        radius,
        aspect=float(rng.uniform(0.65, 1)),
        angle=float(rng.uniform(0, 2 * np.pi)),
        paris=paris,
        colour=str(rng.choice(COLOURS)),
        millimetres=round(radius / scale, 1),
        contrast=float(rng.uniform(0.55, 1) * (0.65 if paris == "iia" else 1)),
    )


def _instrument(rng: np.random.Generator, polyps: Sequence[Polyp]) -> Instrument | None:
    """Return a tool that hides no polyp's centre, None if there is no such way in."""
    for _ in range(60):
        angle = rng.normal(0.3 * np.pi, 0.35 * np.pi)  # most come in from below, to the right
        start = 0.5 + 0.8 * np.array([np.cos(angle), np.sin(angle)])
        end = start + (rng.normal(0.5, 0.13, 2) - start) * rng.uniform(0.65, 1)
        tool = Instrument(
            str(rng.choice(INSTRUMENTS)),
            float(start[0]),
            float(start[1]),
            float(end[0]),
            float(end[1]),
            width=float(rng.uniform(0.035, 0.075)),
            colour=int(rng.integers(3)),
            opening=float(rng.uniform(0.25, 0.6)),
        )
        if all(tool.distance(p.x, p.y) > 1.6 * tool.width + 0.25 * p.radius for p in polyps):
            return tool
    return None


def _stool(
    rng: np.random.Generator, level: int, polyps: Sequence[Polyp], instrument: Instrument | None
) -> tuple[Patch, ...]:
    """Return residue for the preparation level, none for level 3."""
    least, most, largest = ((8, 16, 0.13), (4, 9, 0.08), (0, 3, 0.03), (0, 0, 0.01))[level]
    count = int(rng.integers(least, most + 1))
    return _patches(rng, count, (0.012, largest), polyps, instrument)


def _patches(
    rng: np.random.Generator,
    count: int,
    radii: tuple[float, float],
    polyps: Sequence[Polyp],
    instrument: Instrument | None,
    above: Sequence[Patch] = (),
) -> tuple[Patch, ...]:
    """Return patches with visible centres that hide no polyp's centre."""
    patches: list[Patch] = []
    for _ in range(20 * count):
        if len(patches) == count:
            break
        x, y = _within(rng, _VIEW)
        radius = float(np.exp(rng.uniform(*np.log(radii))))
        if (
            all(np.hypot(x - p.x, y - p.y) > 1.6 * radius + 0.3 * p.radius for p in polyps)
            and all(np.hypot(x - p.x, y - p.y) > 1.7 * p.radius for p in above)
            and (instrument is None or instrument.distance(x, y) > 1.2 * instrument.width)
        ):
            patches.append(
                Patch(x, y, radius, float(rng.uniform(0.5, 1)), float(rng.uniform(0, 2 * np.pi)))
            )
    return tuple(patches)


def _within(rng: np.random.Generator, furthest: float) -> tuple[float, float]:
    """Return a uniform point of the disc around the frame's centre."""
    away, angle = furthest * np.sqrt(rng.random()), rng.uniform(0, 2 * np.pi)
    return float(0.5 + away * np.cos(angle)), float(0.5 + away * np.sin(angle))


def _text(rng: np.random.Generator) -> tuple[str, ...]:
    clock = ":".join(f"{rng.integers(top):02d}" for top in (24, 60, 60))
    lines = ("PHANTOM", clock, f"No. {rng.integers(10_000):04d}", "SYNTHETIC")
    return lines[: int(rng.integers(1, 5))]
