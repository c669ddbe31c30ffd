"""EndoBench's table, written: a question with its image per line, as VLMEvalKit reads it, too.

Format: https://huggingface.co/datasets/Saint-lsy/EndoBench: 17 columns, tabs between them, images
in base64 without an address before them. ``datasets.from_endobench`` reads it.
"""

import base64
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Literal

from ...errors import InputError, unknown
from ...types import Image
from ...utils.files import whole_file
from ...utils.image_codec import jpeg, png

OPTIONS = "ABCDEF"
"""The letters of the columns that hold options; a question has no more."""
COLUMNS = (
    "index",
    "image",
    "image_path",
    "question",
    "category",
    "task",
    "subtask",
    "scene",
    "answer",
    "dataset",
    "gt",
    *OPTIONS,
)
QUALITY = 95
ImageFormat = Literal["jpeg", "png"]
"""JPEG as EndoBench has it, or PNG, which keeps every pixel."""
FORMATS: tuple[ImageFormat, ...] = ("jpeg", "png")


def format_named(said: str, where: str = "") -> ImageFormat:
    """The format of that name; raises InputError for another."""
    for known in FORMATS:
        if said == known:
            return known
    raise unknown("image format", said, FORMATS, where)


@dataclass(frozen=True)
class Line:
    """A question: ``right`` is the place of the right option, 0 to 5; ``more``: further cells."""

    image: Image
    question: str
    options: tuple[str, ...]
    right: int
    category: str = ""
    task: str = ""
    subtask: str = ""
    scene: str = ""
    dataset: str = ""
    more: tuple[str, ...] = ()


def write_questions(
    path: Path,
    lines: Iterable[Line],
    *,
    image_format: ImageFormat = "jpeg",
    more: Sequence[str] = (),
) -> int:
    """Writes one line after the other, so that images need not fit into memory; how many.

    ``more``: the names of further columns, behind EndoBench's.
    The file is there whole or not at all. Raises InputError for more than six options, another
    format, and where it cannot be written.
    """
    format_named(image_format)
    count = 0
    with whole_file(path) as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow([*COLUMNS, *more])
        for line in lines:
            data = png(line.image) if image_format == "png" else jpeg(line.image, QUALITY)
            table.writerow(_cells(count, line, base64.b64encode(data).decode(), image_format))
            count += 1
    return count


def _cells(number: int, line: Line, coded: str, image_format: str) -> list[str]:
    if not 2 <= len(line.options) <= len(OPTIONS):
        raise InputError(
            f"{line.question!r}: expected two to {len(OPTIONS)} options, got {len(line.options)}"
        )
    ending = "jpg" if image_format == "jpeg" else image_format
    return [
        str(number),
        coded,
        f"image_{number}.{ending}",
        line.question,
        line.category,
        line.task,
        line.subtask,
        line.scene,
        ascii_uppercase[line.right],
        line.dataset,
        line.options[line.right],
        *line.options,
        *[""] * (len(OPTIONS) - len(line.options)),
        *line.more,
    ]
