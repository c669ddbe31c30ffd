"""The protocol of datasets, and the defaults of its optional members.

A dataset has n samples and C binary concepts. The truth of a concept in a sample is 1 (present),
0 (absent) or UNKNOWN, which is never asked.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..errors import unexpected
from ..types import Ask, Floats, Indices, Sample, Truths
from ..utils.other_code import Completed


@runtime_checkable
class Dataset(Protocol):
    """A dataset of n samples and C binary concepts. ``DatasetDefaults`` has the optional members.

    Counts, ranks and profiles let a question space be numbered without listing its questions.
    """

    name: str
    concepts: tuple[str, ...]

    def __len__(self) -> int:
        """Return n, the number of samples."""

    @property
    def has_images(self) -> bool:
        """Return whether samples have images; audits of recorded answers need none."""

    @property
    def counts(self) -> Indices:
        """Return the numbers of samples without and with each concept, C x 2."""

    @property
    def fingerprint(self) -> str:
        """Return a short hash of everything on which questions depend."""

    def sample(self, index: int) -> Sample:
        """Return the sample at an index from 0 to n - 1, with its image decoded."""

    def sample_id(self, index: int) -> str:
        """Return the id of a sample, without decoding its image."""

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        """Return 0, 1 or UNKNOWN for each pair of indices; the two arrays are broadcast."""

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        """Return samples by their rank among those with one truth of a concept.

        Args:
            concept: Index of the concept.
            side: The truth, 0 or 1.
            ranks: Ranks from 0 on, (m,).

        Returns:
            Indices of samples, (m,).
        """

    @property
    def profile(self) -> tuple[Truths, Indices]:
        """Return rows of truths, r x C, and the number of samples with each row, (r,)."""

    def profile_row(self, samples: Indices) -> Indices:
        """Return the row of ``profile`` that each sample (m,) has, (m,)."""

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        """Return the values of a metadata column, one per row of ``profile``, (r,).

        Raises:
            InputError: There is no such column.
        """

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        """Return all samples, or a random subset of ``most``.

        Returns:
            Ascending indices of m samples, (m,), and their truths, m x C.
        """


class DatasetDefaults:
    """Defaults of the optional members of a dataset."""

    name: str
    concepts: tuple[str, ...]
    features: Floats | None = None
    """Features by which samples are similar, n x d; None: their images and truths are used."""
    remarks: Mapping[str, str] = MappingProxyType({})
    """Part of the source, such as a column -> a note for people on how it was read."""
    metadata_columns: tuple[str, ...] = ()
    """The columns that ``metadata_values`` knows."""
    guessing: Floats | None = None
    """Error rate of a random guess among the options of each question, n x C; None: no options."""
    most_boxes: int | None = None
    """The largest number of boxes of any sample; None: unknown."""

    @property
    def asked(self) -> tuple[tuple[str, ...], Sequence[int]]:
        """The concepts to send to a model, and the index among them of each of ``concepts``."""
        return self.concepts, range(len(self.concepts))

    def pixels(self, samples: Indices) -> Floats:
        """Return the number of pixels of each source image, (m,); NaN without decoding it."""
        return np.full(len(samples), np.nan)

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        """Return the length in characters of the question of each pair with its options, (m,)."""
        return np.zeros(len(samples))

    def asks(self, index: int) -> Mapping[str, Ask]:
        """Return ``Sample.asks`` of a sample, if possible without decoding its image."""
        return cast(Dataset, self).sample(index).asks

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        """Return ``Sample.answers`` of a sample, if possible without decoding its image."""
        return cast(Dataset, self).sample(index).answers

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} defines no __len__")

    def __repr__(self) -> str:
        size = f"{len(self)} samples x {len(self.concepts)} concepts"
        return f"{type(self).__name__}({self.name}: {size})"


class CompleteDataset(DatasetDefaults, Dataset):
    """A dataset with all optional members, as ``adapted_dataset`` returns it."""


class Adapted(Completed, DatasetDefaults):
    """Wrapper that adds ``DatasetDefaults`` to a dataset that does not inherit from it."""

    def __len__(self) -> int:
        return len(self.plain)


def adapted_dataset(dataset: Dataset) -> CompleteDataset:
    """Return a dataset with all members of ``DatasetDefaults``: itself if it has them."""
    complete = dataset if isinstance(dataset, DatasetDefaults) else Adapted(dataset)
    return cast(CompleteDataset, complete)


class HeldTruths(DatasetDefaults):
    """Base of datasets that hold their truths in memory, n x C of one byte each."""

    def __init__(self, truths: Truths) -> None:
        self.truths = truths
        self._members: dict[tuple[int, int], Indices] = {}

    def __len__(self) -> int:
        return len(self.truths)

    @cached_property
    def counts(self) -> Indices:
        return np.stack([(self.truths == side).sum(axis=0) for side in (0, 1)], axis=1)

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        return self.truths[samples, concepts]

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        key = (concept, side)
        if key not in self._members:
            self._members[key] = np.flatnonzero(self.truths[:, concept] == side)
        return self._members[key][ranks]

    @property
    def profile(self) -> tuple[Truths, Indices]:
        return self.truths, np.ones(len(self), np.int64)

    def profile_row(self, samples: Indices) -> Indices:
        return samples

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        if len(self) <= most:
            return np.arange(len(self)), self.truths
        chosen = np.sort(rng.choice(len(self), most, replace=False))
        return chosen, self.truths[chosen]


def finite_rows(numbers: npt.ArrayLike, n: int, where: str) -> Floats:
    """Return numbers as an array n x d; raise InputError for another shape, NaN or infinity."""
    table = np.asarray(numbers, np.float64)
    if table.ndim != 2 or len(table) != n:
        shape = " x ".join(map(str, table.shape))
        raise unexpected(where, f"{n} rows of d numbers", f"shape {shape}")
    if not np.isfinite(table).all():
        row = int(np.argwhere(~np.isfinite(table))[0, 0])
        raise unexpected(where, "finite numbers", f"NaN or infinity in row {row}")
    return table
