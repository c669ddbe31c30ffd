"""MedTest's text (section 3.5.1): date, time and device parameters as endoscopes print them."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, ClassVar

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image
from .scene import Floats, MedTest, Scene, cheapest, fifth

LETTER = (0.019, 0.026)
"""Height of a capital letter, as a share of the image's height."""

LINES = (1.0, 10.0)
"""How many lines."""

SMALLER = (1.0, 0.8, 0.65)
"""Letter sizes tried, as shares of the wanted one, before text is left out where it may not be."""

LEADING, MARGIN = 1.75, 0.02
"""Distance of base lines in letter heights; distance from the image's edge in its heights."""

COLOURS = {"white": (240, 240, 240), "green": (150, 240, 160), "yellow": (240, 232, 140)}

CORNERS = ("left top", "left bottom", "right top", "right bottom")

_FONT = cv2.FONT_HERSHEY_SIMPLEX
_CAPITAL = 21.0
"""Height of a capital of the font at scale 1, in pixels."""


class Text(MedTest):
    """MR4-1: a block of text at one of the places where devices print it.

    It may lie on the black frame, as it does on devices, and never on the protected mask:
    the corner with the least of it is taken, then smaller letters; what still would cover
    it is left out.
    """

    name = "medtest/text"
    about = "date, time and device parameters; more lines and larger at higher severities"
    adds = "text"
    drawing = 2
    concepts_added: ClassVar[frozenset[str]] = frozenset({"text"})

    def change(
        self, scene: Scene, severity: int, rng: np.random.Generator
    ) -> tuple[Image, Mapping[str, Any]]:
        letter = fifth(*LETTER, severity, rng) * scene.image.shape[0]
        lines = round(fifth(*LINES, severity, rng))
        colour = str(rng.choice(list(COLOURS), p=[0.8, 0.1, 0.1]))
        corners = [CORNERS[i] for i in rng.permutation(len(CORNERS))]
        words = _words(rng)[:lines]
        opacity, corner, factor = _free_place(scene, words, letter, corners)
        opacity = np.where(scene.protected, 0, opacity).astype(np.float32)
        over = opacity[:, :, None]
        image = scene.image + over * (np.array(COLOURS[colour], np.float32) - scene.image)
        return np.rint(image).astype(np.uint8), {
            "adds": self.adds if opacity.any() else "",
            "text": words,
            "corner": corner,
            "letter_pixels": letter * factor,
            "colour": colour,
        }


def _words(rng: np.random.Generator) -> list[str]:
    """Ten lines in a device's order, every value random; no real person's."""
    day, month, year = rng.integers(1, 29), rng.integers(1, 13), rng.integers(2004, 2025)
    hour, minute, second = rng.integers(7, 19), rng.integers(60), rng.integers(60)
    date = (f"{day:02d}/{month:02d}/{year}", f"{year}/{month:02d}/{day:02d}")[rng.integers(2)]
    made = [
        date,
        f"{hour:02d}:{minute:02d}:{second:02d}",
        f"SCV:{rng.integers(1, 100)}",
        f"CVP:{'ABC'[rng.integers(3)]}{rng.integers(1, 9)}",
        f"Eh:{'AB'[rng.integers(2)]}{rng.integers(1, 9)} Ce:{rng.integers(3)}",
        f"ID:{rng.integers(10**6, 10**7)}",
        f"Sex:{'MF'[rng.integers(2)]} Age:{rng.integers(20, 90)}",
        f"Gr:N Cm:{rng.integers(1, 4)}",
        f"Zm:{rng.choice(['1.0', '1.2', '1.5', '2.0'])}",
        f"F:{rng.integers(1, 200):03d}",
    ]
    return [str(line) for line in made]


def _free_place(
    scene: Scene, words: list[str], letter: float, corners: list[str]
) -> tuple[Floats, str, float]:
    """Opacity H x W of the text where it covers nothing protected, or the least of it."""

    def tries() -> Iterator[tuple[float, tuple[Floats, str, float]]]:
        for factor, corner in product(SMALLER, corners):
            opacity = _printed(scene.field.shape, words, letter * factor, corner)
            yield float(opacity[scene.protected].sum()), (opacity, corner, factor)

    return cheapest(tries())


def _printed(shape: tuple[int, ...], words: list[str], letter: float, corner: str) -> Floats:
    """The lines in a corner, H x W in 0..1. Lines that find no room are left out."""
    height, width = shape
    canvas: npt.NDArray[np.uint8] = np.zeros((height, width), np.uint8)
    scale, thickness = letter / _CAPITAL, max(1, round(letter / 11))
    step, margin = LEADING * letter, MARGIN * height
    room = max(1, int((height - 2 * margin) / max(step, 1e-6)))
    shown = words[:room]
    top = margin if corner.endswith("top") else height - margin - step * len(shown) + step - letter
    widest = max(cv2.getTextSize(word, _FONT, scale, thickness)[0][0] for word in shown)
    left = margin if corner.startswith("left") else max(margin, width - margin - widest)
    for number, word in enumerate(shown):
        at = (round(left), round(top + letter + number * step))
        cv2.putText(canvas, word, at, _FONT, scale, 255, thickness, cv2.LINE_AA)
    return canvas.astype(np.float32) / 255
