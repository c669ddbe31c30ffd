"""How good a test's verdicts are against people's, and how far people agree.

Scores as in Metamorphic Testing of Image Captioning Systems via Image-Level Reduction (TSE
2024), section V-B and Table I; Fleiss' kappa after Measuring Nominal Scale Agreement Among
Many Raters (Psychological Bulletin 76, 1971).
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

Value = TypeVar("Value", bound=Hashable)
Answered = dict[tuple[str, str], list[str]]
"""(card, question) -> the answers of all readers."""


def scores(tp: float, fp: float, fn: float, tn: float) -> dict[str, float | None]:
    """Return accuracy, precision, recall and F1 of counts of verdicts, which may be estimates.

    Args:
        tp: True positives, as the next three NaN if unknown.
        fp: False positives.
        fn: False negatives.
        tn: True negatives.

    Returns:
        Shares in [0, 1] by name; None for a share of nothing, or of an unknown count. F1 is
        2 tp / (2 tp + fp + fn): defined, and 0, where errors were missed and none reported.
    """

    def share(part: float, whole: float) -> float | None:
        return part / whole if whole > 0 and math.isfinite(part) else None

    return {
        "accuracy": share(tp + tn, tp + fp + fn + tn),
        "precision": share(tp, tp + fp),
        "recall": share(tp, tp + fn),
        "f1": share(2 * tp, 2 * tp + fp + fn),
    }


def fleiss_kappa(counts: npt.ArrayLike) -> float | None:
    """Return the agreement beyond chance of raters who each put every subject into one category.

    Args:
        counts: Subjects x categories: how many raters chose each. The raters of one subject need
            not be those of another, but as many.

    Returns:
        1 for full agreement, 0 for what chance would give, below 0 for less. None if it is not
        defined: no subjects, fewer than two raters, or one category chosen throughout.
    """
    table = np.asarray(counts, dtype=float)
    raters = float(table[0].sum()) if len(table) else 0.0
    if raters < 2:
        return None
    # equations 3 to 7: pairs of raters that agree, less those that agree by chance
    alike = ((table**2).sum(axis=1) - raters) / (raters * (raters - 1))
    chance = float(((table.sum(axis=0) / table.sum()) ** 2).sum())
    return None if math.isclose(chance, 1) else (float(alike.mean()) - chance) / (1 - chance)


def answered(answers: pd.DataFrame) -> Answered:
    """Return what all readers answered to each question."""
    return answers.groupby(["card", "question"])["answer"].agg(list).to_dict()  # type: ignore[return-value]


def agreement(
    given: Iterable[Sequence[str]], readers: int, choice: Callable[[str], Hashable] = str
) -> tuple[float | None, int]:
    """Return Fleiss' kappa of the questions that all readers answered, and their number.

    Args:
        given: The answers to each question.
        readers: Number of readers.
        choice: Returns the part of an answer that is compared.
    """
    shared = [[choice(answer) for answer in row] for row in given if len(row) == readers]
    kinds = sorted({kind for row in shared for kind in row}, key=str)
    table = [[row.count(kind) for kind in kinds] for row in shared]
    return fleiss_kappa(table) if table else None, len(shared)


def by_pair(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per pair of readers: number of questions that both answered, and the share with
    the same answer, NaN if there are none."""
    table = answers.set_index(["card", "question", "reader"])["answer"].unstack()
    rows = []
    for one, other in combinations(table, 2):
        both = table[[one, other]].dropna()
        same = (both[one] == both[other]).mean()
        rows.append({"readers": f"{one}, {other}", "both answered": len(both), "same": same})
    return pd.DataFrame(rows)


def majority(choices: Iterable[Value]) -> Value | None:
    """Return what was chosen most often; None if several were, or nothing was chosen."""
    first, second, *_ = [*Counter(choices).most_common(2), (None, 0), (None, 0)]
    return first[0] if first[1] > second[1] else None
