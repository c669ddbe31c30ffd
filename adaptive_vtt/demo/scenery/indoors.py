"""How furniture and small things are drawn."""

import numpy as np

from .sketch import BLACK, GREY, PALE, WHITE, Sketch


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
