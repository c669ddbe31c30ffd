"""Audit of items without a model: a person fills the losses of the next ones into a CSV file.

The journal keeps the columns, the half-width and the command that continues. The first call names
them, later ones resume.
"""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from ..audit import Audit
from ..engine.call_queue import Call
from ..errors import InputError, unexpected
from ..journal import read_journal
from ..journal.files import JOURNAL
from ..models import Unanswered
from ..models.local.recorded import UNSURE
from ..pool import Pool
from ..utils.files import as_file, why_unread, write_text
from ..utils.tables import csv_text, restored

NEXT, LOSS = "next.csv", "loss"
COUNT = 20
"""Default number of items that are asked for at a time."""
HALF_WIDTH = 0.1
COLUMNS = ("id", "text", "group", "half_width")
NAMES = ("id", "name", "file", "filename", "path")
"""Columns that name the items where no column was given."""


@contextmanager
def items_audit(table: Path, out: Path, given: Mapping[str, Any]) -> Iterator[Audit]:
    """Yield the audit of the rows of ``table`` in ``out``, begun or resumed.

    Args:
        table: CSV file, a row per item.
        out: Folder of the run.
        given: Values of COLUMNS; None keeps the audit's.

    Raises:
        InputError: The table cannot be read or lacks a column, or the audit was begun with other
            settings.
    """
    begun: Mapping[str, Any] = {}
    if (out / JOURNAL).is_file():
        with closing(read_journal(out / JOURNAL)) as journal:
            begun = journal.facts().get("items") or {}
    columns = {name: begun.get(name) if given[name] is None else given[name] for name in COLUMNS}
    if not begun and columns["id"] is None:
        columns["id"] = _names_column(_read(table))
    pool, targets = items_pool(table, columns)
    half_width = columns["half_width"] or HALF_WIDTH
    notes = {"items": columns, "begun_by": continuing(table, out)}
    kept: dict[str, Any] = {"journal": out / JOURNAL, "notes": notes}
    with Audit(pool, half_width=half_width, targets=targets, **kept) as audit:
        yield audit


def continuing(table: Path, out: Path) -> str:
    """Return the command that takes the losses in NEXT and asks for the next items."""
    return shlex.join(["avtt", "label", str(table), "--out", str(out), "--take", str(out / NEXT)])


def _names_column(frame: pd.DataFrame) -> str:
    """Return the one column that is called as in NAMES and whose values differ, else ""."""
    fitting = [c for c in frame if str(c).lower() in NAMES and frame[c].is_unique]
    return str(fitting[0]) if len(fitting) == 1 else ""


def items_pool(table: Path, columns: Mapping[str, Any]) -> tuple[Pool, list[str]]:
    """Return the rows of a CSV file as a pool, and the names of its targets.

    Args:
        table: CSV file, a row per item.
        columns: ``id``, ``text`` and ``group`` of COLUMNS, each optional.

    Raises:
        InputError: The table cannot be read or lacks a column.
    """
    named = {name: columns.get(name) or () for name in ("text", "group")}
    pool = Pool.from_frame(_read(table), id=columns.get("id") or "", name=table.stem, **named)
    return pool, ["overall", *(f"group:{name}" for name in named["group"])]


def take(audit: Audit, file: Path) -> int:
    """Pass the losses in a file that was filled in to the audit and return their number.

    Raises:
        InputError: A row is about an item that was not asked for, or its loss is neither a number
            in [0, 1] nor "unsure".
    """
    rows = _read(file)
    for name in ("item", LOSS):
        if name not in rows:
            raise unexpected(str(file), f"a column {name!r}", ", ".join(map(str, rows)))
    calls = {call.prompt.sample_id: call for call in audit.ask(max(audit.waiting, 1))}
    losses: dict[int, object] = {}
    for place, (item, cell) in enumerate(zip(rows["item"], rows[LOSS], strict=True), start=2):
        where = f"{file}, row {place}"
        if not (cell := cell.strip()):
            continue
        if item not in calls:
            wanted = "an item that was asked for and has no loss yet"
            raise unexpected(where, wanted, repr(item), f"fill in {NEXT} of the run folder")
        losses[calls[item].number] = _loss(cell, where)
    audit.tell_all(losses.items())
    audit.take_back([call for call in calls.values() if call.number not in losses])
    return len(losses)


def write_next(audit: Audit, out: Path, count: int) -> list[Call]:
    """Write the next ``count`` items into the file NEXT of ``out``, to be filled in.

    Returns:
        Their calls in the order of the draws, [] once the audit has ended.
    """
    calls = audit.ask(count)
    rows = []
    for call in calls:
        sample = audit.space.dataset.sample(call.item)
        words = [ask.text for ask in sample.asks.values()]
        rows.append({"item": sample.id, LOSS: "", **sample.metadata, "text": "\n".join(words)})
    write_text(out / NEXT, csv_text(pd.DataFrame(rows, columns=None if rows else ["item", LOSS])))
    return calls


def _loss(cell: str, where: str) -> float | Unanswered:
    if cell == UNSURE:
        return Unanswered("the reader is unsure")
    with suppress(ValueError):
        if 0 <= (loss := float(cell)) <= 1:
            return loss
    wanted = f"a number from 0 (fine) to 1 (all wrong), {UNSURE!r}, or nothing yet"
    raise unexpected(f"{where}: loss", wanted, repr(cell))


def _read(path: Path) -> pd.DataFrame:
    try:
        options: Any = {"dtype": str, "keep_default_na": False, "encoding": "utf-8-sig"}
        return restored(pd.read_csv(as_file(path), **options))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as CSV: {why_unread(path, error)}") from None
