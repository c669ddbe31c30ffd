"""What the audits are to find out: every question asked once, in a plain pass."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..certify import named_targets
from ..certify.targets import Target, member
from ..datasets.base import Indices
from ..models.base import Answer, ModelUnderTest, Prompt, Unanswered
from ..models.checking import checked
from ..space import QuestionSpace
from ..spec import CertifySpec

Floats = npt.NDArray[np.float64]

MOST_CALLS = 100_000
"""Spaces of more calls are not asked through."""
BATCH = 256


def calls_of(space: QuestionSpace, model: ModelUnderTest) -> int:
    """How many calls it takes to ask everything."""
    return space.images if model.answers == "all" else space.size


def targets_of(space: QuestionSpace, certify: CertifySpec) -> list[Target]:
    """The targets that an audit of ``space`` certifies."""
    return named_targets(space, certify.targets, certify.where)


def all_losses(
    space: QuestionSpace,
    model: ModelUnderTest,
    seed: int,
    advance: Callable[[int], object] = lambda calls: None,
) -> tuple[Indices, Floats]:
    """Every eligible question, in order, and its loss."""
    questions = np.sort(space.nth(np.arange(space.size)))
    losses = np.empty(len(questions))
    for calls, values in answered(space, model, questions, seed):
        for place, value, follow_up in values:
            losses[place] = _loss(space, int(questions[place]), value, follow_up)
        advance(calls)
    return questions, losses


def all_answers(
    space: QuestionSpace,
    model: ModelUnderTest,
    seed: int,
    advance: Callable[[int], object] = lambda calls: None,
) -> pd.DataFrame:
    """Every answer, as ``models.Recorded`` reads them; empty where there was none."""
    questions = np.sort(space.nth(np.arange(space.size)))
    table = np.full((space.total // len(space.concepts), len(space.concepts)), np.nan)
    for calls, values in answered(space, model, questions, seed):
        for place, value, _ in values:
            if not isinstance(value, Unanswered):
                table.flat[questions[place]] = value
        advance(calls)
    images = np.unique(space.image_of(questions))
    sample, variant = np.divmod(images, len(space.variants))
    keys = {
        "sample": [space.dataset.sample_id(int(s)) for s in sample],
        "relation": [space.variants[v].relation.name for v in variant],
        "severity": [space.variants[v].severity for v in variant],
    }
    return pd.DataFrame({**keys, **dict(zip(space.concepts, table[images].T, strict=True))})


def means(
    space: QuestionSpace, targets: Sequence[Target], questions: Indices, losses: Floats
) -> Floats:
    """(K,): the mean loss of every target, given all questions and their losses."""
    sums, counts = np.zeros(len(targets)), np.zeros(len(targets))
    for start in range(0, len(questions), MOST_CALLS):
        part = slice(start, start + MOST_CALLS)
        inside = members(space, targets, questions[part])
        sums += inside @ losses[part]
        counts += inside.sum(axis=1)
    return sums / counts


def members(
    space: QuestionSpace, targets: Sequence[Target], questions: Indices
) -> npt.NDArray[np.bool_]:
    """K x n: which targets each question belongs to."""
    sample, variant, concept = space.parts(questions)
    return member(space, targets, sample, variant, concept, space.truth(questions))


def answered(
    space: QuestionSpace, model: ModelUnderTest, questions: Indices, seed: int
) -> Iterator[tuple[int, list[tuple[int, Any, Any]]]]:
    """Batch by batch: the calls made, and place in ``questions``, answer and follow-up."""
    units = space.image_of(questions) if model.answers == "all" else questions
    starts = np.flatnonzero(np.diff(units, prepend=-1))
    ends = np.append(starts[1:], len(questions))
    for first in range(0, len(starts), BATCH):
        spans = list(zip(starts[first : first + BATCH], ends[first : first + BATCH], strict=True))
        images = [int(space.image_of(questions[start])) for start, _ in spans]
        shown = [space.follow_up(image, seed) for image in images]
        prompts = [
            _prompt(space, model, int(questions[start]), follow_up.image)
            for (start, _), follow_up in zip(spans, shown, strict=True)
        ]
        answers = checked(model, prompts)
        yield (
            len(spans),
            [
                (place, _value(space, model, answer, int(questions[place])), follow_up)
                for (start, end), answer, follow_up in zip(spans, answers, shown, strict=True)
                for place in range(int(start), int(end))
            ],
        )


def _prompt(space: QuestionSpace, model: ModelUnderTest, number: int, image: Any) -> Prompt:
    question = space.question(number)
    concepts = space.concepts if model.answers == "all" else (question.concept,)
    return Prompt(image, concepts, question.sample_id, question.relation, question.severity)


def _value(
    space: QuestionSpace, model: ModelUnderTest, answer: Answer | Unanswered, number: int
) -> float | Unanswered:
    if isinstance(answer, Unanswered):
        return answer
    return answer.values[number % len(space.concepts) if model.answers == "all" else 0]


def _loss(space: QuestionSpace, number: int, value: Any, follow_up: Any) -> float:
    question = space.question(number)
    variant = number // len(space.concepts) % len(space.variants)
    expected = space.variants[variant].relation.expect(question.truth, follow_up)
    return float(space.oracle.judge(question, value, expected, None).loss)
