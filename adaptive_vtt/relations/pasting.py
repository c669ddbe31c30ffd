"""What MetaIC and ROME share: annotated objects as pixels, cut-outs, and how one is pasted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..types import Box, FollowUp, Image, Mask, Sample, common
from ..utils.options import Option

Floats = npt.NDArray[np.float32]
Window = tuple[slice, slice]

NOT_ELIGIBLE = "not eligible"
"""The entry of ``FollowUp.details`` that says why a sample has no such follow-up."""
MIN_SIDE = 8
"""Objects that are narrower or lower than this, in pixels, are not cut out."""

PER_KIND = 5
"""Cut-outs of each kind."""


class Samples(Protocol):
    """What objects are cut out of: a dataset, as far as that takes."""

    name: str

    def __len__(self) -> int:
        """The number of samples."""

    def sample(self, index: int) -> Sample:
        """The sample at ``index``, with its image, masks and boxes."""


@dataclass(frozen=True)
class CutOut:
    """An object to paste: colours H x W x 3 (uint8, RGB) and opacity H x W (0..1).

    Raises InputError where the two do not fit.
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
    per_kind: Annotated[
        int,
        Option(
            "metaic: objects of each kind to insert, from the dataset itself (5)",
            name="cut_outs",
            ge=1,
        ),
    ] = PER_KIND,
    among: int = 300,
) -> tuple[CutOut, ...]:
    """Objects of the first ``among`` samples, the first ``per_kind`` of every kind.

    Those that reach the edge of the image or overlap another's box are left out, for they
    may not be whole, or not alone. Raises InputError where none is left.
    """
    found: list[CutOut] = []
    kept: Counter[str] = Counter()
    for index in range(min(among, len(dataset))):
        sample = dataset.sample(index)
        boxes = annotated(sample)
        for box in boxes:
            if kept[box.label] < per_kind and _whole_and_alone(box, boxes, sample):
                found.append(cut(sample, box))
                kept[box.label] += 1
    if not found:
        raise InputError(
            f"cut-outs: expected annotated objects that stand alone, {MIN_SIDE} x {MIN_SIDE} "
            f"pixels at least, found none in {min(among, len(dataset))} samples of {dataset.name!r}"
        )
    return tuple(found)


def cut(sample: Sample, box: Box) -> CutOut:
    """The object in ``box``, opaque where it is masked."""
    here = window(box)
    image = sample.require_image()[here]
    colour = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB) if image.shape[2] == 1 else image.copy()
    return CutOut(box.label, colour, pixels(sample, box)[here].astype(np.float32))


def annotated(sample: Sample) -> tuple[Box, ...]:
    """The labelled boxes of a sample, else those around its masks; whole pixels, in the image."""
    if sample.image is None:
        return ()
    height, width = sample.image.shape[:2]
    boxes = [box for box in sample.boxes if box.label] or [
        _around(name, mask) for name, mask in sample.masks.items() if mask.any()
    ]
    whole = [_whole(box, height, width) for box in boxes]
    return tuple(box for box in whole if box.area > 0)


def pixels(sample: Sample, box: Box) -> Mask:
    """Where the object in ``box`` is to be seen (H x W): as masked, else the whole box."""
    boxed = np.zeros(sample.require_image().shape[:2], bool)
    boxed[window(box)] = True
    mask = sample.masks.get(box.label)
    masked = boxed if mask is None else boxed & mask
    return masked if masked.any() else boxed


def paste(image: Image, cut_out: CutOut, box: Box) -> Image:
    """A copy of H x W x 1 or 3 with the cut-out drawn to the size of ``box``, soft at its edge.

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
    """The opacity with its outermost pixels fading out, inside its old outline."""
    blurred = cv2.GaussianBlur(np.pad(alpha, 2), (5, 5), 1.0)[2:-2, 2:-2]
    return np.minimum(alpha, blurred)


def window(box: Box) -> Window:
    """Rows and columns of a box of whole pixels."""
    return slice(int(box.top), int(box.bottom)), slice(int(box.left), int(box.right))


def not_eligible(image: Image, reason: str) -> FollowUp:
    """The source again, and why nothing was changed."""
    return FollowUp(image.copy(), {NOT_ELIGIBLE: reason})


def _around(name: str, mask: Mask) -> Box:
    left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
    return Box(name, left, top, left + width, top + height)


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
