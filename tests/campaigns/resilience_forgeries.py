"""Damage and forgery: flipped bytes, edited rows, facts and results. ``avtt verify`` must notice.

An edit that leaves every table as it was (a flip in unused space) may pass; any other must end
with exit code 2 and a sentence.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_vtt.audit import Audit
from adaptive_vtt.experiments.program import Row
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

from . import resilience_audits as audits
from .resilience_audits import ASKED, Kind
from .resilience_kills import row

BUDGET = 24
UNDECIDED = "losses forged in an audit that goes on: gate notices"
MAX_FLIPS = 8
"""Bytes that are flipped at a time."""


@dataclass(frozen=True)
class Forgery:
    """A named edit of a run folder; ``make`` returns False if it has nothing to edit."""

    name: str
    make: Callable[[Path], bool]


def honest_runs(folder: Path, most: int) -> list[Path]:
    """Return finished audits to damage: certificates with pictures, and with source answers."""
    runs = []
    for kind in (audits.everything(), consistent())[:most]:
        spec = audits.write_folder(folder / "honest", kind, budget=BUDGET)
        runs.append(folder / f"honest-{kind.name}")
        audits.quietly(["audit", str(spec), "--out", str(runs[-1])], **{ASKED: f"{spec}.log"})
    return runs


def consistent() -> Kind:
    return next(kind for kind in audits.python_kinds() if kind.oracle == "consistency")


def forgeries(folder: Path, flips: int, every: int, rng: np.random.Generator) -> list[Row]:
    """``flips`` random flips, and every ``every``-th single forgery, of two finished audits.

    One flip is of one audit alone.
    """
    scratch, found = folder / "forged", dict[str, list[tuple[Forgery, str]]]()
    runs = honest_runs(folder, flips)
    for run in runs:
        kinds = {
            "bytes flipped in the journal": [flip(rng) for _ in range(flips // len(runs))],
            "facts forged": [*facts(run)][::every],
            "cells forged, rows deleted": [*cells(run, rng)][::every],
            "fields of result.json forged": [*results(run)][::every],
            "tables replaced": [*schemas()],
        }
        for what, forged in kinds.items():
            tried = [(f, faults(f, run, scratch)) for f in forged]
            found.setdefault(what, []).extend((f, seen) for f, seen in tried if seen != "nothing")
    gates = [(forgery, gated(forgery, folder / "open", scratch)) for forgery in of_losses()]
    return [*(_row(what, tried) for what, tried in found.items()), _row(UNDECIDED, gates)]


def of_losses() -> Iterator[Forgery]:
    """Return forgeries that make wrong answers right, with seals and without."""
    right = _sql("UPDATE answers SET loss = 0 WHERE loss > 0")
    yield Forgery("losses of 0", right)
    unsealed = _sql("DELETE FROM chain WHERE kind = 'call'")
    yield Forgery("losses of 0, without seals", lambda run: right(run) and unsealed(run))


def gated(forgery: Forgery, run: Path, scratch: Path) -> str:
    """Return the reaction of ``avtt gate`` to a forged, open audit: noticed, passed, crashed."""
    if not run.exists():
        space = QuestionSpace(tiny_dataset(60, 2), ["identity", "brightness_up"])
        model = ScriptedModel()
        given: dict[str, Any] = {"half_width": 0.05, "targets": ["overall"], "seed": 1}
        with Audit(space, model, journal=run / "journal.db", **given) as audit:
            for _ in range(BUDGET):
                (call,) = audit.ask()
                audit.tell(call, model.ask([call.prompt])[0])
    return faults(forgery, run, scratch, ["gate", str(scratch), "--rule", "overall <= 0.99"])


def _row(what: str, tried: list[tuple[Forgery, str]]) -> Row:
    lost = [f"{forgery.name} {seen}" for forgery, seen in tried if seen != "noticed"]
    return row(f"{what}: verify notices", len(tried), len(lost), "; ".join(lost))


def faults(forgery: Forgery, run: Path, scratch: Path, command: Sequence[str] = ()) -> str:
    """Return the fate of a forgery of a copy: noticed, passed, crashed, or nothing to notice."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(run, scratch)
    before = content(scratch)
    if not forgery.make(scratch) or content(scratch) == before:
        return "nothing"
    ended = audits.ran(command or ["verify", str(scratch)])
    if ended.crashed or ended.hung:
        return "crashed"
    return "noticed" if ended.code == 2 else "passed"


def content(run: Path) -> Any:
    """Return all content of the journal and result.json; None for an unreadable journal."""
    result = run / "result.json"
    stated = result.read_text("utf-8") if result.exists() else ""  # an open audit has none
    try:
        with audits.copied(run / "journal.db") as db:
            tables = [(n, db.execute(f'SELECT * FROM "{n}"').fetchall()) for n in audits.names(db)]
            tables.append(("sqlite_master", db.execute("SELECT * FROM sqlite_master").fetchall()))
            return stated, repr(tables), db.execute("PRAGMA integrity_check").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        return None


# -- what is forged ---------------------------------------------------------------------------


