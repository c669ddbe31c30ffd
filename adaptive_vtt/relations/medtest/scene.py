"""Base class of MedTest's relations, and the scene that they change: field, masks and light.

MedTest resizes all images to 512 x 512. Here images keep their size, and lengths are shares of it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar, TypeVar

import cv2
import numpy as np
import numpy.typing as npt

from ...errors import unexpected
from ...types import FollowUp, Image, Mask, Sample
from ..base import LabelPreserving, Rng

Floats = npt.NDArray[np.floating[Any]]
T = TypeVar("T")
FieldOf = Callable[[Sample], Mask]
"""A user's function that returns the visible field (H, W), False on the black frame."""
Changed = tuple[Image, Mapping[str, Any]]
"""Image of a follow-up, and all random numbers that determine it."""

DARK = 24
"""Grey level (0..255) at or below which a pixel may belong to the black frame."""

NOTCH = 0.06
"""Minimum width of a black notch in the field's edge that is frame (share of the shorter side)."""

SOFT_EDGE = 0.006
"""Width of the field's edge, where pixels may be a mixture of tissue and frame (share of the
shorter side)."""

SMALLEST_FIELD = 0.01
"""Minimum share of the image in a visible field; an image with less is dark and has no frame."""


def cheapest(tries: Iterable[tuple[float, T]]) -> T:
    """Return the first candidate with cost 0, or else the first one with the lowest cost.

    Args:
        tries: Yields one or more pairs (cost, candidate); not continued after cost 0.
    """
    others = iter(tries)
    best = next(others)
    while best[0] > 0 and (other := next(others, None)) is not None:
        best = min(best, other, key=itemgetter(0))
    return best[1]


