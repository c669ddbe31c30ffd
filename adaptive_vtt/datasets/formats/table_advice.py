"""What to write in [dataset] where a table of labels, or its images, are other than expected."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ...errors import InputError, listed
from ...utils.files import near_file
from ..scanning import ENDINGS, Folder, image_files
from ..table import WORDS

LOOKED_AT = 20
"""Rows that are looked at to guess what a column is."""
ID_NAMES = ("id", "image", "file", "name", "path", "sample")
"""Parts of the names of columns that are likely to name samples."""
LABELS = frozenset({"", "0", "1", "0.0", "1.0", *WORDS})
"""Cells of a column of labels, in small letters."""


def id_column(table: pd.DataFrame, images: Path | str | None) -> str:
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
        return all(find(folder, name, "") is not None for name in cells[:LOOKED_AT])
    except InputError:  # one leads out of the folder
        return False


def find(folder: Folder, name: str, where: str) -> Path | None:
    """The image file of this name, with or without an ending; None where there is none."""
    return folder.find((f"{name}{ending}" for ending in ("", *ENDINGS)), where)


def not_labels(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns most of whose cells are no labels."""
    return [name for name in columns if _share_of_labels(table[name]) < 0.5]


def _share_of_labels(cells: "pd.Series[str]") -> float:
    said = cells[cells != ""].str.lower()
    return float(said.isin(LABELS).mean()) if len(said) else 1.0


def apart(
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
    if len(odd) == len(concepts) and _are_shares(table[odd[0]]):
        return "; cut probabilities at a threshold, into 0 and 1"
    return f"; if they describe samples and are no concepts: metadata = [{quoted}] in [dataset]"


def _are_shares(cells: "pd.Series[str]") -> bool:
    return bool(pd.to_numeric(cells, errors="coerce").dropna().between(0, 1).mean() == 1)


def images_missing(
    folder: Folder, missing: Sequence[tuple[str, str]], count: int, table: pd.DataFrame
) -> InputError:
    """``missing``: sample and name of those without a file, among ``count`` samples."""
    sample, name = missing[0]
    path = folder.path / name
    said = f"sample {sample!r}: image file {str(path)!r} does not exist"
    if len(missing) > 1:
        said += f", nor do those of {len(missing) - 1} more of {count} samples"
    return InputError(said + _where_images_are(folder.path, Path(name), table))


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
