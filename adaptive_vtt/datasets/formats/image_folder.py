"""A folder of images, of which nothing is known: for audits that need no label."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import InputError
from ..scanning import Broken, image_files, unreadable
from ..table import TableDataset, from_table

NOTHING = "image"
"""The concept where none is named; its truth is unknown."""


def from_images(
    root: Path | str,
    *,
    concepts: Sequence[str] | None = None,
    broken: Broken = "refuse",
    allow_outside: bool = False,
) -> TableDataset:
    """A dataset of the images right in ``root``, named by their files.

    It can be asked about where an oracle needs no truth: in captions, or for consistency.
    ``concepts``: what the model answers about each image (default: one, "image").
    ``broken``: "refuse" raises InputError when an image that cannot be decoded is met, "skip"
    decodes all now and lists those left out as ``skipped``.
    ``allow_outside``: links may lead out of the folder. Raises InputError for a folder
    that is none, or holds no image.
    """
    folder = Path(root)
    files = image_files(folder, allow_outside=allow_outside)
    left_out = unreadable(files, broken, str(folder))
    kept = [file for file in files if file not in left_out]
    if not kept:
        raise InputError(f"{folder}: expected a folder of images, found none in it")
    return from_table(
        kept,
        pd.DataFrame(np.nan, [file.name for file in kept], [*(concepts or [NOTHING])]),
        skipped=sorted(map(str, left_out)),
        name=folder.resolve().name,
    )
