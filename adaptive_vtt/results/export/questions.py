"""The questions of an audit of multiple choice as EndoBench's table: words, options and images.

The follow-up takes the place of its source image, with the question, the options and the right
letter that it was judged by. ``datasets.from_endobench`` reads the table, as does VLMEvalKit.
"""

from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase

import pandas as pd

from ...datasets.vqa.question_table import Line, write_questions
from ...datasets.vqa.taxonomy import category_of
from ...engine.judge import Judge
from ...engine.settings import same_audit
from ...errors import InputError, unexpected
from ...journal import Journal
from ...space import QuestionSpace
from ..outcomes import FAILED, counting
from ..run import Run

MORE = ("sample", "relation", "severity", "draw", "loss")
"""Columns after EndoBench's own: where a question is from, and how it was answered."""


def export_questions(
    source: Journal | Run,
    space: QuestionSpace,
    path: Path | str,
    *,
    least_loss: float = FAILED,
    everything: bool = False,
    image_format: str = "jpeg",
) -> int:
    """Write the questions that were answered with a loss of ``least_loss`` or more.

    One line per question, in draw order. A question that turned out not to count is left out.

    Args:
        source: An audit's run or journal.
        space: Its space.
        path: The table, which must not exist.
        least_loss: The smallest loss that is exported, in (0, 1].
        everything: Whether to write all questions that were asked.
        image_format: How images are encoded.

    Returns:
        The number of questions.

    Raises:
        InputError: The file exists, questions have no options, samples have no images, or there is
            nothing to write.
        JournalError: The journal is of another space.
    """
    if Path(path).exists():
        raise InputError(f"{path}: stands there already; nothing was written")
    table = counting(judged_of(Run.of(source), space, least_loss))
    wanted = table[everything | (table["loss"] >= least_loss)].drop_duplicates("question")
    if wanted.empty:
        what = "answer" if everything else f"answer has a loss of {least_loss:g} or more"
        raise InputError(f"export: no {what}")
    lines = question_lines(space, wanted)
    return write_questions(Path(path), lines, image_format=image_format, more=MORE)


def judged_of(run: Run, space: QuestionSpace, least_loss: float = FAILED) -> pd.DataFrame:
    """Return the outcomes of an audit of ``space``. Raise InputError for a loss out of range and a
    space without images, JournalError for another space."""
    if not 0 < least_loss <= 1:
        raise InputError(f"least loss: expected a number above 0, up to 1, got {least_loss}")
    if not space.dataset.has_images:
        raise InputError(f"export: dataset {space.dataset.name!r} has no images")
    same_audit(run.facts, space, {})
    return run.table


def question_lines(space: QuestionSpace, asked: pd.DataFrame) -> Iterator[Line]:
    """Yield a line for each row of ``results.outcomes``.

    Raises InputError for a question without options or without one right letter.
    """
    judge = Judge(space, "one")
    for row in asked.to_dict("records"):
        number = int(row["question"])
        prompt = judge.prompt(number)
        sample = space.dataset.sample(space.numbering.parts(number)[0])
        (concept,), asks = prompt.concepts, prompt.asks
        letters = sample.answers.get(concept, ())
        if not asks or not asks[0].options or len(letters) != 1 or prompt.image is None:
            wanted = f"a question with options and one right letter about {concept!r}"
            got = "none: a table of questions holds multiple choice alone"
            raise unexpected(f"export: sample {sample.id!r}", wanted, got)
        described = {name: str(value) for name, value in sample.metadata.items()}
        task = described.get("task", concept)
        yield Line(
            prompt.image,
            f"{prompt.words} {asks[0].text}".lstrip(),
            asks[0].options,
            ascii_uppercase.index(letters[0]),
            described.get("category") or category_of(task),
            task,
            described.get("subtask", task),
            described.get("scene", ""),
            described.get("dataset", ""),
            tuple(f"{row[name]:g}" if name == "loss" else str(row[name]) for name in MORE),
        )
        judge.forget(number)


def is_multiple_choice(space: QuestionSpace) -> bool:
    """Return whether the dataset's questions have options."""
    asks = space.dataset.sample(0).asks if len(space.dataset) else {}
    return bool(asks) and all(ask.options for ask in asks.values())
