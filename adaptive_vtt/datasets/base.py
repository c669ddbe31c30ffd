"""What the engine needs to know of a dataset: samples, concepts, and exact counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.int8]

UNKNOWN = -1
"""The truth of a (sample, concept) nobody labelled; such questions are never asked."""


@dataclass(frozen=True)
class Ask:
    """A question in words, with the options to choose from (A, B ...; none: a free answer)."""

    text: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Box:
    """A thing somebody or something found: its name, and where in pixels (right and bottom
    exclusive). ``score`` in [0, 1] is how sure a detector is; 1 for annotation."""

    label: str
    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0

    @property
    def edges(self) -> tuple[float, float, float, float]:
        return self.left, self.top, self.right, self.bottom

    @property
    def area(self) -> float:
        """In square pixels."""
        return max(0.0, self.right - self.left) * max(0.0, self.bottom - self.top)


@dataclass(frozen=True)
class Sample:
    """One source image: H x W x C uint8 (or None where only answers are recorded).

    ``masks``: for concepts that have one, where the concept is to be seen (H x W).
    ``asks``: for concepts that are asked about in words, the words; ``answers``: what is
    right there, a letter where there are options, else any of several texts. ``boxes``:
    things annotated or detected in the image.
    """

    id: str
    image: Image | None
    truth: Mapping[str, int]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    masks: Mapping[str, Mask] = field(default_factory=dict)
    asks: Mapping[str, Ask] = field(default_factory=dict)
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    boxes: tuple[Box, ...] = ()


@runtime_checkable
class Dataset(Protocol):
    """n samples x C binary concepts. Counts are exact and cost nothing per question."""

    name: str
    concepts: tuple[str, ...]

    def __len__(self) -> int:
        """n, the number of samples."""

    @property
    def has_images(self) -> bool:
        """False where only truths are known (audits of recorded answers)."""

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """C x 2: how many samples lack, and how many have, each concept (unknowns left out)."""

    @property
    def fingerprint(self) -> str:
        """A short hash of everything the questions depend on."""

    def sample(self, index: int) -> Sample:
        """The sample at ``index`` (0..n-1), its image decoded now."""

    def sample_id(self, index: int) -> str:
        """The id alone, without decoding anything."""

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        """0, 1 or UNKNOWN for each pair; the two arrays broadcast."""

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        """The samples of rank ``ranks`` among those whose truth of ``concept`` is ``side``."""

    @property
    def profile(self) -> tuple[Truths, npt.NDArray[np.int64]]:
        """Rows of truths r x C, and how many samples have each row (r,)."""

    def profile_row(self, samples: Indices) -> Indices:
        """Which row of ``profile`` each sample (n,) has."""

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        """A metadata column's values by profile row (r,); raises InputError for another."""

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        """All samples, or ``most`` random ones: their indices (m,) ascending and truths m x C."""
