"""A journal in one SQLite file: its tables, what one transaction writes, and the whole."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import fields
from functools import cache, wraps
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from ..errors import JournalError, one_line
from ..types import JsonObject
from .answer_json import parsed
from .chain import Chain, Link, Row, with_proposal
from .files import Lock, connect, connect_to_read, identity, refuse_other_names, save_nearby
from .rows import (
    FIGURES,
    JSON_FIELD,
    AnswerRow,
    BeliefRow,
    CallRow,
    DrawRow,
    FactRow,
    JudgingRow,
    MoveRow,
    SourceRow,
    Tally,
    damaged,
)

Rows = TypeVar("Rows")
VERSION = 7
"""Version of the schema, in SQLite's user_version."""
SCHEMA = """
CREATE TABLE facts (          -- the audit's settings, its space, and how it ended; a log
  position INTEGER PRIMARY KEY,  -- 0, 1, 2 ...; the last row of a name is its value now
  name TEXT NOT NULL,
  value TEXT NOT NULL         -- JSON
);
CREATE TABLE draws (          -- one random choice each, written before its call is sent
  draw INTEGER PRIMARY KEY,   -- 0, 1, 2 ...
  question INTEGER NOT NULL,  -- the question drawn
  call INTEGER NOT NULL UNIQUE,
  sample TEXT NOT NULL,       -- the source image's id
  learned INTEGER NOT NULL,   -- how many draws had been learnt from when the proposal was made
  probability REAL NOT NULL,  -- of the question drawn
  proposal BLOB NOT NULL,          -- all probabilities above zero (rows.py)
  why TEXT NOT NULL,          -- what the strategy saw; JSON
  elapsed REAL NOT NULL       -- seconds of audit so far
);
CREATE TABLE moves (          -- what each draw fixed for each target before its call was sent
  draw INTEGER NOT NULL REFERENCES draws (draw),
  target INTEGER NOT NULL,    -- its place in the fact "certificate"
  members TEXT NOT NULL,      -- the call's questions that belong to it; JSON
  active INTEGER NOT NULL,    -- 0 where no candidate belonged to it
  low_base REAL NOT NULL, high_base REAL NOT NULL,
  low_predicted REAL NOT NULL, high_predicted REAL NOT NULL,
  scale REAL NOT NULL, lo REAL NOT NULL, hi REAL NOT NULL, foreseen REAL NOT NULL,
  tilt REAL NOT NULL, tilt_bound REAL NOT NULL, uniform REAL NOT NULL,
  next_down REAL NOT NULL, next_up REAL NOT NULL, next_tilt REAL NOT NULL,
  next_foreseen REAL NOT NULL,
  PRIMARY KEY (draw, target)
) WITHOUT ROWID;
CREATE TABLE calls (          -- one paid answer each
  position INTEGER PRIMARY KEY,  -- order of commit
  call INTEGER NOT NULL UNIQUE REFERENCES draws (call),
  cost REAL NOT NULL,
  unconfirmed REAL NOT NULL DEFAULT 0,  -- the part of it that no server confirmed
  elapsed REAL NOT NULL,
  reply TEXT NOT NULL         -- the words that a chat model replied; '' of other models
);
CREATE TABLE answers (        -- one row per question that a call answered
  question INTEGER PRIMARY KEY,
  call INTEGER NOT NULL REFERENCES calls (call),
  truth INTEGER,              -- expected: 0 or 1; NULL where unknown (not judged)
  answer REAL,                -- P(yes), a mask's score, 1 for right words; NULL: unanswered
  unanswered TEXT,            -- why there is no answer, or why it is excluded; else NULL
  loss REAL,                  -- 0..1; NULL: not judged; a placeholder where excluded
  coordinate REAL,            -- a = (P(yes) + truth) / 2; NULL without answer or truth
  answer_text TEXT,           -- the answer in words, where the model gives words
  details TEXT                -- the oracle's further data; JSON
);
CREATE INDEX answers_by_call ON answers (call);
CREATE TABLE sources (        -- answers about source images, where the oracle needs them
  source INTEGER PRIMARY KEY, -- which sample, concept and version: see source_calls.py
  answers TEXT NOT NULL,      -- one per concept sent, JSON (answer_json.py)
  cost REAL NOT NULL,
  unconfirmed REAL NOT NULL DEFAULT 0,
  elapsed REAL NOT NULL,
  reply TEXT NOT NULL
);
CREATE TABLE pictures (       -- PNGs of some calls that went wrong, for the report
  call INTEGER PRIMARY KEY REFERENCES calls (call),
  source BLOB NOT NULL,
  follow_up BLOB NOT NULL
);
CREATE TABLE judging (        -- where a judge model is asked
  position INTEGER PRIMARY KEY,  -- order of commit
  call INTEGER NOT NULL REFERENCES draws (call),
  question INTEGER NOT NULL,  -- -1: the answer to the call as it came; else a reply of the judge
  asked TEXT NOT NULL,        -- a hash of the words that the judge was sent
  answers TEXT NOT NULL,      -- the answers, or the reply; JSON (answer_json.py)
  cost REAL NOT NULL,
  unconfirmed REAL NOT NULL DEFAULT 0,
  elapsed REAL NOT NULL,
  reply TEXT NOT NULL,
  UNIQUE (call, question)
);
CREATE TABLE beliefs (        -- what was believed, at checkpoints
  draws INTEGER PRIMARY KEY,  -- how many draws had been learnt from
  figures TEXT NOT NULL       -- by name; JSON (belief_groups.py)
);
CREATE TABLE chain (          -- a seal for each row of facts, draws, calls and sources
  link INTEGER PRIMARY KEY,   -- 0, 1, 2 ... in the order of writing
  kind TEXT NOT NULL,         -- "fact", "draw", "call", "source", "judging", "belief"
  row INTEGER NOT NULL,       -- position, draw, call, source, position, draws
  seal TEXT NOT NULL          -- hash of the row and of the seal before it: see chain.py
);
"""
TABLES: dict[type, str] = {
    FactRow: "facts",
    SourceRow: "sources",
    JudgingRow: "judging",
    BeliefRow: "beliefs",
}
STATEMENTS = f"{SCHEMA}PRAGMA user_version={VERSION}".split(";\n")
LAYOUT = "SELECT type, name, tbl_name, sql FROM sqlite_master"


