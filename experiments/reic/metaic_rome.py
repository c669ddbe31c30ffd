"""Insert an object into a picture as MetaIC does, or remove one as ROME does.

REIC (TSE 2024), section V-B, compares itself with both. MetaIC is Yu et al., Automated Testing of
Image Captioning Systems (ISSTA 2022), with its public code. Two of its rules are open. Here,
overlap is the largest share of any annotated box that the inserted box covers, and kinds that are
annotated in the picture are not inserted.

ROME is Yu et al., ROME: Testing Image Captioning Systems via Recursive Object Melting (ISSTA 2023),
with its public code. As there, the largest object is never removed, and with a ``depth`` above 1
several objects are removed, one after the other. Follow-ups are always compared with the source
picture, which is captioned anyway. Holes are filled by OpenCV's inpainting (Telea) unless there is
a filler, such as LaMa.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from adaptive_vtt.config.datasets import read_dataset
from adaptive_vtt.errors import InputError
from adaptive_vtt.relations.base import LabelPreserving
from adaptive_vtt.types import CAPTION, Box, Filler, FollowUp, Image, Mask, Sample, around, common
from adaptive_vtt.utils.options import Option, check_options
from adaptive_vtt.utils.other_code import fingerprint_of
from adaptive_vtt.utils.random_streams import generator

Floats = npt.NDArray[np.float32]
Window = tuple[slice, slice]

NOT_ELIGIBLE = "not eligible"
"""The entry of ``FollowUp.details`` that says why a sample has no such follow-up."""
MIN_SIDE = 8
"""Objects that are narrower or lower than this, in pixels, are not cut out."""

PER_KIND = 5
"""Cut-outs of each kind."""


class Samples(Protocol):
    """The members of a dataset that cutting out objects needs."""

    name: str

    def __len__(self) -> int:
        """Return the number of samples."""

    def sample(self, index: int) -> Sample:
        """Return the sample at ``index``, with its image, masks and boxes."""


@dataclass(frozen=True)
class CutOut:
    """An object to paste.

    Args:
        label: Its kind.
        image: Its colours, H x W x 3 (uint8, RGB).
        alpha: Its opacity, H x W (0..1).

    Raises:
        InputError: Image and opacity differ in size, or are empty.
    """

    label: str
    image: Image
    alpha: Floats

    def __post_init__(self) -> None:
        if self.image.shape != (*self.alpha.shape, 3) or not self.alpha.size:
            raise InputError(
                f"cut-out {self.label!r}: expected an image H x W x 3 and its opacity H x W, got "
                f"{self.image.shape} and {self.alpha.shape}"
            )


def cut_outs(
    dataset: Samples,
    per_kind: int = PER_KIND,
    among: int = 300,
) -> tuple[CutOut, ...]:
    """Return objects of the first ``among`` samples, the first ``per_kind`` of every kind.

    Objects that reach the edge of the image or overlap another's box are left out, since they may
    not be whole, or not alone.

    Raises:
        InputError: No object is left.
    """
    cut_out: list[CutOut] = []
    kept: Counter[str] = Counter()
    for index in range(min(among, len(dataset))):
        sample = dataset.sample(index)
        boxes = annotated(sample)
        for box in boxes:
            if kept[box.label] < per_kind and _whole_and_alone(box, boxes, sample):
                cut_out.append(cut(sample, box))
                kept[box.label] += 1
    if not cut_out:
        raise InputError(
            f"cut-outs: expected annotated objects that stand alone, {MIN_SIDE} x {MIN_SIDE} "
            f"pixels at least, found none in {min(among, len(dataset))} samples of {dataset.name!r}"
        )
    return tuple(cut_out)


def cut(sample: Sample, box: Box) -> CutOut:
    """Return the object in ``box``, opaque where it is masked."""
    here = window(box)
    image = sample.require_image()[here]
    colour = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB) if image.shape[2] == 1 else image.copy()
    return CutOut(box.label, colour, pixels(sample, box)[here].astype(np.float32))


def annotated(sample: Sample) -> tuple[Box, ...]:
    """Return the labelled boxes of a sample, or without any the boxes around its masks.

    They are in whole pixels.
    """
    if sample.image is None:
        return ()
    height, width = sample.image.shape[:2]
    boxes = [box for box in sample.boxes if box.label] or [
        Box(name, *around(mask)) for name, mask in sample.masks.items() if mask.any()
    ]
    whole = [_whole(box, height, width) for box in boxes]
    return tuple(box for box in whole if box.area > 0)


def pixels(sample: Sample, box: Box) -> Mask:
    """Return the pixels (H x W) of the object in ``box``: its mask, or the box without a mask."""
    boxed = np.zeros(sample.require_image().shape[:2], bool)
    boxed[window(box)] = True
    mask = sample.masks.get(box.label)
    masked = boxed if mask is None else boxed & mask
    return masked if masked.any() else boxed


def paste(image: Image, cut_out: CutOut, box: Box) -> Image:
    """Return a copy of H x W x 1 or 3 with the cut-out in ``box``, at its size, with soft edges.

    Nothing outside the box changes.
    """
    here = window(box)
    size = (here[1].stop - here[1].start, here[0].stop - here[0].start)
    smaller = size[0] * size[1] < cut_out.alpha.size
    how = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
    colour = cv2.resize(cut_out.image, size, interpolation=how)
    if image.shape[2] == 1:
        colour = cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY)[:, :, None]
    alpha = soft(cv2.resize(cut_out.alpha, size, interpolation=how))[:, :, None]
    after = image.copy()
    after[here] = np.rint(image[here] + alpha * (colour.astype(np.float32) - image[here]))
    return after


def soft(alpha: Floats) -> Floats:
    """Return the opacity with its outermost pixels fading out, inside its old outline."""
    blurred = cv2.GaussianBlur(np.pad(alpha, 2), (5, 5), 1.0)[2:-2, 2:-2]
    return np.minimum(alpha, blurred)


def window(box: Box) -> Window:
    """Return the rows and columns of a box of whole pixels."""
    return slice(int(box.top), int(box.bottom)), slice(int(box.left), int(box.right))


def not_eligible(image: Image, reason: str) -> FollowUp:
    """Return the source again, with the reason why nothing was changed."""
    return FollowUp(image.copy(), {NOT_ELIGIBLE: reason})


def _whole(box: Box, height: int, width: int) -> Box:
    left, top = np.clip(np.floor([box.left, box.top]), 0, [width, height]).tolist()
    right, bottom = np.clip(np.ceil([box.right, box.bottom]), 0, [width, height]).tolist()
    return Box(box.label, left, top, right, bottom, box.score)


def _whole_and_alone(box: Box, boxes: Sequence[Box], sample: Sample) -> bool:
    height, width = sample.require_image().shape[:2]
    inside = min(box.left, box.top) > 0 and box.right < width and box.bottom < height
    large = min(box.right - box.left, box.bottom - box.top) >= MIN_SIDE
    apart = all(common(box, other) == 0 for other in boxes if other is not box)
    return inside and large and apart


# -- MetaIC --------------------------------------------------------------------------------

OVERLAPS = ((-1.0, 0.0), (0.0, 0.15), (0.15, 0.3), (0.3, 0.45))
"""Bounds of the overlap for severities 1..4: above the first, and up to the second."""
FULL = 0.7
"""Largest share of the picture's area that annotated boxes have on average; a fuller picture is not
eligible."""
CROWDED = 0.4
"""Mean share of annotated boxes from which a picture is crowded, so inserted objects are
smaller."""
SIZES = (0.8, 1.3)
SIZES_IF_CROWDED = (0.1, 0.37)
"""Range of the inserted box's area, in mean areas of the annotated boxes."""
TRIES = 8
"""Cut-outs and sizes that are tried before a picture counts as not eligible."""
STEPS = 400
"""Most positions that are tried along each side of the picture."""


