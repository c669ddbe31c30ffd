"""How good a test's verdicts are against people's, and how far people agree.

Scores as in Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE
2024), section V-B and Table I; Fleiss' kappa after Measuring Nominal Scale Agreement Among
Many Raters (Psychological Bulletin 76, 1971).
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True)
class Scores:
    """Shares in [0, 1]; None where a share of nothing, or of something unknown."""

    accuracy: float | None
    precision: float | None
    recall: float | None
    f1: float | None


def scores(tp: float, fp: float, fn: float, tn: float) -> Scores:
    """Scores of true and false positives and negatives, which may be estimates; NaN: unknown.

    F1 is 2 tp / (2 tp + fp + fn): defined, and 0, where errors were missed and none reported.
    """
    return Scores(
        accuracy=_share(tp + tn, tp + fp + fn + tn),
        precision=_share(tp, tp + fp),
        recall=_share(tp, tp + fn),
        f1=_share(2 * tp, 2 * tp + fp + fn),
    )


def fleiss_kappa(counts: npt.ArrayLike) -> float | None:
    """Agreement beyond chance of raters who each put every subject into one category.

    ``counts``: n subjects x k categories, how many raters chose each; the raters of one
    subject need not be those of another, but as many. 1 is full agreement, 0 what chance
    would give, below 0 less than that. None where it is not defined: no subjects, fewer
    than two raters, or one category chosen throughout, of which chance would give as much.
    Raises InputError for counts of another form, or rows with different sums.
    """
    table = np.asarray(counts, dtype=float)
    if table.ndim != 2 or (table < 0).any() or (table != np.round(table)).any():
        raise InputError(
            "Fleiss' kappa: expected counts of subjects x categories, got "
            f"an array of shape {table.shape} that is none"
        )
    raters = np.unique(table.sum(axis=1))
    if len(raters) > 1:
        raise InputError(
            "Fleiss' kappa: expected as many raters for every subject, got "
            f"{raters[0]:g} to {raters[-1]:g}"
        )
    if len(raters) == 0 or raters[0] < 2:
        return None
    return _beyond_chance(table, float(raters[0]))


def kappa_of(chosen: Sequence[Sequence[Any]]) -> float | None:
    """Fleiss' kappa of what each subject's raters chose; None and raises as ``fleiss_kappa``."""
    kinds = sorted({choice for choices in chosen for choice in choices})
    table = [[choices.count(kind) for kind in kinds] for choices in chosen]
    return fleiss_kappa(table) if table else None


def majority(choices: Iterable[Value]) -> Value | None:
    """What was chosen most often; None where several were, or nothing was chosen."""
    ranked = Counter(choices).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def _beyond_chance(table: npt.NDArray[np.float64], raters: float) -> float | None:
    """Fleiss 1971, equations 3 to 7: counts n x k with the same sum in each row."""
    alike = ((table**2).sum(axis=1) - raters) / (raters * (raters - 1))
    chance = float(((table.sum(axis=0) / table.sum()) ** 2).sum())
    if math.isclose(chance, 1):
        return None
    return (float(alike.mean()) - chance) / (1 - chance)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 and math.isfinite(part) else None
