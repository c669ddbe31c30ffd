"""EndoBench: multiple-choice questions about endoscopic images, in a TSV or Parquet file.

Format: 17 columns (index, image in base64, image_path, question, category, task, subtask,
scene, answer, dataset, gt, and the options A to F), https://huggingface.co/datasets/
Saint-lsy/EndoBench. Nearly all of its 600 MB are images, which stay in the file until they are
decoded. Cells are text; only an empty cell is missing, so that "None" or "NA" can be an option.
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
"""Columns of metadata. ``prompt`` is how a question points at a region, ``granularity`` the drawing
in its image (see ``taxonomy``), ``options`` the number of its options."""
SHOWN = ("category", "task", "subtask", "scene", "prompt")
"""Columns of metadata that become features of the question GP."""


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
    """The images of questions, H x W x C, which are decoded on access."""

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
    """Read EndoBench.tsv, Parquet shards, or another file of that format.

    Samples are rows, and concepts are tasks. Each sample has one question, whose answer is a
    letter. Its features, for the question GP, are one-hot encodings of its category, task, subtask,
    scene and prompt, and the error rate of a guess among its options.

    Args:
        path: The file, or several.
        tasks: Tasks to read, by name or abbreviation. Default None: all.
        broken: "skip" leaves out broken rows: with a wrong number of columns, a repeated index, an
            answer that is no option, fewer than two options, bad base64, or an image that is
            missing or too large. Errors count rows from 1, without the header.

    Returns:
        The dataset.

    Raises:
        InputError: A file cannot be read, or a task has no questions.
    """
    paths = [Path(p) for p in ([path] if isinstance(path, str | Path) else path)]
    wanted = None if tasks is None else [_task(task) for task in tasks]
    reading, indices = Reading(broken, "EndoBench"), set[str]()
    questions: list[_Question] = []
    for file in paths:
        rows = parquet_rows if file.suffix == ".parquet" else tsv_rows
        for row in rows(file, NEEDED, reading):
            if question := reading.attempt(_question, row, indices):
                indices.add(question.index)
                questions += [question] * (wanted is None or question.task in wanted)
    tasks_met = dict.fromkeys(question.task for question in questions)
    if missing := [task for task in wanted or () if task not in tasks_met]:
        raise InputError(f"{paths[0]}: no question of the task {missing[0]!r}")
    if not questions:
        raise InputError(f"{paths[0]}: expected questions, got none that can be used")
    metadata = pd.DataFrame([question.metadata for question in questions], columns=list(GROUPS))
    # one-hot encodings
    shown = pd.get_dummies(metadata[list(SHOWN)], dtype=float).to_numpy()
    order = {task: place for place, task in enumerate(task_names())}  # unknown tasks come last
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
    """Return the full name of a task; raise InputError if it is unknown."""
    if named(name) not in task_names():
        raise unknown("task", name, [*task_names(), *(t.short for t in TASKS)], "EndoBench")
    return named(name)


def _question(row: Row, indices: set[str]) -> _Question:
    """Return the question in a row; raise InputError if it is broken, or its index is not new."""
    cells = {column: text.strip() for column, text in row.cells.items()}
    for column in NEEDED:
        if not cells[column]:
            raise unexpected(row.where, f"something in column {column!r}", "nothing")
    if cells["index"] in indices:
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
