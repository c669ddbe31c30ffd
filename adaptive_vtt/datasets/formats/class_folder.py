"""Folders of images named after their class: Kvasir, HyperKvasir, capsule endoscopy, and others.

kvasir-dataset-v2/{class}/*.jpg                                 (Pogorelov et al., MMSys 2017)
labeled-images/{tract}/{group}/{class}/*.jpg  (HyperKvasir: Borgli et al., Sci. Data 7, 2020)
{train,val,test}/{class}/*.jpg                              (curated capsule endoscopy images)
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import InputError
from ..scanning import (
    BrokenOption,
    ClassesOption,
    Folder,
    FolderOption,
    OutsideOption,
    choose,
    natural,
    unreadable,
)
from ..table import TableDataset, from_table
from .medmnist import one_per_class

HYPER_KVASIR = "labeled-images"
SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def from_class_folders(
    path: FolderOption,
    *,
    classes: ClassesOption = "all",
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """A dataset of all images under ``path``: the folder that holds an image is its class.

    One concept per class, in the order of their names. With ``classes`` "all" every image is
    known to lack all classes but its own; with "own" only its own class is asked about, so that
    "overall" is the share of images whose class is missed. A class that stands in several
    places, say under train and test, is one class.

    Sample ids are paths from ``path``. Metadata: ``class``, and the folders above it: ``tract``
    and ``group`` for HyperKvasir (whose ``path`` may also be the folder above labeled-images),
    ``split`` for train, val, test, else ``level 1``, ``level 2`` ... Other files, such as
    image-labels.csv, are left alone: the folders say the same.
    """
    choose("value of classes", classes, ("all", "own"), "class folders")
    given = Path(path)
    top = given / HYPER_KVASIR if (given / HYPER_KVASIR).is_dir() else given
    files = _files(top, Folder(top, allow_outside))
    left_out = unreadable(files, broken, str(given))
    kept = [file for file in files if file not in left_out]
    if not kept:
        raise InputError(f"{given}: expected folders of images, one per class, found no image")
    names = sorted({file.parent.name for file in kept})
    numbers = np.array([names.index(file.parent.name) for file in kept])
    ids = [file.relative_to(top).as_posix() for file in kept]
    return from_table(
        kept,
        pd.DataFrame(one_per_class(numbers, len(names), classes), index=ids, columns=names).replace(
            -1, np.nan
        ),
        metadata=_metadata(kept, top),
        skipped=sorted(map(str, left_out)),
        name=given.resolve().name,
    )


def _files(top: Path, data: Folder) -> list[Path]:
    loose = data.images()
    folders = sorted((path for path in top.rglob("*") if path.is_dir()), key=natural)
    found = [file for folder in folders for file in data.images(str(folder.relative_to(top)))]
    if loose and found:
        raise InputError(
            f"{str(loose[0])!r}: expected every image in the folder of its class, found one "
            f"beside the folders"
        )
    return found or loose


def _metadata(files: list[Path], top: Path) -> pd.DataFrame:
    above = [file.relative_to(top).parent.parts[:-1] for file in files]
    depth = max(map(len, above))
    rows = [(*folders, *[None] * (depth - len(folders))) for folders in above]
    table = pd.DataFrame(rows, columns=_levels(rows, depth), dtype=object)
    return table.assign(**{"class": [file.parent.name for file in files]})


def _levels(rows: list[tuple[str | None, ...]], depth: int) -> list[str]:
    first = {row[0] for row in rows} if depth else set()
    names = [f"level {number + 1}" for number in range(depth)]
    if first and first <= {"upper-gi-tract", "lower-gi-tract"}:
        names[:2] = ["tract", "group"][:depth]
    elif first and first <= SPLITS:
        names[0] = "split"
    return names
