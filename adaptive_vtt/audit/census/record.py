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
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...errors import JournalError
from ...journal.files import Lock
from ...journal.rows import AnswerRow
from ...types import Floats, Indices, Truths

SEAL = 16
"""Bytes per seal, as of a journal's."""
TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batch (number INTEGER PRIMARY KEY, answers BLOB NOT NULL, seal TEXT NOT NULL);
"""


class Columns(NamedTuple):
    """The n judged questions of a batch, (n,) each: ``answer`` is NaN and ``unanswered`` says why
    where there is none ("" elsewhere); ``loss`` is NaN where the question does not count; ``said``:
    words, or ""."""

    question: Indices
    truth: Truths
    answer: Floats
    loss: Floats
    unanswered: npt.NDArray[np.str_]
    said: npt.NDArray[np.str_]

    @classmethod
    def of(cls, rows: Sequence[AnswerRow]) -> "Columns":
        """Those of the rows that were judged."""
        judged = [row for row in rows if row.loss is not None]
        return cls(
            np.array([row.question for row in judged], np.int64),
            np.array([row.truth for row in judged], np.int8),
            np.array([row.answer for row in judged], float),
            np.array([np.nan if row.excluded else row.loss for row in judged], float),
            np.array([row.unanswered or "" for row in judged], str),
            np.array([row.said or "" for row in judged], str),
        )


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

    def add(self, judged: Columns) -> None:
        """Keeps a batch for good."""
        answers = _packed(judged)
        seal = _seal(self.head, answers)
        with self._database:
            self._database.execute(
                "INSERT INTO batch VALUES (?, ?, ?)", (self.batches, answers, seal)
            )
        self.batches, self.head = self.batches + 1, seal

    def answers(self) -> pd.DataFrame:
        """One row per judged question, as it was asked; columns as ``Columns`` has them."""
        parts = [*self._parts()] or [Columns.of([])]
        return pd.DataFrame(
            {name: np.concatenate([getattr(p, name) for p in parts]) for name in Columns._fields}
        )

    def _parts(self) -> Iterator[Columns]:
        for (answers,) in self._database.execute("SELECT answers FROM batch ORDER BY number"):
            with closing(np.load(io.BytesIO(answers), allow_pickle=False)) as arrays:
                yield Columns(*(arrays[name] for name in Columns._fields))

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


def _packed(judged: Columns) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **judged._asdict())
    return file.getvalue()
