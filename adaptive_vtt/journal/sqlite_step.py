"""What one transaction writes into the SQLite file of a journal."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import JournalError
from .chain import Chain, Row
from .rows import BeliefRow, CallRow, DrawRow, FactRow, JudgingRow, MoveRow, SourceRow
from .schema import FIGURES, SCHEMA, VERSION, statements


class Step:
    """What one transaction writes."""

    def __init__(self, db: sqlite3.Connection, chain: Chain) -> None:
        self.db = db
        self.chain = chain

    def make(self) -> None:
        for statement in statements(f"{SCHEMA}PRAGMA user_version={VERSION};\n"):
            self.db.execute(statement)

    def add_fact(self, row: FactRow) -> None:
        self._insert("facts", [vars(row)])
        self.link(row)

    def add_draw(self, row: DrawRow) -> None:
        values = {**vars(row), "why": json.dumps(row.why)}
        del values["moves"]
        self._insert("draws", [values])
        self._insert("moves", [_columns(row.draw, move) for move in row.moves])
        self.link(row)

    def add_call(self, row: CallRow) -> None:
        paid = {"cost": row.cost, "unconfirmed": row.unconfirmed, "elapsed": row.elapsed}
        self._insert("calls", [{"call": row.call, **paid}])
        answers = [{**vars(a), "details": _text(a.details)} for a in row.answers]
        self._insert("answers", answers)
        if row.pictures is not None:
            source, follow_up = row.pictures
            self._insert("pictures", [{"call": row.call, "source": source, "follow_up": follow_up}])
        self.link(row)

    def add_source(self, row: SourceRow) -> None:
        self._insert("sources", [{**vars(row), "answers": json.dumps(row.answers)}])
        self.link(row)

    def add_judging(self, rows: list[JudgingRow]) -> None:
        first = self.db.execute("SELECT count(*) FROM judging").fetchone()[0]
        if [row.position for row in rows] != [*range(first, first + len(rows))]:
            raise JournalError(f"journal: judging of call {rows[0].call} stands there")
        for row in rows:
            self._insert("judging", [{**vars(row), "said": json.dumps(row.said)}])
            self.link(row)

    def add_beliefs(self, rows: list[BeliefRow]) -> None:
        for row in rows:
            self._insert("beliefs", [{"draws": row.draws, "figures": json.dumps(row.figures)}])
            self.link(row)

    def link(self, row: Row) -> None:
        """Seals a row that was written."""
        number, link = self.chain.length, self.chain.add(row)
        self._insert("chain", [{"link": number, **vars(link)}])

    def _insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows by the names of their columns, the same in all."""
        if rows:
            names, places = ", ".join(rows[0]), ", ".join(f":{name}" for name in rows[0])
            self.db.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)


def _columns(draw: int, move: MoveRow) -> dict[str, Any]:
    """A move as a row of "moves"."""
    figures = dict(zip(FIGURES, move.figures, strict=True))
    members = json.dumps(move.members)
    return {
        "draw": draw,
        "target": move.target,
        "members": members,
        "active": move.active,
    } | figures


def _text(details: Mapping[str, Any] | None) -> str | None:
    return None if details is None else json.dumps(details)
