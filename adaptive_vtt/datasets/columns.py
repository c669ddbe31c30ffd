"""Sort the columns of a table of labels into concepts, classes of images and metadata."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, check_known, some
from ..utils.web import text_of
from .scanning import NAMES, by_number

EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>", "#N/A", "?")
"""Texts of a cell that mean "unknown" in any column; columns of labels have further ones."""
WORDS = {**dict.fromkeys(NAMES["yes"], 1), **dict.fromkeys(NAMES["no"], 0)}
"""Word for a label, in lower case -> 1 or 0."""
FEW = 0.2
"""Maximum share of odd cells in a column of labels that are all equal: with more it is no column of
labels with mistakes."""
COULD_BE_ASKED = "metadata, though it holds only 0 and 1: take it out of metadata to ask about it"
_WHOLE = re.compile(r"^([+-]?\d+)\.0*$")
"""Matches a whole number that is written with decimals."""


@dataclass(frozen=True)
class Columns:
    """The use of each column.

    Attributes:
        concepts: Columns of labels; none if ``classes`` names a column.
        classes: The column that names the class of each image.
        metadata: Columns that describe images.
        notes: Column -> a note for people on how it was read.
    """

    concepts: list[str]
    classes: str | None
    metadata: list[str]
    notes: dict[str, str]

    def truths(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the labels of a table, with a column per concept or class."""
        if self.classes is None:
            return table[self.concepts]
        return one_per_class(table[self.classes].mask(table[self.classes].isin(EMPTY)))


def sorted_columns(
    table: pd.DataFrame,
    where: str,
    *,
    concepts: Sequence[str] | None = None,
    classes: str | None = None,
    metadata: Sequence[str] | None = None,
    strict: bool = True,
) -> Columns:
    """Decide what the columns of a table are for.

    Where neither concepts nor classes are named, columns of 0, 1 and empty cells, or of yes and no,
    are concepts. If no column has 0 and 1, a column called "class" or the like names the class;
    without one, the only column does whose values repeat. All others are metadata.

    Args:
        table: The table without the column that names its images.
        where: Name of the table, for errors.
        concepts: Columns of labels.
        classes: The column that names the class of each image.
        metadata: Columns that describe images, whatever they hold. If concepts or classes are
            named, too, further columns are left out.
        strict: Whether a column of labels with odd cells is a concept, so that they are refused
            later, or metadata.

    Raises:
        InputError: There is no such column, or neither a column of labels nor one of classes.
    """
    for name in metadata or ():
        check_known("metadata column", name, [*table], where)
    free = table.drop(columns=[*(metadata or ())])
    for name in concepts or ():
        check_known("concept", name, [*free], where)
    chosen, asked = [] if classes else [*(concepts or ())], not concepts and classes is None
    reads = {str(name): label_cells(cells) for name, cells in table.items()}
    if asked:
        chosen, classes = _by_cells(free, reads, where, strict)
    others = [name for name in reads if name not in (classes, *chosen)]
    described = others if asked or metadata is None else [*metadata]
    notes = {name: reads[name].remark for name in chosen}
    for name in others:
        read = reads[name]
        could = asked and not classes and read.truths.nunique() > 1 and not read.odd.any()
        note = f"metadata: {read.mistake}" if read.mistake else COULD_BE_ASKED if could else ""
        notes[name] = note if name in described else "left out"
    return Columns(chosen, classes, described, {name: note for name, note in notes.items() if note})


def _by_cells(
    table: pd.DataFrame, reads: dict[str, "Cells"], where: str, strict: bool
) -> tuple[list[str], str | None]:
    """Return the columns of labels, or that of classes."""
    concepts, numbers = list[str](), False
    for name, cells in table.items():
        read, known = reads[str(name)], cells.empty or pd.api.types.is_float_dtype(cells)
        known = known or bool(read.truths.notna().any())  # a column of NaN is unknown labels
        if (known and not read.odd.any()) or (strict and read.mistake):
            concepts.append(str(name))
            numbers |= bool(pd.to_numeric(read.texts, errors="coerce").notna().any())
    class_columns = [c for c in map(str, table) if c.lower() in NAMES["class_columns"]]
    if concepts and (numbers or not class_columns):
        return concepts, None
    known_cells = table.mask(table.isin(EMPTY))
    repeating = [c for c in map(str, table) if 2 <= known_cells[c].nunique() <= len(table) / 2]
    repeating = [c for c in repeating if not {*words_of(c)} & {*NAMES["group_columns"]}]
    only = repeating if len(repeating) == 1 else []
    if named := [c for c in class_columns if not known_cells[c].is_unique] or only:
        return [], named[0]
    shares = any(pd.to_numeric(table[c], errors="coerce").between(0, 1).all() for c in table)
    words = {"where": where, "columns": [*map(str, table)], "shares": shares}
    text = text_of(__package__, "no_labels.txt", mistakes=mistakes(table), **words)
    raise InputError(text.strip())


