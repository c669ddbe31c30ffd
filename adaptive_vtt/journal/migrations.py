"""Journals of schema 3: what their seals were, and how they become journals of schema 4; and those
of schema 4, which did not tell what of a cost was unconfirmed.

Schema 3 kept one value per fact, unsealed, and sealed draws, answers and sources in a table
of their own. On migration these seals stay, and 'avtt verify' goes on checking them.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import JournalError
from .chain import with_law
from .rows import CallRow, DrawRow, SourceRow
from .schema import CHAIN, FACTS, VERSION, statements

if TYPE_CHECKING:
    from .base import Journal

VERSION_3, VERSION_4 = 3, 4
PAID = ("calls", "sources", "judging")
MIGRATE = (
    "ALTER TABLE facts RENAME TO facts_before;"
    f"\n{FACTS}"
    """INSERT INTO facts
  SELECT row_number() OVER (ORDER BY rowid) - 1, name, value FROM facts_before;
DROP TABLE facts_before;
ALTER TABLE seals RENAME TO old_seals;
"""
    "ALTER TABLE calls ADD COLUMN unconfirmed REAL NOT NULL DEFAULT 0;\n"
    "ALTER TABLE sources ADD COLUMN unconfirmed REAL NOT NULL DEFAULT 0;\n"
    f"{CHAIN}PRAGMA user_version={VERSION};\n"
)


def migrate(db: sqlite3.Connection, chain_rows: Callable[[sqlite3.Connection], None]) -> None:
    """Schema 3 becomes schema 5 in one transaction; ``chain_rows`` seals what is found."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements(MIGRATE):
            db.execute(statement)
        chain_rows(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def add_unconfirmed(db: sqlite3.Connection) -> None:
    """Schema 4 becomes schema 5, with nothing unconfirmed."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    column = "ADD COLUMN unconfirmed REAL NOT NULL DEFAULT 0"
    db.execute("BEGIN IMMEDIATE")
    for table in tables.intersection(PAID):
        db.execute(f"ALTER TABLE {table} {column}")
    db.execute(f"PRAGMA user_version={VERSION}")
    db.execute("COMMIT")


def check_old_seals(journal: "Journal") -> None:
    """Raises JournalError where a row that schema 3 sealed is missing or was altered."""
    seals = journal.old_seals()
    if not seals:
        return
    draws, found = journal.draws(laws=False), {}
    for draw in draws:
        found[f"draw {draw.draw}"] = _seal_draw(with_law(journal, draw), seals)
    numbers = {draw.call: draw.draw for draw in draws}
    for call in journal.calls():
        found[f"call {call.call}"] = _seal_call(call, numbers[call.call], seals)
    for source in journal.sources():
        found[f"source {source.source}"] = _seal_source(source)
    for name, seal in seals.items():
        if found.get(name) != seal:
            what = "was altered after it was written" if name in found else "is missing"
            raise JournalError(f"verify: {name} {what}")


def _seal_draw(row: DrawRow, seals: Mapping[str, str]) -> str:
    before = seals.get(f"draw {row.draw - 1}", "")
    law = hashlib.blake2b(row.law, digest_size=16).hexdigest()
    moves = [(m.target, m.members, int(m.active), m.figures) for m in row.moves]
    return _seal(
        before,
        row.draw,
        row.question,
        row.call,
        row.sample,
        row.learned,
        row.probability,
        law,
        moves,
    )


def _seal_call(row: CallRow, draw: int, seals: Mapping[str, str]) -> str:
    answers = [
        (
            a.question,
            a.call,
            a.truth,
            a.answer,
            a.unanswered,
            a.loss,
            a.coordinate,
            a.said,
            a.details,
        )
        for a in sorted(row.answers, key=lambda a: a.question)
    ]
    return _seal(seals.get(f"draw {draw}", ""), row.call, float(row.cost), answers)


def _seal_source(row: SourceRow) -> str:
    return _seal("source", row.source, float(row.cost), list(row.answers))


def _seal(*parts: Any) -> str:
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
