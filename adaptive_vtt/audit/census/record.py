"""What a census was answered, in one file: a row per batch, each sealed with all before it.

A batch is committed as a whole once its last answer is judged. Of a census that was killed, the
batch that was on its way is asked again; models of a census cost nothing.
"""

import hashlib
import io
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from ...errors import JournalError
from ...journal.files import Lock
from ...journal.rows import AnswerRow

RECORD = "census.db"
"""What the record is called in a run folder."""
SEAL = 16
"""Bytes per seal, as of a journal's."""
TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batch (number INTEGER PRIMARY KEY, answers BLOB NOT NULL, seal TEXT NOT NULL);
"""
COLUMNS = ("question", "truth", "answer", "loss", "unanswered", "said")


class Record:
    """``facts``: what the census is of, as JSON; ``batches``: how many are known; ``head``: the
    last seal, which follows from everything.

    Raises JournalError for a file that is no record, is of another census, is being written, or was
    altered.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise JournalError(f"{path}: expected a file of its own, got a link or a folder")
        self._lock = Lock(path)
        try:
            self._database = sqlite3.connect(path)
            self._begin(facts)
            self.batches, self.head = 0, _seal("", json.dumps(facts, sort_keys=True).encode())
            for answers, seal in self._database.execute(
                "SELECT answers, seal FROM batch ORDER BY number"
            ):
                self.head = _seal(self.head, answers)
                if seal != self.head:
                    raise JournalError(
                        f"{path}: batch {self.batches} was altered after it was written; restore "
                        "the file from a copy, or begin anew elsewhere"
                    )
                self.batches += 1
        except sqlite3.DatabaseError as error:
            self.close()
            raise JournalError(f"{path}: expected the record of a census ({error})") from None
        except JournalError:
            self.close()
            raise

    def _begin(self, facts: Mapping[str, Any]) -> None:
        if not self._database.execute("SELECT name FROM sqlite_master").fetchall():
            self._database.executescript(TABLES)
            rows = [(name, json.dumps(value)) for name, value in facts.items()]
            with self._database:
                self._database.executemany("INSERT INTO fact VALUES (?, ?)", rows)
        there = dict(self._database.execute("SELECT name, value FROM fact"))
        for name, value in facts.items():
            if there.get(name) != json.dumps(value):
                raise JournalError(
                    f"{self.path}: holds a census of another {name} ({there.get(name)}, now "
                    f"{json.dumps(value)}); another --out begins a new one"
                )

    def add(self, rows: Sequence[AnswerRow]) -> None:
        """Keeps a batch for good."""
        answers = _packed(rows)
        seal = _seal(self.head, answers)
        with self._database:
            self._database.execute(
                "INSERT INTO batch VALUES (?, ?, ?)", (self.batches, answers, seal)
            )
        self.batches, self.head = self.batches + 1, seal

    def answers(self) -> pd.DataFrame:
        """One row per judged question, as it was asked: COLUMNS. ``answer`` is NaN and
        ``unanswered`` says why where there is none; ``loss`` is NaN where it does not count."""
        parts = [*self._parts()]
        if not parts:
            return pd.DataFrame({name: [] for name in COLUMNS})
        return pd.DataFrame({name: np.concatenate([p[name] for p in parts]) for name in COLUMNS})

    def _parts(self) -> Iterator[dict[str, Any]]:
        for (answers,) in self._database.execute("SELECT answers FROM batch ORDER BY number"):
            with closing(np.load(io.BytesIO(answers), allow_pickle=False)) as arrays:
                yield {name: arrays[name] for name in COLUMNS}

    def close(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _seal(before: str, content: bytes) -> str:
    return hashlib.blake2b(before.encode() + content, digest_size=SEAL).hexdigest()


def _packed(rows: Sequence[AnswerRow]) -> bytes:
    """The judged rows of a batch, a column each."""
    judged = [row for row in rows if row.loss is not None]
    columns: dict[str, Any] = {
        "question": np.array([row.question for row in judged], np.int64),
        "truth": np.array([row.truth for row in judged], np.int8),
        "answer": np.array([row.answer for row in judged], float),
        "loss": np.array([np.nan if row.excluded else row.loss for row in judged], float),
        "unanswered": np.array([row.unanswered or "" for row in judged], str),
        "said": np.array([row.said or "" for row in judged], str),
    }
    file = io.BytesIO()
    np.savez_compressed(file, **columns)
    return file.getvalue()
