"""Losses, answers and mean losses of all questions, by an audit that asks everything."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..certify.targets import Target, members
from ..engine.calling import Progress
from ..engine.judge import Judge
from ..engine.options import Shorthands
from ..journal import Journal, MemoryJournal
from ..journal.facts import read_facts
from ..journal.rows import AnswerRow
from ..models.base import ModelUnderTest
from ..space import QuestionSpace
from ..strategies import EVERYTHING
from ..types import IDENTITY, Floats, Indices
from .asking import Audit

if TYPE_CHECKING:
    import pandas as pd

MAX_CALLS = 100_000
"""Maximum number of calls of a space that is asked completely to know the true rates."""

Advance = Callable[[int], object]
"""Function that is called with the number of further calls."""


def calls_of(space: QuestionSpace, model: ModelUnderTest) -> int:
    """Return the number of calls that ask everything, with those about source images.

    Above MAX_CALLS those about source images are not counted, as that would take too long.
    """
    calls = space.images if model.answers == "all" else space.size
    sources = Judge(space, model.answers).sources
    if calls > MAX_CALLS or not sources.count:
        return calls
    questions = space.nth(np.arange(space.size))
    return calls + len({sources.source_of(int(question)) for question in questions})


def all_losses(
    space: QuestionSpace, model: ModelUnderTest, advance: Advance = lambda calls: None
) -> tuple[Indices, Floats]:
    """Return all eligible questions, ascending, and their losses; NaN for excluded ones."""
    return losses_in(answered(space, model, advance)[1])


def losses_in(rows: Sequence[AnswerRow]) -> tuple[Indices, Floats]:
    """Return the judged questions, ascending, and their losses; NaN for excluded ones."""
    judged = sorted((row for row in rows if row.loss is not None), key=lambda row: row.question)
    losses = [np.nan if row.excluded else row.loss for row in judged]
    return np.array([row.question for row in judged], np.int64), np.array(losses, float)


def all_answers(
    space: QuestionSpace, model: ModelUnderTest, advance: Advance = lambda calls: None
) -> "pd.DataFrame":
    """Return all answers in the form that ``models.Recorded`` reads, NaN for missing ones.

    Masks are recorded as their scores. Source images are included if the oracle needs them.

    Raises:
        InputError: The oracle compares masks with each other, which scores cannot replace.
    """
    import pandas as pd

    journal, rows = answered(space, model, advance)
    table = np.full((space.total // len(space.concepts), len(space.asked)), np.nan)
    for row in rows:
        if row.answer is not None:
            _, _, concept = space.numbering.parts(row.question)
            table[space.numbering.image_of(row.question), space.asked_by[concept]] = row.answer
    images = np.unique(space.image_of(space.nth(np.arange(space.size))))
    sample, variant = space.numbering.image_parts(images)
    names = [(space.variants[v].relation.name, space.variants[v].severity) for v in variant]
    scores = _source_scores(space, journal)
    names += [(IDENTITY, 0)] * len(scores)
    keys = pd.DataFrame(names, columns=["relation", "severity"])
    keys.insert(0, "sample", [space.dataset.sample_id(int(k)) for k in [*sample, *scores]])
    answers = np.concatenate([table[images], *(row[None] for row in scores.values())])
    return pd.concat([keys, pd.DataFrame(answers, columns=list(space.asked))], axis=1)


def means(
    space: QuestionSpace, targets: Sequence[Target], questions: Indices, losses: Floats
) -> Floats:
    """Return the mean loss of each target, (K,).

    Args:
        space: The space.
        targets: K targets.
        questions: All questions, (n,).
        losses: Their losses, (n,); NaN for excluded ones, which do not count.
    """
    sums, counts = np.zeros(len(targets)), np.zeros(len(targets))
    for start in range(0, len(questions), MAX_CALLS):
        part = slice(start, start + MAX_CALLS)
        inside, counting = members(space, targets, questions[part]), ~np.isnan(losses[part])
        sums += inside @ np.where(counting, losses[part], 0.0)
        counts += inside @ counting.astype(float)
    return np.asarray(sums / np.maximum(counts, 1))


def answered(
    space: QuestionSpace, model: ModelUnderTest, advance: Advance = lambda calls: None
) -> tuple[Journal, list[AnswerRow]]:
    """Return the journal of an audit that asked everything, and all its answers, judged or not."""
    calls = [0]

    def follow(progress: Progress) -> None:
        calls.append(progress.state.calls)
        advance(calls[-1] - calls[-2])

    journal = MemoryJournal()
    options: Shorthands = {"strategy": EVERYTHING, "seed": 0, "fail_on_error": 1.0, "processes": 0}
    Audit(space, model, journal=journal, **options).run(follow)
    return journal, [row for call in journal.calls() for row in call.answers]


def _source_scores(space: QuestionSpace, journal: Journal) -> dict[int, Floats]:
    """Return, by sample, the scores of the answers about its source image, one per asked concept;
    NaN for an answer without a score."""
    sources = Judge(space, read_facts(journal.facts()).settings.answers).sources
    for reply in journal.sources():
        sources.keep(reply)
    scores: dict[int, Floats] = {}
    for number, values in sources.known.items():
        sample, place = divmod(number, sources.per_sample)
        row = scores.setdefault(sample, np.full(len(space.asked), np.nan))
        for k, value in enumerate(values, start=place):
            score = space.oracle.record(value, space.dataset.sample(sample), space.asked[k])
            row[k] = np.nan if score is None else score
    return scores