@dataclass(frozen=True)
class MetaIC(LabelPreserving):
    """Relation that inserts one of ``cut_outs``; the severity bounds the overlap (``OVERLAPS``).

    The details of a follow-up are "inserted" (label), "box" and "overlap" (share), or "not
    eligible" (the reason). ``cut_outs()`` makes cut-outs of a dataset.

    Raises:
        InputError: There are no cut-outs.
    """

    cut_outs: tuple[CutOut, ...]
    name: str = "metaic"
    severities: tuple[int, ...] = (1, 2, 3, 4)
    about: str = "an object inserted; overlap 0, up to 15, 30, 45 % of an annotated box"

    def __post_init__(self) -> None:
        if not self.cut_outs:
            raise InputError(f"{self.name}: expected at least one cut-out, got none")

    @property
    def fingerprint(self) -> str:
        """A hash of the cut-outs, on which the follow-ups depend."""
        digest = hashlib.blake2b(digest_size=12)
        for each in self.cut_outs:
            digest.update(each.label.encode() + each.image.tobytes() + each.alpha.tobytes())
        return f"{len(self.cut_outs)} cut-outs {digest.hexdigest()}"

    def applies(self, concept: str) -> bool:
        return concept == CAPTION

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        self.check(severity)
        image = sample.image
        if image is None:
            return FollowUp(None)
        boxes = annotated(sample)
        new = [each for each in self.cut_outs if each.label not in {box.label for box in boxes}]
        reason = _unfit(boxes, image.shape[0] * image.shape[1])
        if reason or not new:
            return not_eligible(image, reason or "every kind of cut-out is in the picture")
        for _ in range(TRIES):
            cut_out = new[int(rng.integers(len(new)))]
            placed = _placed(cut_out, boxes, image.shape[:2], OVERLAPS[severity - 1], rng)
            if placed is not None:
                box, overlap = placed
                details = {"inserted": cut_out.label, "box": box, "overlap": overlap}
                return FollowUp(paste(image, cut_out, box), details)
        return not_eligible(image, f"no place found at overlap {severity}")