def words_of(name: str) -> list[str]:
    """Return the words of a name, in lower case."""
    return re.split(r"[^a-z]+", name.lower())


# -- cells -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """The n cells of a column of labels.

    Attributes:
        texts: The cells as texts, or as numbers if all are.
        truths: 1, 0 or NaN for unknown.
        odd: True for cells that are no labels.
    """

    texts: "pd.Series[Any]"
    truths: "pd.Series[float]"
    odd: "pd.Series[bool]"

    @property
    def remark(self) -> str:
        """Return how cells other than 0 and 1 were read, with their counts; "" without any."""
        if self.truths.equals(self.texts):
            return ""
        parts = []
        readings = self.truths.map({1: "yes", 0: "no"}).fillna("unknown")
        for reading in ("yes", "no", "unknown"):
            counts = self.texts[(readings == reading) & ~self.odd].value_counts()
            counts = counts.rename(index=str).drop(["0", "1", "0.0", "1.0", "nan"], errors="ignore")
            if len(counts):
                cells = some([f"{t or 'empty'!r} ({n:,})" for t, n in counts.items()], 4)
                parts.append(f"{cells} as {reading}")
        return f"read {'; '.join(parts)}" if parts else ""

    @property
    def mistake(self) -> str:
        """Return a remark on the odd cells of a column that is mostly labels; "" for another."""
        odd, known = int(self.odd.sum()), int(self.truths.notna().sum())
        if not odd or known < odd or (self.truths.nunique() < 2 and odd > FEW * (odd + known)):
            return ""
        row = int(np.flatnonzero(self.odd)[0])
        more = f", {odd - 1} more rows are like that" if odd > 1 else ""
        numbers = pd.to_numeric(self.texts[self.truths.notna()], errors="coerce").notna().all()
        others = f"the other {known} are {'0 or 1' if numbers else 'yes or no'}"
        return f"row {row + 1} holds {class_name(self.texts[row])!r}{more}, {others}"


def label_cells(cells: "pd.Series[Any]") -> Cells:
    """Read a column of labels: 0 and 1, words such as yes and no in any case, or empty cells.

    In a column with 0, -1 means uncertain, as in labels of chest X-rays, and is unknown. In other
    columns -1 may mean No, so it is no label.
    """
    cells = cells.reset_index(drop=True)
    texts: pd.Series[Any]
    if pd.api.types.is_numeric_dtype(cells):  # texts of many numbers take long
        texts = numbers = cells.astype(float)
        truths, missing = numbers.where(numbers.isin((0, 1))), numbers.isna()
    else:
        texts = cells.astype(str).str.strip()
        words = texts.str.casefold().str.replace(r"^(-?\d),(0+)$", r"\1.\2", regex=True)  # 1,0 is 1
        numbers = pd.to_numeric(words, errors="coerce")
        truths = numbers.where(numbers.isin((0, 1))).fillna(words.map(WORDS)).astype(float)
        missing = cells.isna() | words.isin(NAMES["missing"])
    if (truths == 0).any():
        missing |= numbers == -1
    return Cells(texts, truths, truths.isna() & ~missing)


def mistakes(table: pd.DataFrame) -> str:
    """Return the mistakes of all columns as the end of an error; "" without any."""
    columns = {str(name): label_cells(cells).mistake for name, cells in table.items()}
    return "".join(f"; also column {name!r}: {text}" for name, text in columns.items() if text)


def one_per_class(classes: "pd.Series[Any]") -> pd.DataFrame:
    """Return n x C of 0 and 1 from the class of each sample, NaN for a sample without a class.

    Columns are in the order of ``by_number``. A cell may name several classes, separated by bars,
    semicolons or commas, if one of them is the only class of another cell.
    """
    names = classes.map(class_name, na_action="ignore")
    known = {*names.dropna()}
    for mark in "|;,":
        parts = {p.strip() for name in known if mark in name for p in name.split(mark)}
        if parts & known:
            several = names.str.replace(rf"\s*\{mark}\s*", mark, regex=True)
            return several.str.get_dummies(mark).astype(float).where(names.notna())
    columns = sorted(known, key=by_number)
    return pd.get_dummies(names, dtype=float).where(names.notna())[columns]


def class_name(cell: Any) -> str:
    """Return the name of a class in a cell: "3" for 3, 3.0, "3" and "3.0"."""
    return _WHOLE.sub(r"\1", str(cell).strip())
