"""A folder of images, of which nothing is known: for audits that need no label."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from ...errors import InputError
from ...utils.options import Option
from ..scanning import BrokenOption, FolderOption, OutsideOption, image_files, unreadable
from ..table import TableDataset, from_table

NOTHING = "image"
"""The concept where none is named; its truth is unknown."""


def from_images(
    path: FolderOption,
    *,
    concepts: Annotated[
        Sequence[str] | None,
        Option("what the model answers about, a column each (default: image)"),
    ] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """A dataset of the images right in ``path``, named by their files.

    It can be asked about where an oracle needs no truth: in captions, or for consistency.
    Raises InputError for a folder that is none, or holds no image.
    """
    folder = Path(path)
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