def metaic(dataset: str, base: Path = Path(), per_kind: int = PER_KIND) -> MetaIC:
    """Return MetaIC for a SPEC.toml, with objects of the [dataset] of the TOML file ``dataset``."""
    return MetaIC(cut_outs(read_dataset(base / dataset), per_kind=per_kind))


def mean_area(boxes: Sequence[Box], image_area: int) -> float:
    """Return the mean area of n > 0 boxes, weighted by the exponentials of shares (softmax)."""
    areas = np.array([box.area for box in boxes])
    return float(np.average(areas, weights=np.exp(areas / image_area)))


def sizes(boxes: Sequence[Box], image_area: int) -> tuple[float, float]:
    """Return the least and largest area of an insertion among ``boxes``, in square pixels."""
    mean = mean_area(boxes, image_area)
    least, most = SIZES if mean / image_area < CROWDED else SIZES_IF_CROWDED
    return least * mean, most * mean


def overlaps(
    boxes: Sequence[Box],
    lefts: npt.NDArray[np.int64],
    tops: npt.NDArray[np.int64],
    width: int,
    height: int,
) -> npt.NDArray[np.float64]:
    """Return the largest share of a box that a new one covers, for each top and left: t x l."""
    largest = np.zeros((len(tops), len(lefts)))
    for box in boxes:
        across = np.minimum(lefts + width, box.right) - np.maximum(lefts, box.left)
        down = np.minimum(tops + height, box.bottom) - np.maximum(tops, box.top)
        covered = np.outer(np.maximum(down, 0), np.maximum(across, 0)) / box.area
        np.maximum(largest, covered, out=largest)
    return largest


def _unfit(boxes: Sequence[Box], image_area: int) -> str:
    """Return why nothing can be inserted among ``boxes``, or ""."""
    if not boxes:
        return "no annotated object"
    share = mean_area(boxes, image_area) / image_area
    return f"objects take up {share:.0%} of the picture" if share > FULL else ""


def _placed(
    cut_out: CutOut,
    boxes: Sequence[Box],
    shape: tuple[int, ...],
    band: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Box, float] | None:
    """Return a random size and place within ``band``, and the overlap there, or None."""
    least, most = sizes(boxes, shape[0] * shape[1])
    scale = np.sqrt(rng.uniform(least, most) / cut_out.alpha.size)
    height, width = (max(1, round(scale * side)) for side in cut_out.alpha.shape)
    if height > shape[0] or width > shape[1] or not least <= height * width <= most:
        return None
    lefts, tops = _starts(shape[1] - width), _starts(shape[0] - height)
    covered = overlaps(boxes, lefts, tops, width, height)
    fits = np.argwhere((covered > band[0]) & (covered <= band[1]))
    if not len(fits):
        return None
    row, column = fits[int(rng.integers(len(fits)))]
    left, top = int(lefts[column]), int(tops[row])
    box = Box(cut_out.label, left, top, left + width, top + height)
    return box, float(covered[row, column])


