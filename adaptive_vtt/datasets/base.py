"""What the engine needs to know of a dataset: samples, concepts, and exact counts."""

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..types import Indices, Sample, Truths


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
