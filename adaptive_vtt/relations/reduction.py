"""Crop, stretch and rotate, which keep a part of an image, and the exact part that they keep.

They follow REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE
2024, sections IV-C and IV-D). The visible share of an object decides what an answer about it should
be. A pixel is visible if its centre lies in the kept part, which is one interval of each row.

Boxes are (x1, y1, x2, y2) in pixels; x2 and y2 are exclusive. No candidate keeps the whole image.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from ..errors import InputError, unexpected
from ..types import Floats, FollowUp, Image, Indices, Mask, Sample
from .base import Laddered, RelationDefaults, Rng, Rung

MIN_STRETCH = 0.6
"""Minimum share of an axis that a stretch keeps (REIC)."""
MAX_DEGREES = 30
"""Maximum angle of a rotation in either direction (REIC)."""


class Reduction:
    """Base class of reductions."""

    def spans(self, height: int, width: int) -> tuple[Indices, Indices]:
        """Return the visible interval of each row: first column (H,) and last + 1 (H,)."""
        raise TypeError(f"{type(self).__name__} defines no spans")

    def visible(self, height: int, width: int) -> Mask:
        """Return a mask (H, W) of the source's visible pixels, REIC's M_tran."""
        first, end = self.spans(height, width)
        columns = np.arange(width)
        return (columns >= first[:, None]) & (columns < end[:, None])


class Rectangle(Reduction):
    """Base class of reductions that keep an upright rectangle."""

    def rectangle(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return the kept box; raise InputError if the image does not contain it."""
        raise TypeError(f"{type(self).__name__} defines no rectangle")

    def spans(self, height: int, width: int) -> tuple[Indices, Indices]:
        left, top, right, bottom = self.rectangle(height, width)
        first, end = np.zeros((2, height), np.int64)
        first[top:bottom], end[top:bottom] = left, right
        return first, end


@dataclass(frozen=True)
class Crop(Rectangle):
    """Crop to a box; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    def __str__(self) -> str:
        return f"crop {self.left},{self.top},{self.right},{self.bottom}"

    def rectangle(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return the kept box; raise InputError if the image does not contain it."""
        if not (0 <= self.left < self.right <= width and 0 <= self.top < self.bottom <= height):
            expected = f"a box within {width} x {height} pixels"
            raise unexpected("crop", expected, (self.left, self.top, self.right, self.bottom))
        return self.left, self.top, self.right, self.bottom

    def image(self, image: Image) -> Image:
        """Return the follow-up of a source H x W x C, in the size of the kept part."""
        left, top, right, bottom = self.rectangle(*image.shape[:2])
        return image[top:bottom, left:right].copy()

    def mask(self, mask: Mask) -> Mask:
        """Return the mask in the follow-up, given the mask (H x W) in the source."""
        left, top, right, bottom = self.rectangle(*mask.shape)
        return mask[top:bottom, left:right].copy()

    def boxes(self, boxes: npt.ArrayLike, height: int, width: int) -> Floats:
        """Return boxes (n, 4) in the follow-up, clipped to it; invisible ones have area 0."""
        left, top, right, bottom = self.rectangle(height, width)
        moved = np.asarray(boxes, float).reshape(-1, 4) - [left, top, left, top]
        return _clipped(moved, bottom - top, right - left)


