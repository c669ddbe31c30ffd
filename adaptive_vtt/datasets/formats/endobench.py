"""EndoBench: multiple-choice questions about endoscopic images, from its TSV or Parquet.

Format: 17 columns (index, image in base64, image_path, question, category, task, subtask,
scene, answer, dataset, gt, and the options A to F), https://huggingface.co/datasets/
Saint-lsy/EndoBench. The file has 600 MB, nearly all of it images: those stay in the file, and
are decoded when asked for. Cells are text; an empty one alone is missing, so that an option
"None" or "NA" stays one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any

import numpy as np
import pandas as pd

from ...errors import InputError, unexpected, unknown
from ...types import UNKNOWN, Ask, Image
from ...utils.options import Option, at_base
from ..scanning import BrokenOption, Reading
from ..table import WordedDataset
from ..vqa.taxonomy import TASKS, category_of, granularity, named, task_names, visual_prompt
from .image_rows import Row, Stored, parquet_rows, tsv_rows

NEEDED = ("index", "question", "task", "answer")
GROUPS = ("category", "task", "subtask", "scene", "dataset", "prompt", "granularity", "options")
"""Columns of metadata: ``options`` is their number, ``prompt`` how a question points at a region,
``granularity`` the drawing in its image (both: ``taxonomy``)."""
SHOWN = ("category", "task", "subtask", "scene", "prompt")
"""Columns of metadata whose values are features of the question GP."""


@dataclass(frozen=True)
class _Question:
    index: str
    task: str
    ask: Ask
    answer: str
    metadata: tuple[Any, ...]
    image: Stored


@dataclass(frozen=True)
class _Decoded:
    """Images (H, W, C) that are decoded one by one."""

    questions: Sequence[_Question]

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int, /) -> Image:
        question = self.questions[index]
        return question.image.decoded(f"sample {question.index!r}")

    def pixels(self, index: int) -> float:
        return self.questions[index].image.pixels


def from_endobench(
    path: Annotated[
        Path | str | Sequence[Path | str], Option("the TSV or Parquet", reads=at_base, type=str)
    ],
    *,
    tasks: Annotated[Sequence[str] | None, Option("tasks by (short) name (default: all)")] = None,
    broken: BrokenOption = "refuse",
) -> WordedDataset:
    """Read EndoBench.tsv, Parquet shards, or a file of that format.

    Samples are rows, concepts are tasks; each sample has the one question of its task, whose answer
    is a letter. ``features``, for the question GP, are the values of the question's category, task,
    subtask, scene and prompt, and its number of options.

    Args:
        path: The file, or several.
        tasks: Tasks to ask, by name or abbreviation.
        broken: "skip" leaves out broken rows: those with a wrong number of columns, a repeated
            index, the letter of no option, fewer than two options, bad base64, no image, or one
            over the size limit. Rows are numbered from 1, without the header.

    Returns:
        The dataset.

    Raises:
        InputError: A file cannot be read, or a task has no questions.
    """
    paths = [Path(p) for p in ([path] if isinstance(path, str | Path) else path)]
    wanted = None if tasks is None else [_task(task) for task in tasks]
    reading, seen = Reading(broken, "EndoBench"), set[str]()
    questions: list[_Question] = []
    for file in paths:
        rows = parquet_rows if file.suffix == ".parquet" else tsv_rows
        for row in rows(file, NEEDED, reading):
            question = reading.attempt(_question, row, seen)
            if question is not None:
                seen.add(question.index)
                questions += [question] * (wanted is None or question.task in wanted)
    tasks_met = dict.fromkeys(question.task for question in questions)
    missing = [task for task in wanted or () if task not in tasks_met]
    if missing:
        raise InputError(f"{paths[0]}: no question of the task {missing[0]!r}")
    if not questions:
        raise InputError(f"{paths[0]}: expected questions, got none that can be used")
    metadata = pd.DataFrame([question.metadata for question in questions], columns=list(GROUPS))
    # a column per value of each of SHOWN, and the error of guessing
    shown = pd.get_dummies(metadata[list(SHOWN)], dtype=float).to_numpy()
    order = {task: place for place, task in enumerate(task_names())}  # others come last
    concepts = sorted(tasks_met, key=lambda task: order.get(task, len(order)))
    truths = np.full((len(questions), len(concepts)), UNKNOWN, np.int8)
    truths[np.arange(len(questions)), [concepts.index(q.task) for q in questions]] = 1
    return WordedDataset(
        _Decoded(questions),
        truths,
        [question.index for question in questions],
        tuple(concepts),
        asks=[{question.task: question.ask} for question in questions],
        answers=[{question.task: (question.answer,)} for question in questions],
        features=np.column_stack([shown, 1 - 1 / metadata["options"].to_numpy(float)]),
        metadata=metadata,
        skipped=reading.skipped,
        name=paths[0].stem,
    )


def _task(name: str) -> str:
    if named(name) not in task_names():
        raise unknown("task", name, [*task_names(), *(t.short for t in TASKS)], "EndoBench")
    return named(name)


def _question(row: Row, seen: set[str]) -> _Question:
    cells = {column: text.strip() for column, text in row.cells.items()}
    for column in NEEDED:
        if not cells[column]:
            raise unexpected(row.where, f"something in column {column!r}", "nothing")
    if cells["index"] in seen:
        raise InputError(f"{row.where}: the index {cells['index']!r} stands twice")
    options = [cells[c] for c in ascii_uppercase if c in cells]
    count = next((k for k, text in enumerate(options) if not text), len(options))
    if count < 2 or any(options[count:]):
        letters = [c for c, text in zip(ascii_uppercase, options, strict=False) if text]
        raise unexpected(row.where, "the options A, B and so on", letters)
    answer = cells["answer"].upper()
    if len(answer) != 1 or answer not in ascii_uppercase[:count]:
        expected = f"an answer from A to {ascii_uppercase[count - 1]}"
        raise unexpected(row.where, expected, repr(cells["answer"]))
    task = named(cells["task"])
    subtask = named(cells.get("subtask", "")) or task
    metadata = (
        category_of(task) or cells.get("category", ""),
        task,
        subtask,
        named(cells.get("scene", "")),
        cells.get("dataset", ""),
        visual_prompt(task, subtask),
        granularity(task, subtask, cells["question"]),
        count,
    )
    ask = Ask(cells["question"], tuple(options[:count]))
    return _Question(cells["index"], task, ask, answer, metadata, row.image)
