"""Recorded answers, of a model or a proxy, from a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..models import Recorded
from ..utils.files import why_unread
from ..utils.tables import check_width, restored

if TYPE_CHECKING:
    import pandas as pd


def recorded(path: Path, name: str | None) -> Recorded:
    """The answers in a CSV; raises InputError where it cannot be read."""
    return Recorded(answers_table(path), name=name or path.stem)


def answers_table(path: Path) -> "pd.DataFrame":
    """The same as a table, without the files and words that ``avtt pictures`` wrote there."""
    import pandas as pd

    check_width(path)
    try:
        table = restored(pd.read_csv(path, dtype={"sample": str}))
        written = ("file", "words")
        text = [c for c in written if c in table and not pd.api.types.is_numeric_dtype(table[c])]
        return table.drop(columns=text)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        why = why_unread(path, error)
        raise InputError(f"{path}: cannot read recorded answers: {why}") from None
