"""Some samples of a dataset."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..types import Ask, Floats, Indices, Sample
from .base import CompleteDataset, Dataset, adapted_dataset
from .held_truths import HeldTruths


class Subset(HeldTruths):
    """The samples of ``dataset`` at the places ``kept`` (m,), ascending, and no other."""

    def __init__(self, dataset: Dataset, kept: Indices) -> None:
        self.dataset: CompleteDataset = adapted_dataset(dataset)
        self.kept = np.asarray(kept, np.int64)
        self.name, self.concepts = dataset.name, dataset.concepts
        super().__init__(self.dataset.truth(self.kept[:, None], np.arange(len(self.concepts))))
        features = self.dataset.features
        self.features = None if features is None else features[self.kept]

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
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(self.dataset.fingerprint.encode(), digest_size=12)
        digest.update(self.kept.tobytes())
        return digest.hexdigest()

    def sample(self, index: int) -> Sample:
        return self.dataset.sample(int(self.kept[index]))

    def asks(self, index: int) -> Mapping[str, Ask]:
        return self.dataset.asks(int(self.kept[index]))

    def sample_id(self, index: int) -> str:
        return self.dataset.sample_id(int(self.kept[index]))

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        return self.dataset.metadata_values(column)[self.dataset.profile_row(self.kept)]
