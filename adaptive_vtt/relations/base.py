"""Relations: what makes a follow-up image, and what the answer should then be."""

from typing import Protocol

import numpy as np

from ..errors import InputError
from ..types import FollowUp, Image, Mask, Sample


class Relation(Protocol):
    """A metamorphic relation."""

    @property
    def name(self) -> str:
        """What the relation is called in specs, journals and reports."""

    @property
    def severities(self) -> tuple[int, ...]:
        """The levels that exist, mildest first."""

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        """The follow-up of ``sample``; never modifies it, and depends only on the arguments."""

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        """What the true answer is for the follow-up, given that of the source."""

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        """Where a concept should be seen in the follow-up (H x W), given where it was."""

    def applies(self, concept: str) -> bool:
        """Whether questions about ``concept`` make sense after this relation."""


class LabelPreserving:
    """Base of relations after which every answer should stay the same."""

    name: str
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    about: str = ""

    def apply(self, sample: Sample, severity: int, rng: np.random.Generator) -> FollowUp:
        self.check(severity)
        if sample.image is None:
            return FollowUp(None)
        return FollowUp(self.transform(sample.image, severity, rng))

    def check(self, severity: int) -> None:
        """Raises InputError for a severity that does not exist."""
        if severity not in self.severities:
            raise InputError(
                f"{self.name}: expected a severity in {list(self.severities)}, got {severity}"
            )

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        """The changed image: same shape and dtype as ``image``, which is left alone."""
        raise TypeError(f"{type(self).__name__} defines no transform")

    def expect(self, truth: int, follow_up: FollowUp) -> int:
        return truth

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        return mask

    def applies(self, concept: str) -> bool:
        return True
