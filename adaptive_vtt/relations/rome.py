"""ROME: an object less in the picture, painted over with what is around it.

Source: Yu et al., ROME: Testing Image Captioning Systems via Recursive Object Melting (ISSTA
2023) and its public code, as compared with in REIC (TSE 2024), section V-B. The largest
object stays, as there. The ancestor is always the source picture, the one that is captioned
anyway; painting is OpenCV's inpainting (Telea) unless a filler, such as LaMa, is given.
"""

from dataclasses import dataclass
from typing import Annotated

import cv2
import numpy as np

from ..errors import InputError
from ..types import CAPTION, Box, Filler, FollowUp, Image, Mask, Sample
from ..utils.options import Option
from ..utils.other_code import describe_part
from ..utils.random_streams import generator
from .base import LabelPreserving
from .pasting import annotated, not_eligible, pixels

MARGIN = 35
"""Divisor of the picture's side (root of its area in pixels): the quotient is the side of the
square by which a mask is widened."""
REACH = 3.0
"""Pixels from which OpenCV's inpainting takes its colours."""


@dataclass(frozen=True)
class ROME(LabelPreserving):
    """Removes an annotated object; severity k: the k-th in an order drawn once per sample.

    Severities therefore differ in the object, not in strength. ``filler`` paints over boxes;
    without one the exact mask of the object, where known, is inpainted. ``seed``: of the order.
    ``details``: "removed" (labels), "box", or "not eligible" (why not).
    """

    filler: Filler | None = None
    choices: Annotated[
        int, Option("rome: objects of an image to remove, one at a time (3)", ge=1)
    ] = 3
    seed: int = 0
    name: str = "rome"
    about: str = "an annotated object removed and painted over"

    edits = True  # one object more or less; see oracles.caption_classes

    def __post_init__(self) -> None:
        if self.choices < 1:
            raise InputError(f"{self.name}: expected at least one choice, got {self.choices}")

    @property
    def severities(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1, self.choices + 1))

    @property
    def describe(self) -> str:
        """The options, on which the follow-ups depend."""
        filler = describe_part(self.filler)
        return f"choices {self.choices}, seed {self.seed}, filler {filler}"

    def applies(self, concept: str) -> bool:
        return concept == CAPTION

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        self.check(severity)
        image = sample.image
        if image is None:
            return FollowUp(None)
        removable = sorted(annotated(sample), key=lambda box: int(pixels(sample, box).sum()))[:-1]
        if severity > len(removable):
            reason = f"only {len(removable)} annotated objects besides the largest"
            return not_eligible(image, reason)
        order = generator(self.seed, f"rome/{sample.id}").permutation(len(removable))
        box = removable[int(order[severity - 1])]
        region = widened(pixels(sample, box))
        if region.all():
            return not_eligible(image, "the object fills the picture")
        return FollowUp(self._painted(image, region), {"removed": (box.label,), "box": box})

    def _painted(self, image: Image, region: Mask) -> Image:
        """``image`` without what is in ``region``; nothing else changes."""
        if self.filler is None:
            plain = np.ascontiguousarray(image)
            filled = cv2.inpaint(plain, region.astype(np.uint8), REACH, cv2.INPAINT_TELEA)
            filled = filled.reshape(image.shape)
        else:
            left, top, width, height = cv2.boundingRect(region.astype(np.uint8))
            region = np.zeros_like(region)
            region[top : top + height, left : left + width] = True
            filled = self.filler(image, Box("", left, top, left + width, top + height))
        return np.where(region[:, :, None], filled, image)


def widened(mask: Mask) -> Mask:
    """The mask with a margin, as its outline may be coarse."""
    side = max(1, int(np.sqrt(mask.size) / MARGIN))
    return cv2.dilate(mask.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