def _starts(last: int) -> npt.NDArray[np.int64]:
    return np.unique(np.linspace(0, last, min(STEPS, last + 1)).round().astype(np.int64))


# -- ROME ----------------------------------------------------------------------------------

MARGIN = 35
"""Divisor of the picture's side (root of its area in pixels): the quotient is the side of the
square by which a mask is widened."""
REACH = 3.0
"""Pixels from which OpenCV's inpainting takes its colours."""


@dataclass(frozen=True)
class ROME(LabelPreserving):
    """Relation that removes annotated objects; severity k removes the k-th in a random order.

    So severities differ in the object, and not in strength. The order of a sample is fixed. After
    the first ``choices`` severities come those that remove 2 to ``depth`` of these objects, one
    after the other: all pairs, then all triples, and so on. The details of a follow-up are
    "removed" (labels) and "boxes", or "not eligible" (the reason).

    Args:
        filler: Paints over boxes. Without one, the object's mask, or its box, is inpainted.
        choices: Number of objects of an image that may be removed.
        seed: Seed of the orders.
        depth: Largest number of objects that are removed from one image.

    Raises:
        InputError: ``depth`` is not within 1 and ``choices``.
    """

    filler: Filler | None = None
    choices: Annotated[int, Option("objects of an image to remove, one at a time", ge=1)] = 3
    seed: int = 0
    name: str = "rome"
    about: str = "an annotated object removed and painted over"
    depth: Annotated[
        int,
        Option(
            "most objects to remove from one image, one after the other (3 in ROME's code)",
            ge=1,
        ),
    ] = 1

    def __post_init__(self) -> None:
        check_options(ROME, vars(self), self.name)
        if not 1 <= self.depth <= self.choices:
            raise InputError(
                f"{self.name}: expected a depth of 1 to {self.choices} (choices), got {self.depth}"
            )

    @cached_property
    def melted(self) -> tuple[tuple[int, ...], ...]:
        """Ranks, in a sample's order, of the objects that each severity from 1 on removes."""
        sizes = range(1, self.depth + 1)
        return tuple(some for size in sizes for some in combinations(range(self.choices), size))

    @property
    def severities(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1, len(self.melted) + 1))

    @property
    def fingerprint(self) -> str:
        """The options, on which the follow-ups depend."""
        filler = fingerprint_of(self.filler)
        depth = f", depth {self.depth}" if self.depth > 1 else ""
        return f"choices {self.choices}, seed {self.seed}, filler {filler}{depth}"

    def applies(self, concept: str) -> bool:
        return concept == CAPTION

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        self.check(severity)
        image = sample.image
        if image is None:
            return FollowUp(None)
        removable = sorted(annotated(sample), key=lambda box: int(pixels(sample, box).sum()))[:-1]
        places = self.melted[severity - 1]
        if places[-1] >= len(removable):
            reason = f"only {len(removable)} annotated objects without the largest"
            return not_eligible(image, reason)
        order = generator(self.seed, f"rome/{sample.id}").permutation(len(removable))
        boxes = tuple(removable[int(order[place])] for place in places)
        painted = image
        for box in boxes:
            region = widened(pixels(sample, box))
            if region.all():
                return not_eligible(image, "the object fills the picture")
            painted = self._painted(painted, region)
        return FollowUp(painted, {"removed": tuple(box.label for box in boxes), "boxes": boxes})

    def _painted(self, image: Image, region: Mask) -> Image:
        """Return the image with ``region`` painted over; nothing else changes."""
        if self.filler is None:
            plain = np.ascontiguousarray(image)
            filled = cv2.inpaint(plain, region.astype(np.uint8), REACH, cv2.INPAINT_TELEA)
            filled = filled.reshape(image.shape)
        else:
            box = Box("", *around(region))
            region = np.zeros_like(region)
            region[window(box)] = True
            filled = self.filler(image, box)
        return np.where(region[:, :, None], filled, image)


def widened(mask: Mask) -> Mask:
    """Return the mask with a margin, as its outline may be coarse."""
    side = max(1, int(np.sqrt(mask.size) / MARGIN))
    return cv2.dilate(mask.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