@dataclass(frozen=True)
class Scene:
    """Image to change, with its visible field and the masks to protect.

    Attributes:
        image: RGB image (H, W, 3).
        field: Mask (H, W) of the visible field, False on the black frame.
        protected: Union (H, W) of the sample's masks, which additions must not cover.
    """

    image: Image
    field: Mask
    protected: Mask

    @classmethod
    def of(cls, sample: Sample, field_of: FieldOf | None) -> "Scene":
        """Return the scene of a sample that has an image; grey images become RGB."""
        image = np.ascontiguousarray(sample.require_image())
        if image.shape[2] == 1:
            image = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB).reshape(*image.shape[:2], 3)
        protected = np.zeros(image.shape[:2], np.bool_)
        for name, mask in sample.masks.items():
            protected |= _fitting(mask, image, f"sample {sample.id!r}: mask {name!r}")
        if field_of is None:
            return cls(image, visible_field(image), protected)
        field = _fitting(field_of(sample), image, f"sample {sample.id!r}: visible field")
        return cls(image, field, protected)

    @property
    def side(self) -> int:
        """The shorter side in pixels, the unit of lengths."""
        return min(self.image.shape[:2])

    @cached_property
    def area(self) -> int:
        """Number of pixels of the visible field."""
        return max(1, int(np.count_nonzero(self.field)))

    @cached_property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, width and height of the visible field."""
        return cv2.boundingRect(self.field.view(np.uint8))

    @cached_property
    def light(self) -> Floats:
        """Smoothed brightness (H, W) in 0..1, without any influence of the black frame."""
        small = _small(_value(self.image).astype(np.float32) / 255, self.field)
        height, width = self.field.shape
        return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)

    @cached_property
    def brightness(self) -> float:
        """Mean brightness of the visible field, 0..1."""
        return cv2.mean(_value(self.image), self.field.view(np.uint8))[0] / 255

    @cached_property
    def tint(self) -> Floats:
        """Mean colour (3,) of the visible field over its mean level; 1 if it is grey."""
        mean = np.array(cv2.mean(self.image, self.field.view(np.uint8))[:3], np.float32)
        return (mean + 1) / (mean.mean() + 1)

    @cached_property
    def grey_mask(self) -> Floats:
        """MedTest's grey mask (H, W) in 0..1, a sigmoid of local brightness.

        It scales additions, so that nothing bright appears in the dark. The thesis states neither
        gain nor offset. Here half the mean brightness gives 1/2, and 0.1 more gives 0.73.
        """
        return 1 / (1 + np.exp((self.brightness / 2 - self.light) / 0.1))

    @cached_property
    def shown(self) -> Floats:
        """Share (H, W) of tissue in the pixels, in 0..1; the edge of a frame is soft.

        It is 1 in the field, and 0 on the frame and on printed text, which lie in front of the
        tissue. For the field's outermost pixels it is their brightness divided by that of the
        tissue next to them, and 0 if they are as dark as the frame.
        """
        field = self.field.view(np.uint8)
        shown = np.where(printed(self.image), 0, field).astype(np.float32)
        reach = round(SOFT_EDGE * self.side)
        if reach == 0 or self.field.all():
            return shown
        inner = cv2.erode(field, _square(2 * reach + 1), borderValue=1)
        value, size = _value(self.image), (4 * reach + 1,) * 2
        tissue = cv2.blur(value * inner, size)
        share = cv2.blur(inner * np.uint8(255), size)
        edge = (field > inner) & (share > 0)
        level = value[edge]
        tissue_level = tissue[edge] * (np.float32(255) / share[edge])
        shown[edge] *= np.where(level > DARK, level / np.maximum(tissue_level, 1), 0).clip(0, 1)
        return shown

    def inside_only(self, changed: Image, of_black: float = 0.0) -> Image:
        """Return ``changed`` in the visible field, and the source on the frame and printed text.

        Args:
            changed: The changed image.
            of_black: Level to which the change raises black. The frame stays black, so this is
                subtracted from the frame's share of mixed pixels.
        """
        image = cv2.copyTo(changed, (self.shown > 0).view(np.uint8), self.image.copy())
        edge = (self.shown > 0) & (self.shown < 1)
        if of_black > 0:
            raised = (1 - self.shown[edge]) * np.float32(of_black)
            image[edge] = np.clip(np.rint(image[edge] - raised[:, None]), 0, 255)
        return image


def visible_field(image: Image) -> Mask:
    """Return the visible field (H, W) of an image: the image without its black frame.

    Dark regions that touch the image's border are frame. The field is the convex hull of the
    largest other region without wide black notches, where devices show a small picture. So the
    field includes a dark lumen but no text on the frame. A dark image has no frame. MedTest trained
    a model for this step, which it does not describe.
    """
    value = cv2.medianBlur(_value(image), 5 if min(image.shape[:2]) >= 64 else 1)
    outside = _touching_border((value <= DARK).view(np.uint8))
    bright = cv2.bitwise_not(outside)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(bright, connectivity=4)
    everywhere = np.ones(value.shape, np.bool_)
    if count < 2:
        return everywhere
    largest = 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
    if stats[largest, cv2.CC_STAT_AREA] in range(int(SMALLEST_FIELD * value.size) + 1):
        return everywhere
    contours, _ = cv2.findContours(
        (labels == largest).view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
    )
    field = np.zeros(value.shape, np.uint8)
    cv2.fillConvexPoly(field, cv2.convexHull(np.concatenate(contours)), 1)
    wide = cv2.morphologyEx(outside, cv2.MORPH_OPEN, _square(NOTCH * min(value.shape)))
    outermost = cv2.erode(field, _square(3)) < field  # the hull's outermost pixels may be frame
    field[(outside > 0) & ((wide > 0) | outermost)] = 0
    return field.view(np.bool_)


def fifth(low: float, high: float, severity: int, rng: Rng) -> float:
    """Return a uniform draw from the ``severity``-th fifth of the range ``low`` to ``high``."""
    return low + (high - low) * (severity - float(rng.random())) / 5


def folds(light: Floats) -> Floats:
    """Return the darkness (H, W) relative to the surroundings, in standard deviations, -2..2.

    It is high in folds of the tissue.
    """
    around = cv2.GaussianBlur(light, (0, 0), 0.1 * min(light.shape))
    return ((around - light) / max(float((around - light).std()), 0.01)).clip(-2, 2)


class MedTest(LabelPreserving):
    """Base class of the nine relations, which define ``change``.

    Args:
        field: Function Sample -> mask (H, W) of the visible field; None: the black frame is
            detected.
    """

    adds: ClassVar[str] = ""
    """Object that the relation adds to the image; "" for light and motion. ``details["adds"]`` of a
    follow-up repeats it if the object is visible, for oracles whose true answers (is there text?
    how many instruments?) change with it."""

    concepts_added: ClassVar[frozenset[str]] = frozenset()
    """Concepts whose truth the addition changes, which are therefore not asked about."""

    drawing: ClassVar[int] = 1
    """Version of the drawing, raised when the same random numbers give other images. It is part of
    the fingerprint."""

    def __init__(self, field: FieldOf | None = None) -> None:
        self.field = field

    @property
    def fingerprint(self) -> str | None:
        """The version of the drawing if it is not the first, and the fingerprints of files."""
        drawing = f"drawing {self.drawing}" if self.drawing > 1 else None
        parts = [drawing, *(getattr(part, "fingerprint", None) for part in self.parts())]
        return "; ".join(filter(None, parts)) or None

    def parts(self) -> tuple[object, ...]:
        """Return the parts that follow-ups depend on: the field, and the source of cut-outs."""
        return (self.field,)

    def apply(self, sample: Sample, severity: int, rng: Rng) -> FollowUp:
        """Return the follow-up; ``details`` has all random numbers.

        Raises:
            InputError: The severity is not in 1..5, or a mask has another size than the image.
        """
        self.check(severity)
        if sample.image is None:
            return FollowUp(None)
        image, details = self.change(Scene.of(sample, self.field), severity, rng)
        if sample.image.shape[2] == 1:
            image = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).reshape(sample.image.shape)
        return FollowUp(np.ascontiguousarray(image), details)

    def change(self, scene: Scene, severity: int, rng: Rng) -> Changed:
        """Return the changed image (H, W, 3), a new array, and the random numbers it depends on."""
        raise TypeError(f"{type(self).__name__} defines no change")

    def applies(self, concept: str) -> bool:
        return concept.lower() not in self.concepts_added


def _value(image: Image) -> npt.NDArray[np.uint8]:
    """Return the brightest channel (H, W), the V of HSV."""
    first, *others = cv2.split(image)
    for channel in others:
        first = cv2.max(first, channel)
    return first


def _touching_border(dark: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return 255 for dark regions that reach the image's border, 0 elsewhere."""
    _, labels = cv2.connectedComponents(dark, connectivity=8)
    edges = (labels[0], labels[-1], labels[:, 0], labels[:, -1])
    lut = np.zeros(int(labels.max()) + 1, np.uint8)
    lut[np.concatenate(edges)] = 255
    lut[0] = 0
    return lut[labels]


