"""Recorded answers, of a model or a proxy, from a file."""

from pathlib import Path

from ..errors import InputError, one_line
from ..models import Recorded
from ..utils.tables import check_width, restored


def recorded(path: Path, name: str | None) -> Recorded:
    """The answers in a CSV; raises InputError where it cannot be read."""
    import pandas as pd

    check_width(path)
    try:
        table = restored(pd.read_csv(path, dtype={"sample": str}))
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path}: cannot read recorded answers: {one_line(error)}") from None
    return Recorded(table, name=name or path.stem)
