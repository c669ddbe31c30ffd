"""The protocol of datasets, samples with truths and exact counts, and the defaults of members."""

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
    """n samples x C binary concepts. Counts are exact and cost nothing per question.

    ``DatasetDefaults`` has the optional members.
    """

    name: str
    concepts: tuple[str, ...]

    def __len__(self) -> int:
        """Return n, the number of samples."""

    @property
    def has_images(self) -> bool:
        """Return False if only truths are known (audits of recorded answers)."""

    @property
    def counts(self) -> Indices:
        """Return C x 2: how many samples lack, and how many have, each concept."""

    @property
    def fingerprint(self) -> str:
        """Return a short hash of everything the questions depend on."""

    def sample(self, index: int) -> Sample:
        """Return the sample at ``index`` (0..n-1), its image decoded now."""

    def sample_id(self, index: int) -> str:
        """Return the id alone, without decoding anything."""

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        """Return 0, 1 or UNKNOWN for each pair; the two arrays broadcast."""

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        """Return the samples of rank ``ranks`` among those whose truth of ``concept`` is
        ``side``."""

    @property
    def profile(self) -> tuple[Truths, Indices]:
        """Return rows of truths r x C, and how many samples have each row (r,)."""

    def profile_row(self, samples: Indices) -> Indices:
        """Return which row of ``profile`` each sample (n,) has."""

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        """Return a metadata column's values by profile row (r,).

        Raises:
            InputError: There is no such column.
        """

    def reference(self, most: int, rng: np.random.Generator) -> tuple[Indices, Truths]:
        """Return all samples, or ``most`` random ones: their indices (m,) ascending and truths m x
        C."""


class DatasetDefaults:
    """Defaults of the optional members of a dataset."""

    name: str
    concepts: tuple[str, ...]
    features: Floats | None = None
    """Features that make samples alike (n x d); None: their images and truths."""
    remarks: Mapping[str, str] = MappingProxyType({})
    """Notes for people on how parts of the source were read, by the part, such as a column."""
    metadata_columns: tuple[str, ...] = ()
    """The columns that ``metadata_values`` knows."""
    guessing: Floats | None = None
    """n x C: the error rate of a guess, where questions have options; None: no options."""
    most_boxes: int | None = None
    """The most boxes that any sample has; None: not known."""

    @property
    def asked(self) -> tuple[tuple[str, ...], Sequence[int]]:
        """The concepts to send to a model, and which of these each of ``concepts`` is."""
        return self.concepts, range(len(self.concepts))

    def pixels(self, samples: Indices) -> Floats:
        """Return the pixels of each source image (n,); NaN if only decoding can count them."""
        return np.full(len(samples), np.nan)

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        """Return the characters (n,) of each pair's question with its options; 0 for none."""
        return np.zeros(len(samples))

    def asks(self, index: int) -> Mapping[str, Ask]:
        """Return ``Sample.asks`` of the sample at ``index``, best without decoding anything."""
        return cast(Dataset, self).sample(index).asks

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        """Return ``Sample.answers`` of the sample at ``index``, best without decoding anything."""
        return cast(Dataset, self).sample(index).answers

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} defines no __len__")

    def __repr__(self) -> str:
        size = f"{len(self)} samples x {len(self.concepts)} concepts"
        return f"{type(self).__name__}({self.name}: {size})"


class CompleteDataset(DatasetDefaults, Dataset):
    """A dataset with all members that have a default: what ``adapted_dataset`` returns."""


class Adapted(Completed, DatasetDefaults):
    """A dataset that does not inherit from ``DatasetDefaults``."""

    def __len__(self) -> int:
        return len(self.plain)


def adapted_dataset(dataset: Dataset) -> CompleteDataset:
    """Return the dataset with everything that ``DatasetDefaults`` promises."""
    complete = dataset if isinstance(dataset, DatasetDefaults) else Adapted(dataset)
    return cast(CompleteDataset, complete)


class HeldTruths(DatasetDefaults):
    """Base of datasets that hold ``truths`` in memory: n samples x C concepts of one byte each."""

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
    """Return numbers as n x d. Raise InputError for another shape, for NaN and for infinity."""
    table = np.asarray(numbers, np.float64)
    if table.ndim != 2 or len(table) != n:
        shape = " x ".join(map(str, table.shape))
        raise unexpected(where, f"{n} rows of d numbers", f"shape {shape}")
    if not np.isfinite(table).all():
        row = int(np.argwhere(~np.isfinite(table))[0, 0])
        raise unexpected(where, "finite numbers", f"NaN or infinity in row {row}")
    return table
