"""What nets that learnt coarse masks expect a segmenter to miss in a follow-up.

1 - the soft Dice of their mask of the follow-up with the mask that is expected there, in [0, 1].
How far that Dice drops below the source's tells less: ``experiments/coarse_masks.py`` has both.
"""

import cv2
import numpy as np

from ..models.local.self_taught_masks import SelfTaughtMasks, coarse, look
from ..space import QuestionSpace
from ..types import Floats, FollowUp, Mask, Sample
from .renderings import Thumbnails

NEUTRAL = 128
"""The byte for one half: the hint of concepts with too few masks."""
LEAST = 1e-3
"""Cells below which masks are empty."""


class MaskHints:
    """The hint of each asked concept, as a byte; see ``renderings.Hints``.

    A source without a mask is compared with what the net itself sees in it. Bytes, since they
    take an eighth of the memory, and rounding hides the last bits, which differ among machines.
    """

    def __init__(self, taught: SelfTaughtMasks, space: QuestionSpace) -> None:
        self._taught, self._space = taught, space
        self.width = len(space.asked)

    def of(self, image: int, source: Sample, follow_up: FollowUp) -> Thumbnails:
        sample, variant = self._space.numbering.image_parts(image)
        relation = self._space.variants[variant].relation
        before = source.require_image()
        looks = np.stack([look(before), look(follow_up.require_image())])
        seen = self._taught.expected(sample, looks)
        hints = np.full(self.width, NEUTRAL, np.uint8)
        for place in np.flatnonzero(self._taught.known).tolist():
            mask = source.masks.get(self._space.asked[place])
            if mask is None:
                mask = _drawn(seen[0, place], before.shape[:2])
            expected = relation.expect_mask(mask, follow_up)
            hints[place] = round(255 * (1 - soft_dice(seen[1, place], expected)))
        return hints


def soft_dice(seen: Floats, mask: Mask) -> float:
    """Of shares of cells GRID x GRID with a mask H x W; 0 where both are empty."""
    wanted = coarse(mask) / 255
    return float(2 * (seen * wanted).sum() / max((seen + wanted).sum(), LEAST))


def _drawn(shares: Floats, size: tuple[int, ...]) -> Mask:
    """The mask of that size (H, W) that shares of cells GRID x GRID mean."""
    height, width = size
    return np.asarray(cv2.resize(shares, (width, height), interpolation=cv2.INTER_LINEAR) >= 0.5)