@dataclass(frozen=True)
class Stretch(Rectangle):
    """Crop of one axis to start..stop, resized to the source's size.

    Args:
        axis: 0: vertical, 1: horizontal.
        start: First row or column that is kept.
        stop: Last row or column that is kept + 1.
    """

    axis: int
    start: int
    stop: int

    def __str__(self) -> str:
        return f"stretch {('down', 'across')[self.axis]} {self.start}..{self.stop}"

    def rectangle(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Return the kept box; raise InputError if it is less than 0.6 of the axis."""
        length = (height, width)[self.axis]
        shortest = MIN_STRETCH * length
        if self.start < 0 or self.stop > length or self.stop - self.start < shortest:
            expected = f"an interval within 0..{length} that keeps at least {MIN_STRETCH} of it"
            raise unexpected("stretch", expected, f"{self.start}..{self.stop}")
        if self.axis == 0:
            return 0, self.start, width, self.stop
        return self.start, 0, self.stop, height

    def image(self, image: Image) -> Image:
        height, width = image.shape[:2]
        return resized(Crop(*self.rectangle(height, width)).image(image), height, width)

    def mask(self, mask: Mask) -> Mask:
        height, width = mask.shape
        return resized_mask(Crop(*self.rectangle(height, width)).mask(mask), height, width)

    def boxes(self, boxes: npt.ArrayLike, height: int, width: int) -> Floats:
        left, top, right, bottom = self.rectangle(height, width)
        kept = Crop(left, top, right, bottom).boxes(boxes, height, width)
        across, down = width / (right - left), height / (bottom - top)
        return kept * [across, down, across, down]


@dataclass(frozen=True)
class Rotate(Reduction):
    """Rotation about the centre (counter-clockwise), cropped to the largest upright rectangle.

    The rectangle has no black border: all its pixels are interpolated between pixels of the source.
    """

    degrees: float

    def __str__(self) -> str:
        return f"rotate {self.degrees:g} degrees"

    def __post_init__(self) -> None:
        if not abs(self.degrees) <= MAX_DEGREES:
            raise unexpected("rotate", f"-{MAX_DEGREES} to {MAX_DEGREES} degrees", self.degrees)

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width of the follow-up."""
        across, down = largest_rectangle(width - 1, height - 1, self.degrees)
        return int(down + 1e-9) + 1, int(across + 1e-9) + 1

    @lru_cache(maxsize=1024)  # noqa: B019 - frozen and small; most images share a few sizes
    def spans(self, height: int, width: int) -> tuple[Indices, Indices]:
        """Return the visible interval of each row as read-only arrays, which are cached."""
        kept_height, kept_width = self.size(height, width)
        cos, sin = self._turn
        y = np.arange(height, dtype=np.float64) - (height - 1) / 2
        # |cos x + sin y| <= half the kept width, |cos y - sin x| <= half the kept height
        left, right = _interval(cos, sin * y, kept_width / 2)
        bottom, top = _interval(-sin, cos * y, kept_height / 2)
        middle = (width - 1) / 2
        first = np.ceil(np.maximum(left, bottom) + middle - 1e-9)
        last = np.floor(np.minimum(right, top) + middle + 1e-9)
        first = np.clip(first, 0, width).astype(np.int64)
        end = np.maximum(np.clip(last + 1, 0, width).astype(np.int64), first)
        first.flags.writeable = end.flags.writeable = False
        return first, end

    def image(self, image: Image) -> Image:
        return self._warped(np.ascontiguousarray(image), cv2.INTER_LINEAR)

    def mask(self, mask: Mask) -> Mask:
        return self._warped(mask.astype(np.uint8), cv2.INTER_NEAREST) > 0

    def boxes(self, boxes: npt.ArrayLike, height: int, width: int) -> Floats:
        x1, y1, x2, y2 = np.asarray(boxes, float).reshape(-1, 4).T
        corners = np.array([[x1, x2, x2, x1], [y1, y1, y2, y2], np.ones((4, len(x1)))])
        corners[:2] -= 0.5  # from pixel edges to pixel centres, and back
        x, y = np.einsum("ij,jkn->ikn", self._matrix(height, width), corners) + 0.5
        around = np.stack([x.min(0), y.min(0), x.max(0), y.max(0)], axis=1)
        return _clipped(around, *self.size(height, width))

    @property
    def _turn(self) -> tuple[float, float]:
        angle = np.deg2rad(self.degrees)
        return float(np.cos(angle)), float(np.sin(angle))

    def _matrix(self, height: int, width: int) -> Floats:
        """Return the map (2, 3) from pixel centres of the source to those of the follow-up."""
        kept_height, kept_width = self.size(height, width)
        cos, sin = self._turn
        turn = np.array([[cos, sin], [-sin, cos]])
        middle = np.array([(kept_width - 1) / 2, (kept_height - 1) / 2])
        shift = middle - turn @ [(width - 1) / 2, (height - 1) / 2]
        return np.column_stack([turn, shift])

    def _warped(self, image: Image, flags: int) -> Image:
        height, width = self.size(*image.shape[:2])
        matrix, border = self._matrix(*image.shape[:2]), cv2.BORDER_REPLICATE
        warped = cv2.warpAffine(image, matrix, (width, height), flags=flags, borderMode=border)
        return warped.reshape(height, width, *image.shape[2:])


Reductions = Sequence[Crop | Stretch | Rotate]


def largest_rectangle(width: float, height: float, degrees: float) -> tuple[float, float]:
    """Return width and height of the largest upright rectangle in a rotated rectangle.

    All four corners touch the rotated sides, unless the rotated rectangle is long and thin: then
    two opposite corners touch its long sides.
    """
    cos, sin = abs(np.cos(np.deg2rad(degrees))), abs(np.sin(np.deg2rad(degrees)))
    if sin < 1e-12:
        return width, height
    long, short = max(width, height), min(width, height)
    if short <= 2 * sin * cos * long:
        along, across = short / 2 / sin, short / 2 / cos
        return (along, across) if width >= height else (across, along)
    spread = cos**2 - sin**2
    return (width * cos - height * sin) / spread, (height * cos - width * sin) / spread


STARTS, STEPS = 10, 20
"""Most top-left points of crops, or starts of stretches per axis; ends per axis for each."""


def crops(height: int, width: int, rng: Rng, *, larger_than: float = 0.0) -> list[Crop]:
    """Return up to STARTS * STEPS^2 crops: random top-left points with grids of bottom-right ones.

    The grid divides the area to the right and below evenly, as the paper does not state a step.

    Args:
        height: Height of the image in pixels.
        width: Width of the image in pixels.
        rng: Generator.
        larger_than: Area in pixels that crops exceed; REIC's is the mean area of the objects.
    """
    left, top = rng.integers(0, width, 64 * STARTS), rng.integers(0, height, 64 * STARTS)
    large_enough = np.flatnonzero((width - left) * (height - top) > larger_than)[:STARTS]
    left, top = left[large_enough], top[large_enough]
    shares = np.arange(1, STEPS + 1) / STEPS
    right = left[:, None] + np.ceil((width - left)[:, None] * shares).astype(int)
    bottom = top[:, None] + np.ceil((height - top)[:, None] * shares).astype(int)
    grid = np.broadcast_arrays(
        left[:, None, None], top[:, None, None], right[:, :, None], bottom[:, None, :]
    )
    boxes = np.unique(np.stack([part.ravel() for part in grid], axis=1), axis=0)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    kept = boxes[(area > larger_than) & (area < height * width)]
    return [Crop(*box) for box in kept.tolist()]


def stretches(height: int, width: int, rng: Rng) -> list[Stretch]:
    """Return up to STARTS * STEPS stretches per axis: random starts, evenly spaced stops."""
    intervals = set()
    for axis, length in enumerate((height, width)):
        shortest = int(np.ceil(MIN_STRETCH * length))
        for start in rng.integers(0, length - shortest + 1, STARTS).tolist():
            stops = np.unique(np.rint(np.linspace(start + shortest, length, STEPS)).astype(int))
            intervals |= {(axis, start, stop) for stop in stops.tolist()} - {(axis, 0, length)}
    return [Stretch(*interval) for interval in sorted(intervals)]


def rotations() -> list[Rotate]:
    """Return the rotations by whole degrees from -30 to 30, except 0."""
    return [Rotate(degrees) for degrees in range(-MAX_DEGREES, MAX_DEGREES + 1) if degrees]


def visible_shares(masks: Sequence[Mask] | Mask, reductions: Reductions) -> Floats:
    """Return the visible shares (m, n) of m masks (H, W) after n reductions.

    This is REIC's ratio, read as sum(M_loc x M_tran) / sum(M_loc). With summed-area tables a crop
    or stretch takes constant time, and a rotation time linear in the image's height.

    Raises:
        InputError: A mask is empty.
    """
    shape = np.shape(masks)[1:]
    sums = np.stack([cv2.integral(mask.astype(np.uint8)) for mask in masks])  # int32
    areas = sums[:, -1, -1]
    if not areas.all():
        raise InputError(f"visible shares: mask {int(np.argmin(areas))} is empty")
    visible = np.empty((len(sums), len(reductions)))  # in pixels
    rotated = {i: r for i, r in enumerate(reductions) if isinstance(r, Rotate)}
    upright = {i: r for i, r in enumerate(reductions) if not isinstance(r, Rotate)}
    if upright:
        x1, y1, x2, y2 = np.array([r.rectangle(*shape) for r in upright.values()]).T
        pixels = sums[:, y2, x2] - sums[:, y1, x2] - sums[:, y2, x1] + sums[:, y1, x1]
        visible[:, [*upright]] = pixels
    if rotated:
        rows, y = np.diff(sums, axis=1), np.arange(shape[0])
        spans = np.array([r.spans(*shape) for r in rotated.values()])
        pixels_in_row = rows[:, y, spans[:, 1]] - rows[:, y, spans[:, 0]]
        visible[:, [*rotated]] = pixels_in_row.sum(axis=2)
    return visible / areas[:, None]


def resized(image: Image, height: int, width: int) -> Image:
    """Return an image resized bilinearly, with its channel axis."""
    new = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    return new.reshape(height, width, *image.shape[2:])


def resized_mask(mask: Mask, height: int, width: int) -> Mask:
    """Return a mask resized with nearest-pixel interpolation."""
    bits = mask.astype(np.uint8)
    return cv2.resize(bits, (width, height), interpolation=cv2.INTER_NEAREST_EXACT) > 0


@dataclass(frozen=True)
class Reduce(Laddered):
    """Relation of one kind of reduction; follow-ups have the size of their source.

    It draws TRIES random placements and takes the one with the largest visible share of the least
    visible object of ``sample.masks``, so that answers about these objects should hold. Without
    masks it takes the first. ``details`` of a follow-up are the ``reduction`` and ``visible``, a
    mask of the source's visible pixels.

    Args:
        name: Name of the relation.
        place: Function that returns a random reduction for height, width, strength and a generator.
        ladder: Strength of each severity. Crop: kept share of the area, at the source's aspect
            ratio; stretch: kept share of the axis; rotate: degrees.
        about: Description in one line.
    """

    name: str
    place: Callable[[int, int, float, Rng], Crop | Stretch | Rotate]
    ladder: tuple[tuple[float, ...], ...]
    about: str

    TRIES = 16
    reduces = True

    def made(self, sample: Sample, parameters: Rung, rng: Rng) -> FollowUp:
        source = sample.require_image()
        height, width = source.shape[:2]
        placements = [self.place(height, width, parameters[0], rng) for _ in range(self.TRIES)]
        objects = [mask for mask in sample.masks.values() if mask.any()]
        best = int(visible_shares(objects, placements).min(axis=0).argmax()) if objects else 0
        reduction = placements[best]
        details = {"reduction": reduction, "visible": reduction.visible(height, width)}
        return FollowUp(resized(reduction.image(source), height, width), details)

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        if "reduction" not in follow_up.details:
            return mask
        return resized_mask(follow_up.details["reduction"].mask(mask), *mask.shape)


def relations() -> list[RelationDefaults]:
    """Return the relations crop, stretch and rotate with five severities each."""
    return [
        Reduce(f"reduction/{kind}", place, tuple((s,) for s in strengths), about)
        for kind, place, strengths, about in (
            ("crop", _place_crop, (0.9, 0.8, 0.7, 0.6, 0.5), _CROPS),
            ("stretch", _place_stretch, (0.92, 0.84, 0.76, 0.68, 0.6), _STRETCHES),
            ("rotate", _place_rotate, (6, 12, 18, 24, 30), _ROTATIONS),
        )
    ]


_CROPS = "crop at the same aspect; strength: share of the area kept"
_STRETCHES = "part of one axis drawn out; strength: share of the axis kept"
_ROTATIONS = "turn either way without black border; strength: degrees"


def _place_crop(height: int, width: int, share: float, rng: Rng) -> Crop:
    side = np.sqrt(share)
    tall, wide = max(1, round(side * height)), max(1, round(side * width))
    left, top = int(rng.integers(width - wide + 1)), int(rng.integers(height - tall + 1))
    return Crop(left, top, left + wide, top + tall)


def _place_stretch(height: int, width: int, share: float, rng: Rng) -> Stretch:
    axis = int(rng.integers(2))
    length = (height, width)[axis]
    kept = int(np.ceil(share * length))
    start = int(rng.integers(length - kept + 1))
    return Stretch(axis, start, start + kept)


def _place_rotate(height: int, width: int, degrees: float, rng: Rng) -> Rotate:
    return Rotate(degrees if rng.random() < 0.5 else -degrees)


def _interval(slope: float, offset: Floats, half: float) -> tuple[Floats, Floats]:
    """Return the lowest and highest x with |slope x + offset| <= half, in offset's shape."""
    if abs(slope) < 1e-12:
        inside = np.abs(offset) <= half + 1e-9
        return np.where(inside, -np.inf, np.inf), np.where(inside, np.inf, -np.inf)
    ends = np.sort([(-half - offset) / slope, (half - offset) / slope], axis=0)
    return ends[0], ends[1]


def _clipped(boxes: Floats, height: int, width: int) -> Floats:
    return np.clip(boxes, 0, [width, height, width, height])
