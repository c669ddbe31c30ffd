"""Datasets of the package ``datasets``, in memory or in a folder of its save_to_disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, one_line, unexpected
from ...types import Image
from ...utils.image_codec import declared_size
from ...utils.image_files import image_of, read_image
from ...utils.importing import needed
from ...utils.options import Option, at_base
from ..columns import class_name
from ..scanning import by_number
from ..table import TableDataset, from_table


def from_hugging_face(
    data: Annotated[
        Any, Option("the folder of Dataset.save_to_disk", reads=at_base, name="path", type=str)
    ],
    *,
    image_column: Annotated[str | None, Option("column of images (default: the only one)")] = None,
    class_column: Annotated[str | None, Option("column of classes (default: the only one)")] = None,
    concepts: Annotated[Sequence[str] | None, Option("instead: columns of 0 and 1")] = None,
    id_column: Annotated[str | None, Option("column of sample ids (default: row numbers)")] = None,
    metadata: Annotated[Sequence[str] | None, Option("columns that describe samples")] = None,
) -> TableDataset:
    """Read a ``datasets.Dataset`` with images, and labels in columns.

    Args:
        data: A Dataset, or the folder that its ``save_to_disk`` wrote; a single split.
        image_column: The column of images, which are decoded on access. Default None: the only one.
        class_column: The column of each image's class, or list of classes. Default None: the only
            one of ClassLabel.
        concepts: Columns of 0, 1 or empty cells, each a concept, instead of classes.
        id_column: The column of sample ids. Default None: row numbers.
        metadata: Columns that describe samples.

    Raises:
        InputError: The folder has no Dataset, or a column is missing.
    """
    with needed("hugging-face", "Hugging Face's datasets need the package datasets"):
        import datasets
    folder = Path(data) if isinstance(data, str | Path) else None
    try:
        rows = data if folder is None else datasets.load_from_disk(str(folder))
    except Exception as error:  # pyarrow and datasets raise errors of many kinds
        expected, why = "expected a folder that Dataset.save_to_disk wrote", one_line(error)[:160]
        raise InputError(f"{folder}: {expected}: {why}") from None
    if not isinstance(rows, datasets.Dataset):
        splits = f" of the splits {', '.join(rows)}" if isinstance(rows, dict) else ""
        advice = "; name one, such as path = 'FOLDER/test', or splits['test']" if splits else ""
        raise unexpected("dataset", "a datasets.Dataset", f"{type(rows).__name__}{splits}{advice}")
    columns = (image_column, class_column, id_column, *(concepts or ()), *(metadata or ()))
    for name in filter(None, columns):
        check_known("column", name, rows.column_names, "dataset")
    features = rows.features
    image = image_column or _only("image_column", rows, datasets.Image)
    ids = [str(i) for i in (range(len(rows)) if id_column is None else rows[id_column])]
    if concepts is not None:
        labels = pd.DataFrame({name: list(rows[name]) for name in concepts})
    else:
        column = class_column or _only("class_column", rows, datasets.ClassLabel)
        names = getattr(getattr(features[column], "feature", features[column]), "names", None)
        labels = class_table(list(rows[column]), names)
    described = {name: list(rows[name]) for name in metadata or ()}
    stored = rows.select_columns([image]).cast_column(image, datasets.Image(decode=False))
    return from_table(
        cast(Sequence[Any], Images(stored, image, ids, paths=folder is None)),
        labels.set_axis(ids),
        metadata=pd.DataFrame(described, index=ids) if described else None,
        name="hugging-face" if folder is None else folder.resolve().name,
    )


class Images:
    """The images of one column, which are decoded on access.

    Args:
        rows: The Dataset.
        column: The column of images.
        ids: The ids of samples, for errors.
        paths: Whether a cell may be the path of a file, and not the image itself.
    """

    def __init__(self, rows: Any, column: str, ids: Sequence[str], *, paths: bool) -> None:
        self._rows, self._column, self._ids, self._paths = rows, column, ids, paths

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int, /) -> Image:
        cell, where = self._rows[int(index)][self._column] or {}, f"sample {self._ids[index]!r}"
        data, path = cell.get("bytes"), cell.get("path")
        if data is not None:
            return image_of(data, self._column, where)
        if path and self._paths:
            return read_image(Path(path), where)
        expected = f"the image itself in column {self._column!r}"
        got = repr(str(path)[:80]) if path else "nothing"
        raise unexpected(where, expected, got, "save_to_disk writes images into files")

    def pixels(self, index: int) -> float:
        """Return the number of pixels in an image's header, NaN if it has none."""
        cell = self._rows[int(index)][self._column] or {}
        size = declared_size(cell.get("bytes") or b"")
        return np.nan if size is None else float(size[0] * size[1])


def _only(option: str, rows: Any, feature: type) -> str:
    """Return the only column of a type of feature; raise InputError unless there is exactly one."""
    names = [name for name, kind in rows.features.items() if isinstance(kind, feature)]
    if len(names) != 1:
        count, columns = len(names) or "no", ", ".join(rows.column_names)
        got = f"none, as {count} columns are of {feature.__name__}; columns are {columns}"
        raise unexpected(f"dataset.{option}", "its name", got)
    return names[0]


def class_table(cells: Sequence[Any], names: Sequence[str] | None) -> pd.DataFrame:
    """Return n x C of 0 and 1 from the class of each row, NaN for a row without a class.

    Args:
        cells: A class, or a list of classes, per row. None and -1 mean no class.
        names: Names of a ClassLabel, whose numbers the cells are; None if cells are names.
    """
    lists = [cell if isinstance(cell, list) else [cell] for cell in cells]
    name_of = class_name if names is None else names.__getitem__
    rows = [None if row in ([None], [-1]) else {name_of(cell) for cell in row} for row in lists]
    if names is None:
        names = sorted({name for row in rows for name in row or ()}, key=by_number)
    table = {name: [np.nan if r is None else float(name in r) for r in rows] for name in names}
    return pd.DataFrame(table)