def _square(side: float) -> npt.NDArray[np.uint8]:
    return np.ones((max(1, round(side)),) * 2, np.uint8)


def _small(value: Floats, field: Mask) -> Floats:
    """Return the means of ``value`` over the field in up to 64 x 64 cells, smoothed."""
    height, width = value.shape
    size = (min(width, 64), min(height, 64))
    weight = field.astype(np.float32)
    total = cv2.resize(value * weight, size, interpolation=cv2.INTER_AREA).reshape(size[::-1])
    share = cv2.resize(weight, size, interpolation=cv2.INTER_AREA).reshape(size[::-1])
    total, share = (cv2.GaussianBlur(cell, (0, 0), 1.5) for cell in (total, share))
    return total / np.maximum(share, 1e-6)


def _fitting(mask: Mask, image: Image, where: str) -> Mask:
    if mask.shape != image.shape[:2]:
        expected = f"{image.shape[0]} x {image.shape[1]} like the image"
        raise unexpected(where, expected, " x ".join(map(str, mask.shape)))
    return np.ascontiguousarray(mask, np.bool_)


# -- text that a device printed into the image: thin bright letters in straight lines --------------

STROKE = 0.014
"""Maximum width of a letter's stroke, as a share of the shorter side."""

CONTRAST, BRIGHT = 60, 140
"""Minimum contrast and level of a stroke in the green channel. Devices print in white, green and
yellow, and tissue is red."""

HEIGHT = (0.008, 0.06)
"""Minimum and maximum height of letters, as shares of the shorter side."""

GAP = 0.8
"""Maximum distance between letters of a line, in heights of the line."""

LETTERS = 4
"""Minimum number of letters in a line; so few highlights are mistaken for text."""

Levels = npt.NDArray[np.uint8]


def printed(image: Image) -> Mask:
    """Return a mask (H, W) of the text printed into an RGB image, including edges of letters."""
    side = min(image.shape[:2])
    green = np.ascontiguousarray(image[:, :, 1])
    stroke = 2 * max(1, round(STROKE * side / 2)) + 1
    thin = cv2.morphologyEx(green, cv2.MORPH_TOPHAT, np.ones((stroke, stroke), np.uint8))
    marks = ((thin > CONTRAST) & (green > BRIGHT)).view(np.uint8)
    letters = _of_height(marks, HEIGHT[0] * side, HEIGHT[1] * side)
    if not letters.any():
        return letters.view(np.bool_)
    marks_in_lines = _in_lines(letters)
    # include the colons and points between them
    marks_in_lines = marks & cv2.dilate(marks_in_lines, np.ones((1, 2 * stroke + 1), np.uint8))
    return cv2.dilate(marks_in_lines, np.ones((3, 3), np.uint8)).view(np.bool_)


def _of_height(marks: Levels, lowest: float, highest: float) -> Levels:
    """Return the connected pieces of ``marks`` that have the size of letters."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(marks, connectivity=8)
    height, width = stats[:, cv2.CC_STAT_HEIGHT], stats[:, cv2.CC_STAT_WIDTH]
    fits = (height >= max(3.0, lowest)) & (height <= highest) & (width <= 2 * highest)
    fits[0] = False
    if np.count_nonzero(fits) < LETTERS:
        return np.zeros_like(marks)
    return fits.view(np.uint8)[labels]


def _in_lines(letters: Levels) -> Levels:
    """Return the letters in lines of at least LETTERS at about the same height."""
    _, labels, stats, centres = cv2.connectedComponentsWithStats(letters, connectivity=8)
    height = stats[:, cv2.CC_STAT_HEIGHT]
    reach = max(1, round(GAP * float(np.median(height[1:]))))
    joined = cv2.dilate(letters, np.ones((1, 2 * reach + 1), np.uint8))
    _, lines = cv2.connectedComponents(joined, connectivity=8)
    line_of = np.full(len(stats), -1)  # line of a letter; -1 for the background
    inside = labels > 0
    line_of[labels[inside]] = lines[inside]  # all pixels of a letter are in the same line
    keep = np.zeros(len(stats), np.uint8)
    for line in set(line_of[1:].tolist()):
        members = np.flatnonzero(line_of == line)
        level = np.ptp(centres[members, 1]) <= 0.6 * height[members].max()
        keep[members] = len(members) >= LETTERS and level
    return keep[labels]
