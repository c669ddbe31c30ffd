"""A table of labels in a CSV, JSON Lines or Parquet file, with folders of images.

Errors say which option of [dataset] describes the table or its images.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, listed, some, unexpected, unknown
from ...utils.files import near_file, reads
from ...utils.options import Option, at_base
from ...utils.table_text import csv_rows, json_lines
from ...utils.tables import check_columns
from ...utils.web import text_of
from .. import scanning
from ..scanning import ENDINGS, BrokenOption, Folder, OutsideOption, Reading
from ..table import TableDataset, from_table, label_cells, one_per_class
from .image_rows import parquet_file

EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>", "#N/A", "?")
"""Texts of a cell that mean "unknown", whatever the column; those of labels may be more."""
TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
"""Endings of tables."""
BATCH, MAX_CELLS, MAX_BYTES = 1024, 20_000_000, 2**30
"""Rows of a Parquet table that are decoded at a time; its most cells and bytes."""


def folders_at_base(value: str | list[str], base: Path) -> Path | list[Path]:
    """Return one folder, several, or those that a pattern finds, from the folder of a SPEC.toml."""
    if isinstance(value, list):
        return [base / each for each in value]
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
        list[str] | None, Option("columns to ask about (default: all others), cells 0, 1 or empty")
    ] = None,
    metadata: Annotated[list[str] | None, Option("columns that describe samples")] = None,
    class_column: Annotated[
        str | None, Option("instead of concepts: the column that names each sample's class")
    ] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read a table of labels (CSV, JSON Lines, Parquet) and one or several folders of images.

    A name also matches the only file that differs from it in letter case, slashes, Unicode form or
    lost zeros.

    Args:
        labels: The file of the table, a row per sample.
        images: A folder, several, or None if answers are recorded.
        id_column: The column of sample ids.
        file_column: The column of file names, with or without their ending.
        concepts: Columns of 0, 1, yes, no or empty cells.
        metadata: Columns that describe samples and are no concepts.
        class_column: The column of classes; each class becomes a concept.
        broken: "skip" leaves out rows whose file is missing or cannot be decoded, unless most are.
        allow_outside: Whether names and links may lead out of the folders.

    Returns:
        The dataset.

    Raises:
        InputError: A cell, a column or a file does not fit, or there are over 10,000 columns. It
            names file, row and column.
    """
    path = Path(labels)
    table, described = read_rows(path), metadata or []
    columns = list(map(str, table.columns))
    for column in filter(None, [id_column, file_column, class_column, *described]):
        if column not in table:
            error, advice = unknown("column", column, columns, str(path)), ""
            if column == id_column:
                unique = [name for name in columns if table[name].is_unique]
                named = [*_file_columns(table[unique], images), *unique, "..."][0]
                advice = f'; say which column names the samples: id_column = "{named}" in [dataset]'
            raise InputError(f"{error}{advice}")
    known = table.mask(table.isin(EMPTY)).set_axis(table[id_column].tolist(), axis=0)
    names = [n for n in columns if n not in {id_column, file_column, class_column, *described}]
    for concept in concepts or ():
        check_known("concept", concept, names, str(path))
    chosen = concepts or names
    if class_column is None:
        _check_labels(table[names], chosen, images, path)
        truths = table[chosen].set_axis(known.index).astype(object)
    else:
        truths = one_per_class(known[class_column])
    taken, named_by = _Taken([], [], "", {}), file_column or id_column
    if images is not None:
        places, cells = ImageNames(images, allow_outside), table[named_by].set_axis(known.index)
        plain, above = ImageNames(images).relative(cells)
        taken = _taken(places, plain, above, table, path, Reading(broken, str(path)))
        kept = [file is not None for file in taken.files]
        known, truths = known[kept], truths[kept]
    try:
        dataset = from_table(
            None if images is None else [file for file in taken.files if file is not None],
            truths,
            metadata=known[metadata] if metadata else None,
            skipped=taken.skipped,
            name=path.stem,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    roles = dict.fromkeys(described, "metadata")
    roles |= dict.fromkeys(chosen if class_column is None else (), "concept")
    if class_column:
        roles[class_column] = _class_role(known[class_column], truths)
    roles[id_column] = "names the samples"
    if images is not None:
        roles[named_by] = f"names the images{taken.near}"
    dataset.remarks = _remarks(table, roles, class_column is None and concepts is None)
    dataset.remarks |= taken.unread
    return dataset


# -- columns of labels -----------------------------------------------------------------------------

COULD_BE_ASKED = "metadata, though it holds only 0 and 1: take it out of metadata to ask about it"
FEW = 0.2
"""Share of the cells of a column up to which those that are no labels are likely mistakes, where
its labels are all alike."""


def _class_role(cells: "pd.Series[str]", truths: pd.DataFrame) -> str:
    unclear = f"; {int(cells.isna().sum()):,} unknown" * bool(cells.isna().any())
    several = "; several in a cell" * bool((truths.sum(axis=1) > 1).any())
    return f"names the class of each{unclear}{several}"


def _remarks(table: pd.DataFrame, roles: Mapping[str, str], asked: bool) -> dict[str, str]:
    """Return how each column was used, in their order.

    Args:
        table: The table.
        roles: The role of each column that was used.
        asked: Whether all columns of labels should become concepts.
    """
    remarks = {}
    for name, cells in table.rename(columns=str).items():
        role = roles.get(str(name), "left out")
        if role == "concept":
            role = label_cells(cells).remark
        elif role == "metadata":
            odd, read = odd_label(cells), label_cells(cells)
            could = asked and read.truths.nunique() > 1 and not read.odd.any()
            role = f"metadata: {odd}" if odd else COULD_BE_ASKED if could else ""
        if role:
            remarks[str(name)] = role
    return remarks


def odd_label(cells: "pd.Series[str]") -> str:
    """Return the first odd cell of a column that mostly holds labels; "" for any other column."""
    read = label_cells(cells)
    odd, known = int(read.odd.sum()), int(read.truths.notna().sum())
    if not odd or known < odd or (read.truths.nunique() < 2 and odd > FEW * (odd + known)):
        return ""
    row = int(np.flatnonzero(read.odd)[0])
    more = f", {odd - 1} more rows are like that" if odd > 1 else ""
    numbers = pd.to_numeric(cells[read.truths.notna()], errors="coerce").notna().all()
    others = "0 or 1" if numbers else "yes or no"
    return f"row {row + 1} holds {cells.iloc[row]!r}{more}, the other {known} are {others}"


def odd_cells(table: pd.DataFrame) -> str:
    """Return the columns with an odd cell, as a part of another error; "" for none."""
    odd = {str(name): odd_label(table[name]) for name in table}
    return "".join(f"; also column {name!r}: {text}" for name, text in odd.items() if text)


def _check_labels(
    table: pd.DataFrame, chosen: list[str], images: Images | None, path: Path
) -> None:
    """Raise InputError, with the likely use, where the cells of a column are mostly no labels."""
    read = {name: label_cells(table[name]) for name in chosen}
    odd = [n for n, r in read.items() if r.odd.sum() > r.truths.notna().sum()]
    if not odd:
        return
    row = int(np.flatnonzero(read[odd[0]].odd)[0])
    got = f"{table[odd[0]].iloc[row]!r} in row {row + 1}, concept {odd[0]!r}"
    all_odd = len(odd) == len(chosen)
    classes = [name for name in odd if all_odd and 1 < table[name].nunique() <= len(table) / 2]
    if files := _file_columns(table[odd], images):
        remedy = f'of names of files: file_column = "{files[0]}" in [dataset]'
    elif classes:
        remedy = f'a column of class names: class_column = "{classes[0]}" in [dataset]'
    elif all_odd and pd.to_numeric(table[odd[0]], errors="coerce").between(0, 1).any():
        remedy = "cut probabilities at a threshold, into 0 and 1"
    else:
        quoted = json.dumps(odd, ensure_ascii=False)
        remedy = f"if they describe samples and are no concepts: metadata = {quoted} in [dataset]"
    raise unexpected(f"{path}: labels", "0, 1 or empty (unknown)", got, remedy)


# -- names of images -------------------------------------------------------------------------------

LOOKED_AT = 20
"""Rows of a table whose image files are looked for; reading the table looks for all."""


class ImageNames:
    """Folders in which the cells of a table name image files; ``allow_outside``: or elsewhere."""

    def __init__(self, images: Images, allow_outside: bool = True) -> None:
        paths = [images] if isinstance(images, str | Path) else images
        self.folders = [Folder(Path(path), allow_outside) for path in paths]

    def share(self, names: "pd.Series[str]") -> float:
        """Return the share of the first cells that name image files, 0..1."""
        head, _ = self.relative(names.head(LOOKED_AT).astype(str))
        named = [any(near_image(folder, name) for folder in self.folders) for name in head]
        return float(np.mean(named)) if named else 0.0

    def relative(self, names: "pd.Series[str]") -> tuple["pd.Series[str]", str]:
        """Return names without the folders that all begin with, and those folders.

        The rest must name files: absolute names were written on another machine, others in a folder
        above. Otherwise return the names unchanged and "".
        """
        plain = names.str.replace("\\", "/", regex=False)
        levels = zip(*(name.split("/")[:-1] for name in plain), strict=False)
        shared = [parts[0] for parts in takewhile(lambda parts: len({*parts}) == 1, levels)]
        if not shared or ".." in shared or any(near_image(f, names.iloc[0]) for f in self.folders):
            return names, ""
        absolute = re.fullmatch("|[A-Za-z]:", shared[0])
        for count, last in enumerate(shared, start=1):
            begin = "/".join(shared[:count])
            below = plain.str.removeprefix(f"{begin}/")
            for folder in self.folders:
                same = folder.path.absolute().parts[-count:] == (*shared[:count],)
                elsewhere = absolute and not scanning.is_split(last)
                if (same or elsewhere) and near_image(folder, below.iloc[0]):
                    return below, begin
        return names, ""

    def file(self, name: str, where: str) -> tuple[Path | None, bool]:
        """Return the file of that name, None for none, and whether it is called just so."""
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
    """Return the image file of that name, or nearly that; None if it is missing."""
    # os.path.isfile is False for names that no file may have, such as too long ones
    if not name or not os.path.basename(name):
        return None
    file = find_image(folder, name, "") or folder.near(name, "")
    return file if file is not None and file.suffix.lower() in ENDINGS else None


def find_image(folder: Folder, name: str, where: str) -> Path | None:
    """Return the image file of that name, its ending left out or not; None if it is missing."""
    whole = [""] * (Path(name).suffix.lower() in ("", *ENDINGS))  # "p0.v1" has no ending yet
    return folder.find((f"{name}{ending}" for ending in (*whole, *ENDINGS, "")), where)


def _file_columns(table: pd.DataFrame, images: Images | None) -> list[str]:
    """Return the columns whose cells name image files."""
    names = ImageNames(images or [])
    return [str(column) for column in table if names.share(table[column]) == 1]


class _Taken(NamedTuple):
    """The image of each row, None for rows left out, whose names are ``skipped``; how names differ
    from files, and what in the folders was not read."""

    files: list[Path | None]
    skipped: list[str]
    near: str
    unread: Mapping[str, str]


def _taken(
    places: ImageNames,
    names: "pd.Series[str]",
    above: str,
    table: pd.DataFrame,
    path: Path,
    reading: Reading,
) -> _Taken:
    """Return the image of each row. Raise InputError if most are missing, or any is refused."""
    folders = [folder.path for folder in places.folders]
    rows = [places.file(n, f"{path}, row {row}") for row, n in enumerate(names, start=1)]
    files = [file for file, _ in rows]
    missing = [row for row, file in enumerate(files) if file is None]
    few = 2 * len(missing) < len(table)
    if missing and not (few and reading.skips):
        words: dict[str, Any] = {
            "few": few,
            "path": path,
            "folder": folders[0],
            "folders": folders,
            "total": len(table),
            "sample": names.index[missing[0]],
            "first": names.iloc[missing[0]],
            "missing": [f"{names.iloc[row]} (row {row + 1})" for row in missing],
            "odd_cells": odd_cells(table),
            "file_columns": _file_columns(table, folders[0]),
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
    difference = f"; without {above!r} before each" * bool(above)
    if near:
        example = f"{names.iloc[near[0][0]]!r} from {near[0][1].name!r}"
        difference += f"; {len(near):,} differ from their files in letter case, slashes, Unicode"
        difference += f" form or zeros in front, as {example}"
    return _Taken(
        [None if file in bad else file for file in files],
        reading.skipped + [f"{folders[0] / names.iloc[row]} (missing)" for row in missing],
        difference,
        scanning.unread_remark(folders, [*filter(None, files), path]),
    )


def _names(folder: Path) -> list[str]:
    return [file.name for file in scanning.image_files(folder, allow_outside=True)]


# -- cells of any table ----------------------------------------------------------------------------


def read_rows(path: Path) -> pd.DataFrame:
    """Return all columns of a table; each cell is a text, "" if it is empty.

    Raises:
        InputError: The file cannot be read, or has no header.
    """
    ending = path.suffix.lower()
    if ending == ".parquet":
        return _parquet(path).rename(columns=str).map(_text)  # cells as in a CSV
    with reads(path, "a table of labels"):
        table = json_lines(path).map(_text) if ending == ".jsonl" else csv_rows(path)
    for name in map(str, table):
        if Path(name).suffix.lower() in ENDINGS:
            remedy = "write a line with the names of the columns above it"
            raise unexpected(str(path), "a header", f"the image {name!r} in its first line", remedy)
    return table


def _parquet(path: Path) -> pd.DataFrame:
    """Return a Parquet table. Raise InputError for one that is too large, before it is decoded.

    A file of a few bytes may hold one value millions of times.
    """
    file = parquet_file(path)
    columns, about = file.schema_arrow.names, file.metadata
    check_columns(len(columns), path)
    if about.num_rows * len(columns) > MAX_CELLS:
        got = f"{about.num_rows:,} rows of {len(columns)}"
        raise unexpected(str(path), f"at most {MAX_CELLS:,} cells", got)
    declared = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
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
    if isinstance(cell, list | dict | np.ndarray):
        return str(cell)
    if cell is None or cell is pd.NA or cell != cell:
        return ""
    return str(int(cell)) if isinstance(cell, bool | np.bool_) else str(cell)
