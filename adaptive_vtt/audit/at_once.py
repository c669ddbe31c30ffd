"""Answers of many calls judged together, in a fraction of the time that one by one takes."""

from itertools import chain

import numpy as np

from ..engine.judge import Answers, Judge
from ..journal.rows import AnswerRow
from ..oracles import Correctness, TopClass
from ..relations import RelationDefaults
from ..types import Answer


def judged_at_once(judge: Judge, answers: Answers) -> dict[int, tuple[AnswerRow, ...]]:
    """Return what ``judge.judged`` gives of each call, where every answer is numbers alone that are
    compared with truths which no relation changes; {} elsewhere."""
    space, oracle, given = judge.space, judge.space.oracle.original, [*answers.values()]
    relations = {type(variant.relation) for variant in space.variants}
    if any(kind.expect is not RelationDefaults.expect for kind in relations):
        return {}
    values = [answer.values for answer in given if isinstance(answer, Answer)]
    if len(values) < len(given) or {*map(type, chain.from_iterable(values))} != {float}:
        return {}
    said = np.array(values)[:, [0] if judge.answers == "one" else list(space.asked_by)]
    if type(oracle) is Correctness:
        yes = said >= oracle.threshold
    elif type(oracle) is TopClass:
        yes = np.arange(said.shape[1]) == said.argmax(axis=1)[:, None]
    else:
        return {}
    questions = np.stack([judge.all_questions_of(call) for call in answers])
    truth = space.truth(questions)
    loss, coordinate = (yes != (truth == 1)).astype(float), (said + truth) / 2
    columns = [questions, space.eligible(questions), truth, said, loss, coordinate]
    rows = zip(answers, *(column.tolist() for column in columns), strict=True)
    return {call: tuple(map(_row, (call,) * len(each[0]), *each)) for call, *each in rows}


def _row(
    call: int,
    question: int,
    eligible: bool,
    truth: int,
    answer: float,
    loss: float,
    coordinate: float,
) -> AnswerRow:
    if not eligible:
        return AnswerRow(question, call, None, answer, None, None, None)
    return AnswerRow(question, call, truth, answer, None, loss, coordinate)