def flip(rng: np.random.Generator) -> Forgery:
    """Flip a few random bits of the journal's file."""

    def make(run: Path) -> bool:
        data = bytearray((run / "journal.db").read_bytes())
        for place in rng.integers(0, len(data), int(rng.integers(1, MAX_FLIPS + 1))):
            data[place] ^= 1 << int(rng.integers(0, 8))
        (run / "journal.db").write_bytes(data)
        return True

    return Forgery("flip", make)


def facts(run: Path) -> Iterator[Forgery]:
    """Return edits of every leaf of every fact, one at a time, and removals of every fact.

    Lists count by their first entry, as the others are alike.
    """
    with audits.copied(run / "journal.db") as db:
        stated = db.execute("SELECT name, value FROM facts").fetchall()
    found = [(name, json.loads(value)) for name, value in stated]
    for name, value in found:
        yield Forgery(f"without {name}", _sql("DELETE FROM facts WHERE name = ?", name))
        for path in leaves(value):
            text = json.dumps(edited(value, path))
            yield Forgery(
                ".".join([name, *map(str, path)]),
                _sql("UPDATE facts SET value = ? WHERE name = ?", text, name),
            )


def results(run: Path) -> Iterator[Forgery]:
    """Return edits of every leaf of result.json, one at a time."""
    stated = json.loads((run / "result.json").read_text("utf-8"))
    for path in leaves(stated):

        def make(forged: Path, path: tuple[Any, ...] = path) -> bool:
            (forged / "result.json").write_text(json.dumps(edited(stated, path)))
            return True

        yield Forgery(".".join(map(str, path)), make)


def cells(run: Path, rng: np.random.Generator) -> Iterator[Forgery]:
    """Return edits of one cell of every column of every table, and of one row of each."""
    with audits.copied(run / "journal.db") as db:
        for table in audits.names(db):
            count = db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
            if not count:
                continue
            place = int(rng.integers(count))
            yield Forgery(f"a row of {table}", _row_edit(table, place, None))
            for column in audits.columns(db, table):
                yield Forgery(f"{table}.{column}", _row_edit(table, place, column))


def schemas() -> Iterator[Forgery]:
    """Return tables that change at every reading, or never end, and triggers of writes."""
    kept = "ALTER TABLE {0} RENAME TO kept"
    for table, column in (("facts", "value"), ("answers", "loss"), ("draws", "why")):
        view = f"CREATE VIEW {table} AS SELECT * FROM kept WHERE random() % 9 OR {column} IS NULL"
        yield Forgery(f"{table}: a view", _script(kept.format(table), view))
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    names = "i AS source, i AS answers, i AS cost, i AS unconfirmed, i AS elapsed, i AS reply"
    view = f"CREATE VIEW sources AS SELECT {names} FROM ({endless})"
    yield Forgery("sources: an endless view", _script(kept.format("sources"), view))
    yield Forgery("a virtual table", _script("CREATE VIRTUAL TABLE words USING fts5(word)"))
    trigger = "CREATE TRIGGER later AFTER INSERT ON facts BEGIN DELETE FROM calls; END"
    yield Forgery("a trigger", _script(trigger))


def _edit(change: Callable[[sqlite3.Connection], bool]) -> Callable[[Path], bool]:
    """Return the function that applies ``change`` to the journal of a run."""

    def make(run: Path) -> bool:
        with closing(sqlite3.connect(run / "journal.db")) as db, db:
            return change(db)

    return make


def _script(*statements: str) -> Callable[[Path], bool]:
    return _edit(lambda db: all([db.execute(statement) for statement in statements]))


def _sql(statement: str, *values: Any) -> Callable[[Path], bool]:
    return _edit(lambda db: db.execute(statement, values).rowcount > 0)


def _row_edit(table: str, place: int, column: str | None) -> Callable[[Path], bool]:
    """Return an edit of one cell of the row at ``place``, or one that deletes the row."""

    def change(db: sqlite3.Connection) -> bool:
        names = audits.columns(db, table)
        old = db.execute(f'SELECT * FROM "{table}" LIMIT 1 OFFSET ?', (place,)).fetchone()
        where = " AND ".join(f'"{name}" IS ?' for name in names)
        if column is None:
            db.execute(f'DELETE FROM "{table}" WHERE {where}', old)
            return True
        new = changed(old[names.index(column)])
        db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE {where}', (new, *old))
        return True

    return _edit(change)


# -- small changes ----------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the paths to all values but objects and lists; of lists, only into the first entry."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list) and value:
        yield from leaves(value[0], (*path, 0))
    else:
        yield path


def edited(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a copy of ``value`` with another value at ``path``."""
    if not path:
        return changed(value)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = edited(value[path[0]], path[1:])
    return copy


def changed(value: Any) -> Any:
    """Return another value of the same kind, near the old one."""
    kinds: dict[type, Callable[[Any], Any]] = {
        bool: lambda old: not old,
        int: lambda old: old + 1_000_003,
        float: lambda old: old * 0.9 + 0.01,
        bytes: lambda old: bytes([old[0] ^ 1]) + old[1:] if old else b"\0",
        str: lambda old: old[:-1] + ("b" if old.endswith("a") else "a"),
        list: lambda old: [1],
        dict: lambda old: {"x": 1},
        type(None): lambda old: 0.5,
    }
    return kinds[type(value)](value)
