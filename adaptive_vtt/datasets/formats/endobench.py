"""EndoBench: multiple-choice questions about endoscopic images, from its TSV or Parquet.

Format: 17 columns (index, image in base64, image_path, question, category, task, subtask,
scene, answer, dataset, gt, and the options A to F), https://huggingface.co/datasets/
Saint-lsy/EndoBench. The file has 600 MB, nearly all of it images: those stay in the file, and
are decoded when asked for. Cells are text; an empty one alone is missing, so that an option
"None" or "NA" stays one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any

import numpy as np
import pandas as pd

from ...errors import InputError, unknown
from ...types import UNKNOWN, Ask, Floats, Image
from ...utils.options import Option, at_base
from ..scanning import BrokenOption, Reading
from ..table import WordedDataset
from ..vqa.taxonomy import TASKS, category_of, granularity, named, task_names, visual_prompt
from .image_rows import Row, Stored, parquet_rows, tsv_rows

NEEDED = ("index", "question", "task", "answer")
GROUPS = ("category", "task", "subtask", "scene", "dataset", "prompt", "granularity", "options")
"""The metadata: ``options`` is how many there are, ``prompt`` how a question points at a region,
``granularity`` what is drawn into its image (both: ``taxonomy``)."""
SHOWN = ("category", "task", "subtask", "scene", "prompt")
"""Those that the question GP is told by value."""


@dataclass(frozen=True)
class _Question:
    index: str
    task: str
    ask: Ask
    answer: str
    metadata: tuple[Any, ...]


class _Decoded:
    """Images decoded one by one, H x W x C each."""

    def __init__(self, images: Sequence[Stored], ids: Sequence[str]) -> None:
        self._images, self._ids = images, ids

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int, /) -> Image:
        return self._images[index].decoded(f"sample {self._ids[index]!r}")

    def __iter__(self) -> Iterator[Image]:
        return (self[index] for index in range(len(self)))

    def pixels(self, index: int) -> float:
        return self._images[index].pixels


def from_endobench(
    path: Annotated[
        Path | str | Sequence[Path | str],
        Option("the TSV or Parquet", reads=at_base, type=str),
    ],
    *,
    tasks: Annotated[
        Sequence[str] | None, Option("tasks to ask, by name or abbreviation (default: all)")
    ] = None,
    broken: BrokenOption = "refuse",
    looks: Annotated[
        bool, Option("decode all images now, and predict by what they look like, too")
    ] = False,
) -> WordedDataset:
    """A dataset from EndoBench.tsv, from Parquet shards, or from a file of that format.

    Samples are rows, concepts are tasks; each sample has the one question of its own task, a letter
    being the answer. ``features`` are what the question's category, task, subtask, scene, prompt
    and number of options say, for the question GP. Rows are numbered from 1, the header not
    counted. Broken are a row with too few or too many columns, an index that stands twice, a letter
    that is no option's, fewer than two options, bad base64, and no image or one over the size
    limit. Raises InputError for files that cannot be read and for tasks that are not there.
    """
    paths = [Path(p) for p in ([path] if isinstance(path, str | Path) else path)]
    wanted = None if tasks is None else [_task(task) for task in tasks]
    reading = Reading(broken, "EndoBench")
    found: list[_Question] = []
    images: list[Stored] = []
    seen: set[str] = set()
    for file in paths:
        rows = parquet_rows if file.suffix == ".parquet" else tsv_rows
        for row in rows(file, NEEDED, reading):
            question = reading.attempt(partial(_question, row, seen))
            if question is None:
                continue
            seen.add(question.index)
            if wanted is None or question.task in wanted:
                found.append(question)
                images.append(row.image)
    missing = [task for task in wanted or () if task not in {row.task for row in found}]
    if missing:
        raise InputError(f"{paths[0]}: no question of the task {missing[0]!r}")
    if not found:
        raise InputError(f"{paths[0]}: expected questions, found none that can be used")
    decoded = _Decoded(images, [row.index for row in found])
    metadata = pd.DataFrame([row.metadata for row in found], columns=list(GROUPS))
    features = [_features(metadata), *([_looks(decoded)] if looks else [])]
    concepts = _tasks_in(found)
    truths = np.full((len(found), len(concepts)), UNKNOWN, np.int8)
    truths[np.arange(len(found)), [concepts.index(row.task) for row in found]] = 1
    return WordedDataset(
        decoded,
        truths,
        [row.index for row in found],
        concepts,
        asks=[{row.task: row.ask} for row in found],
        answers=[{row.task: (row.answer,)} for row in found],
        features=np.hstack(features),
        metadata=metadata,
        skipped=reading.skipped,
        name=paths[0].stem,
    )


def _task(said: str) -> str:
    if named(said) not in task_names():
        raise unknown("task", said, [*task_names(), *(t.short for t in TASKS)], "EndoBench")
    return named(said)


def _question(row: Row, seen: set[str]) -> _Question:
    cells = {column: text.strip() for column, text in row.cells.items()}
    for column in NEEDED:
        if not cells[column]:
            raise InputError(f"{row.where}: expected something in column {column!r}, got nothing")
    if cells["index"] in seen:
        raise InputError(f"{row.where}: the index {cells['index']!r} stands twice")
    options = [cells[c] for c in ascii_uppercase if c in cells]
    count = next((k for k, text in enumerate(options) if not text), len(options))
    if count < 2 or any(options[count:]):
        given = [c for c, text in zip(ascii_uppercase, options, strict=False) if text]
        raise InputError(f"{row.where}: expected the options A, B and so on, got {given}")
    answer = cells["answer"].upper()
    if len(answer) != 1 or answer not in ascii_uppercase[:count]:
        raise InputError(
            f"{row.where}: expected an answer from A to {ascii_uppercase[count - 1]}, "
            f"got {cells['answer']!r}"
        )
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
    return _Question(
        cells["index"], task, Ask(cells["question"], tuple(options[:count])), answer, metadata
    )


def _tasks_in(rows: Sequence[_Question]) -> list[str]:
    """The tasks there are: the twelve in their order, then others."""
    there = dict.fromkeys(row.task for row in rows)
    return [t for t in task_names() if t in there] + [t for t in there if t not in task_names()]


def _features(metadata: pd.DataFrame) -> Floats:
    """n x d: one column per value of each of SHOWN, and 1 - 1 / options, the error of guessing."""
    shown = pd.get_dummies(metadata[list(SHOWN)], dtype=float).to_numpy()
    return np.column_stack([shown, 1 - 1 / metadata["options"].to_numpy(float)])


def _looks(images: _Decoded) -> Floats:
    """n x 192: every image as 8 x 8 colours in [0, 1]."""
    import cv2

    small = (cv2.resize(image, (8, 8), interpolation=cv2.INTER_AREA) for image in images)
    return np.stack([np.broadcast_to(s.reshape(64, -1) / 255, (64, 3)).ravel() for s in small])
