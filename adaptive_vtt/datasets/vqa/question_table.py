"""Write questions with their images to a TSV in EndoBench's format, which VLMEvalKit reads, too.

Format: https://huggingface.co/datasets/Saint-lsy/EndoBench: 17 columns separated by tabs, with the
image in base64. ``datasets.from_endobench`` reads it.
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
"""Columns of options; a question has at most six."""
COLUMNS = (
    *("index", "image", "image_path", "question", "category", "task", "subtask", "scene"),
    *("answer", "dataset", "gt", *OPTIONS),
)
QUALITY = 95
FORMATS = ("jpeg", "png")
"""JPEG, as in EndoBench, or lossless PNG."""


@dataclass(frozen=True)
class Line:
    """A row of the table.

    Attributes:
        image: The image.
        question: The text of the question.
        options: Two to six options.
        right: Position of the correct option, from 0 on.
        category: As those that follow, a column of EndoBench.
        task: See there.
        subtask: See there.
        scene: See there.
        dataset: See there.
        more: Cells of further columns.
    """

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
    """Write questions one by one, so that only one image is in memory.

    If writing fails there is no file, not a part of one.

    Args:
        path: The file.
        lines: The questions.
        image_format: One of FORMATS.
        more: Names of further columns, after EndoBench's.

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
