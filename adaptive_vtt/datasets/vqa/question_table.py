"""EndoBench's table, written: a question with its image per line, as VLMEvalKit reads it, too.

Format: https://huggingface.co/datasets/Saint-lsy/EndoBench: 17 columns, tabs between them, images
in base64 without an address before them. ``datasets.from_endobench`` reads it.
"""

import base64
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import check_known, unexpected
from ...types import Image
from ...utils.files import whole_file
from ...utils.image_codec import jpeg, png

OPTIONS = "ABCDEF"
"""The letters of the columns that hold options; a question has no more."""
COLUMNS = (
    *("index", "image", "image_path", "question", "category", "task", "subtask", "scene"),
    *("answer", "dataset", "gt", *OPTIONS),
)
QUALITY = 95
FORMATS = ("jpeg", "png")
"""JPEG as EndoBench has it, or PNG, which keeps every pixel."""


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
    path: Path, lines: Iterable[Line], *, image_format: str = "jpeg", more: Sequence[str] = ()
) -> int:
    """Write one line after the other, so that images need not fit into memory.

    The file is there whole or not at all.

    Args:
        path: The file.
        lines: The questions.
        image_format: One of FORMATS.
        more: The names of further columns, behind EndoBench's.

    Returns:
        The number of questions.

    Raises:
        InputError: A question has more than six options, the format is another, or the file cannot
            be written.
    """
    check_known("image format", image_format, FORMATS)
    count = 0
    with whole_file(path) as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow([*COLUMNS, *more])
        for line in lines:
            if not 2 <= (number := len(line.options)) <= len(OPTIONS):
                raise unexpected(repr(line.question), f"two to {len(OPTIONS)} options", number)
            data = png(line.image) if image_format == "png" else jpeg(line.image, QUALITY)
            name = f"image_{count}.{image_format.replace('jpeg', 'jpg')}"
            cells = [count, base64.b64encode(data).decode(), name, line.question, line.category]
            cells += [line.task, line.subtask, line.scene, OPTIONS[line.right], line.dataset]
            cells += [line.options[line.right], *line.options, *[""] * (len(OPTIONS) - number)]
            table.writerow([*cells, *line.more])
            count += 1
    return count
