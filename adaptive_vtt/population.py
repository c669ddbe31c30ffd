"""Populations, whose parts are targets."""

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
        """(C, 2), the number of samples that lack, and that have, each concept."""

    @property
    def profile(self) -> tuple[Truths, Indices]:
        """Rows of truths (r, C), UNKNOWN if not known, and the number of samples with each (r,)."""

    def profile_row(self, samples: Indices) -> Indices:
        """Return the row of each sample (n,)."""

    def truth(self, samples: Indices, concepts: Indices) -> Truths:
        """Return 0, 1 or UNKNOWN for each pair; the two arrays broadcast."""

    def members(self, concept: int, side: int, ranks: Indices) -> Indices:
        """Return the samples of these ranks among those whose truth of ``concept`` is ``side``."""

    def answers(self, index: int) -> Mapping[str, tuple[str, ...]]:
        """Return the right answers in words of the sample at ``index``, by concept."""

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        """Return a group's name by profile row (r,). Raise InputError for an unknown column."""


class Judged(Protocol):
    """Oracle, as far as targets know it; see ``OracleDefaults``."""

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
        """True where each answer is judged together with that about the original image."""


class Named(Protocol):
    """A relation, as far as targets know it."""

    @property
    def name(self) -> str:
        """Its name."""


class Variant(Protocol):
    """One severity of one relation."""

    @property
    def relation(self) -> Named:
        """The change of the sample."""

    @property
    def severity(self) -> int:
        """Its strength."""


class Population(Protocol):
    """N questions, each (sample, variant, concept) with a truth, known by one number.

    S samples x V variants x C concepts, less those whose truth is unknown, and those that do not
    apply. Nothing here lists them. ``space.QuestionSpace`` is one, ``pool.Pool`` another.
    """

    concepts: tuple[str, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of targets that it has: see ``certify.named_targets``."""

    @property
    def dataset(self) -> Members:
        """The samples."""

    @property
    def oracle(self) -> Judged:
        """Its oracle."""

    @property
    def variants(self) -> Sequence[Variant]:
        """The V variants."""

    @property
    def applicable(self) -> Bools:
        """V x C: whether a variant's questions about a concept are among the N."""

    @property
    def size(self) -> int:
        """N."""

    @property
    def images(self) -> int:
        """Number of (sample, variant) pairs with a question."""

    def parts(self, questions: npt.ArrayLike) -> tuple[Indices, Indices, Indices]:
        """Return sample, variant and concept of each question (n,)."""

    def number(self, sample: Indices, variant: Indices, concept: Indices) -> Indices:
        """Return the question numbers of three broadcast index arrays."""
