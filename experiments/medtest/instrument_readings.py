"""Compute MedTest's accuracy on "Does the image show an instrument?", by the accepted answer."""

from typing import Any

import numpy as np
import pandas as pd

from adaptive_vtt.datasets.vqa.medvqa_questions import INSTRUMENTS
from adaptive_vtt.journal import Journal
from adaptive_vtt.oracles import Premise
from adaptive_vtt.oracles.contains_truth import ACCEPT, ContainsTruth
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.types import Unanswered


def instrument_readings(
    space: QuestionSpace, journal: Journal, strict: bool = True
) -> pd.DataFrame:
    """Return the accuracy on the question about instruments, for each kind of accepted answer.

    If a follow-up has an added instrument, the answer may have to be "yes", the instrument's
    "name", or "either".

    Args:
        space: The audit's space, whose follow-ups name the instruments.
        journal: The audit's journal.
        strict: As in `ContainsTruth`.

    Returns:
        A row per kind: "accept", "accuracy" of the journaled answers (which nothing certifies), and
        the number of "answers".
    """
    answers = [
        (row.question, row.answer_text)
        for call in journal.calls()
        for row in call.answers
        if row.loss is not None and space.question(row.question).concept == INSTRUMENTS
    ]
    rights: dict[str, list[float]] = {accept: [] for accept in ACCEPT}
    for number, words in answers:
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
