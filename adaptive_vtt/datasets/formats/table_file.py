"""A table of labels in a CSV, JSON Lines or Parquet file, with folders of images.

Errors name the option of [dataset] that describes the table or its images.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from ...errors import InputError, listed, some, unexpected, unknown
from ...utils.files import near_file, reads
from ...utils.options import Option, at_base
from ...utils.table_text import csv_rows, json_lines
from ...utils.tables import check_columns
from ...utils.web import text_of
from .. import scanning
from ..columns import EMPTY, mistakes, sorted_columns
from ..scanning import ENDINGS, BrokenOption, Folder, OutsideOption, Reading
from ..table import TableDataset, of_rows
from .image_rows import parquet_file

TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
"""Endings of tables."""
BATCH, MAX_CELLS, MAX_BYTES = 1024, 20_000_000, 2**30
"""Rows of a Parquet table that are decoded at a time, and its maximum numbers of cells and bytes.
"""


def folders_at_base(value: str | list[str], base: Path) -> Path | list[Path]:
    """Return the folder, the folders, or the matches of a pattern, relative to ``base``.

    Raises:
        InputError: No folder matches the pattern.
    """
    if isinstance(value, list):
        return [base / path for path in value]
    if not any(sign in value for sign in "*?["):
        return base / value
    folders = [path for path in sorted(base.glob(value)) if path.is_dir()]
    if not folders:
        raise InputError(f"dataset.images: expected folders that match {value!r}, got none")
    return folders


Images = Path | str | Sequence[Path | str]
_IMAGES = Option(
    "folder of images, several, or a pattern; leave out where answers are recorded",
    reads=folders_at_base,
    type=str | list[str] | None,
)


def read_table(
    labels: Annotated[Path | str, Option("CSV, .jsonl or .parquet of labels", reads=at_base)],
    images: Annotated[Images | None, _IMAGES] = None,
    *,
    id_column: Annotated[str, Option("column of sample ids")] = "id",
    file_column: Annotated[str | None, Option("column of file names (default: the id)")] = None,
    concepts: Annotated[
        list[str] | None, Option("columns to ask about (default: those of 0, 1 and empty cells)")
    ] = None,
    metadata: Annotated[
        list[str] | None, Option("columns that describe samples (default: all others)")
    ] = None,
    class_column: Annotated[
        str | None, Option("instead of concepts: the column that names each sample's class")
    ] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read a table of labels (CSV, JSON Lines, Parquet) and one or several folders of images.

    A cell that names no existing file matches the only file that differs from it in letter case,
    slashes, Unicode form or leading zeros.

    Args:
        labels: The file of the table, a row per sample.
        images: A folder, or several. Default None: answers are recorded.
        id_column: The column of sample ids.
        file_column: The column of file names, with or without their ending. Default None: the ids.
        concepts: Columns of 0, 1, yes, no or empty cells. Default None: all such columns.
        metadata: Columns that describe samples, whatever they hold. Default None: all others.
        class_column: The column of classes; each class becomes a concept. Default None: if there
            are no concepts, a column called "class" or the like.
        broken: "skip" leaves out rows whose file cannot be decoded, or is missing if most exist.
        allow_outside: Whether names and links may lead out of the folders.

    Returns:
        The dataset.

    Raises:
        InputError: A cell, a column or a file is invalid, or there are over 10,000 columns. The
            message names file, row and column.
    """
    path = Path(labels)
    table = read_rows(path)
    columns = list(map(str, table.columns))
    for column in filter(None, [id_column, file_column, class_column]):
        if column not in table:
            error, advice = unknown("column", column, columns, str(path)), ""
            if column == id_column:
                unique = [name for name in columns if table[name].is_unique]
                best = [*file_columns(table[unique], images), *unique, "..."][0]
                advice = f'; say which column names the samples: id_column = "{best}" in [dataset]'
            raise InputError(f"{error}{advice}")
    known = table.mask(table.isin(EMPTY)).set_axis(table[id_column].tolist(), axis=0)
    named = {id_column, file_column} - {None, class_column, *(metadata or ())}
    others = table.drop(columns=[*named])
    sorting = sorted_columns(
        others, str(path), concepts=concepts, classes=class_column, metadata=metadata
    )
    truths = sorting.truths(others).set_axis(known.index)
    notes = {**sorting.notes, id_column: "names the samples"}
    files, unread, reading = None, dict[str, str](), Reading(broken, str(path))
    if images is not None:
        name_column, folders = file_column or id_column, ImageNames(images, allow_outside)
        names, above = ImageNames(images).relative(table[name_column].set_axis(known.index))
        located, difference = _located(folders, names, table, path, reading)
        kept, files = [file is not None for file in located], [*filter(None, located)]
        known, truths = known[kept], truths[kept]
        removed = f"; without {above!r} before each" * bool(above)
        notes[name_column] = f"names the images{removed}{difference}"
        paths = [folder.path for folder in folders.folders]
        unread = scanning.unread_remark(paths, [*files, path], table=True)
    metadata_rows = known[sorting.metadata] if sorting.metadata else None
    try:
        more: dict[str, Any] = {"skipped": reading.skipped, "name": path.stem}
        dataset = of_rows(files, truths, metadata=metadata_rows, **more)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if sorting.classes:
        unclear = int(known[sorting.classes].isna().sum())
        several = "; several in a cell" * bool((truths.sum(axis=1) > 1).any())
        without = f"; {unclear:,} unknown" * bool(unclear)
        notes[sorting.classes] = f"names the class of each{without}{several}"
    dataset.remarks = {str(column): notes[column] for column in table if column in notes} | unread
    return dataset


