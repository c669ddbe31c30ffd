"""Some samples of a dataset."""

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..types import Floats, Indices, Sample, Truths
from .base import CompleteDataset, Dataset, DatasetDefaults, adapted_dataset


class Subset(DatasetDefaults):
    """The samples of ``dataset`` at the places ``kept`` (m,), ascending, and no other."""

    def __init__(self, dataset: Dataset, kept: Indices) -> None:
        self.dataset: CompleteDataset = adapted_dataset(dataset)
        self.kept = np.asarray(kept, np.int64)
        self.name, self.concepts = dataset.name, dataset.concepts
        features = self.dataset.features
        self.features = None if features is None else features[self.kept]
        self._members: dict[tuple[int, int], Indices] = {}

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def has_images(self) -> bool:
        return self.dataset.has_images

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        return self.dataset.metadata_columns

    @property
    def guessing(self) -> Floats | None:
        found = self.dataset.guessing
        return None if found is None else found[self.kept]

    @property
    def most_boxes(self) -> int | None:
        return self.dataset.most_boxes

    @property
    def asked(self) -> tuple[tuple[str, ...], Sequence[int]]:
        return self.dataset.asked

    def pixels(self, samples: Indices) -> Floats:
        return self.dataset.pixels(self.kept[samples])

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self.dataset.characters(self.kept[samples], concepts)

    @cached_property
    def _truths(self) -> Truths:
        """m x C."""
        return self.dataset.truth(self.kept[:, None], np.arange(len(self.concepts)))

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.stack([(self._truths == side).sum(axis=0) for side in (0, 1)], axis=1)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(self.dataset.fingerprint.encode(), digest_size=12)
        digest.update(self.kept.tobytes())
        return digest.hexdigest()

    def sample(self, index: int) -> Sample:
        return self.dataset.sample(int(self.kept[index]))

    def sample_id(self, index: int) -> str:
        return self.dataset.sample_id(int(self.kept[index]))

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        return self._truths[samples, concepts]

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        key = (concept, side)
        if key not in self._members:
            self._members[key] = np.flatnonzero(self._truths[:, concept] == side)
        return self._members[key][ranks]

    @property
    def profile(self) -> tuple[Truths, npt.NDArray[np.int64]]:
        return self._truths, np.ones(len(self), np.int64)

    def profile_row(self, samples: Indices) -> Indices:
        return samples

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        return self.dataset.metadata_values(column)[self.dataset.profile_row(self.kept)]

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        if len(self) <= most:
            return np.arange(len(self)), self._truths
        chosen = np.sort(rng.choice(len(self), most, replace=False))
        return chosen, self._truths[chosen]
