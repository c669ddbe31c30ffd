"""Draw single objects, at a large size that is then reduced for soft edges.

The drawing of each kind is in data/scene_things.json: strokes from the back to the front, each a
method of ``Sketch`` with its arguments. Lengths are shares of the sheet's height: y runs down from
0 to 1, x to the right from 0 to the sheet's aspect.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import cv2
import numpy as np

from adaptive_vtt.types import Image

from .scene_plan import Colour, Floats, shaded

INKS: dict[str, Colour] = {
    "white": (244, 244, 244),
    "pale": (206, 209, 212),
    "grey": (128, 128, 130),
    "black": (38, 36, 38),
    "skin": (222, 200, 186),
    "hair": (72, 66, 64),
    "bark": (104, 96, 90),
    "glass": (196, 204, 210),
    "wool": (70, 68, 70),
    "coffee": (96, 88, 84),
    "leaf": (96, 112, 92),
}
"""Colours of strokes; those of the object are added as "main", "dark" and "light"."""

_FINER = 4  # the sheet's scale while shapes are drawn
MARGIN = 2
"""Pixels around the sheet, for the outline."""
_OUTLINE = 0.012

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Layer:
    """A finished sheet: its colours (h x w x 3, 0..255) and its opacity (h x w, 0..1)."""

    colour: Floats
    cover: Floats


class Sketch:
    """A sheet for one object, ``height`` pixels high, in shades of the colour ``main``."""

    def __init__(self, height: int, aspect: float, main: Colour) -> None:
        own = {"dark": shaded(main, (-6, 0, 0)), "light": shaded(main, (5, 0, 0))}
        self._inks = {**INKS, "main": main, **own}
        self._unit, self._edge = _FINER * height, _FINER * MARGIN
        shape = (self._unit + 2 * self._edge, _FINER * round(aspect * height) + 2 * self._edge)
        self._colour = np.zeros((*shape, 3), np.uint8)
        self._cover = np.zeros(shape, np.uint8)

    def draw(self, kind: str) -> None:
        """Draw all strokes of a kind of object."""
        for stroke, *arguments in _strokes()[kind]:
            getattr(self, stroke)(*arguments)

    def area(self, points: Points, colour: str) -> None:
        """Draw a filled polygon."""
        corners = [np.array([self._at(*point) for point in points], np.int32)]
        cv2.fillPoly(self._colour, corners, self._inks[colour])
        cv2.fillPoly(self._cover, corners, 255)

    def block(self, box: Sequence[float], colour: str) -> None:
        """Draw a filled upright rectangle: left, top, right, bottom."""
        left, top, right, bottom = box
        self.area([(left, top), (right, top), (right, bottom), (left, bottom)], colour)

    def oval(
        self, x: float, y: float, across: float, down: float, colour: str, turn: float = 0
    ) -> None:
        """Draw a filled ellipse around (x, y) with these half axes, turned clockwise by degrees."""
        axes = round(across * self._unit), round(down * self._unit)
        for sheet, ink in ((self._colour, self._inks[colour]), (self._cover, 255)):
            cv2.ellipse(sheet, self._at(x, y), axes, turn, 0, 360, ink, -1)

    def line(self, points: Points, width: float, colour: str) -> None:
        """Draw a line through points, with round ends."""
        path = [np.array([self._at(*point) for point in points], np.int32)]
        thick = max(1, round(width * self._unit))
        cv2.polylines(self._colour, path, False, self._inks[colour], thick)
        cv2.polylines(self._cover, path, False, 255, thick)

    def arc(
        self,
        x: float,
        y: float,
        radius: float,
        width: float,
        colour: str,
        start: float = 0,
        stop: float = 360,
    ) -> None:
        """Draw a part of a circle, from ``start`` to ``stop`` degrees clockwise from the right."""
        turn = np.deg2rad(np.linspace(start, stop, max(8, round(abs(stop - start) / 8))))
        self.line([(x + radius * np.cos(t), y + radius * np.sin(t)) for t in turn], width, colour)

    def layer(self, mirrored: bool = False) -> Layer:
        """Return the drawing with a dark outline."""
        wide = 2 * max(_FINER, round(_OUTLINE * self._unit)) + 1
        round_ = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (wide, wide))
        cover = cv2.dilate(self._cover, round_)
        colour = np.where(self._cover[:, :, None] > 0, self._colour, np.uint8(INKS["black"][0]))
        ink = _smaller(colour * (cover[:, :, None] > 0))
        share = _smaller(cover) / np.float32(255)
        flat = ink / np.maximum(share, np.float32(1e-3))[:, :, None]
        if mirrored:
            flat, share = flat[:, ::-1], share[:, ::-1]
        return Layer(flat, share)

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return round(x * self._unit) + self._edge, round(y * self._unit) + self._edge


@cache
def _strokes() -> dict[str, list[list[Any]]]:
    """Return kind -> its strokes."""
    text = files(__package__).joinpath("data/scene_things.json").read_text(encoding="utf-8")
    strokes: dict[str, list[list[Any]]] = json.loads(text)
    return strokes


def _smaller(sheet: Image) -> Floats:
    height, width = (side // _FINER for side in sheet.shape[:2])
    return cv2.resize(sheet.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
