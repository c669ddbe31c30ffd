"""A table of labels in a CSV or Parquet file beside a folder of images.

Where the table, or its images, are other than expected, errors say what to write in [dataset].
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, listed, some, unknown
from ...utils.files import near_file, why_unread
from ...utils.options import Option, at_base
from ...utils.tables import MAX_HEADER, check_columns, check_width, restored
from ..scanning import ENDINGS, BrokenOption, Folder, OutsideOption, image_files, unreadable
from ..table import TableDataset, from_table, not_labels, one_per_class
from .image_rows import parquet_file

EMPTY = ("", "NA", "NaN", "nan")
"""Texts of a cell that mean "unknown"."""
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")


def read_table(
    labels: Annotated[Path | str, Option("CSV or .parquet with one row per sample", reads=at_base)],
    images: Annotated[
        Path | str | None,
        Option("folder of images; leave out where answers are recorded", reads=at_base),
    ] = None,
    *,
    id_column: Annotated[str, Option("column of sample ids")] = "id",
    file_column: Annotated[
        str | None, Option("column of file names (default: the id, any image ending)")
    ] = None,
    concepts: Annotated[
        list[str] | None, Option("columns to ask about (default: all others), cells 0, 1 or empty")
    ] = None,
    metadata: Annotated[
        list[str] | None, Option("columns that describe samples and are no concepts")
    ] = None,
    class_column: Annotated[
        str | None, Option("instead of concepts: the column that names each sample's class")
    ] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """A dataset from a CSV (or .parquet) table of labels and a folder of images.

    Cells of concepts may be yes and no, too; of ``class_column`` a concept per class is made.
    ``broken``: "skip" leaves out rows whose file is missing, too, unless most are.
    Raises InputError naming file, row or column; at once for over 10,000 columns.
    """
    path = Path(labels)
    table = read_rows(path)
    apart = [name for name in (file_column, class_column, *(metadata or [])) if name]
    if id_column not in table:
        error = unknown("column", id_column, list(map(str, table.columns)), str(path))
        raise InputError(f"{error}{_advised_id_column(table, images)}")
    for column in apart:
        if column not in table:
            raise unknown("column", column, list(map(str, table.columns)), str(path))
    known = table.mask(table.isin(EMPTY)).set_axis(table[id_column].tolist(), axis=0)
    others = table.drop(columns=list({id_column, *apart}))
    names = list(map(str, others.columns))
    for concept in concepts or ():
        check_known("concept", concept, names, str(path))
    chosen = concepts or names
    if class_column is None:
        _check_labels(others, chosen, images, path)
    truths = known[chosen] if class_column is None else one_per_class(known[class_column])
    files, skipped = None, list[str]()
    if images is not None:
        folder = Folder(Path(images), allow_outside)
        found, missing = _files(folder, table, id_column, file_column, path, broken)
        bad = unreadable([file for file in found if file is not None], broken, str(path))
        skipped = [*sorted(map(str, bad)), *missing]
        files = [file for file in found if file is not None and file not in bad]
        kept = [file is not None and file not in bad for file in found]
        known, truths = known[kept], truths[kept]
    try:
        dataset = from_table(
            files,
            truths,
            metadata=known[metadata] if metadata else None,
            skipped=skipped,
            name=path.stem,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    roles = {id_column: "names the samples", class_column: "names the class of each"}
    roles |= {file_column or id_column: "names the images"} if images is not None else {}
    left = [name for name in names if name not in chosen] if class_column is None else names
    roles |= {name: "left out" for name in left}
    roles |= {
        name: f"metadata: {odd}" for name in metadata or () if (odd := odd_label(table[name]))
    }
    if class_column is None and concepts is None:
        roles |= {name: COULD_BE_ASKED for name in metadata or () if _all_labels(table[name])}
    dataset.remarks = {str(name): roles[name] for name in table if name in roles}
    return dataset


COULD_BE_ASKED = "metadata, though it holds only 0 and 1: take it out of metadata to ask about it"
"""Of a column of metadata with 0 and 1 (or yes and no), such as one whose odd cell was mended."""


def _all_labels(cells: "pd.Series[str]") -> bool:
    """Whether all cells but empty ones are labels, of both kinds."""
    known = cells[~cells.isin(EMPTY)]
    return known.nunique() > 1 and not not_labels(known).any()


def odd_label(cells: "pd.Series[str]") -> str:
    """Of a column nearly all of whose cells are labels, which one is none; "" for any other."""
    known = cells[~cells.isin(EMPTY)]
    odd = not_labels(known)
    if not odd.any() or odd.mean() > FEW:
        return ""
    row = int(np.flatnonzero(not_labels(cells.mask(cells.isin(EMPTY))))[0])
    rest = known[~odd]
    more = f", {odd.sum() - 1} more rows are like that" if odd.sum() > 1 else ""
    words = "0 or 1" if pd.to_numeric(rest, errors="coerce").notna().all() else "yes or no"
    return f"row {row + 1} holds {cells.iloc[row]!r}{more}, the other {len(rest)} are {words}"


def _odd_cells(table: pd.DataFrame) -> str:
    """What else is to be mended, to be told beside another error."""
    odd = {str(name): odd_label(table[name]) for name in table}
    return "".join(f"; also column {name!r}: {told}" for name, told in odd.items() if told)


def _check_labels(
    table: pd.DataFrame, chosen: list[str], images: Path | str | None, path: Path
) -> None:
    """Raises InputError where the cells of a column are mostly no labels: it has another use."""
    if odd := _not_labels(table.replace(list(EMPTY), ""), chosen):
        row = int(np.flatnonzero(~table[odd[0]].isin(EMPTY))[0])
        raise InputError(
            f"{path}: labels: expected 0, 1 or empty (unknown), got "
            f"{table[odd[0]].iloc[row]!r} in row {row + 1}, concept {odd[0]!r}"
            f"{_advised_use(table, odd, chosen, images)}"
        )


def _files(
    folder: Folder,
    table: pd.DataFrame,
    id_column: str,
    file_column: str | None,
    path: Path,
    broken: str,
) -> tuple[list[Path | None], list[str]]:
    """The image file of every row, None where it is missing, and what those are called.

    Raises InputError where one is missing, unless ``broken`` is "skip" and most are there.
    """
    names, ids = table[file_column or id_column], table[id_column]
    found = [_find(folder, n, f"{path}, row {row}") for row, n in enumerate(names, start=1)]
    missing = [row for row, file in enumerate(found, start=1) if file is None]
    few = 2 * len(missing) < len(table)
    if few and broken == "skip":
        return found, [f"{folder.path / names.iloc[row - 1]} (missing)" for row in missing]
    if missing and few:
        told = some([f"{names.iloc[row - 1]} (row {row})" for row in missing], 5)
        raise InputError(
            f"{path}: {len(table) - len(missing):,} of {len(table):,} images found in "
            f"{str(folder.path)!r}, missing: {told}; mend the name, remove the row, or leave such "
            "rows out by broken = 'skip' (in [dataset], or of read_table); rows are counted "
            "below the header" + _odd_cells(table)
        )
    if missing:
        sample, name = ids.iloc[missing[0] - 1], names.iloc[missing[0] - 1]
        said = f"sample {sample!r}: image file {str(folder.path / name)!r} does not exist"
        if len(missing) > 1:
            said += f", nor do those of {len(missing) - 1} more of {len(table)} samples"
        raise InputError(said + _where_images_are(folder.path, Path(name), table))
    return found, []


def _read_csv(path: Path) -> pd.DataFrame:
    delimiter = _delimiter(path)
    check_width(path, delimiter)
    try:
        # all text and no header, so that the ids 007 and NA stay what they are, and a column
        # that stands twice is seen; labels become numbers later
        rows = pd.read_csv(
            path,
            sep=delimiter,
            header=None,
            skipinitialspace=True,
            dtype=str,
            keep_default_na=False,
        )
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        said = why_unread(path, error)
        if path.suffix.lower() in SPREADSHEETS:
            said += "; save the spreadsheet as CSV"
        raise InputError(f"{path}: cannot read a table of labels: {said}") from None
    columns = rows.iloc[0]
    if columns.duplicated().any():
        raise InputError(f"{path}: column {columns[columns.duplicated()].iloc[0]!r} stands twice")
    return restored(rows.iloc[1:].set_axis(columns.tolist(), axis=1))


def read_rows(path: Path) -> pd.DataFrame:
    """All columns of a CSV or .parquet file, every cell a text ("" where it is empty)."""
    return _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)


def _delimiter(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline(MAX_HEADER)
    except (OSError, UnicodeDecodeError):
        return ","  # said when the table is read
    return next((d for d in (",", ";", "\t") if d in header), ",")


def _read_parquet(path: Path) -> pd.DataFrame:
    file = parquet_file(path)
    check_columns(len(file.schema_arrow.names), path)
    try:
        table: pd.DataFrame = file.read().to_pandas()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read a table: {why_unread(path, error)}") from None
    # text and empty cells, as from a CSV, so that both kinds of table mean the same
    return table.rename(columns=str).map(_text)


def _text(cell: object) -> str:
    if cell is None or cell is pd.NA or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, bool | np.bool_) else str(cell)


FEW = 0.2
"""Share of the cells of a column up to which those that are no labels are likely mistakes."""
LOOKED_AT = 20
"""Rows that are looked at to guess what a column is."""
ID_NAMES = ("id", "image", "file", "name", "path", "sample")
"""Parts of the names of columns that are likely to name samples."""


def _advised_id_column(table: pd.DataFrame, images: Path | str | None) -> str:
    """How to say which column names the samples."""
    names = [str(name) for name in table.columns]
    unique = [name for name in names if table[name].is_unique and (table[name] != "").all()]
    filed = [name for name in unique if images is not None and _are_files(table[name], images)]
    named = [name for name in unique if any(part in name.lower() for part in ID_NAMES)]
    text = [name for name in unique if not table[name].str.fullmatch(r"[\d.]*").all()]
    found = (filed or named or text or unique)[:1]
    said = f'"{found[0]}"' if found else "..."
    return f"; say which column names the samples: id_column = {said} in [dataset]"


def _are_files(cells: "pd.Series[str]", images: Path | str) -> bool:
    folder = Folder(Path(images), allow_outside=False)
    try:
        return all(_find(folder, name, "") is not None for name in cells[:LOOKED_AT])
    except InputError:  # one leads out of the folder
        return False


def _find(folder: Folder, name: str, where: str) -> Path | None:
    return folder.find((f"{name}{ending}" for ending in ("", *ENDINGS)), where)


def _not_labels(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns most of whose cells are no labels."""
    said = {name: table[name][table[name] != ""] for name in columns}
    return [name for name, cells in said.items() if len(cells) and not_labels(cells).mean() > 0.5]


