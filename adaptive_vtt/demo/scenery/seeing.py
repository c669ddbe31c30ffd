"""Seeing what is in a picture of a scene from its pixels alone.

Things are told by their signature colours (``kinds``), and only where their outlines are
sharp: a colour without an outline, as a strong blur leaves it, shows nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image, Mask
from .drawing import sketch_of
from .kinds import KINDS, Floats, lab

_NEAR = 15.0
"""Largest distance in CIE Lab of a pixel from the signature that it counts for. Instances and
shades stay within it, and signatures are more than twice as far from one another."""
_BITS = 5  # of each of red, green and blue that are looked at
_THIN = np.ones((3, 3), np.uint8)  # what is thinner is an edge between two colours
_RING = np.ones((5, 5), np.uint8)


@dataclass(frozen=True)
class Sighting:
    """All that is seen of one kind in a picture.

    ``share``: of the picture's area, 0..1. ``box``: left, top, right, bottom in pixels, the
    last two exclusive, around ``count`` things. ``colour``: their median, in CIE Lab.
    """

    kind: str
    share: float
    box: tuple[int, int, int, int]
    count: int
    colour: tuple[float, float, float]


class Sight(Protocol):
    """Tells what is in a picture."""

    def see(self, image: Image) -> tuple[Sighting, ...]:
        """One sighting for each kind in H x W x C uint8, the largest first."""


@dataclass(frozen=True)
class ColourSight:
    """Sees drawn scenes, also when cropped, stretched, turned, or partly covered.

    ``least``: the share of the picture's area that is noticed at all. ``glimpse``: the share
    of a thing below which it is not recognised where the picture's edge cuts it. ``sharp``:
    how many grey levels an outline stands out by, within three pixels. A grey picture
    (H x W x 1) shows nothing.
    """

    least: float = 0.002
    glimpse: float = 0.4
    sharp: float = 36.0

    def see(self, image: Image) -> tuple[Sighting, ...]:
        if image.shape[2] == 1:
            return ()
        image = np.ascontiguousarray(image)
        named = _named(image)
        counts = np.bincount(named.ravel(), minlength=len(KINDS) + 1)[1:]
        contrast = cv2.morphologyEx(image, cv2.MORPH_GRADIENT, _THIN).max(axis=2)
        found = []
        for place in np.flatnonzero(counts >= self.least * named.size).tolist():
            mask = cv2.morphologyEx((named == place + 1).astype(np.uint8), cv2.MORPH_OPEN, _THIN)
            sighting = self._sighting([*KINDS][place], mask, image, contrast)
            if sighting is not None:
                found.append(sighting)
        return tuple(sorted(found, key=lambda s: -s.share))

    def _sighting(self, kind: str, mask: Image, image: Image, contrast: Image) -> Sighting | None:
        """What is seen of a kind, given the pixels of its colour (H x W, 0 or 1)."""
        things = [t for t in clusters(mask) if self._recognised(kind, t, contrast)]
        if not things:
            return None
        return sighted(kind, things, image[np.logical_or.reduce(things)])

    def _recognised(self, kind: str, thing: Mask, contrast: Image) -> bool:
        if thing.mean() < self.least:
            return False
        if _part(kind, thing) < self.glimpse:
            return False
        bits = thing.astype(np.uint8)
        ring = (cv2.dilate(bits, _RING) > 0) & ~thing
        return not ring.any() or bool(np.median(contrast[ring]) >= self.sharp)


def sighted(kind: str, things: Sequence[Mask], colours: npt.NDArray[np.uint8]) -> Sighting:
    """A sighting of at least one thing (H x W each), whose pixels are n x 3 ``colours``.

    Things less than a quarter as large as the largest are not counted.
    """
    largest = max(int(t.sum()) for t in things)
    whole = np.logical_or.reduce(things)
    colour = lab(np.median(colours, axis=0)).tolist()
    x, y, width, height = cv2.boundingRect(whole.astype(np.uint8))
    return Sighting(
        kind,
        float(whole.mean()),
        (x, y, x + width, y + height),
        sum(bool(4 * t.sum() >= largest) for t in things),
        (colour[0], colour[1], colour[2]),
    )


def _named(image: Image) -> Image:
    """For each pixel, 1 + the place of its kind in KINDS, 0 where it is of none: H x W."""
    red, green, blue = (image[:, :, c].astype(np.uint16) >> (8 - _BITS) for c in range(3))
    return _table()[(red << (2 * _BITS)) | (green << _BITS) | blue]


@cache
def _table() -> npt.NDArray[np.uint8]:
    """The kind of every colour, by its highest bits."""
    steps = (np.arange(2**_BITS) + 0.5) * 2 ** (8 - _BITS)
    colours = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    signatures = lab([kind.colour for kind in KINDS.values()])
    away = np.linalg.norm(lab(colours)[:, None] - signatures, axis=2)
    return np.where(away.min(axis=1) < _NEAR, away.argmin(axis=1) + 1, 0).astype(np.uint8)


def clusters(mask: Image) -> list[Mask]:
    """The parts of a mask (H x W, 0 or 1), those close to one another together."""
    reach = 2 * round(0.015 * min(mask.shape)) + 3
    near = cv2.dilate(mask, np.ones((reach, reach), np.uint8))
    count, found = cv2.connectedComponents(near)
    return [(found == part) & (mask > 0) for part in range(1, count)]


Cut = tuple[bool, bool]
"""Whether the start and the end of an axis are cut off."""


def _part(kind: str, thing: Mask) -> float:
    """The share of a thing that is in the picture; 1 unless the picture's edge cuts it.

    Of all parts of the kind's shape that are left when it is cut on these sides, the one that
    looks most like it says so.
    """
    x, y, width, height = cv2.boundingRect(thing.astype(np.uint8))
    across = x <= 1, x + width >= thing.shape[1] - 1
    down = y <= 1, y + height >= thing.shape[0] - 1
    if not any(across + down):
        return 1.0
    looks, aspects, parts = _cuts(kind, across, down)
    unlike = np.abs(looks - _look(thing[y : y + height, x : x + width])).mean(axis=1)
    unlike += 0.5 * np.abs(np.log(aspects / (width / height)))
    return float(parts[unlike.argmin()])


@cache
def _cuts(kind: str, across: Cut, down: Cut) -> tuple[Floats, Floats, Floats]:
    """Parts of a kind's shape: their looks n x P, their widths by heights, their shares."""
    looks, aspects, parts = [], [], []
    whole = np.linspace(0.1, 1, 10).tolist()
    for shape in _shapes()[kind]:
        for wide in whole if any(across) else [1.0]:
            for tall in whole if any(down) else [1.0]:
                rows, columns = (
                    _kept(shape.shape[0], tall, down),
                    _kept(shape.shape[1], wide, across),
                )
                piece = shape[rows, columns]
                x, y, width, height = cv2.boundingRect(piece.astype(np.uint8))
                if width:
                    looks.append(_look(piece[y : y + height, x : x + width]))
                    aspects.append(width / height)
                    parts.append(piece.sum() / shape.sum())
    return np.array(looks), np.array(aspects, np.float32), np.array(parts, np.float32)


def _kept(length: int, share: float, cut: Cut) -> slice:
    kept = max(1, round(share * length))
    start = (length - kept) // (2 if cut[1] else 1) if cut[0] else 0
    return slice(start, start + kept)


def _look(piece: Mask) -> Floats:
    return cv2.resize(piece.astype(np.float32), (16, 16), interpolation=cv2.INTER_AREA).ravel()


@cache
def _shapes() -> dict[str, tuple[Mask, Mask]]:
    """For each kind what has its signature colour, cut out, and its mirror image."""
    found = {}
    for place, kind in enumerate(KINDS.values(), start=1):
        layer = sketch_of(kind, 96)
        own = (_named(layer.colour.astype(np.uint8)) == place) & (layer.cover > 0.5)
        x, y, width, height = cv2.boundingRect(own.astype(np.uint8))
        shape = own[y : y + height, x : x + width]
        found[kind.name] = (shape, shape[:, ::-1])
    return found
