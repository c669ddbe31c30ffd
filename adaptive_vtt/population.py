"""Protocols of a population of questions, as far as ``certify`` knows it: targets are its parts."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .types import Bools, ConceptsAre, Indices, Truths


class Members(Protocol):
    """S samples with C concepts: their number, their truths, and their groups.

    Samples of the same row of ``profile`` have the same truths, and belong to the same groups.
    """

    def __len__(self) -> int:
        """Return the number of samples, S."""

    @property
    def counts(self) -> Indices:
        """(C, 2): numbers of samples that lack each concept, and that have it."""

    @property
    def profile(self) -> tuple[Truths, Indices]:
        """Rows of truths (r, C), UNKNOWN if not known, and the number of samples with each (r,)."""

    def profile_row(self, samples: Indices) -> Indices:
        """Return the row of each sample (n,)."""

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        """Return the truth, 0, 1 or UNKNOWN, of each pair; the two arrays broadcast."""

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        """Return the samples of these ranks among those whose truth of ``concept`` is ``side``."""

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        """Return the right answers in words of the sample at ``index``, by concept."""

    @property
    def metadata_columns(self) -> Sequence[str]:
        """The columns that ``metadata_values`` knows."""

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        """Return the value of each profile row (r,); raise InputError for an unknown column."""


class Judged(Protocol):
    """The part of an oracle that targets read; see ``OracleDefaults``."""

    @property
    def rates(self) -> Mapping[str, int]:
        """Names of the mean losses of a concept, and the truth that each is about."""

    @property
    def error(self) -> str:
        """Name of the mean loss of all concepts together."""

    @property
    def concepts_are(self) -> ConceptsAre:
        """Kind of the concepts."""

    @property
    def whole_source(self) -> bool:
        """True if each answer is judged together with that about the original image."""


class Named(Protocol):
    """The part of a relation that targets read."""

    @property
    def name(self) -> str:
        """Name of the relation."""


class Variant(Protocol):
    """One severity of one relation."""

    @property
    def relation(self) -> Named:
        """The relation."""

    @property
    def severity(self) -> int:
        """The severity."""


class Population(Protocol):
    """N numbered questions, each a (sample, variant, concept) with a truth.

    They are S samples x V variants x C concepts without the questions whose truth is unknown or
    whose variant does not apply to the concept. No method lists all of them.
    ``space.QuestionSpace`` and ``pool.Pool`` are populations.
    """

    concepts: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the targets that it has; see ``certify.named_targets``."""

    @property
    def dataset(self) -> Members:
        """The samples."""

    @property
    def oracle(self) -> Judged:
        """The oracle."""

    @property
    def variants(self) -> Sequence[Variant]:
        """The V variants."""

    @property
    def applicable(self) -> Bools:
        """(V, C): whether a variant's questions about a concept are among the N."""

    @property
    def size(self) -> int:
        """N, the number of questions."""

    @property
    def images(self) -> int:
        """Number of (sample, variant) pairs with a question."""

    def parts(self, questions: npt.ArrayLike) -> tuple[Indices, Indices, Indices]:
        """Return sample, variant and concept of each question (n,)."""

    def number(self, sample: Indices, variant: Indices, concept: Indices) -> Indices:
        """Return the question numbers of three broadcast index arrays."""
