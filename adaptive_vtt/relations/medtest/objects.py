"""MedTest's added objects: instrument, stool, blood (section 3.4) and text (section 3.5.1).

Objects are placed, matched to the picture and blended. Text is a date, a time and device
parameters, as endoscopes print them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import ClassVar

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image, Indices, JsonObject, Mask
from ..base import Rng
from .cutouts import Cutout, Similar, Source
from .drawn import DrawnStool, DrawnTool
from .film import DEEPEST, bleed
from .placement import Pose, anywhere, near_its_place
from .scene import Changed, FieldOf, Floats, MedTest, Scene, cheapest, fifth

INSTRUMENT_SHARE = (0.02, 0.12)
"""Range of an instrument's share of the visible field: "moderate size" in the thesis."""

STAIN_SHARE = (0.01, 0.14)
"""Range of the share of the visible field of all pieces of stool or blood together."""

PIECES = (1.0, 4.0)
"""Range of the number of pieces of stool or blood."""

TOOLS_TRIED = 4
"""Maximum number of instruments to try if the protected mask leaves no room."""

RATIO = (0.5, 1.6)
"""Bounds of the factor that matches an object's brightness to the image."""

FEATHER, SOFT_FEATHER = 0.0025, 0.004
"""Standard deviation of the blur of the edge of an instrument, and of stool or blood, as a
share of the shorter side."""

SOFTNESS = 0.0018
"""Standard deviation of the blur of a drawn object, as a share of the shorter side. Lenses are
not as sharp as drawings."""

GRAIN = 8.0
"""Maximum amplitude, in grey levels, of the image's grain that is added to a drawn object."""

SEEN = 1e-3
"""Minimum share of the field of an object that counts as visible (details["adds"])."""


class Placed(MedTest):
    """Base class of instruments, stool and blood.

    Args:
        source: Source of cut-outs; None: ``drawn``, or a film of blood if that is None, too.
        field: See ``MedTest``.
    """

    drawing = 3
    drawn: ClassVar[Source | None] = None

    def __init__(self, source: Source | None = None, field: FieldOf | None = None) -> None:
        super().__init__(field)
        self.source: Source | None = source or self.drawn

    def parts(self) -> tuple[object, ...]:
        return (self.field, self.source)

    def details(
        self, scene: Scene, seen: Floats, share: float, pieces: list[JsonObject]
    ) -> JsonObject:
        """Return the details of a follow-up; ``seen`` is the opacity (H, W) of the addition."""
        adds = self.adds if _share(seen, scene) >= SEEN else ""
        return {"adds": adds, "wanted_share": share, "pieces": pieces, "mask": seen > 0.5}


class Instrument(Placed):
    """MR3-1: a tool that enters the visible field as in its source image."""

    name = "medtest/instrument"
    about = "a tool enters the view, off the protected mask; larger at higher severities"
    adds = "instrument"
    drawing = 4
    source: Source
    drawn = DrawnTool()
    concepts_added: ClassVar[frozenset[str]] = frozenset({"instrument", "instruments", "tool"})

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        share = fifth(*INSTRUMENT_SHARE, severity, rng)
        cutout, pose = self._fitting(scene, share, rng)
        image = scene.image.copy()
        seen = _blend(scene, image, cutout, pose, stain=False)
        details = self.details(scene, seen, share, [_record(cutout, pose, seen, scene)])
        return image, {**details, "object": cutout.name}

    def _fitting(self, scene: Scene, share: float, rng: Rng) -> tuple[Cutout, Pose]:
        """Return the first tool for which there is room, or else the one that fits best."""

        def tries() -> Iterator[tuple[float, tuple[Cutout, Pose]]]:
            for _ in range(TOOLS_TRIED):
                cutout = _chosen(self.source, scene, rng)
                pose = near_its_place(cutout, scene, share, rng)
                # overlap with the protected mask costs 1, a smaller size less than 1
                yield (not pose.free) + (1 - pose.shrunk), (cutout, pose)

        return cheapest(tries())


