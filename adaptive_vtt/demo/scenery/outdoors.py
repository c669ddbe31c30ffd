"""How vehicles and things for outdoors are drawn."""

import numpy as np

from .sketch import BLACK, GREY, PALE, WHITE, Sketch

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
