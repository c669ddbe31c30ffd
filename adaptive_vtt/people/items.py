"""Audit of items without a model: a person fills in the losses of the next items in a CSV file.

The journal keeps the columns, the half-width and the command. The first command sets them, later
ones resume.
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
from ..results.export.items import ITEM, LOSS, NEXT, TEXT, item_column
from ..utils.files import reads, write_text
from ..utils.table_text import csv_rows
from ..utils.tables import csv_text

LOSS_IN_WORDS = f"a number from 0 (fine) to 1 (all wrong) or {UNSURE!r}"
COUNT = 20
"""Default number of items that are asked for at a time."""
HALF_WIDTH = 0.1
COLUMNS = ("id", "text", "group", "half_width")
NAMES = ("id", "name", "file", "filename", "path")
"""Headings of columns that name the items if --id is left out."""


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
    facts: Mapping[str, Any] = {}
    if (out / JOURNAL).is_file():
        with closing(read_journal(out / JOURNAL)) as journal:
            facts = journal.facts()
    begun = facts.get("items", {})
    columns = {name: begun.get(name) if given[name] is None else given[name] for name in COLUMNS}
    if not begun and columns["id"] is None:
        columns["id"] = _names_column(_read(table))
    pool, targets = items_pool(table, columns)
    if facts and facts["space"]["fingerprint"] != pool.fingerprint:
        others = [f"--{name}" for name in COLUMNS[:3] if begun and columns[name] != begun[name]]
        what = " and ".join(others) or f"table than {table}"
        raise InputError(f"{out}: was begun with another {what}; keep that, or give another --out")
    half_width = columns["half_width"] or HALF_WIDTH
    kept: dict[str, Any] = {"journal": out / JOURNAL}
    kept["notes"] = {"items": columns, "begun_by": next_command(table, out)}
    with Audit(pool, half_width=half_width, targets=targets, **kept) as audit:
        yield audit


def next_command(table: Path, out: Path) -> str:
    """Return the command that asks for the next items."""
    return shlex.join(["avtt", "label", str(table), "--out", str(out)])


def _names_column(frame: pd.DataFrame) -> str:
    """Return the only column with a heading of NAMES whose values differ, else ""."""
    fitting = [name for name in frame if str(name).lower() in NAMES and frame[name].is_unique]
    return str(fitting[0]) if len(fitting) == 1 else ""


def unshown_text(table: Path, columns: Mapping[str, Any]) -> str:
    """Return the column with the longest texts, if they have 2 or more words on average, else "".

    It is "" as well if ``columns``, those of the audit, include texts.
    """
    if columns["text"]:
        return ""
    frame, named = _read(table), {columns["id"], *(columns["group"] or ())}
    words = {n: frame[n].str.split().map(len).mean() for n in map(str, frame) if n not in named}
    longest = max(words, key=words.__getitem__, default="")
    return longest if words.get(longest, 0) >= 2 else ""


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
    column = item_column(audit.journal.facts())
    filled, losses = _filled(file, column), dict[int, object]()
    calls = {call.prompt.sample_id: call for call in audit.ask(audit.waiting)}  # draws nothing
    if calls and not filled:
        expected = f"{LOSS_IN_WORDS} in column {LOSS!r} of the items that you looked at"
        raise unexpected(str(file), expected, "none", "fill it in, and run this command again")
    for row, item, cell in filled:
        where = f"{file}, row {row}"
        if item not in calls:
            expected = "an item that was asked for and has no loss yet"
            raise unexpected(where, expected, repr(item), f"fill in {NEXT} of the run folder")
        losses[calls[item].number] = _loss(cell, where)
    audit.tell_all(losses.items())
    audit.take_back([call for call in calls.values() if call.number not in losses])
    return len(losses)


def _filled(file: Path, column: str) -> list[tuple[int, str, str]]:
    """Return row, item and loss wherever a file has a loss; the header is row 1.

    Items are in ``column``, or in ITEM.

    Raises:
        InputError: The file cannot be read or lacks a column.
    """
    rows = _read(file)
    column = ITEM if column not in rows and ITEM in rows else column
    for name in (column, LOSS):
        if name not in rows:
            raise unexpected(str(file), f"a column {name!r}", ", ".join(map(str, rows)))
    cells = zip(rows[column], rows[LOSS], strict=True)
    return [(row, item, loss) for row, (item, loss) in enumerate(cells, start=2) if loss]


def write_next(audit: Audit, out: Path, count: int) -> list[Call]:
    """Write the next ``count`` items into the file NEXT of ``out``, to be filled in.

    Returns:
        Their calls in the order of the draws. Once the audit has ended there are none, and no file.

    Raises:
        InputError: The file there has losses that were not taken.
    """
    calls, file, rows = audit.ask(count), out / NEXT, []
    if not calls:
        file.unlink(missing_ok=True)
        return []
    open_items = {call.prompt.sample_id for call in calls}
    column = item_column(audit.journal.facts())
    if file.is_file() and any(item in open_items for _, item, _ in _filled(file, column)):
        raise InputError(
            f"{file}: has losses that were not taken; add --take {shlex.quote(str(file))}"
        )
    for call in calls:
        sample = audit.space.dataset.sample(call.item)
        words = [ask.text for ask in sample.asks.values()]
        rows.append({column: sample.id, LOSS: "", **sample.metadata, TEXT: "\n".join(words)})
    write_text(file, csv_text(pd.DataFrame(rows)))
    return calls


def _loss(cell: str, where: str) -> float | Unanswered:
    if cell == UNSURE:
        return Unanswered("the reader is unsure")
    with suppress(ValueError):
        if 0 <= (loss := float(cell.replace(",", "."))) <= 1:  # as some spreadsheets write it
            return loss
    raise unexpected(f"{where}: {LOSS}", f"{LOSS_IN_WORDS}, or nothing yet", repr(cell))


def _read(path: Path) -> pd.DataFrame:
    with reads(path, "a CSV of items"):
        return csv_rows(path).fillna("")
