"""Plan the objects of a drawn scene from a seed, before anything is drawn.

Each kind of object has one colour, far from those of all other kinds and of all backgrounds, so the
content of a picture, or of any part of it, can be recognised from its pixels alone. Lengths are
shares of the picture's height, and x and y are measured from its top left corner.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from adaptive_vtt.utils.random_streams import generator

Colour = tuple[int, int, int]
Floats = npt.NDArray[np.float32]
Ground = Literal["floor", "top", "wall", "water", "sky"]
"""The part of a scene that an object stands on or hangs in; "top" is that of a table or shelf."""

TINT = 4.0
"""Largest distance of an instance's colour from its kind's, along each axis of CIE Lab."""


@dataclass(frozen=True)
class Kind:
    """A kind of object.

    Attributes:
        name: Its name.
        colour: Its signature colour: red, green, blue.
        height: Its height at the front, as a share of the picture's.
        aspect: Its width divided by its height.
        grounds: Place -> the ground of its objects there.
    """

    name: str
    colour: Colour
    height: float
    aspect: float
    grounds: Mapping[str, Ground]


PLACES = ("room", "street", "park", "beach")


EVERYDAY: Mapping[str, Any] = json.loads(
    files(__package__).joinpath("data/everyday.json").read_text(encoding="utf-8")
)
"""Name -> colour, height, aspect and grounds (``Kind``), and words (``vocabulary``)."""
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        name: Kind(name, tuple(one["colour"]), one["height"], one["aspect"], one["grounds"])
        for name, one in EVERYDAY.items()
    }
)
"""Name -> kind. Distances between signatures, and from them to greys, are 38 or more in CIE Lab."""


def lab(colours: npt.ArrayLike) -> Floats:
    """Return red, green, blue (... x 3, 0..255) as CIE L*, a*, b*."""
    import cv2

    values = np.asarray(colours, np.float32) / 255
    return cv2.cvtColor(values.reshape(1, -1, 3), cv2.COLOR_RGB2LAB).reshape(values.shape)


def shaded(colour: Colour, by: npt.ArrayLike) -> Colour:
    """Return a colour moved in CIE Lab by ``by`` (L*, a*, b*), as near as RGB allows."""
    import cv2

    moved = (lab(colour) + np.asarray(by, np.float32)).reshape(1, 1, 3)
    rgb = np.clip(cv2.cvtColor(moved, cv2.COLOR_LAB2RGB).ravel(), 0, 1)
    red, green, blue = np.rint(255 * rgb).astype(int).tolist()
    return red, green, blue


FLOOR: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"room": (0.76, 0.98), "street": (0.68, 0.98), "park": (0.62, 0.98), "beach": (0.7, 0.98)}
)
"""Place -> range of y of objects on its floor, from the back to the front."""
SHELF = 0.56
"""Height y of the top of a room's sideboard."""

_HEIGHTS: Mapping[Ground, tuple[float, float]] = MappingProxyType(
    {"wall": (0.2, 0.36), "water": (0.47, 0.6), "sky": (0.2, 0.4)}
)
_REPEATED = 0.2  # share of objects that have the kind of an earlier one
_HIDDEN = 0.33  # largest share of an object's box that others cover
_TRIES = 40  # positions that are tried for an object
_EDGE = 0.015  # least distance of an object from the picture's edge


@dataclass(frozen=True)
class Thing:
    """An object.

    Attributes:
        kind: Its kind.
        x: Position of its middle.
        y: Position of its foot.
        height: Its height.
        depth: Nearness: objects of greater depth are drawn later.
        mirrored: Whether its drawing is mirrored.
        tint: Offset of its colour in CIE Lab.
    """

    kind: Kind
    x: float
    y: float
    height: float
    depth: float
    mirrored: bool
    tint: tuple[float, float, float]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        half = self.kind.aspect * self.height / 2
        return self.x - half, self.y - self.height, self.x + half, self.y