class Stain(Placed):
    """Base class of stool and blood: pieces anywhere in the visible field."""

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        share = fifth(*STAIN_SHARE, severity, rng)
        count = round(fifth(*PIECES, severity, rng))
        # one generator per piece, so that the first piece does not depend on their number
        seeds = rng.integers(2**62, size=round(PIECES[1]))
        parts = share * rng.dirichlet(np.full(count, 4.0))
        if self.source is None:
            deepest = fifth(*DEEPEST, severity, rng)
            image, seen, pieces = _run(scene, share, deepest, seeds[:count])
        else:
            image, seen, pieces = _pasted(self.source, scene, parts, seeds[:count])
        return image, self.details(scene, seen, share, pieces)


Laid = tuple[Image, Floats, list[JsonObject]]
"""The changed image, the opacity (H, W) of the addition in 0..1, and the details of its pieces."""


def _pasted(source: Source, scene: Scene, shares: Iterable[float], seeds: Indices) -> Laid:
    """Return the image with one cut-out per seed and share of the field."""
    image, pieces = scene.image.copy(), []
    opacity = np.zeros(scene.field.shape, np.float32)
    for seed, share in zip(seeds, shares, strict=True):
        rng = np.random.default_rng(seed)
        cutout = _chosen(source, scene, rng)
        pose = anywhere(cutout, scene, share, rng)
        alpha = _blend(scene, image, cutout, pose, stain=True)
        opacity = np.maximum(opacity, alpha)
        pieces.append({"seed": int(seed), **_record(cutout, pose, alpha, scene)})
    return image, opacity, pieces


def _run(scene: Scene, share: float, deepest: float, seeds: Indices) -> Laid:
    """Return the image with a film of blood that has one trickle per seed."""
    image, seen, starts, free = bleed(scene, share, deepest, seeds)
    drawn = {"deepest_cm": deepest, "free": free}
    places = zip(seeds.tolist(), starts, strict=False)  # without room there are no starts
    return image, seen, [{"seed": seed, "at": list(start), **drawn} for seed, start in places]


class Feces(Stain):
    """MR3-2: stool, with brightness matched to the image and scaled by the grey mask.

    Args:
        source: See ``Placed``.
        field: See ``MedTest``.
        anywhere: Whether stool may cover masked areas, as in the thesis; answers stay the same.
    """

    name = "medtest/feces"
    about = "residual stool, off the protected mask; more at higher severities"
    adds = "feces"
    drawn = DrawnStool()
    concepts_added: ClassVar[frozenset[str]] = frozenset(
        {"feces", "faeces", "stool", "poor preparation"}
    )

    def __init__(
        self, source: Source | None = None, field: FieldOf | None = None, anywhere: bool = False
    ) -> None:
        super().__init__(source, field)
        self.anywhere = anywhere

    @property
    def fingerprint(self) -> str | None:
        return f"{super().fingerprint}; anywhere" if self.anywhere else super().fingerprint

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        if self.anywhere:
            scene = replace(scene, protected=np.zeros_like(scene.protected))
        return super().change(scene, severity, rng)


class Blood(Stain):
    """MR3-3: a film of blood (``film``), or cut-outs that are placed like stool.

    It changes the class, so it is not for classification.
    """

    name = "medtest/blood"
    about = "blood on the wall, deep in folds, off the protected mask; more at higher severities"
    adds = "blood"
    drawing = 4
    concepts_added: ClassVar[frozenset[str]] = frozenset({"blood", "bleeding"})


def _chosen(source: Source, scene: Scene, rng: Rng) -> Cutout:
    """Return a cut-out of a source, from an image similar to the scene's if it is ``Similar``."""
    return source.cutout_for(scene, rng) if isinstance(source, Similar) else source.cutout(rng)


