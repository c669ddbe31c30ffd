"""The same samples under other concepts, with their truths read in another way; or some of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..types import UNKNOWN, Ask, Floats, Indices, Sample, Truths
from .base import CompleteDataset, Dataset, DatasetDefaults, HeldTruths, adapted_dataset

READABLE = [
    [False, False, False],
    [False, True, False],
    [False, False, True],
    [True, True, True],
]
"""Which of unknown, 0 and 1 may count as a side."""


def as_loaded(dataset: Dataset) -> Dataset:
    """Return the dataset itself, where an oracle asks about its concepts in another way."""
    return dataset.dataset if isinstance(dataset, View) else dataset


class Derived(DatasetDefaults):
    """Base: samples that are made of those of ``dataset``, number k of its sample ``_at(k)``."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset: CompleteDataset = adapted_dataset(dataset)
        self.name = dataset.name

    def _at(self, samples: Indices) -> Indices:
        """Return the samples of the dataset that these samples (n,) are made of."""
        return samples

    def _place(self, index: int) -> int:
        return int(self._at(np.array([index]))[0])

    @property
    def has_images(self) -> bool:
        return self.dataset.has_images

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        return self.dataset.metadata_columns

    def pixels(self, samples: Indices) -> Floats:
        return self.dataset.pixels(self._at(samples))

    def asks(self, index: int) -> Mapping[str, Ask]:
        return self.dataset.asks(self._place(index))

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        return self.dataset.answers(self._place(index))

    def sample_id(self, index: int) -> str:
        return self.dataset.sample_id(self._place(index))


class View(Derived):
    """``dataset`` as an oracle sees it.

    Concept k of the view is concept ``base[k]`` of the dataset under the name
    ``concepts[k]``. ``reading`` is what a truth that is unknown, 0 or 1 counts as; either
    one of the three counts as a side, or all of them do.
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
        for side in (0, 1):
            if [side == r for r in reading] not in READABLE:
                raise InputError(f"view: expected one truth, or all, to count as {side}")
        self._reading = np.array([reading[1], reading[2], reading[0]], np.int8)  # by truth, -1 last

    def __len__(self) -> int:
        return len(self.dataset)

    @property
    def features(self) -> Floats | None:
        return self.dataset.features

    @features.setter
    def features(self, features: Floats | None) -> None:
        self.dataset.features = features

    @property
    def guessing(self) -> Floats | None:
        """That of the dataset, by the view's concepts; None where there is none."""
        guessing = self.dataset.guessing
        return None if guessing is None else guessing[:, self.base]

    @property
    def asked(self) -> tuple[tuple[str, ...], Sequence[int]]:
        return self.dataset.concepts, self.base.tolist()

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self.dataset.characters(samples, self.base[concepts])

    @cached_property
    def counts(self) -> Indices:
        known = np.asarray(self.dataset.counts, np.int64)
        every = np.column_stack([known, len(self) - known.sum(axis=1)])
        return np.stack([every @ (self._reading == side) for side in (0, 1)], 1)[self.base]

    @cached_property
    def fingerprint(self) -> str:
        parts = (self.dataset.fingerprint, self.concepts, self.base.tolist())
        text = repr((*parts, self._reading.tolist()))
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def sample(self, index: int) -> Sample:
        sample = self.dataset.sample(index)
        truth = self.truth(np.array([index]), np.arange(len(self.concepts)))
        known = {c: int(t) for c, t in zip(self.concepts, truth, strict=True) if t != UNKNOWN}
        return replace(sample, truth=known)  # masks keep the dataset's names

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        return self._reading[self.dataset.truth(samples, self.base[concepts])]

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        truths = np.flatnonzero(self._reading == side)
        if len(truths) != 1:  # all samples or none, and then no rank
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
    """Base: m samples that come of those of ``dataset``, number k of its sample ``sources[k]``,
    with ``truths`` m x C of their own."""

    def __init__(self, dataset: Dataset, sources: Indices, truths: Truths) -> None:
        Derived.__init__(self, dataset)
        HeldTruths.__init__(self, truths)
        self.sources, self.concepts = sources, dataset.concepts

    def _at(self, samples: Indices) -> Indices:
        return self.sources[samples]

    @property
    def most_boxes(self) -> int | None:
        return self.dataset.most_boxes

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
        """Return what the fingerprint covers besides the dataset."""
        return (self.sources,)

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        return self.dataset.metadata_values(column)[self.dataset.profile_row(self.sources)]


class Subset(Taken):
    """The samples of ``dataset`` at the places ``kept`` (m,), ascending, and no other."""

    def __init__(self, dataset: Dataset, kept: Indices) -> None:
        kept = np.asarray(kept, np.int64)
        every = np.arange(len(dataset.concepts))
        super().__init__(dataset, kept, dataset.truth(kept[:, None], every))
        features = self.dataset.features
        self.features = None if features is None else features[kept]

    @property
    def guessing(self) -> Floats | None:
        guessing = self.dataset.guessing
        return None if guessing is None else guessing[self.sources]

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self.dataset.characters(self.sources[samples], concepts)

    def sample(self, index: int) -> Sample:
        return self.dataset.sample(int(self.sources[index]))