@dataclass(frozen=True)
class Scene:
    """Scene ``index`` of a seed; its things are sorted from the back to the front.

    ``aspect`` is the picture's width divided by its height.
    """

    seed: int
    index: int
    place: str
    aspect: float
    things: tuple[Thing, ...]


def plan(seed: int, index: int, aspect: float, objects: tuple[int, int]) -> Scene:
    """Return scene ``index`` of ``seed``, with ``objects[0]`` to ``objects[1]`` objects.

    It has fewer, but at least one, if no further object fits without hiding others.
    """
    rng = generator(seed, "scenes", index)
    place = PLACES[int(rng.integers(len(PLACES)))]
    things: list[Thing] = []
    for kind in _kinds(rng, place, int(rng.integers(objects[0], objects[1] + 1))):
        for _ in range(_TRIES):
            thing = _placed(rng, kind, place, aspect, things)
            if _all_seen([*things, thing], aspect):
                things.append(thing)
                break
    return Scene(seed, index, place, aspect, tuple(sorted(things, key=lambda t: t.depth)))


def _kinds(rng: np.random.Generator, place: str, count: int) -> list[Kind]:
    """Return the kinds of a scene, furniture first, since other objects may stand on it."""
    here = [kind for kind in KINDS.values() if place in kind.grounds]
    drawn = [here[k] for k in rng.permutation(len(here))[:count]]
    for at in range(1, len(drawn)):
        if rng.random() < _REPEATED:
            drawn[at] = drawn[at - 1]
    return sorted(drawn, key=lambda kind: kind.name != "table")


def _placed(
    rng: np.random.Generator, kind: Kind, place: str, aspect: float, things: list[Thing]
) -> Thing:
    """Return an object of a kind at a random position, which may be occupied."""
    ground = kind.grounds[place]
    left, right, tables = 0.0, aspect, [t for t in things if t.kind.name == "table"]
    if ground == "floor":
        back, front = FLOOR[place]
        y = rng.uniform(back, front)
        scale, depth = 0.7 + 0.3 * (y - back) / (front - back), y
    elif ground == "top":
        y, depth, scale = SHELF + 0.01, 0.0, 1.0
        if tables and rng.random() < 0.6:
            board = tables[int(rng.integers(len(tables)))]
            top, reach = board.y - board.height, 0.4 * board.kind.aspect * board.height
            y, depth = top + board.height * rng.uniform(0.1, 0.22), board.depth + 1e-4
            left, right = board.x - reach, board.x + reach
    else:
        low, high = _HEIGHTS[ground]
        y = rng.uniform(low, high)
        scale, depth = {"wall": (1.0, -1.0), "water": (0.25 + 1.25 * y, y)}.get(ground, (1.0, 2.0))
    height = kind.height * scale * rng.uniform(0.92, 1.08)
    height = min(height, 0.8 * aspect / kind.aspect, y - _EDGE)
    tint = rng.uniform(-TINT, TINT, 3).tolist()
    x = rng.uniform(left, right)
    depth += 1e-6 * len(things)  # no two are equally near
    return Thing(kind, x, y, height, depth, bool(rng.random() < 0.5), (tint[0], tint[1], tint[2]))


def _all_seen(things: list[Thing], aspect: float) -> bool:
    """Return whether the last object is within the picture, and all are mostly visible."""
    left, top, right, bottom = things[-1].box
    if left < _EDGE or right > aspect - _EDGE or top < _EDGE or bottom > 1 - _EDGE:
        return False
    return all(_hidden(thing, things) <= _HIDDEN for thing in things)


def _hidden(thing: Thing, things: list[Thing]) -> float:
    """Return the largest share of an object's box that boxes of nearer objects cover."""
    x1, y1, x2, y2 = thing.box
    covered = 0.0
    for other in things:
        if other.depth > thing.depth:
            left, top, right, bottom = other.box
            across, down = min(x2, right) - max(x1, left), min(y2, bottom) - max(y1, top)
            covered += max(0.0, across) * max(0.0, down)
    return covered / ((x2 - x1) * (y2 - y1))
