"""The kinds of things: their signature colours, their sizes, and where they go.

Each kind has one colour that no other kind and no background comes near, so that what is in
a picture, or in any part of it, can be told from its pixels alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]
Floats = npt.NDArray[np.float32]
Ground = Literal["floor", "top", "wall", "water", "sky"]
"""What a thing stands on, hangs on or flies in; "top": of a table or a sideboard."""

TINT = 4.0
"""Largest distance of an instance's colour from its kind's, along each axis of CIE Lab."""


@dataclass(frozen=True)
class Kind:
    """``colour``: its signature, red, green, blue. ``height``: as a share of the picture's,
    at the front. ``aspect``: width by height. ``grounds``: place -> where it goes there."""

    name: str
    colour: Colour
    height: float
    aspect: float
    grounds: Mapping[str, Ground]


PLACES = ("room", "street", "park", "beach")


def _kind(name: str, colour: Colour, height: float, aspect: float, **grounds: Ground) -> Kind:
    return Kind(name, colour, height, aspect, grounds)


_ALL = (
    _kind("person", (255, 13, 164), 0.60, 0.44, room="floor", street="floor", park="floor",
          beach="floor"),
    _kind("dog", (122, 76, 0), 0.29, 1.25, room="floor", street="floor", park="floor",
          beach="floor"),
    _kind("cat", (241, 135, 14), 0.26, 0.85, room="floor", street="floor"),
    _kind("horse", (70, 6, 0), 0.46, 1.2, park="floor", beach="floor"),
    _kind("sheep", (240, 255, 165), 0.28, 1.3, park="floor"),
    _kind("bird", (58, 210, 255), 0.15, 1.3, street="sky", park="sky", beach="sky"),
    _kind("car", (245, 3, 0), 0.26, 2.1, street="floor"),
    _kind("bus", (0, 82, 148), 0.40, 2.0, street="floor"),
    _kind("bicycle", (0, 143, 129), 0.36, 1.6, street="floor", park="floor"),
    _kind("boat", (15, 5, 104), 0.36, 0.95, beach="water"),
    _kind("umbrella", (97, 0, 203), 0.42, 0.95, street="floor", beach="floor"),
    _kind("kite", (60, 250, 60), 0.26, 0.7, park="sky", beach="sky"),
    _kind("ball", (249, 65, 255), 0.14, 1.0, room="floor", park="floor", beach="floor"),
    _kind("tree", (0, 150, 62), 0.62, 0.75, street="floor", park="floor"),
    _kind("chair", (135, 146, 4), 0.40, 0.62, room="floor"),
    _kind("table", (232, 172, 124), 0.32, 1.75, room="floor"),
    _kind("bed", (175, 176, 255), 0.34, 1.9, room="floor"),
    _kind("lamp", (255, 165, 198), 0.48, 0.5, room="floor"),
    _kind("clock", (174, 84, 186), 0.17, 1.0, room="wall"),
    _kind("cup", (125, 255, 211), 0.13, 1.2, room="top"),
    _kind("bottle", (0, 59, 8), 0.22, 0.36, room="top", beach="floor"),
    _kind("banana", (255, 225, 30), 0.11, 1.7, room="top"),
    _kind("apple", (237, 92, 92), 0.12, 1.0, room="top"),
    _kind("book", (145, 0, 77), 0.12, 1.5, room="top"),
    _kind("laptop", (46, 110, 255), 0.20, 1.4, room="top"),
)  # fmt: skip

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""Name -> kind. Signatures are at least 38 apart in CIE Lab, and as far from every grey."""


def lab(colours: npt.ArrayLike) -> Floats:
    """Red, green, blue (... x 3, 0..255) as CIE L*, a*, b*."""
    import cv2

    values = np.asarray(colours, np.float32) / 255
    return cv2.cvtColor(values.reshape(1, -1, 3), cv2.COLOR_RGB2LAB).reshape(values.shape)


def shaded(colour: Colour, by: npt.ArrayLike) -> Colour:
    """A colour moved in CIE Lab by ``by`` (L*, a*, b*), as near as red, green, blue allow."""
    import cv2

    moved = (lab(colour) + np.asarray(by, np.float32)).reshape(1, 1, 3)
    rgb = np.clip(cv2.cvtColor(moved, cv2.COLOR_LAB2RGB).ravel(), 0, 1)
    red, green, blue = np.rint(255 * rgb).astype(int).tolist()
    return red, green, blue
