"""A table dataset whose concepts are asked about in words."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..types import Ask, Floats, Indices, Sample
from .table import TableDataset

Answers = Mapping[str, tuple[str, ...]]


class WordedDataset(TableDataset):
    """A ``TableDataset`` with n ``asks`` and ``answers``, by concept; see ``Sample``."""

    def __init__(
        self,
        *table: Any,
        asks: Sequence[Mapping[str, Ask]],
        answers: Sequence[Answers],
        **named: Any,
    ) -> None:
        super().__init__(*table, **named)
        self._asks, self._answers = tuple(asks), tuple(answers)

    @cached_property
    def guessing(self) -> npt.NDArray[np.float64]:
        """n x C: the error of who guesses among the options, 1 - 1 / their number; else 1/2."""
        found = np.full((len(self), len(self.concepts)), 0.5)
        for row, asks in enumerate(self._asks):
            for concept, ask in asks.items():
                if ask.options:
                    found[row, self.concepts.index(concept)] = 1 - 1 / len(ask.options)
        return found

    @cached_property
    def _lengths(self) -> npt.NDArray[np.float32]:
        """n x C: characters of the words of each question, and of its options."""
        found = np.zeros((len(self), len(self.concepts)), np.float32)
        for row, asks in enumerate(self._asks):
            for concept, ask in asks.items():
                length = len(ask.text) + sum(map(len, ask.options))
                found[row, self.concepts.index(concept)] = length
        return found

    def characters(self, samples: Indices, concepts: Indices) -> Floats:
        return self._lengths[samples, concepts].astype(float)

    @property
    def fingerprint(self) -> str:
        """A hash that covers the words of the questions too, so an audit with other words is
        another audit."""
        said = repr((super().fingerprint, self._asks, self._answers))
        return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()

    def asks(self, index: int) -> Mapping[str, Ask]:
        return self._asks[index]

    def sample(self, index: int) -> Sample:
        return replace(super().sample(index), asks=self._asks[index], answers=self._answers[index])
