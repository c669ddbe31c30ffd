"""Labels in whatever form they are at hand, as a table with one column per concept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import InputError

Labels = pd.DataFrame | pd.Series | npt.NDArray[Any] | Sequence[Any]
"""n x C of 0, 1 or NaN, or n class names; see ``as_labels``."""
ONE = "label"
"""The concept of labels without a name that are 0 or 1."""


def as_labels(labels: Labels, images: Any = None) -> pd.DataFrame:
    """n x C, indexed by sample id, a column per concept.

    A DataFrame is that already, and keeps its index. An array n x C gets the concepts "0", "1" ...
    A column of n cells is one concept where all are 0, 1 or NaN (named as the Series, else
    "label"), otherwise the class of each sample, and a column per class comes of it.
    Where labels have no index, samples are called as their ``images``, if those are files, else
    "0", "1" ... Raises InputError for another number of dimensions.
    """
    if isinstance(labels, pd.DataFrame):
        return labels
    table = _table(labels)
    if isinstance(labels, pd.Series) and not isinstance(labels.index, pd.RangeIndex):
        return table.set_axis(labels.index, axis=0)
    ids = image_ids(images)
    return table if ids is None or len(ids) != len(table) else table.set_axis(ids, axis=0)


def image_ids(images: Any) -> list[str] | None:
    """The names of image files, if images are files that all have another; else None."""
    if not isinstance(images, Sequence) or not all(isinstance(i, str | Path) for i in images):
        return None
    names = [Path(image).name for image in images]
    return names if len(set(names)) == len(names) else [str(image) for image in images]


def one_per_class(classes: pd.Series) -> pd.DataFrame:
    """n x C of 0 and 1 from the class of each sample; no cell of an unknown class is known."""
    names = sorted(classes.dropna().unique().tolist())
    table = {str(name): (classes == name).astype(float).where(classes.notna()) for name in names}
    return pd.DataFrame(table, index=classes.index)


def _table(labels: pd.Series | npt.NDArray[Any] | Sequence[Any]) -> pd.DataFrame:
    name = labels.name if isinstance(labels, pd.Series) else None
    cells = np.asarray(labels)
    if cells.ndim == 2:
        return pd.DataFrame(cells, columns=[str(k) for k in range(cells.shape[1])])
    if cells.ndim != 1:
        raise InputError(
            "labels: expected a table n x C of 0, 1 or NaN (images x concepts), or n classes, got "
            f"shape {cells.shape}"
        )
    column = pd.Series(cells)
    numbers = pd.to_numeric(column, errors="coerce")
    if bool(((numbers.isna() & column.isna()) | numbers.isin((0, 1))).all()):
        return pd.DataFrame({str(name or ONE): numbers})
    return one_per_class(column)