# -- names of images -------------------------------------------------------------------------------

LOOKED_AT = 20
"""Number of rows whose image files are searched for, to recognise a column of file names."""


class ImageNames:
    """Search for the image files that a table names.

    Args:
        images: The folder of images, or several.
        allow_outside: Whether names and links may lead out of the folders.
    """

    def __init__(self, images: Images, allow_outside: bool = True) -> None:
        paths = [images] if isinstance(images, str | Path) else images
        self.folders = [Folder(Path(path), allow_outside) for path in paths]

    def share(self, names: "pd.Series[str]") -> float:
        """Return the share, in [0, 1], of the first LOOKED_AT cells that name image files."""
        head, _ = self.relative(names.head(LOOKED_AT).astype(str))
        exist = [any(near_image(folder, name) for folder in self.folders) for name in head]
        return float(np.mean(exist)) if exist else 0.0

    def relative(self, names: "pd.Series[str]") -> tuple["pd.Series[str]", str]:
        """Remove the folders with which all names begin, if the names do not lead to files as is.

        Absolute names may come from another machine, and relative ones from a folder above.

        Returns:
            The rest of the names, and what was removed; or the names unchanged, and "", if the rest
            leads to no file either.
        """
        plain = names.str.replace("\\", "/", regex=False)
        levels = zip(*(name.split("/")[:-1] for name in plain), strict=False)
        shared = [parts[0] for parts in takewhile(lambda parts: len({*parts}) == 1, levels)]
        if not shared or ".." in shared or any(near_image(f, names.iloc[0]) for f in self.folders):
            return names, ""
        absolute = re.fullmatch("|[A-Za-z]:", shared[0])
        for count, last in enumerate(shared, start=1):
            removed = "/".join(shared[:count])
            rest = plain.str.removeprefix(f"{removed}/")
            for folder in self.folders:
                same = folder.path.absolute().parts[-count:] == (*shared[:count],)
                elsewhere = absolute and not scanning.is_split(last)
                if (same or elsewhere) and near_image(folder, rest.iloc[0]):
                    return rest, removed
        return names, ""

    def file(self, name: str, where: str) -> tuple[Path | None, bool]:
        """Return the file of a name, or the only one with a similar name, None without one; and
        whether its name is exactly the same.

        Raises:
            InputError: Several folders have a file of this name.
        """
        exact = [file for folder in self.folders if (file := find_image(folder, name, where))]
        if len(exact) > 1:
            raise InputError(
                f"{where}: {name!r} is in {len(exact)} of the folders, {str(exact[0])!r} and "
                f"{str(exact[1])!r}; write the folder in the name"
            )
        if exact:
            return exact[0], True
        near = [file for folder in self.folders if (file := folder.near(name, where))]
        return (near[0] if len(near) == 1 else None), False


def near_image(folder: Folder, name: str) -> Path | None:
    """Return the image file of a name, or the only one with a similar name; None without one."""
    if not name or not os.path.basename(name):
        return None
    file = find_image(folder, name, "") or folder.near(name, "")
    return file if file is not None and file.suffix.lower() in ENDINGS else None


def find_image(folder: Folder, name: str, where: str) -> Path | None:
    """Return the image file of a name, which may lack its ending; None if it does not exist.

    Args:
        folder: The folder.
        name: The name.
        where: The place that names the file, for errors.
    """
    # the exact name first, except for one such as "p0.v1", whose ".v1" is no ending of an image
    first = [""] * (Path(name).suffix.lower() in ("", *ENDINGS))
    return folder.find((f"{name}{ending}" for ending in (*first, *ENDINGS, "")), where)


