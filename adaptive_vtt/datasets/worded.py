"""A table dataset whose concepts are asked about in words."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .base import Ask, Sample
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

    @property
    def fingerprint(self) -> str:
        """Follows the words too: other words, another audit."""
        said = repr((super().fingerprint, self._asks, self._answers))
        return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()

    def sample(self, index: int) -> Sample:
        return replace(super().sample(index), asks=self._asks[index], answers=self._answers[index])
