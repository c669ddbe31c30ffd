"""Draw a scene: the background, then one object after another from the back to the front.

Backgrounds have muted colours, far from the signature colour of every object. Each function that
paints a background receives an empty H x W x 3 picture (0..255), and its lengths are shares of the
height.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np

from adaptive_vtt.types import Box, Image, Mask, around
from adaptive_vtt.utils.random_streams import generator

from ..medtest.phantom_drawing import noise
from .scene_plan import SHELF, Floats, Kind, Scene, Thing, shaded
from .scene_things import MARGIN, Layer, Sketch

Shade = tuple[float, float, float]
"""Red, green, blue, 0..255."""

_ROUGH = 3.0  # standard deviation of the grain, in grey levels


def background(place: str, height: int, width: int, rng: np.random.Generator) -> Floats:
    """Return an empty room, street, park or beach."""
    picture = np.zeros((height, width, 3), np.float32)
    {"room": _room, "street": _street, "park": _park, "beach": _beach}[place](picture, rng)
    grain = noise(rng, 24, (height, width)) + 0.7 * noise(rng, 90, (height, width))
    return np.clip(picture + (_ROUGH * grain)[:, :, None], 0, 255)


def _shade(picture: Floats, top: float, bottom: float, first: Shade, last: Shade) -> None:
    """Fill the rows between two heights with a gradient."""
    rows = slice(round(top * len(picture)), round(bottom * len(picture)))
    at = np.linspace(0, 1, max(1, rows.stop - rows.start), dtype=np.float32)[:, None, None]
    picture[rows] = (1 - at) * np.array(first, np.float32) + at * np.array(last, np.float32)


def _block(
    picture: Floats, box: tuple[float, float, float, float], colour: Shade, width: int = -1
) -> None:
    """Draw a rectangle, filled unless its outline has a ``width`` in pixels."""
    left, top, right, bottom = (round(each * len(picture)) for each in box)
    cv2.rectangle(picture, (left, top), (right, bottom), colour, width)


def _bumps(picture: Floats, rng: np.random.Generator, base: float, colour: Shade) -> None:
    """Draw a row of soft hills or bushes that ends at the height ``base``."""
    side, width = len(picture), picture.shape[1]
    for x in np.linspace(0, width, 7):
        axes = round(width * rng.uniform(0.1, 0.16)), round(side * rng.uniform(0.04, 0.11))
        middle = round(x + width * rng.uniform(-0.05, 0.05)), round(base * side)
        cv2.ellipse(picture, middle, axes, 0, 180, 360, colour, -1, cv2.LINE_AA)


def _room(picture: Floats, rng: np.random.Generator) -> None:
    aspect = picture.shape[1] / len(picture)
    wall = float(rng.uniform(-8, 8))
    _shade(picture, 0, 0.66, (216 + wall, 213 + wall, 208 + wall), (204, 201, 196))
    _shade(picture, 0.66, 1, (150, 142, 134), (176, 166, 156))
    for x in np.arange(0, aspect, 0.22) + rng.uniform(0, 0.2):
        foot = aspect / 2 + 1.7 * (x - aspect / 2)
        line = np.rint(np.array([(x, 0.67), (foot, 1.0)]) * len(picture)).astype(np.int32)
        cv2.polylines(picture, [line], False, (140, 132, 124), 1, cv2.LINE_AA)
    _block(picture, (0, 0.645, aspect, 0.665), (232, 230, 226))
    at = rng.uniform(0.1, max(0.11, aspect - 0.45))
    _block(picture, (at, 0.06, at + 0.34, 0.36), (222, 228, 232))
    _block(picture, (at, 0.06, at + 0.34, 0.36), (240, 240, 240), max(1, len(picture) // 50))
    _block(picture, (at + 0.165, 0.06, at + 0.175, 0.36), (240, 240, 240))
    _block(picture, (0.04, SHELF, aspect - 0.04, 0.72), (136, 128, 120))
    _block(picture, (0.02, SHELF - 0.006, aspect - 0.02, SHELF + 0.016), (112, 105, 99))
    for x in np.linspace(0.04, aspect - 0.04, 5)[1:-1]:
        _block(picture, (x - 0.002, SHELF + 0.03, x + 0.002, 0.715), (112, 105, 99))


def _street(picture: Floats, rng: np.random.Generator) -> None:
    aspect = picture.shape[1] / len(picture)
    _shade(picture, 0, 0.6, (206, 214, 222), (226, 228, 230))
    left = -float(rng.uniform(0, 0.15))
    while left < aspect:
        wide, top = rng.uniform(0.24, 0.4), rng.uniform(0.08, 0.3)
        grey = float(rng.uniform(150, 190))
        _block(picture, (left, top, left + wide, 0.62), (grey + 6, grey, grey - 5))
        for x in np.arange(left + 0.035, left + wide - 0.05, 0.085):
            for y in np.arange(top + 0.04, 0.52, 0.105):
                _block(picture, (x, y, x + 0.045, y + 0.06), (grey - 36, grey - 32, grey - 28))
        left += wide + 0.01
    _shade(picture, 0.6, 0.7, (186, 184, 182), (178, 176, 174))
    _shade(picture, 0.7, 1, (122, 122, 124), (138, 138, 140))
    _block(picture, (0, 0.695, aspect, 0.708), (206, 206, 206))
    for x in np.arange(rng.uniform(0, 0.2), aspect, 0.32):
        _block(picture, (x, 0.85, x + 0.16, 0.865), (214, 214, 214))


def _park(picture: Floats, rng: np.random.Generator) -> None:
    _shade(picture, 0, 0.55, (196, 208, 220), (226, 230, 232))
    _bumps(picture, rng, 0.54, (140, 152, 142))
    _bumps(picture, rng, 0.57, (122, 136, 124))
    _shade(picture, 0.55, 1, (150, 162, 142), (134, 148, 124))
    side, middle = len(picture), picture.shape[1] * rng.uniform(0.3, 0.7)
    path = [
        (middle, 0.55),
        (middle + 0.03 * side, 0.55),
        (middle + 0.35 * side, 1.0),
        (middle - 0.2 * side, 1.0),
    ]
    corners = np.rint([(x, y * side) for x, y in path]).astype(np.int32)
    cv2.fillPoly(picture, [corners], (190, 186, 178), cv2.LINE_AA)


def _beach(picture: Floats, rng: np.random.Generator) -> None:
    _shade(picture, 0, 0.42, (190, 206, 220), (226, 232, 236))
    _shade(picture, 0.42, 0.64, (146, 166, 178), (176, 192, 198))
    _shade(picture, 0.64, 1, (214, 206, 190), (204, 194, 176))
    side, width = picture.shape[:2]
    for y in rng.uniform(0.45, 0.6, 7):
        x, reach = rng.uniform(0, width), width * rng.uniform(0.05, 0.14)
        row = round(y * side)
        cv2.line(picture, (round(x - reach), row), (round(x + reach), row), (198, 210, 216), 1)
    shore = np.linspace(0, width, 40)
    waves = 0.64 + 0.012 * np.sin(shore / width * rng.uniform(9, 16) + rng.uniform(0, 6))
    line = np.rint(np.column_stack([shore, waves * side])).astype(np.int32)
    cv2.polylines(picture, [line], False, (238, 240, 240), max(2, side // 60), cv2.LINE_AA)


_SHADOW = 0.82  # brightness in a shadow


@dataclass(frozen=True)
class Drawing:
    """A picture of a scene.

    Attributes:
        image: The picture, H x W x 3.
        things: Visible pixels of each object, H x W.
        boxes: Boxes around these.
        masks: Kind -> visible pixels of all its objects, H x W.
    """

    image: Image
    things: tuple[Mask, ...]
    boxes: tuple[Box, ...]
    masks: Mapping[str, Mask]


def draw(scene: Scene, height: int, width: int) -> Drawing:
    """Return the picture of ``scene``."""
    rng = generator(scene.seed, "scene drawing", scene.index)
    picture = background(scene.place, height, width, rng)
    covers: list[Mask] = []
    for thing in scene.things:
        tall = max(8, round(thing.height * height))
        layer = sketch_of(thing.kind, tall, thing.tint, thing.mirrored)
        left = round(thing.box[0] * height) - MARGIN
        top = round(thing.y * height) - len(layer.cover) + MARGIN
        if thing.kind.grounds[scene.place] in ("floor", "top"):
            _shadow(picture, thing, height)
        covers.append(_pasted(picture, layer, top, left))
    visible = _in_view(covers)
    pairs = [(thing.kind.name, mask) for thing, mask in zip(scene.things, visible, strict=True)]
    masks: dict[str, Mask] = {}
    for kind, mask in pairs:
        masks[kind] = masks.get(kind, False) | mask
    boxes = tuple(Box(kind, *around(mask)) for kind, mask in pairs)
    return Drawing(np.rint(picture).astype(np.uint8), tuple(visible), boxes, masks)


def sketch_of(
    kind: Kind, height: int, tint: tuple[float, float, float] = (0, 0, 0), mirrored: bool = False
) -> Layer:
    """Return one object alone, ``height`` pixels high, its colour moved in CIE Lab by ``tint``."""
    sheet = Sketch(height, kind.aspect, shaded(kind.colour, tint))
    sheet.draw(kind.name)
    return sheet.layer(mirrored)


def _pasted(picture: Floats, layer: Layer, top: int, left: int) -> Mask:
    """Paste a layer onto the picture. Return the pixels that it covers at least by half."""
    height, width = picture.shape[:2]
    rows = slice(max(top, 0), min(top + layer.cover.shape[0], height))
    columns = slice(max(left, 0), min(left + layer.cover.shape[1], width))
    part = (
        slice(rows.start - top, rows.stop - top),
        slice(columns.start - left, columns.stop - left),
    )
    cover = layer.cover[part][:, :, None]
    picture[rows, columns] += cover * (layer.colour[part] - picture[rows, columns])
    mask = np.zeros((height, width), bool)
    mask[rows, columns] = layer.cover[part] >= 0.5
    return mask


def _shadow(picture: Floats, thing: Thing, height: int) -> None:
    """Draw a soft dark spot under an object's foot."""
    reach = thing.kind.aspect * thing.height * height / 2
    spot = np.zeros(picture.shape[:2], np.float32)
    middle = round(thing.x * height), round(thing.y * height)
    axes = max(1, round(0.98 * reach)), max(1, round(0.025 * height))
    cv2.ellipse(spot, middle, axes, 0, 0, 360, 1.0, -1, cv2.LINE_AA)
    picture *= 1 - (1 - _SHADOW) * cv2.blur(spot, (5, 5))[:, :, None]


def _in_view(covers: list[Mask]) -> list[Mask]:
    """Return the visible pixels of objects, given all pixels of each from the back to the front."""
    visible, nearer = [], np.zeros(covers[0].shape, bool)
    for cover in reversed(covers):
        visible.append(cover & ~nearer)
        nearer |= cover
    return visible[::-1]
