"""Draws a scene: the background, then one thing after another from the back to the front."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import cv2
import numpy as np

from ...types import Box, Image, Mask
from ...utils.random_streams import generator
from . import indoors, living, outdoors
from .backgrounds import background
from .kinds import KINDS, Floats, Kind, shaded
from .scene import Scene, Thing
from .sketch import MARGIN, Layer, Sketch

_SHADOW = 0.82

_ARTISTS: Mapping[str, Callable[[Sketch], None]] = MappingProxyType(
    {
        name: getattr(room, name)
        for name in KINDS
        for room in (living, outdoors, indoors)
        if hasattr(room, name)
    }
)


@dataclass(frozen=True)
class Drawing:
    """A picture (H x W x 3), what can be seen of each thing (H x W), boxes around that, and
    what can be seen of each kind that is there."""

    image: Image
    things: tuple[Mask, ...]
    boxes: tuple[Box, ...]
    masks: Mapping[str, Mask]


def draw(scene: Scene, height: int, width: int) -> Drawing:
    """The picture of ``scene``."""
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
    seen = _in_view(covers)
    boxes = tuple(
        _box(thing.kind.name, mask) for thing, mask in zip(scene.things, seen, strict=True)
    )
    masks: dict[str, Mask] = {}
    for thing, mask in zip(scene.things, seen, strict=True):
        masks[thing.kind.name] = masks.get(thing.kind.name, False) | mask
    return Drawing(np.rint(picture).astype(np.uint8), tuple(seen), boxes, masks)


def sketch_of(
    kind: Kind, height: int, tint: tuple[float, float, float] = (0, 0, 0), mirrored: bool = False
) -> Layer:
    """One thing alone, ``height`` pixels high, its colour moved in CIE Lab by ``tint``."""
    sheet = Sketch(height, kind.aspect, shaded(kind.colour, tint))
    _ARTISTS[kind.name](sheet)
    return sheet.layer(mirrored)


def _pasted(picture: Floats, layer: Layer, top: int, left: int) -> Mask:
    """Puts a layer onto the picture; where it covers at least half of a pixel."""
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
    """A soft darker spot under a thing's foot."""
    reach = thing.kind.aspect * thing.height * height / 2
    spot = np.zeros(picture.shape[:2], np.float32)
    middle = round(thing.x * height), round(thing.y * height)
    axes = max(1, round(0.98 * reach)), max(1, round(0.025 * height))
    cv2.ellipse(spot, middle, axes, 0, 0, 360, 1.0, -1, cv2.LINE_AA)
    picture *= 1 - (1 - _SHADOW) * cv2.blur(spot, (5, 5))[:, :, None]


def _in_view(covers: list[Mask]) -> list[Mask]:
    """What nearer things leave of each."""
    seen, nearer = [], np.zeros(covers[0].shape, bool)
    for cover in reversed(covers):
        seen.append(cover & ~nearer)
        nearer |= cover
    return seen[::-1]


def _box(name: str, mask: Mask) -> Box:
    x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return Box(name, x, y, x + width, y + height)