@cache
def layout() -> frozenset[tuple[str | None, ...]]:
    """Return the tables and indices of a journal, as SQLite describes them."""
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in STATEMENTS:
            db.execute(statement)
        return frozenset(db.execute(LAYOUT))


class Step:
    """The writes of one transaction."""

    def __init__(self, db: sqlite3.Connection, chain: Chain) -> None:
        self.db = db
        self.chain = chain

    def create_tables(self) -> None:
        """Create the tables and indices of an empty journal."""
        for statement in STATEMENTS:
            self.db.execute(statement)

    def add(self, rows: Sequence[Row]) -> None:
        """Write rows of one kind, and their links in the chain."""
        kind = type(rows[0])
        if kind is DrawRow:
            self._add_draws(rows)
        elif kind is CallRow:
            self._add_calls(rows)
        else:
            columns: list[dict[str, Any]] = [dict(vars(row)) for row in rows]
            if (field := JSON_FIELD.get(kind)) is not None:
                for row in columns:
                    row[field] = json.dumps(row[field])
            if kind is JudgingRow:
                count = self.db.execute("SELECT count(*) FROM judging").fetchone()[0]
                if [row["position"] for row in columns] != [*range(count, count + len(rows))]:
                    call = columns[0]["call"]
                    raise JournalError(f"journal: judging of call {call} stands there")
            self._insert(TABLES[kind], columns)
        links = enumerate((self.chain.add(row) for row in rows), self.chain.length)
        self._insert("chain", [{"link": number, **vars(link)} for number, link in links])

    def _add_draws(self, rows: Sequence[Any]) -> None:
        columns = [field.name for field in fields(DrawRow) if field.name != "moves"]
        draws = [{name: getattr(row, name) for name in columns} for row in rows]
        self._insert("draws", [{**draw, "why": json.dumps(draw["why"])} for draw in draws])
        moves = [
            {"draw": row.draw, "target": move.target, "active": move.active}
            | {"members": json.dumps(move.members)}
            | dict(zip(FIGURES, move.figures, strict=True))
            for row in rows
            for move in row.moves
        ]
        self._insert("moves", moves)

    def _add_calls(self, rows: Sequence[Any]) -> None:
        paid = ("call", "cost", "unconfirmed", "elapsed", "reply")
        self._insert("calls", [{name: getattr(row, name) for name in paid} for row in rows])
        answers = [
            {**vars(a), "details": json.dumps(a.details)} if a.details is not None else vars(a)
            for row in rows
            for a in row.answers
        ]
        self._insert("answers", answers)
        pictures = [(row.call, *row.pictures) for row in rows if row.pictures is not None]
        self.db.executemany("INSERT INTO pictures VALUES (?, ?, ?)", pictures)

    def _insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows, given as column -> value with the same columns in all."""
        if rows:
            names, places = ", ".join(rows[0]), ", ".join(f":{name}" for name in rows[0])
            self.db.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)


DAMAGED = (sqlite3.Error, ValueError, TypeError, LookupError, RecursionError, OverflowError)
"""Exceptions that reading a damaged file may raise."""
_MOVES = f"SELECT draw, target, members, active, {', '.join(FIGURES)} FROM moves ORDER BY 1, 2"
_DRAWS = (
    "SELECT draw, question, call, sample, learned, probability, why, elapsed "
    "FROM draws ORDER BY draw"
)
_TALLY = """WITH paid AS (
  SELECT cost, unconfirmed FROM calls UNION ALL SELECT cost, unconfirmed FROM sources UNION ALL
  SELECT cost, unconfirmed FROM judging WHERE call NOT IN (SELECT call FROM calls)
) SELECT (SELECT count(*) FROM draws) AS draws, (SELECT count(*) FROM calls) AS calls,
  (SELECT count(*) FROM sources) AS sources,
  total(cost) AS cost, total(unconfirmed) AS unconfirmed FROM paid"""
"""Counts of a journal. The cost of calls that a judge has not read yet is in ``judging``."""
_ANSWERS = (
    "SELECT question, call, truth, answer, unanswered, loss, coordinate, answer_text, details "
    "FROM answers ORDER BY question"
)


def cached(read: Callable[["SQLiteJournal"], Rows]) -> Callable[["SQLiteJournal"], Rows]:
    """Cache the rows that a method reads, until a row is written.

    So a report is made of the very rows that were verified.
    """

    @wraps(read)
    def read_once(self: "SQLiteJournal") -> Rows:
        with self._reading():
            if read.__name__ not in self._cache:
                self._cache[read.__name__] = read(self)
            return copy(self._cache[read.__name__])

    return read_once


class SQLiteJournal:
    """A journal in one SQLite file, in WAL mode, with every commit synced to disk.

    One process at a time may write, and any of its threads: opening for writing takes a lock
    until ``close`` (files.py). The first write creates the tables in its own transaction, so that
    a journal is either empty or begun.

    Args:
        path: The file.
        must_exist: Whether to refuse a file that does not exist.
        read_only: Whether to read the journal as it is at this moment, whoever writes later.
            Nothing is created or locked.

    Raises:
        JournalError: The file cannot be opened or written, is no journal, has another schema, or
            is being written by another process.
    """

    def __init__(
        self, path: Path | str, *, must_exist: bool = False, read_only: bool = False
    ) -> None:
        self.path = Path(path)
        self._lock: Lock | None = None
        self._mutex = RLock()
        self._cache: dict[str, Any] = {}
        self._texts: dict[str, str] | None = None  # JSON of the latest value of each fact
        self._count = 0  # number of rows of facts
        self._rescued: Path | None = None
        if (must_exist or read_only) and not self.path.is_file():
            raise JournalError(
                f"journal {str(self.path)!r} does not exist; expected the folder that 'avtt audit "
                "--out' wrote (repeat that command if it ended before it wrote one)"
            )
        if not read_only and self.path.parent.is_file():
            raise JournalError(
                f"journal {str(self.path)!r} cannot be opened: expected a folder to write into, "
                f"got the file {str(self.path.parent)!r}; name another"
            )
        try:
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                refuse_other_names(self.path)
            self._db = connect_to_read(self.path) if read_only else connect(self.path)
            try:
                self._open(read_only)
            except BaseException:
                self.close()
                raise
        except (*DAMAGED, OSError) as error:
            raise JournalError(
                f"journal {str(self.path)!r} cannot be opened: {one_line(error)}"
            ) from None

    def _open(self, read_only: bool) -> None:
        """Lock the file or begin to read it, and read the end of its chain."""
        self._has_tables()  # refuses other files before anything is written next to them
        if not read_only:
            self._lock = Lock(self.path)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA foreign_keys=ON")
        else:
            self._db.execute("BEGIN")  # every read sees the moment of the first one
        self._created = self._has_tables()
        self._place = identity(self.path)
        last = self._read("SELECT link, seal FROM chain ORDER BY link DESC LIMIT 1")
        self._chain = Chain(str(last[0]["seal"]), int(last[0]["link"]) + 1) if last else Chain()

    def _has_tables(self) -> bool:
        """Return whether the tables were created.

        Raise JournalError for a file with anything but these tables, before any row is read. A
        view or a trigger could show other rows at every reading.
        """
        parts = self._db.query(LAYOUT).fetchmany(len(layout()) + 1)
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if parts and version == 0:
            raise JournalError(f"{str(self.path)!r} is a database, but not a journal")
        if version not in (0, VERSION):
            raise JournalError(
                f"journal {str(self.path)!r} has schema version {version}, and this program reads "
                f"{VERSION}: take the version of adaptive-vtt that began the audit"
            )
        if version and (len(parts) != len(layout()) or set(parts) != layout()):
            strange = [f"{kind} {name!r}" for kind, name, *_ in set(parts) - layout()]
            missing = [f"no {kind} {name!r}" for kind, name, *_ in layout() - set(parts)]
            got = (sorted(strange) or sorted(missing, reverse=True) or ["a table twice"])[0]
            raise JournalError(
                f"journal {str(self.path)!r}: expected the tables and indices of a journal as this "
                f"program makes them, got {got}; nothing was read: restore the journal from a copy"
            )
        return bool(parts)

    # -- writing -----------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[Step]:
        """Run one transaction, which is committed whole, or not at all with a JournalError."""
        self._cache.clear()
        try:
            self._db.execute("BEGIN IMMEDIATE")
            step = Step(self._db, Chain(self._chain.head, self._chain.length))
            try:
                if not self._created:
                    step.create_tables()
                yield step
                self._db.execute("COMMIT")
            except BaseException:  # an interrupt, too, must leave no transaction open
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            self._db.raise_interruption(error)
            raise JournalError(
                f"journal {str(self.path)!r} cannot be written: {one_line(error)}; "
                "nothing of this step was kept"
            ) from None
        self._chain, self._created = step.chain, True
        if self._rescued is not None:
            save_nearby(self._db, self.path, self._rescued)

    def set_facts(self, **facts: Any) -> None:
        texts = {name: json.dumps(value) for name, value in facts.items()}
        with self._reading():
            if self._texts is None:
                rows = self.fact_rows()
                self._texts, self._count = {row.name: row.value for row in rows}, len(rows)
            changed = {n: text for n, text in texts.items() if self._texts.get(n) != text}
            places = enumerate(changed.items(), self._count)
            self.add([FactRow(place, *fact) for place, fact in places])
            self._texts, self._count = self._texts | changed, self._count + len(changed)

    def add(self, rows: Sequence[Row]) -> None:
        if rows:
            self._db.check_owner()  # first: in a child, who held the mutex never lets it go
            with self._mutex, self._writing() as step:
                step.add(rows)

    # -- reading -----------------------------------------------------------------------

    @cached
    def facts(self) -> JsonObject:
        texts = {row.name: row.value for row in self.fact_rows()}
        return {name: parsed(text, f"facts, {name!r}") for name, text in texts.items()}

    @cached
    def fact_rows(self) -> list[FactRow]:
        rows = self._read("SELECT position, name, value FROM facts ORDER BY position")
        return [FactRow(**row) for row in rows]

    @cached
    def sources(self) -> list[SourceRow]:
        return self._rows_of(SourceRow, "source")

    @cached
    def judging(self) -> list[JudgingRow]:
        return self._rows_of(JudgingRow, "position")

    @cached
    def beliefs(self) -> list[BeliefRow]:
        return self._rows_of(BeliefRow, "draws")

    def draws(self, *, proposals: bool = True) -> list[DrawRow]:
        rows = self._draws()
        return [with_proposal(self, row) for row in rows] if proposals else rows

    @cached
    def _draws(self) -> list[DrawRow]:
        """Return all draws without their proposals."""
        moves: dict[int, list[MoveRow]] = {}
        for draw, *move in self._rows(_MOVES):
            moves.setdefault(draw, []).append(_move(draw, *move))
        rows = self._read(_DRAWS)
        for row in rows:
            row["why"] = parsed(row["why"], f"draws, row {row['draw']}, why", dict)
        return [
            DrawRow(**row, proposal=b"", moves=tuple(moves.get(row["draw"], []))) for row in rows
        ]

    def proposal(self, draw: int) -> bytes:
        rows = self._read(f"SELECT proposal FROM draws WHERE draw = {int(draw)}")
        if not rows:
            raise JournalError(f"journal {str(self.path)!r}: draw {draw} is missing")
        proposal: bytes = rows[0]["proposal"]
        return proposal

    @cached
    def calls(self) -> list[CallRow]:
        answers: dict[int, list[AnswerRow]] = {}
        for *row, details in self._rows(_ANSWERS):
            if details is not None:
                details = parsed(details, f"answers, question {row[0]}, details", dict)
            row.append(details)
            answers.setdefault(row[1], []).append(AnswerRow(*row))
        rows = self._read(
            "SELECT call, cost, unconfirmed, elapsed, reply FROM calls ORDER BY position"
        )
        return [CallRow(**row, answers=tuple(answers.get(row["call"], []))) for row in rows]

    @cached
    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        rows = self._read(
            "SELECT call, source, follow_up FROM pictures JOIN calls USING (call) ORDER BY position"
        )
        return {row["call"]: (row["source"], row["follow_up"]) for row in rows}

    def tally(self) -> Tally:
        """Return counts and costs quickly, without reading the rows."""
        rows = self._read(_TALLY)
        if not rows:
            return Tally(0, 0, 0, 0.0)
        return Tally(**rows[0])

    @cached
    def links(self) -> list[Link]:
        rows = self._read("SELECT kind, row, seal FROM chain ORDER BY link")
        return [Link(**row) for row in rows]

    @property
    def head(self) -> str:
        return self._chain.head

    def check_storage(self) -> None:
        faults = self._read("PRAGMA integrity_check(1)") + self._read("PRAGMA foreign_key_check")
        if self._created and faults != [{"integrity_check": "ok"}]:
            fault = " ".join(str(part) for part in faults[-1].values())
            raise JournalError(f"journal {str(self.path)!r} is damaged: {' '.join(fault.split())}")

    def _read(self, query: str) -> list[JsonObject]:
        """Return the rows of a query as column -> value; none if there are no tables yet."""
        with self._reading():
            cursor = self._db.query(query if self._created else "SELECT 1 WHERE 0")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def _rows_of(self, kind: Any, number: str) -> list[Any]:
        """Return the rows of the table of one kind, in the order of a column ``number``."""
        table, field = TABLES[kind], JSON_FIELD[kind]
        shape = dict if kind is BeliefRow else list
        rows = self._read(f"SELECT * FROM {table} ORDER BY {number}")
        for row in rows:
            value = parsed(row[field], f"{table}, row {row[number]}", shape)
            row[field] = tuple(value) if shape is list else value
        return [kind(**row) for row in rows]

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query one by one, as tuples: long tables are held once."""
        if self._created:
            yield from self._db.query(query)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Let one thread at a time read; raise JournalError for a damaged file."""
        self._db.check_owner()
        with self._mutex:
            try:
                yield
            except DAMAGED as error:
                if isinstance(error, sqlite3.Error):
                    self._db.raise_interruption(error)
                raise JournalError(
                    f"journal {str(self.path)!r} cannot be read: {one_line(error)}"
                ) from None

    # -- the file ----------------------------------------------------------------------

    def check_place(self) -> None:
        """Raise JournalError if the file was moved away from its path.

        Its content, and all that is written later, is saved in a new file next to it.
        """
        if self._rescued is None:
            if identity(self.path) == self._place:
                return
            self._rescued = save_nearby(self._db, self.path)
        raise JournalError(
            f"journal {str(self.path)!r} was deleted or replaced while it was being written; "
            f"all it held, {len(self.calls()) + len(self.sources())} answers, was saved as "
            f"{str(self._rescued)!r}: rename that to {self.path.name!r} and run 'avtt resume'"
        )

    def settle(self) -> None:
        """Move everything into the one file, so that it can be renamed."""
        mode = self._db.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
        if mode != "delete":
            raise sqlite3.OperationalError("another process reads it")

    def close(self) -> None:
        self._db.close()
        if self._lock is not None:
            self._lock.release()


def _move(draw: int, target: int, members: str, active: int, *figures: float) -> MoveRow:
    """Return a row of the table "moves"."""
    if active not in (0, 1):  # any other number would be read, and sealed, as 1
        where = f"journal: moves, draw {draw}, active of target {target}"
        raise damaged(where, "0 or 1", repr(active))
    where = f"moves, draw {draw}, members of target {target}"
    return MoveRow(target, tuple(parsed(members, where, list)), bool(active), figures)
