"""Datasets whose truths lie in memory."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..types import Indices, Truths
from .base import DatasetDefaults


class HeldTruths(DatasetDefaults):
    """What follows from ``truths``, n samples x C concepts of one byte each, and nothing else."""

    def __init__(self, truths: Truths) -> None:
        self._truths = truths
        self._members: dict[tuple[int, int], Indices] = {}

    def __len__(self) -> int:
        return len(self._truths)

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.stack([(self._truths == side).sum(axis=0) for side in (0, 1)], axis=1)

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

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        if len(self) <= most:
            return np.arange(len(self)), self._truths
        chosen = np.sort(rng.choice(len(self), most, replace=False))
        return chosen, self._truths[chosen]
