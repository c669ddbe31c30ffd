"""An audit's accuracies as MedTest lays them out (thesis LYU2308, CUHK 2024, Tables 13 to 16).

Tables 13 and 15: a row per question, a column for the original images and one per relation.
Tables 14 and 16: the original, the average over relations, and the difference. 15 and 16 are
those without the four vague questions, which ``datasets.from_medvqa`` leaves out by default.
"""

from typing import Any, Literal

import numpy as np
import pandas as pd

from adaptive_vtt.datasets.vqa.medvqa_questions import INSTRUMENTS, NAMES
from adaptive_vtt.errors import InputError, unknown
from adaptive_vtt.journal import Journal
from adaptive_vtt.oracles import Premise
from adaptive_vtt.oracles.contains_truth import ACCEPT, ContainsTruth
from adaptive_vtt.results.result import Result
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import ERROR, IDENTITY, Unanswered

ORIGINAL, AVERAGE = "Original", "Average"
RATES = (ERROR, "error rate")
"""Rates whose complement is an accuracy."""
FIGURES = ("estimate", "lower", "upper")


def by_relation(
    result: Result, figure: Literal["estimate", "lower", "upper"] = "estimate"
) -> pd.DataFrame:
    """Accuracy of each question on the original images and under each relation, and averages.

    ``result`` of an audit with the targets "relation-sides" or "relation-concepts";
    ``figure``: the estimate, or a bound of the certificate. Severities of a relation are one
    column. NaN: not asked. Raises InputError for a result without such targets.
    """
    if figure not in FIGURES:
        raise unknown("figure", figure, FIGURES, "tables")
    column = {"estimate": "estimate", "lower": "upper", "upper": "lower"}[figure]
    cells: dict[str, dict[str, float]] = {}
    for target in result.targets.to_dict(orient="records"):
        if target["kind"] == "relation-concept" and target["rate"] in RATES:
            relation = target["relation"].removeprefix("medtest/")
            name = ORIGINAL if relation == IDENTITY else relation
            cells.setdefault(name, {})[target["concept"]] = 1 - float(target[column])
    if not cells:
        raise InputError("tables: expected targets 'relation-sides', found none in the result")
    table = pd.DataFrame(cells)
    order = [n for n in NAMES if n in table.index] + [n for n in table.index if n not in NAMES]
    table = table.loc[order]
    if figure == "estimate":  # the mean of bounds is no bound of the mean
        table.loc[AVERAGE] = table.mean()
    return table


def summary(result: Result) -> pd.DataFrame:
    """Per question: original, average over the relations, and the difference of the two."""
    table = by_relation(result)
    original = table[ORIGINAL] if ORIGINAL in table else pd.Series(np.nan, table.index)
    average = table.drop(columns=ORIGINAL, errors="ignore").mean(axis=1)
    return pd.DataFrame(
        {ORIGINAL: original, "Average perturbation": average, "Difference": original - average}
    )


def instrument_readings(
    space: QuestionSpace, journal: Journal, strict: bool = True
) -> pd.DataFrame:
    """How "Does the image show an instrument?" comes out by what is accepted as its answer.

    After an instrument was put in, "yes", its "name", or "either" may be right. One row per
    reading: accept, accuracy among the answers in the journal (a raw figure, with no
    certificate) and answers. ``space``: the audit's own, as names come from its follow-ups.
    """
    said = [
        (row.question, row.said)
        for call in journal.calls()
        for row in call.answers
        if row.loss is not None and space.question(row.question).concept == INSTRUMENTS
    ]
    rights: dict[str, list[float]] = {accept: [] for accept in ACCEPT}
    for number, words in said:
        question = space.question(number)
        sample, follow_up = space.pair(int(space.image_of(number)))
        if follow_up.details.get("adds") != "instrument":
            continue
        _, variant, _ = space.parts(number)
        relation = space.variants[int(variant)].relation
        for accept in ACCEPT:
            oracle = ContainsTruth(strict, accept)  # type: ignore[arg-type]
            expected = oracle.expect(Premise(relation, follow_up, sample, question, None))
            answer: Any = Unanswered("") if words is None else words
            rights[accept].append(1 - oracle.judge(question, answer, expected).loss)
    rows = [(a, float(np.mean(r)) if r else np.nan, len(r)) for a, r in rights.items()]
    return pd.DataFrame(rows, columns=["accept", "accuracy", "answers"])