def _advised_use(
    table: pd.DataFrame, odd: Sequence[str], concepts: Sequence[str], images: Path | str | None
) -> str:
    """What to do about columns that are no labels, among those taken for concepts."""
    for name in odd:
        if images is not None and _are_files(table[name], images):
            return f'; of names of files: file_column = "{name}" in [dataset]'
    classes = [name for name in odd if 1 < table[name].nunique() <= len(table) / 2]
    quoted = ", ".join(f'"{name}"' for name in odd)
    if len(odd) == len(concepts) and classes:
        return f'; a column of class names: class_column = "{classes[0]}" in [dataset]'
    numbers = pd.to_numeric(table[odd[0]], errors="coerce").dropna()
    if len(odd) == len(concepts) and len(numbers) and numbers.between(0, 1).all():
        return "; cut probabilities at a threshold, into 0 and 1"
    return f"; if they describe samples and are no concepts: metadata = [{quoted}] in [dataset]"


def _where_images_are(folder: Path, name: Path, table: pd.DataFrame) -> str:
    if not folder.is_dir():
        hint = near_file(folder) or "; say where the images are by images = ... in [dataset]"
        return f"; {str(folder)!r} is no folder{hint}"
    there = image_files(folder, allow_outside=True)
    if not there:
        return f"; {str(folder)!r} holds no image ({', '.join(ENDINGS)})"
    for column in map(str, table.columns):
        if _are_files(table[column], folder):
            return (
                f'; the column of file names is to be said: file_column = "{column}" in [dataset]'
            )
    depth = len(name.parent.parts)
    if depth and folder.parts[-depth:] == name.parent.parts:
        above = str(folder.parents[depth - 1])
        return f"; names in the table start above that folder: images = {above!r} in [dataset]"
    return (
        f"; expected a file of that name, with or without one of {', '.join(ENDINGS)}; the folder "
        f"has {listed([p.name for p in there], 3)}"
    )
