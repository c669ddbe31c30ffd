"""Datasets derived from another: with other concepts and truths, or of other samples."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..types import UNKNOWN, Ask, Floats, Indices, Sample, Truths
from .base import CompleteDataset, Dataset, DatasetDefaults, HeldTruths, adapted_dataset


def as_loaded(dataset: Dataset) -> Dataset:
    """Return the dataset behind an oracle's view, and any other dataset unchanged."""
    return dataset.dataset if isinstance(dataset, View) else dataset


class Derived(DatasetDefaults):
    """Base of datasets whose sample k is made of sample ``_at(k)`` of another dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset: CompleteDataset = adapted_dataset(dataset)
        self.name, self.has_images = dataset.name, dataset.has_images
        self.metadata_columns = self.dataset.metadata_columns
        self.most_boxes = self.dataset.most_boxes

    def _at(self, samples: Indices) -> Indices:
        """Return the indices in the other dataset of the sources of these samples, (m,)."""
        return samples

    def _place(self, index: int) -> int:
        """Return the index in the other dataset of the source of a sample."""
        return int(self._at(np.array([index]))[0])

    def pixels(self, samples: Indices) -> Floats:
        return self.dataset.pixels(self._at(samples))

    def asks(self, index: int) -> Mapping[str, Ask]:
        return self.dataset.asks(self._place(index))

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        return self.dataset.answers(self._place(index))

    def sample_id(self, index: int) -> str:
        return self.dataset.sample_id(self._place(index))


class View(Derived):
    """All samples of a dataset, with the concepts and truths that an oracle asks about.

    Args:
        dataset: n samples.
        concepts: Names of the C concepts of the view.
        base: Index in the dataset of each of these concepts, (C,).
        reading: Truths of the view for UNKNOWN, 0 and 1 of the dataset. At most one of the three
            may become 0, unless all do, and likewise 1.
    """

    def __init__(
        self,
        dataset: Dataset,
        concepts: Sequence[str],
        base: Sequence[int],
        reading: tuple[int, int, int] = (UNKNOWN, 0, 1),
    ) -> None:
        super().__init__(dataset)
        self.concepts = tuple(concepts)
        self.base = np.asarray(base, np.int64)
        # indexed by truth: UNKNOWN, which is -1, is the last item
        self._reading = np.array([reading[1], reading[2], reading[0]], np.int8)
        guessing = self.dataset.guessing
        self.guessing = None if guessing is None else guessing[:, self.base]

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def features(self) -> Floats | None:
        return self.dataset.features

    @features.setter
    def features(self, features: Floats | None) -> None:
        self.dataset.features = features

    @property
    def asked(self) -> tuple[tuple[str, ...], Sequence[int]]:
        return self.dataset.concepts, self.base.tolist()

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self.dataset.characters(samples, self.base[concepts])

    @cached_property
    def counts(self) -> Indices:
        known = np.asarray(self.dataset.counts, np.int64)
        by_truth = np.column_stack([known, len(self) - known.sum(axis=1)])
        return np.stack([by_truth @ (self._reading == side) for side in (0, 1)], 1)[self.base]

    @cached_property
    def fingerprint(self) -> str:
        parts = (self.dataset.fingerprint, self.concepts, self.base.tolist())
        text = repr((*parts, self._reading.tolist()))
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def sample(self, index: int) -> Sample:
        truth = self.truth(np.array([index]), np.arange(len(self.concepts)))
        known = {c: int(t) for c, t in zip(self.concepts, truth, strict=True) if t != UNKNOWN}
        return replace(self.dataset.sample(index), truth=known)  # masks keep their concepts' names

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        return self._reading[self.dataset.truth(samples, self.base[concepts])]

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        truths = np.flatnonzero(self._reading == side)
        if len(truths) != 1:  # all samples have this side, or none, and then there are no ranks
            return ranks
        return self.dataset.members(int(self.base[concept]), int(truths[0]), ranks)

    @property
    def profile(self) -> tuple[Truths, Indices]:
        truths, copies = self.dataset.profile
        return self._reading[truths[:, self.base]], copies

    def profile_row(self, samples: Indices) -> Indices:
        return self.dataset.profile_row(samples)

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        return self.dataset.metadata_values(column)

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        samples, truths = self.dataset.reference(most, rng)
        return samples, self._reading[truths[:, self.base]]


class Taken(Derived, HeldTruths):
    """Base of datasets whose sample k is made of sample ``sources[k]`` of another dataset.

    Args:
        dataset: The other dataset.
        sources: Indices in it, (m,).
        truths: The truths of the m samples, m x C.
    """

    def __init__(self, dataset: Dataset, sources: Indices, truths: Truths) -> None:
        Derived.__init__(self, dataset)
        HeldTruths.__init__(self, truths)
        self.sources, self.concepts = sources, dataset.concepts

    def _at(self, samples: Indices) -> Indices:
        return self.sources[samples]

    @property
    def asked(self) -> tuple[tuple[str, ...], Sequence[int]]:
        return self.dataset.asked

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(self.dataset.fingerprint.encode(), digest_size=12)
        for part in self._hashed():
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def _hashed(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Return the arrays that the fingerprint covers in addition to the other dataset."""
        return (self.sources,)

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        return self.dataset.metadata_values(column)[self.dataset.profile_row(self.sources)]


class Subset(Taken):
    """Some samples of a dataset.

    Args:
        dataset: The dataset.
        kept: Ascending indices of its m samples, (m,).
    """

    def __init__(self, dataset: Dataset, kept: Indices) -> None:
        kept = np.asarray(kept, np.int64)
        truths = dataset.truth(kept[:, None], np.arange(len(dataset.concepts)))
        super().__init__(dataset, kept, truths)
        features, guessing = self.dataset.features, self.dataset.guessing
        self.features = None if features is None else features[kept]
        self.guessing = None if guessing is None else guessing[kept]

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self.dataset.characters(self.sources[samples], concepts)

    def sample(self, index: int) -> Sample:
        return self.dataset.sample(int(self.sources[index]))
