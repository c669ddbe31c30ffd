"""MetaIC: an object more in the picture, at a chosen overlap with those that are there.

Source: Yu et al., Automated Testing of Image Captioning Systems (ISSTA 2022) and its public
code, as compared with in REIC (TSE 2024), section V-B. What is not fixed there is decided
here and said so: overlap is the largest share of any annotated box that the inserted box
covers; kinds that are annotated in the picture are not inserted again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..types import CAPTION, Box, FollowUp, Sample
from .base import LabelPreserving
from .pasting import CutOut, annotated, not_eligible, paste

OVERLAPS = ((-1.0, 0.0), (0.0, 0.15), (0.15, 0.3), (0.3, 0.45))
"""By severity 1..4: the overlap is more than the first and at most the second."""
FULL = 0.7
"""Largest share of the picture's area that its objects may take up; into a fuller picture nothing
is inserted."""
CROWDED = 0.4
"""Share of the picture's area from which on its objects count as a crowd, and what is inserted is
smaller."""
SIZES = (0.8, 1.3)
SIZES_IF_CROWDED = (0.1, 0.37)
"""The inserted box's area, in mean areas of the annotated boxes."""
TRIES = 8
"""Cut-outs and sizes that are tried before a picture counts as not eligible."""
STEPS = 400
"""Places that are looked at across the picture, and as many down; in a smaller picture every pixel
is."""


@dataclass(frozen=True)
class MetaIC(LabelPreserving):
    """Inserts one of ``cut_outs``; severity: how much it may hide of what is there.

    ``details``: "inserted" (label), "box", "overlap" (share), or "not eligible" (why not).
    Raises InputError without cut-outs. For cut-outs of a dataset see ``pasting.cut_outs``.
    """

    cut_outs: tuple[CutOut, ...]
    name: str = "metaic"
    severities: tuple[int, ...] = (1, 2, 3, 4)
    about: str = "an object inserted; overlap 0, up to 15, 30, 45 % of an annotated box"

    edits = True  # one object more or less; see oracles.caption_classes

    def __post_init__(self) -> None:
        if not self.cut_outs:
            raise InputError(f"{self.name}: expected at least one cut-out, got none")

    @property
    def describe(self) -> str:
        """The cut-outs, on which the follow-ups depend."""
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
        there = annotated(sample)
        new = [each for each in self.cut_outs if each.label not in {box.label for box in there}]
        reason = _unfit(there, image.shape[0] * image.shape[1])
        if reason or not new:
            return not_eligible(image, reason or "every kind of cut-out is in the picture")
        for _ in range(TRIES):
            cut_out = new[int(rng.integers(len(new)))]
            placed = _placed(cut_out, there, image.shape[:2], OVERLAPS[severity - 1], rng)
            if placed is not None:
                box, overlap = placed
                details = {"inserted": cut_out.label, "box": box, "overlap": overlap}
                return FollowUp(paste(image, cut_out, box), details)
        return not_eligible(image, f"no place found at overlap {severity}")


def mean_area(boxes: Sequence[Box], image_area: int) -> float:
    """MetaIC's mean area of n > 0 boxes: a share counts by its exponential (softmax)."""
    areas = np.array([box.area for box in boxes])
    return float(np.average(areas, weights=np.exp(areas / image_area)))


def sizes(boxes: Sequence[Box], image_area: int) -> tuple[float, float]:
    """The least and largest area of what may be inserted among ``boxes``, in square pixels."""
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
    """The largest share of a box that a new one covers, for each top and left: t x l."""
    largest = np.zeros((len(tops), len(lefts)))
    for box in boxes:
        across = np.minimum(lefts + width, box.right) - np.maximum(lefts, box.left)
        down = np.minimum(tops + height, box.bottom) - np.maximum(tops, box.top)
        covered = np.outer(np.maximum(down, 0), np.maximum(across, 0)) / box.area
        np.maximum(largest, covered, out=largest)
    return largest


def _unfit(boxes: Sequence[Box], image_area: int) -> str:
    """Why nothing can be inserted among ``boxes``, or ""."""
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
    """A random size and place within ``band``, and the overlap there; None where none is."""
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
