"""Metadata columns: one value, or, of columns of many numbers, a quarter of the samples."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...space import QuestionSpace
from .atoms import Atom, by_rows, by_values

NAME = "metadata"
MAX = 16
"""Values of a column that are proposed one by one, at most; of more, numbers are put into bins and
words are left alone: they name samples rather than groups."""
PARTS = 4
"""Bins of a column of many numbers, with as many samples each as can be."""
PLAIN = (str, int, float, bool)
"""What is proposed of a column: what a filter in a SPEC.toml can say."""
OWN = {"relation", "severity", "concept", "truth"}
"""Fields of a filter that are no columns."""


def atoms(space: QuestionSpace) -> list[Atom]:
    """One atom per column and value, or bin."""
    found: list[Atom] = []
    for column in space.dataset.metadata_columns:
        if column not in OWN:
            found += _column(space, column)
    return found


def _column(space: QuestionSpace, column: str) -> list[Atom]:
    there = space.dataset.metadata_values(column)
    plain = [v.item() if isinstance(v, np.generic) else v for v in there.tolist()]
    values = list(dict.fromkeys(v for v in plain if isinstance(v, PLAIN) and v == v))
    if len(values) < 2:
        return []
    if len(values) <= MAX:
        return [by_values(space, NAME, column, [v], f"{column} {v}") for v in values]
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return []
    return _bins(space, column, there.astype(float))


def _bins(space: QuestionSpace, column: str, values: npt.NDArray[np.float64]) -> list[Atom]:
    ends = np.unique(np.nanquantile(values, np.linspace(0, 1, PARTS + 1)))
    found = []
    for low, high in pairwise(ends):
        rows = (values >= low) & ((values < high) | (high == ends[-1]))
        found.append(by_rows(space, NAME, column, rows, f"{column} {low:g} to {high:g}"))
    return found
