"""The questions that the figures of a ``BeliefRow`` are about, and the order of these figures.

A cell holds the questions of one concept under one variant (a relation at one severity): cell
c * V + v of C x V. ``predicted``, ``spread``, ``asked`` and ``failed`` have one figure per cell,
and ``sd`` one per group of cells, None if unknown. ``uncertainty`` has two per concept, u- and u+
as shares of their prior. ``images``, an optional figure, has ``predicted`` and ``sd`` per image.
The fact "beliefs" (``Believed``) names those images, and counts the questions of each cell.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import JournalError
from ..types import Floats, Indices
from .rows import BeliefRow, damaged

Kind = Literal["overall", "concept", "relation", "severity", "relation-concept", "cell"]
KINDS: tuple[Kind, ...] = ("overall", "concept", "relation", "severity", "relation-concept", "cell")
"""Groupings of cells. All but the last are also families of targets (``families``)."""
FACT = "beliefs"


class Group(NamedTuple):
    """Questions that are described together; a field that is None includes all its values."""

    kind: Kind
    concept: str | None
    relation: str | None
    severity: int | None


class Groups:
    """All G groups of a space, kind after kind.

    Attributes:
        all: The groups, in order.
        cells: Number of cells, C * V.
        group_of: Kind -> (cells,), the group of each cell, counted within its kind.
    """

    def __init__(self, concepts: Sequence[str], variants: Sequence[tuple[str, int]]) -> None:
        relations = list(dict.fromkeys(relation for relation, _ in variants))
        relation_of_variant = np.array([relations.index(relation) for relation, _ in variants])
        concept, variant = np.divmod(np.arange(len(concepts) * len(variants)), len(variants))
        relation = relation_of_variant[variant]
        self.cells = len(concept)
        self.group_of: dict[Kind, Indices] = {
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
        """Index in ``all`` of the first group of each kind."""
        kinds = [group.kind for group in self.all]
        return {kind: kinds.index(kind) for kind in KINDS}

    def sums(self, values: npt.ArrayLike) -> Floats:
        """Return the sums (G,) of figures per cell (cells,) over every group.

        None and NaN count as 0.
        """
        known = np.nan_to_num(np.asarray(values, np.float64))
        counts = {kind: int(groups.max()) + 1 for kind, groups in self.group_of.items()}
        return np.concatenate([np.bincount(self.group_of[k], known, counts[k]) for k in KINDS])


class Believed(BaseModel):
    """The fact "beliefs".

    Attributes:
        sizes: Number of questions per cell.
        questions: How many of all questions were predicted.
        samples: Numbers of the n images that are described.
        names: Ids of the same images.
        places: (n, 2), two principal components of their features, or None.
    """

    model_config = ConfigDict(frozen=True)

    sizes: tuple[int, ...]
    questions: int
    samples: tuple[int, ...]
    names: tuple[str, ...]
    places: tuple[tuple[float, float], ...] | None = None


def believed(raw: Mapping[str, Any]) -> Believed | None:
    """Return the fact "beliefs" of a journal, None if it has none.

    Raises:
        JournalError: The fact has another form than expected.
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
    """Return figures (count,) of a row, NaN if they are unknown.

    Raises:
        JournalError: The row has anything but ``count`` numbers under that name.
    """
    return _numbers(row.figures.get(name), count, f"beliefs, after {row.draws} draws, {name}")


def of_images(row: BeliefRow, name: str, count: int) -> Floats:
    """Return figures (count,) of images, as ``column`` does of cells."""
    where, columns = f"beliefs, after {row.draws} draws, images, {name}", row.figures.get("images")
    return _numbers(columns.get(name) if isinstance(columns, dict) else columns, count, where)


def _numbers(figures: Any, count: int, where: str) -> Floats:
    """Return a list of numbers as an array (count,), NaN for None; raise JournalError otherwise."""
    if figures is None:
        return np.full(count, np.nan)
    try:
        values = np.array(figures, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (count,):
        raise damaged(f"journal: {where}", f"a list of {count} numbers", "something else")
    return values
