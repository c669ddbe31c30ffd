"""What an audit of multiple choice asked, as EndoBench's table: words, options and images.

The follow-up stands in place of its source image, with the question, the options and the right
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
from ...errors import InputError
from ...journal import Journal
from ...space import QuestionSpace
from ...types import Prompt, Sample
from ..outcomes import FAILED, counting
from ..run import Run

MORE = ("sample", "relation", "severity", "draw", "loss")
"""Columns behind EndoBench's own: where a question is from, and how it was answered."""


def export_questions(
    source: Journal | Run,
    space: QuestionSpace,
    path: Path | str,
    *,
    least_loss: float = FAILED,
    everything: bool = False,
    image_format: str = "jpeg",
) -> int:
    """Writes the questions that were answered with a loss of ``least_loss`` (0..1) or more, or
    with ``everything`` all that were asked; how many. One line per question, in draw order.

    ``source`` and ``space``: an audit's run or journal, and its space. A question that turned out
    not to count is left out. Raises InputError for a file that is there already, questions without
    options, samples without images, and where there is nothing to write; JournalError for a journal
    of another space.
    """
    if Path(path).exists():
        raise InputError(f"{path}: stands there already; nothing was written")
    table = counting(judged_of(Run.of(source), space, least_loss))
    wanted = table[everything | (table["loss"] >= least_loss)]
    wanted = wanted.drop_duplicates("question")
    if wanted.empty:
        what = "answer" if everything else f"answer has a loss of {least_loss:g} or more"
        raise InputError(f"export: no {what}")
    lines = question_lines(space, wanted)
    return write_questions(Path(path), lines, image_format=image_format, more=MORE)


def judged_of(run: Run, space: QuestionSpace, least_loss: float = FAILED) -> pd.DataFrame:
    """The outcomes of an audit of ``space``. Raises InputError for a loss that is none
    and a space without images, JournalError for another space."""
    if not 0 < least_loss <= 1:
        raise InputError(f"least loss: expected a number above 0, up to 1, got {least_loss}")
    if not space.dataset.has_images:
        raise InputError(f"export: dataset {space.dataset.name!r} has no images")
    same_audit(run.facts, space, {})
    return run.table


def question_lines(space: QuestionSpace, asked: pd.DataFrame) -> Iterator[Line]:
    """A line for each row of ``results.outcomes``, made when it is asked for.

    Raises InputError for a question without options or without one right letter.
    """
    judge = Judge(space, "one")
    for row in asked.to_dict("records"):
        number = int(row["question"])
        index = space.numbering.parts(number)[0]
        more = tuple(f"{row[name]:g}" if name == "loss" else str(row[name]) for name in MORE)
        yield _line(judge.prompt(number), space.dataset.sample(index), more)
        judge.forget(number)


def _line(prompt: Prompt, sample: Sample, more: tuple[str, ...]) -> Line:
    (concept,), asks = prompt.concepts, prompt.asks
    letters = sample.answers.get(concept, ())
    if not asks or not asks[0].options or len(letters) != 1 or prompt.image is None:
        raise InputError(
            f"export: sample {sample.id!r}: expected a question with options and one right letter "
            f"about {concept!r}, found none: a table of questions holds multiple choice alone"
        )
    described = {name: str(value) for name, value in sample.metadata.items()}
    task = described.get("task", concept)
    return Line(
        prompt.image,
        f"{prompt.words} {asks[0].text}".lstrip(),
        asks[0].options,
        ascii_uppercase.index(letters[0]),
        described.get("category") or category_of(task),
        task,
        described.get("subtask", task),
        described.get("scene", ""),
        described.get("dataset", ""),
        more,
    )


def is_multiple_choice(space: QuestionSpace) -> bool:
    """Whether the dataset's questions have options."""
    if not len(space.dataset):
        return False
    asks = space.dataset.sample(0).asks
    return bool(asks) and all(ask.options for ask in asks.values())
