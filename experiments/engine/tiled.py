"""A dataset of any size that takes no memory, for experiments about large audits."""

import hashlib

import numpy as np
import numpy.typing as npt

from adaptive_vtt.datasets.base import DatasetDefaults
from adaptive_vtt.errors import unknown
from adaptive_vtt.types import Indices, Sample, Truths


class TiledDataset(DatasetDefaults):
    """Dataset without images that repeats a table of truths.

    Args:
        truths: (n, C) truths of the table: 0, 1, or -1 for unknown.
        samples: Number of samples; 10^9 take no longer to make than 10.
        name: Name of the dataset.
    """

    has_images = False

    def __init__(self, truths: npt.ArrayLike, samples: int, name: str = "tiled") -> None:
        self.name = name
        self._tile: Truths = np.asarray(truths, np.int8)
        self._samples = samples
        self.concepts = tuple(f"c{i}" for i in range(self._tile.shape[1]))
        whole, rest = divmod(samples, len(self._tile))
        sides = [self._tile == side for side in (0, 1)]
        self.counts = np.stack([whole * s.sum(axis=0) + s[:rest].sum(axis=0) for s in sides], 1)

    def __len__(self) -> int:
        return self._samples

    @property
    def fingerprint(self) -> str:
        return hashlib.blake2b(self._tile.tobytes() + str(self._samples).encode()).hexdigest()[:24]

    def sample(self, index: int) -> Sample:
        row = self._tile[index % len(self._tile)]
        truth = {c: int(v) for c, v in zip(self.concepts, row, strict=True) if v >= 0}
        return Sample(self.sample_id(index), None, truth)

    def sample_id(self, index: int) -> str:
        return f"t{index}"

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        return self._tile[samples % len(self._tile), concepts]

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        places = np.flatnonzero(self._tile[:, concept] == side)
        tile, place = np.divmod(ranks, len(places))
        return tile * len(self._tile) + places[place]

    @property
    def profile(self) -> tuple[Truths, Indices]:
        whole, rest = divmod(self._samples, len(self._tile))
        return self._tile, np.where(np.arange(len(self._tile)) < rest, whole + 1, whole)

    def profile_row(self, samples: Indices) -> Indices:
        return samples % len(self._tile)

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        raise unknown("metadata column", column, [], f"dataset {self.name!r}")

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        count = min(most, self._samples, len(self._tile))
        return np.arange(count), self._tile[:count]
