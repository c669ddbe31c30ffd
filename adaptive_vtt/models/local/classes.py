"""Which of a model's classes a concept is, and how likely that makes it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy.typing as npt

from ...errors import InputError, unknown
from ...utils.options import Option
from .tensors import Activation

ClassNames = Mapping[str, str | Sequence[str]]
"""Concept -> the model's class of it, or several that count as it."""
ClassNamesOption = Annotated[
    ClassNames | None, Option("concept -> class or classes of it (default: the one of its name)")
]
Device = Annotated[str, Option("cpu, cuda or cuda:1; auto is CUDA where there is one")]


class Classes:
    """Which of a model's classes each concept is.

    ``names``: concept -> class or classes; a concept that is not there is the class of its own
    name, whatever its case, spaces, hyphens and underscores. Raises InputError for unknown classes.
    """

    def __init__(self, labels: Sequence[str], names: ClassNames, who: str) -> None:
        self._labels, self._who = tuple(labels), who
        self._places = {_plain(label): place for place, label in enumerate(labels)}
        self._named = {c: self._found([n] if isinstance(n, str) else n) for c, n in names.items()}

    def __repr__(self) -> str:
        return f"Classes({self._labels}, {self._named})"

    def __len__(self) -> int:
        """How many classes the model has."""
        return len(self._labels)

    def of(self, concept: str) -> list[int]:
        """The places of a concept's classes among the model's."""
        if concept not in self._named:
            self._named[concept] = self._found([concept])
        return self._named[concept]

    def likely(self, row: npt.NDArray[Any], concept: str, activation: Activation) -> float:
        """P(yes) of a concept, of the probabilities of all classes, shape (C,).

        Of several classes that are one concept, a softmax is summed, else the largest counts.
        """
        found = row[self.of(concept)]
        return float(min(found.sum(), 1.0) if activation == "softmax" else found.max())

    def _found(self, names: Sequence[str]) -> list[int]:
        for name in names:
            if _plain(name) not in self._places:
                error = unknown("class", name, self._labels, f"model {self._who!r}")
                raise InputError(f"{error}; class_names in [model] says which class a concept is")
        return [self._places[_plain(name)] for name in names]


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
