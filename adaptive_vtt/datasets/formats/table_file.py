"""A table of labels in a CSV or Parquet file beside a folder of images."""

from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import InputError, one_line, unknown
from ...utils.tables import check_columns, check_width, restored
from ..labels import one_per_class
from ..scanning import ENDINGS, Broken, Folder, unreadable
from ..table import TableDataset, from_table

EMPTY = ("", "NA", "NaN", "nan")
"""Texts of a cell that mean "unknown"."""


def read_table(
    labels: Path | str,
    images: Path | str | None = None,
    *,
    id_column: str = "id",
    file_column: str | None = None,
    concepts: list[str] | None = None,
    metadata: list[str] | None = None,
    class_column: str | None = None,
    broken: Broken = "refuse",
    allow_outside: bool = False,
) -> TableDataset:
    """A dataset from a CSV (or .parquet) table of labels and a folder of images.

    ``labels`` has one row per sample: ``id_column``, one column per concept (0, 1 or empty),
    and, where image files are not named like the id, ``file_column``. ``concepts`` chooses
    columns (default: all others); ``class_column`` instead is one that names each sample's class,
    of which a concept per class is made. ``images`` None means that answers are recorded.
    ``broken`` says what becomes of images that cannot be decoded: "refuse" raises InputError
    when one is met, "skip" decodes all now and lists those left out as ``skipped``.
    ``allow_outside``: image files may lie outside ``images``, by "..", from the root, or by links.
    Raises InputError naming file, row or column; at once for over 10,000 columns.
    """
    path = Path(labels)
    table = read_rows(path)
    named = [column for column in (file_column, class_column) if column]
    for column in [id_column, *named, *(metadata or [])]:
        if column not in table.columns:
            raise unknown("column", column, map(str, table.columns), str(path))
    ids = table[id_column]
    special = {id_column, file_column, class_column, *(metadata or [])}
    chosen = concepts or [str(c) for c in table.columns if c not in special]
    for concept in chosen:
        if concept not in table.columns:
            raise unknown("concept", concept, set(map(str, table.columns)) - special, str(path))
    known = table.mask(table.isin(EMPTY)).set_axis(ids.tolist(), axis=0)
    files, skipped = None, set[Path]()
    if images is not None:
        names = table[file_column] if file_column else ids
        folder = Folder(Path(images), allow_outside)
        found = [
            _find(folder, name, sample, f"{path}, row {row}")
            for row, (name, sample) in enumerate(zip(names, ids, strict=True), start=1)
        ]
        skipped = unreadable(found, broken, str(path))
        files = [file for file in found if file not in skipped]
        known = known[[file not in skipped for file in found]]
    try:
        return from_table(
            files,
            one_per_class(known[class_column]) if class_column else known[chosen],
            metadata=known[metadata] if metadata else None,
            skipped=sorted(map(str, skipped)),
            name=path.stem,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_rows(path: Path) -> pd.DataFrame:
    """All columns of a CSV or .parquet file, every cell a text ("" where it is empty)."""
    return _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)


def _read_csv(path: Path) -> pd.DataFrame:
    check_width(path)
    try:
        # all text and no header, so that the ids 007 and NA stay what they are, and a column
        # that stands twice is seen; labels become numbers later
        rows = pd.read_csv(
            path, header=None, skipinitialspace=True, dtype=str, keep_default_na=False
        )
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path}: cannot read a table of labels: {one_line(error)}") from None
    columns = rows.iloc[0]
    if columns.duplicated().any():
        raise InputError(f"{path}: column {columns[columns.duplicated()].iloc[0]!r} stands twice")
    return restored(rows.iloc[1:].set_axis(columns.tolist(), axis=1))


def _read_parquet(path: Path) -> pd.DataFrame:
    _check_parquet_width(path)
    try:
        table = pd.read_parquet(path, engine="pyarrow")
    except ImportError:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow: pip install 'adaptive-vtt[parquet]'"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read a table of labels: {one_line(error)}") from None
    table = table.rename(columns=str)
    # text and empty cells, as from a CSV, so that both kinds of table mean the same
    return table.map(_text)


def _check_parquet_width(path: Path) -> None:
    try:
        from pyarrow import parquet  # type: ignore[import-untyped]

        columns = parquet.read_schema(path).names
    except (ImportError, OSError, ValueError):
        return  # said when the table is read
    check_columns(len(columns), path)


def _text(cell: object) -> str:
    if cell is None or cell is pd.NA or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, bool | np.bool_) else str(cell)


def _find(folder: Folder, name: str, sample: str, where: str) -> Path:
    for ending in ("", *ENDINGS):
        path = folder.file(f"{name}{ending}", where)
        if path.is_file():
            return path
    raise InputError(f"sample {sample!r}: image file {str(folder.path / name)!r} does not exist")
