"""Which questions the figures of a ``BeliefRow`` are about, and in which order they stand there.

A cell is the questions of one concept under one variant (a relation at one severity): cell
c * V + v of C x V. ``predicted``, ``spread``, ``asked`` and ``failed`` hold one figure per cell,
``sd`` one per group of cells, None where it is not known; ``uncertainty`` two per concept, u- and
u+ as shares of their prior. ``images``, where it is there, holds ``predicted`` and ``sd`` of each.
The fact "beliefs" (``Believed``) says which images those are, and how many questions a cell has.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import JournalError
from ..types import Floats, Indices
from .rows import BeliefRow

Kind = Literal["overall", "concept", "relation", "severity", "relation-concept", "cell"]
KINDS: tuple[Kind, ...] = ("overall", "concept", "relation", "severity", "relation-concept", "cell")
"""Ways of grouping cells; but for the last, those of targets (``families``)."""
FACT = "beliefs"


class Group(NamedTuple):
    """Questions that are described together; None stands for all."""

    kind: Kind
    concept: str | None
    relation: str | None
    severity: int | None


class Groups:
    """All groups of a space, kind after kind. ``of``: kind -> (cells,), the group of each cell,
    counted within its kind."""

    def __init__(self, concepts: Sequence[str], variants: Sequence[tuple[str, int]]) -> None:
        relations = list(dict.fromkeys(relation for relation, _ in variants))
        chosen = np.array([relations.index(relation) for relation, _ in variants])
        concept, variant = np.divmod(np.arange(len(concepts) * len(variants)), len(variants))
        relation = chosen[variant]
        self.cells = len(concept)
        self.of: dict[Kind, Indices] = {
            "overall": np.zeros_like(concept),
            "concept": concept,
            "relation": relation,
            "severity": variant,
            "relation-concept": relation * len(concepts) + concept,
            "cell": np.arange(self.cells),
        }
        self.all = [
            Group("overall", None, None, None),
            *(Group("concept", name, None, None) for name in concepts),
            *(Group("relation", None, name, None) for name in relations),
            *(Group("severity", None, *variant) for variant in variants),
            *(Group("relation-concept", c, r, None) for r in relations for c in concepts),
            *(Group("cell", c, *variant) for c in concepts for variant in variants),
        ]

    @cached_property
    def start(self) -> dict[Kind, int]:
        """The place in ``all`` of the first group of each kind."""
        kinds = [group.kind for group in self.all]
        return {kind: kinds.index(kind) for kind in KINDS}

    def sums(self, values: npt.ArrayLike) -> Floats:
        """(G,): the sum of figures per cell over every group; None and NaN count as 0."""
        known = np.nan_to_num(np.asarray(values, np.float64))
        counts = {kind: int(places.max()) + 1 for kind, places in self.of.items()}
        return np.concatenate([np.bincount(self.of[k], known, counts[k]) for k in KINDS])


class Believed(BaseModel):
    """The fact "beliefs". ``sizes``: questions per cell; ``questions``: how many of them were
    predicted; ``samples`` and ``names``: the images described, by number and id; ``places``:
    two principal components of the features of each, or None."""

    model_config = ConfigDict(frozen=True)

    sizes: tuple[int, ...]
    questions: int
    samples: tuple[int, ...]
    names: tuple[str, ...]
    places: tuple[tuple[float, float], ...] | None = None


def believed(raw: Mapping[str, Any]) -> Believed | None:
    """The fact "beliefs" among those of a journal, None where there is none.

    Raises JournalError where it is not what it should be.
    """
    if FACT not in raw:
        return None
    try:
        return Believed.model_validate(raw[FACT])
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise JournalError(
            f"journal: fact {FACT!r}, {place}: {first['msg']}; the journal is damaged: restore a "
            "copy of it"
        ) from None


def column(row: BeliefRow, name: str, count: int) -> Floats:
    """(count,): figures of a row, NaN where they are not known, all NaN where none stand there.

    Raises JournalError for what is no list of so many numbers.
    """
    return _numbers(row.figures.get(name), count, f"beliefs, after {row.draws} draws, {name}")


def of_images(row: BeliefRow, name: str, count: int) -> Floats:
    """As ``column``, of the images."""
    where, columns = f"beliefs, after {row.draws} draws, images, {name}", row.figures.get("images")
    return _numbers(columns.get(name) if isinstance(columns, dict) else columns, count, where)


def _numbers(figures: Any, count: int, where: str) -> Floats:
    if figures is None:
        return np.full(count, np.nan)
    try:
        values = np.array(figures, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (count,):
        raise JournalError(
            f"journal: {where}: expected a list of {count} numbers, got something else; the "
            "journal is damaged: restore a copy of it"
        )
    return values
