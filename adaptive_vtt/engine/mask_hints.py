"""What nets that learnt coarse masks expect a segmenter to lose on a follow-up.

``misses``: 1 - the soft Dice of their mask of the follow-up with the mask that is expected there.
``drops``: how far that Dice falls below the one they score on the source, relative to it. Both lie
in [0, 1]; as in ``MaskDrop``, a follow-up may be hard because its source is, or by itself.
"""

import cv2
import numpy as np

from ..models.local.self_taught_masks import SelfTaughtMasks, coarse, look
from ..space import QuestionSpace
from ..types import Floats, FollowUp, Mask, Sample
from .renderings import Thumbnails

NAMES = ("misses", "drops")
NEUTRAL = 128
"""The byte for one half: the hint of concepts with too few masks."""
LEAST = 1e-3
"""A Dice on the source below which a drop is not taken relative to it."""


class MaskHints:
    """Both hints of each asked concept, as bytes; see ``renderings.Hints``.

    A source without a mask is compared with what the net itself sees in it. Bytes, since they
    take an eighth of the memory, and rounding hides the last bits, which differ among machines.
    """

    def __init__(self, taught: SelfTaughtMasks, space: QuestionSpace) -> None:
        self._taught, self._space = taught, space
        self.width = len(NAMES) * len(space.asked)

    def of(self, image: int, source: Sample, follow_up: FollowUp) -> Thumbnails:
        sample, variant = self._space.numbering.image_parts(image)
        relation = self._space.variants[variant].relation
        before = source.require_image()
        looks = np.stack([look(before), look(follow_up.require_image())])
        seen = self._taught.expected(sample, looks)
        hints = np.full((len(self._space.asked), len(NAMES)), NEUTRAL, np.uint8)
        for place in np.flatnonzero(self._taught.known).tolist():
            mask = source.masks.get(self._space.asked[place])
            if mask is None:
                mask = _drawn(seen[0, place], before.shape[:2])
            own = _dice(seen[0, place], mask)
            theirs = _dice(seen[1, place], relation.expect_mask(mask, follow_up))
            drop = min(max((own - theirs) / max(own, LEAST), 0), 1)
            hints[place] = np.round(255 * np.array([1 - theirs, drop]))
        return hints.ravel()

    @staticmethod
    def losses(hints: Thumbnails) -> Floats:
        """n x C x NAMES in [0, 1], of n hints."""
        return hints.reshape(len(hints), -1, len(NAMES)) / 255


def _drawn(shares: Floats, size: tuple[int, ...]) -> Mask:
    """The mask of that size (H, W) that shares of cells GRID x GRID mean."""
    height, width = size
    return np.asarray(cv2.resize(shares, (width, height), interpolation=cv2.INTER_LINEAR) >= 0.5)


def _dice(seen: Floats, mask: Mask) -> float:
    """Soft Dice of shares of cells GRID x GRID with a mask H x W; 0 where both are empty."""
    wanted = coarse(mask) / 255
    return float(2 * (seen * wanted).sum() / max((seen + wanted).sum(), LEAST))