def _blend(scene: Scene, image: Image, cutout: Cutout, pose: Pose, stain: bool) -> Floats:
    """Blend the object into ``image`` in place and return its opacity (H, W) in 0..1."""
    seen = np.zeros(scene.field.shape, np.float32)
    window, corner = _window(cutout, pose, scene)
    if not seen[window].size:
        return seen
    shown = scene.shown[window]
    allowed = (shown > 0) & ~scene.protected[window]
    feather = SOFT_FEATHER if stain else FEATHER
    alpha = pose.warp(cutout.alpha, allowed.shape, corner, cv2.BORDER_CONSTANT)
    alpha = cv2.GaussianBlur(alpha, (0, 0), max(0.4, feather * scene.side))
    alpha *= allowed
    colour = pose.warp(cutout.colour, allowed.shape, corner, cv2.BORDER_REPLICATE)
    colour = colour * np.float32(_ratio(scene, scene.light[window], alpha, cutout))
    below = image[window].astype(np.float32)
    if cutout.reflects:
        colour = _in_the_pictures_light(scene, colour, below, window, cutout.reflects)
    if stain:
        colour *= scene.grey_mask[window][:, :, None]
    if cutout.film:
        colour = _shone_through(colour, below, alpha, cutout.film)
    colour *= shown[:, :, None]
    if cutout.casts:
        below *= (1 - np.float32(cutout.casts) * _shadow(alpha, allowed, scene.side))[:, :, None]
    below += alpha[:, :, None] * (colour - below)
    image[window] = np.clip(np.rint(below), 0, 255)
    seen[window] = alpha
    return seen


def _window(
    cutout: Cutout, pose: Pose, scene: Scene
) -> tuple[tuple[slice, slice], tuple[int, int]]:
    """Return the part of the image that the object and its shadow may cover, and its (x, y)."""
    height, width = cutout.alpha.shape
    ends = np.array([(0, 0), (width, 0), (0, height), (width, height)])
    corners = ends @ pose.matrix[:, :2].T + pose.matrix[:, 2]
    margin = 4 + 0.08 * scene.side
    rows, columns = scene.field.shape
    low = np.clip(np.floor(corners.min(axis=0) - margin), 0, (columns, rows)).astype(int)
    high = np.clip(np.ceil(corners.max(axis=0) + margin), 0, (columns, rows)).astype(int)
    return (slice(low[1], high[1]), slice(low[0], high[0])), (int(low[0]), int(low[1]))


def _ratio(scene: Scene, light: Floats, alpha: Floats, cutout: Cutout) -> float:
    """Return the brightness at the object's position divided by that of its source.

    It is the mean of the brightness below the object and of the whole image.
    """
    weight = float(alpha.sum())
    local = float((light * alpha).sum()) / weight if weight > 0 else scene.brightness
    return float(np.clip(0.5 * (local + scene.brightness) / max(cutout.brightness, 0.02), *RATIO))


def _in_the_pictures_light(
    scene: Scene, colour: Floats, below: Floats, window: tuple[slice, slice], share: float
) -> Floats:
    """Return a drawn object's colours (h, w, 3) with the image's tint, brightness and grain."""
    local = (scene.light[window] / np.float32(max(scene.brightness, 0.02))).clip(0.4, 1.3)
    tint = np.float32(1 - share) + np.float32(share) * scene.tint
    soft = cv2.GaussianBlur(colour, (0, 0), max(0.4, SOFTNESS * scene.side))
    soft *= tint * np.sqrt(local)[:, :, None]
    grain = below - cv2.GaussianBlur(below, (0, 0), 1.0)
    return soft + np.clip(grain, -GRAIN, GRAIN)


