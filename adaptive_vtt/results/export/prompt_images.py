"""All pictures of a space, with a table to fill in: for models that cannot be called from here.

``models.RecordedCaptions`` and ``models.Recorded`` read the table.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import InputError
from ...space import QuestionSpace
from ...types import IDENTITY, Image
from ...utils.files import file_names, whole_folder, write_bytes, write_text
from ...utils.image_codec import png
from ...utils.tables import csv_text

MAX = 100_000
"""Most pictures that are written; more are refused with InputError before any is."""
TABLE = "answers.csv"

Shown = tuple[str, str, int, Image, str]
"""Sample, relation, severity, picture, and words that go with the questions."""


class Which(Enum):
    """The pictures written: all, the source images alone, or with their versions."""

    ALL = "all"
    SOURCES = "sources"
    VERSIONS = "versions"


def count_pictures(space: QuestionSpace, which: Which = Which.ALL) -> int:
    """Return the number of pictures, at most: the follow-ups, and, where the oracle asks about
    sources, the source images and their versions."""
    sources, oracle = len(space.dataset), space.oracle
    if which is Which.SOURCES:
        return sources
    versions = (1 + oracle.most_versions(space.dataset)) * sources
    if which is Which.VERSIONS:
        return versions
    return space.images + (versions if oracle.needs_source else 0)


def write_pictures(
    space: QuestionSpace,
    out: Path,
    advance: Callable[[int], object] = lambda steps: None,
    which: Which = Which.ALL,
) -> int:
    """Write every picture into ``out``/images, and ``out``/answers.csv with a row for each.

    Columns: sample, relation, severity, file, words (that go with the questions, where there are
    any), and an empty column per concept. The folder must be new, or empty; it appears whole or not
    at all.

    Returns:
        The number of pictures.

    Raises:
        InputError: There are more than MAX pictures, or samples have no images.
    """
    if not space.dataset.has_images:
        raise InputError(f"pictures: dataset {space.dataset.name!r} has no images")
    if (count := count_pictures(space, which)) > MAX:
        raise InputError(f"pictures: expected at most {MAX}, got {count}")
    rows: list[tuple[str, str, int, str]] = []
    with whole_folder(out) as folder:
        for sample, relation, severity, image, words in _shown(space, which):
            rows.append((sample, relation, severity, words))
            write_bytes(folder / "images" / f"{len(rows)}.png", png(image))
            advance(1)
        names = [f"{n}.png" for n in file_names(f"{s}--{r}-{v}" for s, r, v, _ in rows)]
        for number, name in enumerate(names, start=1):
            (folder / "images" / f"{number}.png").rename(folder / "images" / name)
        table = pd.DataFrame(rows, columns=["sample", "relation", "severity", "words"])
        table.insert(3, "file", names)
        table = table if table["words"].any() else table.drop(columns="words")
        write_text(folder / TABLE, csv_text(table.assign(**dict.fromkeys(space.asked, ""))))
    return len(rows)


def _shown(space: QuestionSpace, which: Which) -> Iterator[Shown]:
    concepts, sourced = np.arange(len(space.concepts)), space.oracle.needs_source
    for index in range(len(space.dataset)):
        sample = space.dataset.sample(index)
        if sample.image is None:
            continue
        if sourced or which is not Which.ALL:
            yield sample.id, IDENTITY, 0, sample.image, ""
        if sourced and which is not Which.SOURCES:
            for version in space.oracle.versions(sample, None).values():
                yield sample.id, version.relation, version.severity, version.make(), ""
        for place, variant in enumerate(space.variants if which is Which.ALL else ()):
            number = index * len(space.variants) + place
            if space.eligible(number * len(concepts) + concepts).any():
                made = space.made_of(sample, number)
                picture = made.require_image()
                yield sample.id, variant.relation.name, variant.severity, picture, made.words
