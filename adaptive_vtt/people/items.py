"""Items that are no images, and no model to call: whoever looks at them gets the next ones as a CSV
file, and fills in how bad each was.

The table, its columns and the half-width stand in the journal: the first call names them, later
ones go on.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from ..audit import Audit
from ..errors import InputError
from ..journal import read_journal
from ..journal.files import JOURNAL
from ..models import Unanswered
from ..models.local.recorded import UNSURE
from ..pool import Pool
from ..utils.files import as_file, why_unread, write_text
from ..utils.tables import csv_text, restored

NEXT, LOSS = "next.csv", "loss"
COUNT = 20
"""Items that are asked for at a time, unless said otherwise."""
HALF_WIDTH = 0.1
COLUMNS = ("id", "text", "group", "half_width")


@contextmanager
def items_audit(table: Path, out: Path, given: Mapping[str, Any]) -> Iterator[Audit]:
    """Give the audit of the rows of ``table`` in ``out``, begun or gone on with.

    Args:
        table: CSV file, a row per item.
        out: Folder of the run.
        given: COLUMNS, and None where the command does not say: then those that the audit was begun
            with stand.

    Raises:
        InputError: The table cannot be read or lacks a column, or the audit was begun with other
            settings.
    """
    begun: Mapping[str, Any] = {}
    if (out / JOURNAL).is_file():
        journal = read_journal(out / JOURNAL)
        begun = journal.facts().get("items") or {}
        journal.close()
    columns = {name: begun.get(name) if given[name] is None else given[name] for name in COLUMNS}
    pool, targets = items_pool(table, columns)
    half_width, notes = columns["half_width"] or HALF_WIDTH, {"items": columns}
    with Audit(
        pool, half_width=half_width, targets=targets, journal=out / JOURNAL, notes=notes
    ) as audit:
        yield audit


def items_pool(table: Path, columns: Mapping[str, Any]) -> tuple[Pool, list[str]]:
    """Return the rows of a CSV file as a pool, and the names of its targets.

    Args:
        table: CSV file, a row per item.
        columns: ``id``, ``text`` and ``group`` of COLUMNS, as far as they are there.

    Raises:
        InputError: The table cannot be read or lacks a column.
    """
    named = {name: columns.get(name) or () for name in ("text", "group")}
    pool = Pool.from_frame(_read(table), id=columns.get("id") or "", name=table.stem, **named)
    return pool, ["overall", *(f"group:{name}" for name in named["group"])]


def take(audit: Audit, file: Path) -> int:
    """Tell the audit the losses in a file that was filled in; return how many.

    Raises:
        InputError: A row is of an item that was not asked for, or its loss is no number in [0, 1]
            and not "unsure".
    """
    rows = _read(file)
    if lacking := [name for name in ("item", LOSS) if name not in rows]:
        raise InputError(
            f"{file}: expected a column {lacking[0]!r}, got {', '.join(map(str, rows))}"
        )
    calls = {call.prompt.sample_id: call for call in audit.ask(max(audit.waiting, 1))}
    losses: dict[int, object] = {}
    for place, (item, cell) in enumerate(zip(rows["item"], rows[LOSS], strict=True), start=2):
        if not (cell := cell.strip()):
            continue
        if item not in calls:
            raise InputError(
                f"{file}, row {place}: expected an item that was asked for and not told yet, got "
                f"{item!r}; fill in {NEXT} of the run folder"
            )
        losses[calls[item].number] = _loss(cell, f"{file}, row {place}")
    audit.tell_all(losses.items())
    audit.take_back([call for call in calls.values() if call.number not in losses])
    return len(losses)


def write_next(audit: Audit, out: Path, count: int) -> int:
    """Write NEXT into ``out``: those of the next ``count`` items, to be filled in; return their
    number, 0 once the audit has ended."""
    calls = audit.ask(count)
    rows = []
    for call in calls:
        sample = audit.space.dataset.sample(call.item)
        words = [ask.text for ask in sample.asks.values()]
        rows.append({"item": sample.id, LOSS: "", **sample.metadata, "text": "\n".join(words)})
    write_text(out / NEXT, csv_text(pd.DataFrame(rows, columns=None if rows else ["item", LOSS])))
    return len(calls)


def _loss(cell: str, where: str) -> float | Unanswered:
    if cell == UNSURE:
        return Unanswered("the reader cannot tell")
    try:
        loss = float(cell)
    except ValueError:
        loss = -1.0
    if not 0 <= loss <= 1:
        raise InputError(
            f"{where}: loss: expected a number from 0 (fine) to 1 (all wrong), {UNSURE!r}, or "
            f"nothing where nobody has looked yet, got {cell!r}"
        )
    return loss


def _read(path: Path) -> pd.DataFrame:
    try:
        return restored(
            pd.read_csv(as_file(path), dtype=str, keep_default_na=False, encoding="utf-8-sig")
        )
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as CSV: {why_unread(path, error)}") from None
