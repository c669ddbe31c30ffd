"""The ledger of draws and answers, in SQLite or in memory.

Whatever is reported can be recomputed from it alone. A draw is committed before its call is
sent; an answer is committed, whole, before anything is learnt from it. The journal is also
the cache: a call that stands here is never paid for again.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from .errors import JournalError, one_line
from .rows import AnswerRow, CallRow, DrawRow, MoveRow, SourceRow, seal_call, seal_draw, seal_source
from .values import parsed

VERSION = 3
FIGURES = 15
"""Numbers per move; the columns of "moves" after the first four."""
SCHEMA = """
CREATE TABLE facts (          -- the audit's settings, its space, and how it ended; JSON
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
CREATE TABLE draws (          -- one random choice each, written before its call is sent
  draw INTEGER PRIMARY KEY,   -- 0, 1, 2 ...
  question INTEGER NOT NULL,  -- the question drawn
  call INTEGER NOT NULL UNIQUE,
  sample TEXT NOT NULL,       -- the source image's id
  learned INTEGER NOT NULL,   -- how many draws had been learnt from when the law was made
  probability REAL NOT NULL,  -- of the question drawn
  law BLOB NOT NULL,          -- all probabilities above zero (law.py)
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
CREATE TABLE seals (          -- a hash of each draw and each call, chained; 'avtt verify' checks
  row TEXT PRIMARY KEY,       -- "draw 0", "call 17"
  seal TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE calls (          -- one paid answer each
  position INTEGER PRIMARY KEY,  -- order of commit
  call INTEGER NOT NULL UNIQUE REFERENCES draws (call),
  cost REAL NOT NULL,
  elapsed REAL NOT NULL
);
CREATE TABLE answers (        -- one row per question that a call answered
  question INTEGER PRIMARY KEY,
  call INTEGER NOT NULL REFERENCES calls (call),
  truth INTEGER,              -- expected: 0 or 1; NULL where unknown (not judged)
  answer REAL,                -- P(yes), a mask's score, 1 for right words; NULL: unanswered
  unanswered TEXT,            -- why there is no answer, or why it is excluded; else NULL
  loss REAL,                  -- 0..1; NULL where the truth is unknown
  coordinate REAL,            -- a = (P(yes) + truth) / 2; NULL without answer or truth
  said TEXT,                  -- the answer in words, where the model gives words
  details TEXT                -- what else the oracle found in it; JSON
);
CREATE INDEX answers_by_call ON answers (call);
CREATE TABLE sources (        -- answers about source images, where the oracle needs them
  source INTEGER PRIMARY KEY, -- which sample, concept and version: see sourcing.py
  answers TEXT NOT NULL,      -- one per concept sent, JSON (values.py)
  cost REAL NOT NULL,
  elapsed REAL NOT NULL
);
CREATE TABLE pictures (       -- PNGs of some calls that went wrong, for the report
  call INTEGER PRIMARY KEY REFERENCES calls (call),
  source BLOB NOT NULL,
  follow_up BLOB NOT NULL
);
"""


class Journal(Protocol):
    """What the engine writes and reads. Every write is whole or not at all."""

    def facts(self) -> dict[str, Any]:
        """All facts by name."""

    def set_facts(self, **facts: Any) -> None:
        """Writes or replaces facts; values must fit JSON."""

    def add_draws(self, rows: list[DrawRow]) -> None:
        """Commits draws. Raises JournalError for one that stands there already."""

    def add_calls(self, rows: list[CallRow]) -> None:
        """Commits answered calls, each with all its answers."""

    def add_sources(self, rows: list[SourceRow]) -> None:
        """Commits answers about source images, each once."""

    def sources(self) -> list[SourceRow]:
        """All answers about source images, by number."""

    def draws(self) -> list[DrawRow]:
        """All draws, in order."""

    def calls(self) -> list[CallRow]:
        """All answered calls in the order of their commit, without pictures."""

    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        """Source and follow-up PNG by call."""

    def seals(self) -> dict[str, str]:
        """The seal of every draw, call and source, by name ("draw 0", "call 17", "source 3")."""

    def close(self) -> None:
        """Releases the file; the journal cannot be used after."""


class MemoryJournal:
    """A journal that goes when the process goes; behaves as SQLiteJournal does."""

    def __init__(self) -> None:
        self._facts: dict[str, Any] = {}
        self._draws: dict[int, DrawRow] = {}
        self._calls: dict[int, CallRow] = {}
        self._sources: dict[int, SourceRow] = {}
        self._seals: dict[str, str] = {}

    def facts(self) -> dict[str, Any]:
        return dict(self._facts)

    def set_facts(self, **facts: Any) -> None:
        self._facts.update(json.loads(json.dumps(facts)))

    def add_draws(self, rows: list[DrawRow]) -> None:
        used = {r.call for r in self._draws.values()}
        for row in rows:
            if row.draw in self._draws or row.call in used:
                raise JournalError(f"journal: draw {row.draw} (call {row.call}) stands there")
            used.add(row.call)
        if len({r.draw for r in rows}) < len(rows):
            raise JournalError("journal: the same draw twice in one write")
        for row in rows:
            self._draws[row.draw] = row
            self._seals[f"draw {row.draw}"] = seal_draw(row, self._seals)

    def add_calls(self, rows: list[CallRow]) -> None:
        drawn = {r.call for r in self._draws.values()}
        answered = {a.question for c in self._calls.values() for a in c.answers}
        new: dict[int, CallRow] = {}
        for row in rows:
            questions = [a.question for a in row.answers]
            repeated = answered.intersection(questions) or len(set(questions)) < len(questions)
            if row.call not in drawn or row.call in self._calls or row.call in new or repeated:
                raise JournalError(f"journal: call {row.call} was not drawn, or stands there")
            new[row.call] = row
            answered.update(questions)
        self._calls.update(new)
        for row in rows:
            draw = next(d.draw for d in self._draws.values() if d.call == row.call)
            self._seals[f"call {row.call}"] = seal_call(row, draw, self._seals)

    def add_sources(self, rows: list[SourceRow]) -> None:
        numbers = [r.source for r in rows]
        if self._sources.keys() & numbers or len(set(numbers)) < len(numbers):
            raise JournalError(f"journal: one of sources {numbers} stands there")
        for row in rows:
            kept = replace(row, answers=tuple(json.loads(json.dumps(row.answers))))
            self._sources[row.source] = kept
            self._seals[f"source {row.source}"] = seal_source(kept)

    def sources(self) -> list[SourceRow]:
        return [self._sources[s] for s in sorted(self._sources)]

    def draws(self) -> list[DrawRow]:
        return [self._draws[d] for d in sorted(self._draws)]

    def calls(self) -> list[CallRow]:
        return [
            CallRow(c.call, c.cost, c.elapsed, tuple(sorted(c.answers, key=lambda a: a.question)))
            for c in self._calls.values()
        ]

    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        return {c.call: c.pictures for c in self._calls.values() if c.pictures is not None}

    def seals(self) -> dict[str, str]:
        return dict(self._seals)

    def close(self) -> None:
        pass


class SQLiteJournal:
    """A journal in one SQLite file, in WAL mode, every commit synced to disk.

    Raises JournalError where the file cannot be opened or written, is no journal, or was
    written by a newer version.
    """

    def __init__(self, path: Path | str, *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.is_file():
            raise JournalError(f"journal {str(self.path)!r} does not exist")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._open()
        except (sqlite3.Error, OSError) as error:
            raise JournalError(
                f"journal {str(self.path)!r} cannot be opened: {one_line(error)}"
            ) from None

    def _open(self) -> None:
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise JournalError(
                f"journal {str(self.path)!r} has schema version {version}, newer than the "
                f"{VERSION} this program knows: update adaptive-vtt"
            )
        if tables and version == 0:
            raise JournalError(f"{str(self.path)!r} is a database, but not a journal")
        if tables and version < VERSION:
            raise JournalError(
                f"journal {str(self.path)!r} has schema version {version}, and this program "
                f"reads {VERSION}: finish the audit with the version that began it"
            )
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("PRAGMA foreign_keys=ON")
        if not tables:
            self._db.executescript(f"BEGIN;{SCHEMA}PRAGMA user_version={VERSION};COMMIT;")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it, or nothing and a JournalError."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:  # an interrupt, too, must leave no transaction open
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise JournalError(
                f"journal {str(self.path)!r} cannot be written: {one_line(error)}; "
                "nothing of this step was kept"
            ) from None

    def facts(self) -> dict[str, Any]:
        rows = self._read("SELECT name, value FROM facts")
        return {name: parsed(value, f"facts, {name!r}") for name, value in rows}

    def set_facts(self, **facts: Any) -> None:
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        with self._writing() as db:
            db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def add_draws(self, rows: list[DrawRow]) -> None:
        values = [
            (r.draw, r.question, r.call, r.sample, r.learned, r.probability, r.law,
             json.dumps(r.why), r.elapsed)
            for r in rows
        ]  # fmt: skip
        if not rows:
            return
        with self._writing() as db:
            db.executemany("INSERT INTO draws VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            db.executemany(
                f"INSERT INTO moves VALUES ({', '.join('?' * (4 + FIGURES))})",
                [
                    (r.draw, m.target, json.dumps(m.members), m.active, *m.figures)
                    for r in rows
                    for m in r.moves
                ],
            )
            seals = {f"draw {rows[0].draw - 1}": self._seal_of(db, f"draw {rows[0].draw - 1}")}
            for row in rows:
                seals[f"draw {row.draw}"] = seal_draw(row, seals)
                self._add_seal(db, f"draw {row.draw}", seals[f"draw {row.draw}"])

    def add_calls(self, rows: list[CallRow]) -> None:
        with self._writing() as db:
            for row in rows:
                db.execute(
                    "INSERT INTO calls (call, cost, elapsed) VALUES (?, ?, ?)",
                    (row.call, row.cost, row.elapsed),
                )
                db.executemany(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [(*list(vars(a).values())[:-1], _text(a.details)) for a in row.answers],
                )
                if row.pictures is not None:
                    db.execute("INSERT INTO pictures VALUES (?, ?, ?)", (row.call, *row.pictures))
                (draw,) = db.execute(
                    "SELECT draw FROM draws WHERE call = ?", (row.call,)
                ).fetchone()
                seals = {f"draw {draw}": self._seal_of(db, f"draw {draw}")}
                self._add_seal(db, f"call {row.call}", seal_call(row, draw, seals))

    def add_sources(self, rows: list[SourceRow]) -> None:
        with self._writing() as db:
            for row in rows:
                values = (row.source, json.dumps(row.answers), row.cost, row.elapsed)
                db.execute("INSERT INTO sources VALUES (?, ?, ?, ?)", values)
                self._add_seal(db, f"source {row.source}", seal_source(row))

    def sources(self) -> list[SourceRow]:
        rows = self._read("SELECT * FROM sources ORDER BY source")
        found = [(r[0], parsed(r[1], f"sources, row {r[0]}", list), *r[2:]) for r in rows]
        return [SourceRow(number, tuple(said), *rest) for number, said, *rest in found]

    def draws(self) -> list[DrawRow]:
        moves: dict[int, list[MoveRow]] = {}
        for draw, target, members, active, *figures in self._read(
            "SELECT * FROM moves ORDER BY draw, target"
        ):
            of = parsed(members, f"moves, draw {draw}, members of target {target}", list)
            row = MoveRow(target, tuple(of), bool(active), tuple(figures))
            moves.setdefault(draw, []).append(row)
        rows = self._read("SELECT * FROM draws ORDER BY draw")
        why = [parsed(r[7], f"draws, row {r[0]}, why", dict) for r in rows]
        return [
            DrawRow(*(*r[:7], said, r[8], tuple(moves.get(r[0], []))))
            for r, said in zip(rows, why, strict=True)
        ]

    def calls(self) -> list[CallRow]:
        answers: dict[int, list[AnswerRow]] = {}
        for row in self._read("SELECT * FROM answers ORDER BY question"):
            where = f"answers, question {row[0]}, details"
            details = None if row[8] is None else parsed(row[8], where, dict)
            answers.setdefault(row[1], []).append(replace(AnswerRow(*row[:8]), details=details))
        rows = self._read("SELECT call, cost, elapsed FROM calls ORDER BY position")
        return [CallRow(*(*r, tuple(answers.get(r[0], [])))) for r in rows]

    def pictures(self) -> dict[int, tuple[bytes, bytes]]:
        rows = self._read(
            "SELECT call, source, follow_up FROM pictures JOIN calls USING (call) ORDER BY position"
        )
        return {call: (source, follow_up) for call, source, follow_up in rows}

    def seals(self) -> dict[str, str]:
        return dict(self._read("SELECT row, seal FROM seals"))

    def _seal_of(self, db: sqlite3.Connection, row: str) -> str:
        found = db.execute("SELECT seal FROM seals WHERE row = ?", (row,)).fetchone()
        return str(found[0]) if found else ""

    def _add_seal(self, db: sqlite3.Connection, row: str, seal: str) -> None:
        db.execute("INSERT INTO seals VALUES (?, ?)", (row, seal))

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query).fetchall()
        except sqlite3.Error as error:
            raise JournalError(
                f"journal {str(self.path)!r} cannot be read: {one_line(error)}"
            ) from None

    def close(self) -> None:
        with closing(self._db):
            pass


def _text(details: Mapping[str, Any] | None) -> str | None:
    return None if details is None else json.dumps(details)


def open_journal(where: Path | str | Journal | None) -> Journal:
    """A journal as given, at a path, or in memory where ``where`` is None."""
    if where is None:
        return MemoryJournal()
    if isinstance(where, str | Path):
        return SQLiteJournal(where)
    return where
