"""What the audits are to find out: every question asked once, in a plain pass."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from ...certify.targets import Target, member
from ...engine.judge import Judge
from ...journal.files import BATCH
from ...journal.rows import AnswerRow
from ...models.base import ModelUnderTest
from ...models.checking import checked
from ...relations import FollowUp
from ...space import QuestionSpace
from ...types import IDENTITY, Answer, Bools, Floats, Indices, Sample, Unanswered

if TYPE_CHECKING:
    import pandas as pd

Pair = tuple[Sample, FollowUp]
FollowUps = Callable[[Sequence[list[int]]], Iterator[dict[int, Pair]]]
"""From the images of every batch to their sources and follow-ups, by image, a batch at a time."""
MAX_CALLS = 100_000
"""Spaces of more calls are not asked through."""


def calls_of(space: QuestionSpace, model: ModelUnderTest) -> int:
    """How many calls it takes to ask everything.

    Above MAX_CALLS those about source images are left out: nothing that large is listed.
    """
    calls = space.images if model.answers == "all" else space.size
    judge = Judge(space, model.answers)
    if calls > MAX_CALLS or not judge.sources.count:
        return calls
    return calls + len(_sources(judge, calls_in_order(space, model)))


def calls_in_order(space: QuestionSpace, model: ModelUnderTest) -> list[int]:
    """The numbers of all calls that answer a question, ascending."""
    questions = np.sort(space.nth(np.arange(space.size)))
    calls = np.unique(space.image_of(questions)) if model.answers == "all" else questions
    return [int(call) for call in calls]


def _sources(judge: Judge, calls: list[int]) -> list[int]:
    """The source calls that the calls are judged by."""
    if not judge.sources.count:
        return []
    return sorted({judge.sources.of(int(judge.all_questions_of(call)[0])) for call in calls})


def all_losses(
    space: QuestionSpace,
    model: ModelUnderTest,
    advance: Callable[[int], object] = lambda calls: None,
) -> tuple[Indices, Floats]:
    """Every eligible question, in order, and its loss; NaN where it does not count."""
    questions = np.sort(space.nth(np.arange(space.size)))
    losses = np.empty(len(questions))
    for rows in judged(Judge(space, model.answers), model, advance):
        known = {r.question: np.nan if r.excluded else r.loss for r in rows if r.loss is not None}
        losses[np.searchsorted(questions, list(known))] = list(known.values())
    return questions, losses


def all_answers(
    space: QuestionSpace,
    model: ModelUnderTest,
    advance: Callable[[int], object] = lambda calls: None,
) -> "pd.DataFrame":
    """Every answer as ``models.Recorded`` reads them, masks as their scores; NaN: none.

    Source images stand there too where the oracle needs them. Raises InputError where masks
    are compared with each other: those cannot be recorded as numbers.
    """
    import pandas as pd

    judge = Judge(space, model.answers)
    table = np.full((space.total // len(space.concepts), len(space.asked)), np.nan)
    for rows in judged(judge, model, advance):
        for row in rows:
            image = space.numbering.image_of(row.question)
            _, _, concept = space.numbering.parts(row.question)
            if row.answer is not None:
                table[image, space.asked_by[concept]] = row.answer
    images = np.unique(space.image_of(space.nth(np.arange(space.size))))
    sample, variant = space.numbering.image_parts(images)
    names = [(space.variants[v].relation.name, space.variants[v].severity) for v in variant]
    asked, scores = source_scores(judge)
    keys = pd.DataFrame([*names, *[(IDENTITY, 0)] * len(asked)], columns=["relation", "severity"])
    keys.insert(0, "sample", [space.dataset.sample_id(int(k)) for k in [*sample, *asked]])
    answers = np.concatenate([table[images], scores])
    return pd.concat([keys, pd.DataFrame(answers, columns=list(space.asked))], axis=1)


def source_scores(judge: Judge) -> tuple[list[int], Floats]:
    """The samples whose source images were asked about, and what is known as numbers, n x asked."""
    space = judge.space
    found: dict[int, Floats] = {}
    for number, values in judge.sources.known.items():
        sample, place = divmod(number, judge.sources.per_sample)
        row = found.setdefault(sample, np.full(len(space.asked), np.nan))
        for k, value in enumerate(values, start=place):
            score = space.oracle.record(value, space.dataset.sample(sample), space.asked[k])
            row[k] = np.nan if score is None else score
    return list(found), np.array([*found.values()]).reshape(-1, len(space.asked))


def unanswered(space: QuestionSpace, model: ModelUnderTest) -> int:
    """How many questions that count get no answer."""
    rows = (row for some in judged(Judge(space, model.answers), model, int) for row in some)
    return sum(r.loss is not None and r.answer is None and not r.excluded for r in rows)


def means(
    space: QuestionSpace, targets: Sequence[Target], questions: Indices, losses: Floats
) -> Floats:
    """(K,): the mean loss of every target, given all questions and their losses; those of NaN are
    left out, as the intervals leave them out."""
    sums, counts = np.zeros(len(targets)), np.zeros(len(targets))
    for start in range(0, len(questions), MAX_CALLS):
        part = slice(start, start + MAX_CALLS)
        inside, counting = members(space, targets, questions[part]), ~np.isnan(losses[part])
        sums += inside @ np.where(counting, losses[part], 0.0)
        counts += inside @ counting.astype(float)
    return np.asarray(sums / np.maximum(counts, 1))


def members(space: QuestionSpace, targets: Sequence[Target], questions: Indices) -> Bools:
    """K x n: which targets each question belongs to."""
    sample, variant, concept = space.parts(questions)
    return member(space, targets, sample, variant, concept, space.truth(questions))


def judged(
    judge: Judge, model: ModelUnderTest, advance: Callable[[int], object]
) -> Iterator[list[AnswerRow]]:
    """Every call made and judged, a batch at a time."""
    for numbers, said in asked(judge, model, advance):
        pairs = zip(numbers, said, strict=True)
        yield [row for n, answer in pairs for row in judge.judged(n, answer)]


def asked(
    judge: Judge,
    model: ModelUnderTest,
    advance: Callable[[int], object],
    *,
    done: int = 0,
    follow_ups: FollowUps | None = None,
) -> Iterator[tuple[Sequence[int], list[Answer | Unanswered]]]:
    """The calls of a batch and what was said to each, batch by batch; source images are asked about
    first. Images are at hand while a batch is judged.

    ``done``: how many batches are known already; ``follow_ups`` make the images elsewhere.
    """
    batches = [*_batches(calls_in_order(judge.space, model))][done:]
    ask_sources(judge, model, [call for batch in batches for call in batch], advance)
    elsewhere = follow_ups or partial(_made_here, judge.space)
    ready = elsewhere([_images(judge, batch) for batch in batches])
    for numbers, pairs in zip(batches, ready, strict=True):
        judge.hold({n: pairs[image] for n, image in _image_of(judge, numbers)})
        yield numbers, checked(model, [judge.prompt(n) for n in numbers])
        for number in numbers:
            judge.forget(number)
        advance(len(numbers))


def ask_sources(
    judge: Judge, model: ModelUnderTest, calls: list[int], advance: Callable[[int], object]
) -> None:
    """Asks about the source images that ``calls`` are judged by, and versions of them."""
    for numbers in _batches(_sources(judge, calls)):
        _receive(judge, model, numbers)
        advance(len(numbers))
        while versions := [n for s in numbers for n in judge.sources.missing(s)]:
            for some in _batches(versions):
                _receive(judge, model, some)


def _image_of(judge: Judge, calls: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each call, and the image that it is about."""
    whole = judge.answers == "all"
    return ((n, n if whole else judge.space.numbering.image_of(n)) for n in calls)


def _images(judge: Judge, calls: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(image for _, image in _image_of(judge, calls)))


def _made_here(space: QuestionSpace, batches: Sequence[list[int]]) -> Iterator[dict[int, Pair]]:
    return (made(space, images) for images in batches)


def made(space: QuestionSpace, images: Sequence[int]) -> dict[int, Pair]:
    """The source and the follow-up of every image; a source of images in a row is read once."""
    read = lru_cache(maxsize=1)(space.dataset.sample)
    sources = ((image, read(space.numbering.image_parts(image)[0])) for image in images)
    return {image: (source, space.made_of(source, image)) for image, source in sources}


def _receive(judge: Judge, model: ModelUnderTest, numbers: Sequence[int]) -> None:
    """Asks about source images, or versions of them."""
    said = checked(model, [judge.sources.prompt(n) for n in numbers])
    for number, answer in zip(numbers, said, strict=True):
        judge.sources.know(judge.sources.row(number, answer, 0.0))


def _batches(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH))
