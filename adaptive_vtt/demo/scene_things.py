"""How each kind of thing is drawn, by a pencil that draws large and makes small for soft edges.

Lengths are shares of the sheet's height: y runs down from 0 to 1, x to the right from 0 to
the sheet's aspect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ..types import Image
from .scene_plan import Colour, Floats, shaded

WHITE: Colour = (244, 244, 244)
PALE: Colour = (206, 209, 212)
GREY: Colour = (128, 128, 130)
BLACK: Colour = (38, 36, 38)

_FINER = 4  # the sheet's scale while shapes are drawn
MARGIN = 2
"""Pixels around the sheet, for the outline."""
_OUTLINE = 0.012

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Layer:
    """A finished sheet: its colours (h x w x 3, 0..255) and how much they cover (h x w, 0..1)."""

    colour: Floats
    cover: Floats


class Sketch:
    """A sheet for one thing, ``height`` pixels high, in shades of the colour ``main``."""

    def __init__(self, height: int, aspect: float, main: Colour) -> None:
        self.main, self.dark, self.light = main, shaded(main, (-6, 0, 0)), shaded(main, (5, 0, 0))
        self._unit, self._edge = _FINER * height, _FINER * MARGIN
        shape = (self._unit + 2 * self._edge, _FINER * round(aspect * height) + 2 * self._edge)
        self._colour = np.zeros((*shape, 3), np.uint8)
        self._cover = np.zeros(shape, np.uint8)

    def area(self, points: Points, colour: Colour) -> None:
        """A filled polygon."""
        corners = [np.array([self._at(*point) for point in points], np.int32)]
        cv2.fillPoly(self._colour, corners, colour)
        cv2.fillPoly(self._cover, corners, 255)

    def block(self, box: tuple[float, float, float, float], colour: Colour) -> None:
        """A filled upright rectangle: left, top, right, bottom."""
        left, top, right, bottom = box
        self.area([(left, top), (right, top), (right, bottom), (left, bottom)], colour)

    def oval(
        self, x: float, y: float, across: float, down: float, colour: Colour, turn: float = 0
    ) -> None:
        """A filled ellipse around (x, y) with these half axes, turned clockwise by degrees."""
        axes = round(across * self._unit), round(down * self._unit)
        for sheet, ink in ((self._colour, colour), (self._cover, 255)):
            cv2.ellipse(sheet, self._at(x, y), axes, turn, 0, 360, ink, -1)

    def line(self, points: Points, width: float, colour: Colour, closed: bool = False) -> None:
        """A line through points, with round ends."""
        path = [np.array([self._at(*point) for point in points], np.int32)]
        thick = max(1, round(width * self._unit))
        cv2.polylines(self._colour, path, closed, colour, thick)
        cv2.polylines(self._cover, path, closed, 255, thick)

    def arc(
        self,
        x: float,
        y: float,
        radius: float,
        width: float,
        colour: Colour,
        start: float = 0,
        stop: float = 360,
    ) -> None:
        """A part of a circle, from ``start`` to ``stop`` degrees clockwise from the right."""
        turn = np.deg2rad(np.linspace(start, stop, max(8, round(abs(stop - start) / 8))))
        self.line([(x + radius * np.cos(t), y + radius * np.sin(t)) for t in turn], width, colour)

    def layer(self, mirrored: bool = False) -> Layer:
        """The drawing with a dark outline."""
        wide = 2 * max(_FINER, round(_OUTLINE * self._unit)) + 1
        round_ = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (wide, wide))
        cover = cv2.dilate(self._cover, round_)
        colour = np.where(self._cover[:, :, None] > 0, self._colour, np.uint8(BLACK[0]))
        ink = _smaller(colour * (cover[:, :, None] > 0))
        share = _smaller(cover) / np.float32(255)
        flat = ink / np.maximum(share, np.float32(1e-3))[:, :, None]
        if mirrored:
            flat, share = flat[:, ::-1], share[:, ::-1]
        return Layer(flat, share)

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return round(x * self._unit) + self._edge, round(y * self._unit) + self._edge


def _smaller(sheet: Image) -> Floats:
    height, width = (side // _FINER for side in sheet.shape[:2])
    return cv2.resize(sheet.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)


_SKIN = (222, 200, 186)
_HAIR = (72, 66, 64)
_BARK = (104, 96, 90)


def person(s: Sketch) -> None:
    for x in (0.155, 0.285):  # legs and shoes
        s.area([(x - 0.06, 0.55), (x + 0.06, 0.55), (x + 0.045, 0.95), (x - 0.045, 0.95)], s.dark)
    s.block((0.09, 0.94, 0.21, 0.99), BLACK)
    s.block((0.23, 0.94, 0.35, 0.99), BLACK)
    s.line([(0.12, 0.27), (0.055, 0.44), (0.06, 0.54)], 0.075, s.dark)
    s.line([(0.32, 0.27), (0.385, 0.44), (0.38, 0.54)], 0.075, s.dark)
    s.oval(0.06, 0.57, 0.032, 0.036, _SKIN)
    s.oval(0.38, 0.57, 0.032, 0.036, _SKIN)
    s.block((0.19, 0.17, 0.25, 0.26), _SKIN)
    s.area([(0.1, 0.24), (0.34, 0.24), (0.33, 0.6), (0.11, 0.6)], s.main)
    s.oval(0.22, 0.105, 0.075, 0.095, _HAIR)
    s.oval(0.22, 0.125, 0.062, 0.078, _SKIN)
    s.oval(0.197, 0.115, 0.008, 0.01, BLACK)
    s.oval(0.243, 0.115, 0.008, 0.01, BLACK)
    s.line([(0.2, 0.16), (0.22, 0.168), (0.24, 0.16)], 0.008, BLACK)


def dog(s: Sketch) -> None:
    s.line([(0.2, 0.47), (0.09, 0.36), (0.07, 0.2)], 0.075, s.main)
    for x in (0.33, 0.8):
        s.block((x, 0.6, x + 0.1, 0.97), s.dark)
    for x in (0.2, 0.68):
        s.block((x, 0.6, x + 0.11, 0.99), s.main)
    s.oval(0.52, 0.55, 0.37, 0.18, s.main)
    s.area([(0.7, 0.45), (0.86, 0.2), (1.0, 0.36), (0.86, 0.68)], s.main)
    s.oval(0.96, 0.23, 0.16, 0.16, s.main)
    s.oval(1.1, 0.29, 0.12, 0.085, s.light)
    s.oval(1.2, 0.26, 0.038, 0.034, BLACK)
    s.oval(0.85, 0.27, 0.065, 0.15, s.dark, 15)
    s.arc(0.85, 0.27, 0.085, 0.012, BLACK, 20, 140)
    s.oval(1.0, 0.19, 0.024, 0.028, BLACK)
    s.line([(0.83, 0.41), (0.97, 0.47)], 0.04, PALE)  # the collar


def cat(s: Sketch) -> None:
    s.line([(0.6, 0.9), (0.78, 0.82), (0.77, 0.6), (0.7, 0.5)], 0.075, s.dark)
    s.area([(0.28, 0.4), (0.54, 0.4), (0.68, 0.8), (0.62, 0.97), (0.2, 0.97), (0.14, 0.8)], s.main)
    s.area([(0.16, 0.26), (0.17, 0.0), (0.36, 0.13)], s.main)
    s.area([(0.66, 0.26), (0.65, 0.0), (0.46, 0.13)], s.main)
    s.oval(0.41, 0.28, 0.26, 0.2, s.main)
    for x in (0.32, 0.51):
        s.oval(x, 0.25, 0.04, 0.045, WHITE)
        s.oval(x, 0.25, 0.018, 0.04, BLACK)
    s.area([(0.385, 0.32), (0.445, 0.32), (0.415, 0.36)], BLACK)
    for side in (-1, 1):
        for rise in (-0.03, 0.03):
            x = 0.415 + side * 0.1
            s.line([(x, 0.36), (x + side * 0.2, 0.36 + rise)], 0.01, WHITE)
    for x in (0.33, 0.49):
        s.line([(x, 0.66), (x, 0.95)], 0.014, BLACK)
    s.oval(0.3, 0.95, 0.08, 0.04, WHITE)
    s.oval(0.52, 0.95, 0.08, 0.04, WHITE)


def horse(s: Sketch) -> None:
    s.line([(0.17, 0.42), (0.07, 0.52), (0.06, 0.74)], 0.07, BLACK)
    for x in (0.29, 0.75):
        s.block((x, 0.55, x + 0.065, 0.98), s.dark)
    for x in (0.18, 0.65):
        s.area([(x - 0.02, 0.5), (x + 0.11, 0.5), (x + 0.085, 0.98), (x + 0.015, 0.98)], s.main)
    for x in (0.185, 0.29, 0.655, 0.75):
        s.block((x, 0.94, x + 0.075, 0.99), GREY)
    s.oval(0.48, 0.47, 0.34, 0.16, s.main)
    s.area([(0.62, 0.4), (0.84, 0.06), (1.0, 0.12), (0.82, 0.52)], s.main)
    s.area([(0.84, 0.06), (0.97, 0.04), (1.16, 0.26), (1.11, 0.34), (0.93, 0.25)], s.main)
    s.area([(0.88, 0.08), (0.9, 0.0), (0.96, 0.07)], s.main)
    s.line([(0.86, 0.06), (0.74, 0.2), (0.66, 0.36)], 0.06, BLACK)
    s.oval(0.97, 0.13, 0.016, 0.018, WHITE)
    s.oval(1.12, 0.28, 0.012, 0.012, WHITE)


def sheep(s: Sketch) -> None:
    for x in (0.3, 0.44, 0.78, 0.9):
        s.block((x, 0.7, x + 0.07, 0.99), BLACK)
    for x, y, radius in (
        (0.25, 0.5, 0.19),
        (0.4, 0.32, 0.2),
        (0.62, 0.3, 0.21),
        (0.84, 0.36, 0.2),
        (0.92, 0.55, 0.19),
        (0.75, 0.66, 0.19),
        (0.5, 0.66, 0.2),
        (0.32, 0.62, 0.18),
        (0.6, 0.5, 0.28),
    ):
        s.oval(x, y, radius, radius, s.main)
    for x, y in ((0.35, 0.5), (0.55, 0.42), (0.5, 0.64), (0.75, 0.56), (0.68, 0.34)):
        s.arc(x, y, 0.06, 0.014, s.dark, 20, 200)
    s.oval(1.08, 0.36, 0.13, 0.17, (70, 68, 70), -20)
    s.oval(0.96, 0.29, 0.09, 0.04, (70, 68, 70), 20)
    s.oval(1.12, 0.3, 0.028, 0.03, WHITE)
    s.oval(1.125, 0.3, 0.012, 0.014, BLACK)
    s.oval(1.02, 0.2, 0.1, 0.08, s.main)


def bird(s: Sketch) -> None:
    s.area([(0.02, 0.55), (0.3, 0.55), (0.36, 0.75), (0.08, 0.72)], s.dark)
    s.area([(0.62, 0.55), (0.82, 0.02), (0.98, 0.05), (0.9, 0.6)], s.dark)
    s.oval(0.62, 0.66, 0.36, 0.2, s.main)
    s.oval(0.97, 0.53, 0.17, 0.17, s.main)
    s.area([(1.1, 0.46), (1.28, 0.55), (1.1, 0.62)], GREY)
    s.area([(0.4, 0.6), (0.32, 0.0), (0.52, 0.02), (0.84, 0.6)], s.light)
    for x in (0.47, 0.57):
        s.line([(x - 0.07, 0.15), (x + 0.1, 0.55)], 0.02, BLACK)
    s.oval(1.0, 0.48, 0.035, 0.04, BLACK)
    for x in (0.55, 0.68):
        s.line([(x, 0.84), (x - 0.05, 0.96)], 0.035, BLACK)


def tree(s: Sketch) -> None:
    s.area([(0.32, 0.5), (0.43, 0.5), (0.45, 0.99), (0.29, 0.99)], _BARK)
    for x, y, radius in (
        (0.19, 0.42, 0.18),
        (0.56, 0.42, 0.18),
        (0.24, 0.25, 0.19),
        (0.52, 0.25, 0.19),
        (0.375, 0.18, 0.18),
        (0.375, 0.45, 0.2),
    ):
        s.oval(x, y, radius, radius, s.main)
    for x, y in ((0.25, 0.22), (0.48, 0.18), (0.2, 0.42), (0.38, 0.36), (0.56, 0.4)):
        s.arc(x, y, 0.06, 0.014, s.dark, 160, 340)


_GLASS = (196, 204, 210)


def _wheel(s: Sketch, x: float, y: float, radius: float) -> None:
    s.oval(x, y, radius, radius, BLACK)
    s.oval(x, y, 0.5 * radius, 0.5 * radius, PALE)


def car(s: Sketch) -> None:
    s.area([(0.42, 0.42), (0.62, 0.06), (1.3, 0.06), (1.62, 0.42)], s.dark)
    s.area([(0.55, 0.4), (0.68, 0.14), (0.93, 0.14), (0.93, 0.4)], _GLASS)
    s.area([(1.01, 0.4), (1.01, 0.14), (1.26, 0.14), (1.46, 0.4)], _GLASS)
    s.area(
        [(0.04, 0.5), (0.14, 0.4), (1.62, 0.4), (1.98, 0.5), (2.06, 0.6), (2.06, 0.8), (0.04, 0.8)],
        s.main,
    )
    s.block((0.04, 0.5, 0.13, 0.6), PALE)
    s.block((1.94, 0.54, 2.06, 0.64), WHITE)
    s.line([(0.97, 0.42), (0.97, 0.78)], 0.016, BLACK)
    s.line([(1.04, 0.5), (1.16, 0.5)], 0.03, BLACK)
    _wheel(s, 0.47, 0.8, 0.19)
    _wheel(s, 1.62, 0.8, 0.19)


def bus(s: Sketch) -> None:
    s.block((0.06, 0.06, 1.94, 0.86), s.main)
    s.line([(0.08, 0.08), (1.92, 0.08)], 0.06, s.light)
    for x in (0.16, 0.5, 0.84, 1.18):
        s.block((x, 0.2, x + 0.27, 0.45), _GLASS)
    s.block((1.53, 0.22, 1.73, 0.84), _GLASS)
    s.line([(1.63, 0.22), (1.63, 0.84)], 0.02, BLACK)
    s.block((1.82, 0.2, 1.95, 0.5), _GLASS)
    s.line([(0.1, 0.58), (1.46, 0.58)], 0.035, WHITE)
    s.block((1.88, 0.68, 1.96, 0.76), WHITE)
    _wheel(s, 0.42, 0.86, 0.13)
    _wheel(s, 1.35, 0.86, 0.13)


def bicycle(s: Sketch) -> None:
    for x in (0.34, 1.26):
        for turn in np.deg2rad([0, 60, 120]):
            dx, dy = 0.26 * np.cos(turn), 0.26 * np.sin(turn)
            s.line([(x - dx, 0.67 - dy), (x + dx, 0.67 + dy)], 0.012, GREY)
        s.arc(x, 0.67, 0.27, 0.1, s.main)
    saddle, pedals, head = (0.6, 0.26), (0.78, 0.67), (1.12, 0.28)
    for frame in (
        [(0.34, 0.67), saddle, pedals],
        [(0.34, 0.67), pedals, head, (0.63, 0.32)],
        [(1.08, 0.1), (1.26, 0.67)],
    ):
        s.line(frame, 0.085, s.main)
    s.line([(0.48, 0.2), (0.72, 0.2)], 0.08, BLACK)
    s.line([(0.98, 0.07), (1.08, 0.09), (1.2, 0.04)], 0.06, BLACK)
    s.oval(0.78, 0.67, 0.06, 0.06, GREY)


def boat(s: Sketch) -> None:
    s.line([(0.46, 0.02), (0.46, 0.75)], 0.035, GREY)
    s.area([(0.5, 0.04), (0.5, 0.66), (0.9, 0.66)], s.light)
    s.area([(0.42, 0.14), (0.42, 0.66), (0.1, 0.66)], s.main)
    s.area([(0.02, 0.74), (0.93, 0.74), (0.76, 0.99), (0.18, 0.99)], s.main)
    s.line([(0.04, 0.76), (0.91, 0.76)], 0.04, WHITE)


def umbrella(s: Sketch) -> None:
    s.line([(0.475, 0.02), (0.475, 0.9)], 0.035, BLACK)
    s.arc(0.545, 0.9, 0.07, 0.035, BLACK, 0, 180)
    turn = np.deg2rad(np.linspace(180, 360, 25))
    dome = [(0.475 + 0.455 * np.cos(t), 0.5 + 0.42 * np.sin(t)) for t in turn]
    hem = [
        (0.02 + 0.91 * k / 16, 0.5 - 0.05 * abs(np.sin(np.pi * k / 4))) for k in range(16, -1, -1)
    ]
    s.area(dome + hem, s.main)
    s.area([(0.475, 0.08), (0.6, 0.2), (0.7, 0.5), (0.475, 0.45)], s.light)
    for x in (0.25, 0.475, 0.7):
        s.line(
            [(0.475, 0.08), ((0.475 + x) / 2 + 0.35 * (x - 0.475), 0.24), (x, 0.5)], 0.014, BLACK
        )


def kite(s: Sketch) -> None:
    s.line([(0.35, 0.7), (0.42, 0.8), (0.32, 0.88), (0.38, 0.97)], 0.016, GREY)
    for x, y in ((0.41, 0.8), (0.34, 0.92)):
        s.area([(x - 0.08, y - 0.045), (x, y), (x - 0.08, y + 0.045)], s.main)
        s.area([(x + 0.08, y - 0.045), (x, y), (x + 0.08, y + 0.045)], s.main)
    s.area([(0.35, 0.0), (0.69, 0.28), (0.35, 0.72), (0.01, 0.28)], s.main)
    s.area([(0.35, 0.0), (0.69, 0.28), (0.35, 0.28)], s.light)
    s.area([(0.01, 0.28), (0.35, 0.28), (0.35, 0.72)], s.dark)
    s.line([(0.35, 0.0), (0.35, 0.72)], 0.012, BLACK)
    s.line([(0.01, 0.28), (0.69, 0.28)], 0.012, BLACK)


def ball(s: Sketch) -> None:
    s.oval(0.5, 0.5, 0.48, 0.48, s.main)
    s.oval(0.5, 0.5, 0.16, 0.16, WHITE)
    s.arc(0.5, 0.5, 0.16, 0.02, BLACK)
    for turn in np.deg2rad([18, 90, 162, 234, 306]):
        x, y = np.cos(turn), np.sin(turn)
        s.line([(0.5 + 0.17 * x, 0.5 + 0.17 * y), (0.5 + 0.3 * x, 0.5 + 0.3 * y)], 0.024, BLACK)
        s.oval(0.5 + 0.41 * x, 0.5 + 0.41 * y, 0.07, 0.07, WHITE)


def chair(s: Sketch) -> None:
    s.block((0.12, 0.02, 0.2, 0.6), s.dark)
    s.block((0.46, 0.02, 0.54, 0.6), s.dark)
    for y in (0.05, 0.21, 0.37):
        s.block((0.12, y, 0.54, y + 0.1), s.main)
    s.block((0.13, 0.6, 0.2, 0.9), s.dark)
    s.block((0.46, 0.6, 0.53, 0.9), s.dark)
    s.area([(0.11, 0.52), (0.55, 0.52), (0.61, 0.64), (0.05, 0.64)], s.light)
    s.block((0.05, 0.64, 0.61, 0.7), s.main)
    s.line([(0.05, 0.645), (0.61, 0.645)], 0.01, BLACK)
    s.block((0.05, 0.68, 0.13, 0.99), s.main)
    s.block((0.53, 0.68, 0.61, 0.99), s.main)


def table(s: Sketch) -> None:
    for x in (0.27, 1.37):
        s.block((x, 0.3, x + 0.1, 0.82), s.dark)
    for x in (0.08, 1.56):
        s.block((x, 0.3, x + 0.12, 0.99), s.main)
    s.area([(0.24, 0.02), (1.51, 0.02), (1.73, 0.28), (0.02, 0.28)], s.light)
    s.block((0.02, 0.28, 1.73, 0.42), s.main)
    s.line([(0.02, 0.285), (1.73, 0.285)], 0.012, BLACK)


def bed(s: Sketch) -> None:
    s.block((0.03, 0.02, 0.16, 0.99), s.dark)
    s.block((1.76, 0.36, 1.87, 0.99), s.dark)
    s.block((0.14, 0.66, 1.78, 0.86), s.dark)
    s.area([(0.16, 0.44), (1.6, 0.38), (1.77, 0.5), (1.77, 0.7), (0.16, 0.7)], s.main)
    s.oval(0.36, 0.4, 0.2, 0.1, WHITE, -6)
    s.line([(0.66, 0.42), (0.74, 0.52), (0.74, 0.7)], 0.03, WHITE)
    s.line([(0.16, 0.7), (1.77, 0.7)], 0.014, BLACK)


def lamp(s: Sketch) -> None:
    s.line([(0.25, 0.3), (0.25, 0.94)], 0.035, GREY)
    s.area([(0.12, 0.98), (0.17, 0.93), (0.33, 0.93), (0.38, 0.98)], BLACK)
    s.area([(0.14, 0.02), (0.36, 0.02), (0.49, 0.4), (0.01, 0.4)], s.main)
    s.area([(0.28, 0.02), (0.36, 0.02), (0.49, 0.4), (0.34, 0.4)], s.dark)
    s.line([(0.38, 0.4), (0.38, 0.52)], 0.014, BLACK)


def clock(s: Sketch) -> None:
    s.oval(0.5, 0.5, 0.48, 0.48, s.main)
    s.oval(0.5, 0.5, 0.3, 0.3, WHITE)
    for turn in np.deg2rad(np.arange(0, 360, 30)):
        x, y = np.cos(turn), np.sin(turn)
        s.line([(0.5 + 0.24 * x, 0.5 + 0.24 * y), (0.5 + 0.27 * x, 0.5 + 0.27 * y)], 0.022, BLACK)
    s.line([(0.5, 0.5), (0.5, 0.3)], 0.04, BLACK)
    s.line([(0.5, 0.5), (0.62, 0.57)], 0.045, BLACK)


def cup(s: Sketch) -> None:
    s.arc(0.86, 0.5, 0.2, 0.12, s.dark, -100, 100)
    s.area([(0.08, 0.14), (0.86, 0.14), (0.78, 0.9), (0.16, 0.9)], s.main)
    s.oval(0.47, 0.9, 0.31, 0.08, s.main)
    s.oval(0.47, 0.14, 0.39, 0.11, s.light)
    s.oval(0.47, 0.15, 0.31, 0.07, (96, 88, 84))


def bottle(s: Sketch) -> None:
    s.block((0.125, 0.1, 0.235, 0.36), s.main)
    s.area([(0.125, 0.3), (0.235, 0.3), (0.34, 0.46), (0.02, 0.46)], s.main)
    s.block((0.02, 0.45, 0.34, 0.98), s.main)
    s.block((0.11, 0.01, 0.25, 0.1), GREY)
    s.block((0.02, 0.6, 0.34, 0.78), PALE)
    s.line([(0.08, 0.5), (0.08, 0.57)], 0.03, WHITE)


def banana(s: Sketch) -> None:
    turn = np.deg2rad(np.linspace(15, 165, 25))
    outer = [(0.85 + 0.8 * np.cos(t), 0.1 + 0.86 * np.sin(t)) for t in turn]
    inner = [(0.85 + 0.74 * np.cos(t), 0.06 + 0.46 * np.sin(t)) for t in turn[::-1]]
    s.area(outer + inner, s.main)
    s.line([(0.85 + 0.76 * np.cos(t), 0.1 + 0.66 * np.sin(t)) for t in turn[3:-3]], 0.03, s.dark)
    s.line([(0.1, 0.22), (0.06, 0.08)], 0.12, BLACK)
    s.line([(1.6, 0.24), (1.62, 0.2)], 0.12, BLACK)


def apple(s: Sketch) -> None:
    s.oval(0.34, 0.6, 0.31, 0.37, s.main)
    s.oval(0.66, 0.6, 0.31, 0.37, s.main)
    s.oval(0.5, 0.66, 0.3, 0.32, s.main)
    s.line([(0.5, 0.3), (0.53, 0.06)], 0.06, BLACK)
    s.oval(0.68, 0.12, 0.16, 0.07, (96, 112, 92), -20)
    s.oval(0.27, 0.46, 0.06, 0.1, WHITE, 20)


def book(s: Sketch) -> None:
    s.area([(0.3, 0.04), (1.46, 0.04), (1.2, 0.7), (0.04, 0.7)], s.main)
    s.area([(0.04, 0.7), (1.2, 0.7), (1.46, 0.04), (1.46, 0.26), (1.2, 0.96), (0.04, 0.96)], WHITE)
    s.line([(1.2, 0.83), (1.46, 0.15)], 0.02, GREY)
    s.line([(0.1, 0.83), (1.2, 0.83)], 0.02, GREY)
    s.area([(0.04, 0.7), (0.14, 0.7), (0.14, 0.96), (0.04, 0.96)], s.dark)
    s.line([(0.06, 0.95), (1.2, 0.95)], 0.06, s.dark)
    s.line([(0.6, 0.24), (1.1, 0.24)], 0.07, PALE)
    s.line([(0.62, 0.4), (0.94, 0.4)], 0.05, PALE)


def laptop(s: Sketch) -> None:
    s.block((0.14, 0.02, 1.26, 0.78), BLACK)
    s.block((0.18, 0.05, 1.22, 0.74), s.main)
    s.block((0.28, 0.14, 0.7, 0.36), s.light)
    s.line([(0.3, 0.5), (0.86, 0.5)], 0.03, WHITE)
    s.line([(0.3, 0.6), (0.7, 0.6)], 0.03, WHITE)
    s.area([(0.14, 0.78), (1.26, 0.78), (1.38, 0.94), (0.02, 0.94)], PALE)
    s.area([(0.22, 0.8), (1.18, 0.8), (1.22, 0.87), (0.18, 0.87)], BLACK)
    s.block((0.02, 0.94, 1.38, 0.98), GREY)