def _shone_through(colour: Floats, below: Floats, alpha: Floats, film: float) -> Floats:
    """Return the colours of a liquid on the image ``below``.

    Thin parts show the image in the liquid's hue. Thick parts have the liquid's colour, with
    faintly visible folds.
    """
    dye = colour / np.maximum(_brightest(colour), 1)[:, :, None]
    square = alpha * alpha
    thin = np.float32(film) * (1 - square * square)[:, :, None]
    level = _brightest(below)
    around = cv2.blur(level, (max(1, min(alpha.shape) // 4),) * 2)
    folds = np.sqrt((level + 8) / (around + 8))[:, :, None]
    thick = colour * folds
    return thick + thin * (dye * below - thick)


def _brightest(image: Floats) -> Floats:
    """Return the largest channel (h, w); faster than numpy's maximum over a short axis."""
    red, green, blue = cv2.split(image)
    return cv2.max(cv2.max(red, green), blue)


def _shadow(alpha: Floats, allowed: Mask, side: int) -> Floats:
    """Return a soft shadow (H, W) of the object in 0..1, which is 0 outside ``allowed``."""
    down = 0.022 * side
    moved_by = np.array([[1, 0, 0.6 * down], [0, 1, down]])
    moved = cv2.warpAffine(alpha, moved_by, alpha.shape[::-1])
    return cv2.GaussianBlur(moved, (0, 0), max(0.5, 0.02 * side)) * allowed


def _share(alpha: Floats, scene: Scene) -> float:
    return float(alpha.sum()) / scene.area


def _record(cutout: Cutout, pose: Pose, alpha: Floats, scene: Scene) -> JsonObject:
    at = [round(pose.at[0], 2), round(pose.at[1], 2)]
    placed = {name: getattr(pose, name) for name in ("scale", "turn", "shrunk", "free")}
    share = _share(alpha, scene)
    return {"name": cutout.name, "draws": dict(cutout.draws), "at": at, **placed, "share": share}


# -- text ----------------------------------------------------------------------------------

LETTER = (0.019, 0.026)
"""Range of the height of a capital letter, as a share of the image's height."""

LINES = (1.0, 10.0)
"""Range of the number of lines."""

SMALLER = (1.0, 0.8, 0.65)
"""Letter sizes to try, as shares of the requested size, before letters on the mask are omitted."""

LEADING, MARGIN = 1.75, 0.02
"""Distance of base lines in letter heights; distance from the image's edge in image heights."""

COLOURS = {"white": (240, 240, 240), "green": (150, 240, 160), "yellow": (240, 232, 140)}

CORNERS = ("left top", "left bottom", "right top", "right bottom")

_FONT = cv2.FONT_HERSHEY_SIMPLEX
_CAPITAL = 21.0
"""Height of a capital of the font at scale 1, in pixels."""


class Text(MedTest):
    """MR4-1: a block of text in one of the corners, as devices print it.

    It may lie on the black frame but not on the protected mask. If it does not fit into any corner,
    smaller letters are tried. Letters that would still cover the mask are omitted.
    """

    name = "medtest/text"
    about = "date, time and device parameters; more lines and larger at higher severities"
    adds = "text"
    drawing = 2
    concepts_added: ClassVar[frozenset[str]] = frozenset({"text"})

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        letter = fifth(*LETTER, severity, rng) * scene.image.shape[0]
        lines = round(fifth(*LINES, severity, rng))
        colour = str(rng.choice(list(COLOURS), p=[0.8, 0.1, 0.1]))
        corners = [CORNERS[i] for i in rng.permutation(len(CORNERS))]
        words = _words(rng)[:lines]
        opacity, corner, factor = _free_place(scene, words, letter, corners)
        opacity = np.where(scene.protected, 0, opacity).astype(np.float32)
        over = opacity[:, :, None]
        image = scene.image + over * (np.array(COLOURS[colour], np.float32) - scene.image)
        details = {"adds": self.adds if opacity.any() else "", "text": words, "corner": corner}
        details |= {"letter_pixels": letter * factor, "colour": colour}
        return np.rint(image).astype(np.uint8), details


def _words(rng: Rng) -> list[str]:
    """Return ten lines in the order of a device, with random values of no real person."""
    day, month, year = rng.integers(1, 29), rng.integers(1, 13), rng.integers(2004, 2025)
    hour, minute, second = rng.integers(7, 19), rng.integers(60), rng.integers(60)
    date = (f"{day:02d}/{month:02d}/{year}", f"{year}/{month:02d}/{day:02d}")[rng.integers(2)]
    lines = [
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
    return [str(line) for line in lines]


def _free_place(
    scene: Scene, words: list[str], letter: float, corners: list[str]
) -> tuple[Floats, str, float]:
    """Return the opacity (H, W) of the text, its corner and its size as a share of ``letter``.

    It covers nothing protected, or as little as possible.
    """

    def tries() -> Iterator[tuple[float, tuple[Floats, str, float]]]:
        for factor, corner in product(SMALLER, corners):
            opacity = _printed(scene.field.shape, words, letter * factor, corner)
            yield float(opacity[scene.protected].sum()), (opacity, corner, factor)

    return cheapest(tries())


def _printed(shape: tuple[int, ...], words: list[str], letter: float, corner: str) -> Floats:
    """Return the opacity (H, W) of lines in a corner, without those that there is no room for."""
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
