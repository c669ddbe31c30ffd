"""Judging a whole batch by arrays, where the oracle needs no more than numbers and truths."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from ...engine.judge import Judge
from ...oracles import Correctness, TopClass
from ...relations import RelationDefaults
from ...types import Answer, Unanswered
from .record import Columns


def columns_of(judge: Judge, calls: Sequence[int], said: Sequence[Answer | Unanswered]) -> Columns:
    """The judged answers of a batch: at once where that comes to the same, else one by one."""
    found = _at_once(judge, calls, said)
    if found is not None:
        return found
    pairs = zip(calls, said, strict=True)
    return Columns.of([row for call, answer in pairs for row in judge.judged(call, answer)])


def _at_once(
    judge: Judge, calls: Sequence[int], said: Sequence[Answer | Unanswered]
) -> Columns | None:
    """None where a rule is another, an answer no number, or a relation changes truths."""
    space, oracle = judge.space, judge.space.oracle.original
    relations = {type(v.relation) for v in space.variants}
    if any(kind.expect is not RelationDefaults.expect for kind in relations):
        return None
    given = [answer.values for answer in said if isinstance(answer, Answer)]
    if len(given) < len(said) or {*map(type, chain.from_iterable(given))} != {float}:
        return None
    places = [0] if judge.answers == "one" else list(space.asked_by)
    answers = np.array(given)[:, places]
    questions = np.stack([judge.all_questions_of(call) for call in calls])
    truth = space.truth(questions.ravel()).reshape(questions.shape)
    if type(oracle) is Correctness:
        yes = answers >= oracle.threshold
    elif type(oracle) is TopClass:
        yes = np.arange(answers.shape[1]) == answers.argmax(axis=1)[:, None]
    else:
        return None
    there = space.eligible(questions.ravel()).reshape(questions.shape)
    nothing = np.full(int(there.sum()), "")
    loss = (yes != (truth == 1)).astype(float)
    return Columns(questions[there], truth[there], answers[there], loss[there], nothing, nothing)