def file_columns(table: pd.DataFrame, images: Images | None) -> list[str]:
    """Return the columns whose cells name image files."""
    names = ImageNames(images or [])
    return [str(column) for column in table if names.share(table[column]) == 1]


def _located(
    images: ImageNames, names: "pd.Series[str]", table: pd.DataFrame, path: Path, reading: Reading
) -> tuple[list[Path | None], str]:
    """Return the image of each row, None for one that is left out; and how names differ from files.

    Args:
        images: The folders of images.
        names: The name of each image, by sample id.
        table: The table, for errors.
        path: The file of the table.
        reading: Handler of missing and broken files.

    Raises:
        InputError: Most images are missing, or one is and missing ones are refused.
    """
    folders = [folder.path for folder in images.folders]
    rows = [images.file(n, f"{path}, row {row}") for row, n in enumerate(names, start=1)]
    files = [file for file, _ in rows]
    missing = [row for row, file in enumerate(files) if file is None]
    few = 2 * len(missing) < len(table)
    if missing and not (few and reading.skips):
        words: dict[str, Any] = {
            "few": few,
            "path": path,
            "folders": folders,
            "names": names,
            "first": missing[0],
            "missing": [f"{names.iloc[row]} (row {row + 1})" for row in missing],
            "mistakes": mistakes(table),
            "file_columns": file_columns(table, folders[0]),
        }
        words |= {"listed": listed, "some": some, "near_file": near_file, "endings": ENDINGS}
        raise InputError(text_of(__package__, "missing_images.txt", images=_names, **words).strip())
    counts = Counter(files)
    near = [(row, file) for row, (file, exact) in enumerate(rows) if file and not exact]
    for row, file in near:
        if counts[file] > 1:
            raise InputError(
                f"{path}, row {row + 1}: {names.iloc[row]!r} is nearest to {file.name!r}, which "
                "another row names, too; write names as their files are called"
            )
    bad = reading.unreadable(filter(None, files))
    reading.missing += [f"{folders[0] / names.iloc[row]} (missing)" for row in missing]
    difference = ""
    if near:
        example = f"{names.iloc[near[0][0]]!r} from {near[0][1].name!r}"
        difference = f"; {len(near):,} are written otherwise than their files, as {example}"
    return [None if file in bad else file for file in files], difference


def _names(folder: Path) -> list[str]:
    return [file.name for file in scanning.image_files(folder, allow_outside=True)]


# -- cells of any table ----------------------------------------------------------------------------


def read_rows(path: Path) -> pd.DataFrame:
    """Return all columns of a table as texts; an empty cell is "".

    Raises:
        InputError: The file cannot be read, or has no header.
    """
    ending = path.suffix.lower()
    if ending == ".parquet":
        return _parquet(path).rename(columns=str).map(_text)
    with reads(path, "a table of labels"):
        table = json_lines(path).map(_text) if ending == ".jsonl" else csv_rows(path)
    for name in map(str, table):
        if Path(name).suffix.lower() in ENDINGS:
            remedy = "write a line with the names of the columns above it"
            raise unexpected(str(path), "a header", f"the image {name!r} in its first line", remedy)
    return table


def _parquet(path: Path) -> pd.DataFrame:
    """Return a Parquet table; raise InputError before decoding one that is too large.

    A file of a few bytes may contain one value millions of times.
    """
    file = parquet_file(path)
    columns, metadata = file.schema_arrow.names, file.metadata
    check_columns(len(columns), path)
    if metadata.num_rows * len(columns) > MAX_CELLS:
        got = f"{metadata.num_rows:,} rows of {len(columns)}"
        raise unexpected(str(path), f"at most {MAX_CELLS:,} cells", got)
    declared = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
    decoded, batches = 0, list[Any]()
    with reads(path, "a table"):
        for batch in file.iter_batches(BATCH) if declared <= MAX_BYTES else ():
            batches.append(batch)
            if (decoded := decoded + batch.nbytes) > MAX_BYTES:
                break
        if max(declared, decoded) > MAX_BYTES:
            raise unexpected(str(path), f"at most {MAX_BYTES / 2**30:g} GiB when unpacked", "more")
        arrow = import_module("pyarrow").Table.from_batches(batches, file.schema_arrow)
        table: pd.DataFrame = arrow.to_pandas()
    return table


def _text(cell: object) -> str:
    """Return a cell of any table as a CSV would have it."""
    if isinstance(cell, list | dict | np.ndarray):
        return str(cell)
    if cell is None or cell is pd.NA or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, bool | np.bool_) else str(cell)
