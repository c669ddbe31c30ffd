"""File of answers of one model of a pair whose other model has not answered yet.

A pair is one call, which is journaled once both models answered. The first answer is paid for
before that, so it is kept here, and an audit that resumes after a crash takes it from here.
"""

import json
import math
import sqlite3
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import AvttError, JournalError, one_line
from ..journal.answer_json import from_json, to_json
from ..journal.files import connect, refuse_other_names
from ..models.pair import Halves, Reply
from ..types import Answer, Prompt, Unanswered

_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (about TEXT, side TEXT, prompt TEXT, time INTEGER,"
    " said TEXT, cost REAL, unconfirmed REAL, reply TEXT, PRIMARY KEY (about, side, prompt, time))"
)
_MADE = [("answers", _TABLE.replace("IF NOT EXISTS ", "")), ("sqlite_autoindex_answers_1", None)]


def key_of(sample: str, relation: str, severity: int, concepts: tuple[str, ...]) -> str:
    """Return the text that identifies a prompt."""
    return json.dumps([sample, relation, severity, list(concepts)])


class HalfStore(Halves):
    """Store of answers that wait for the other model's.

    Args:
        path: The file, created if missing; None for memory.
        about: Identifies models and questions; answers stored about others are not returned.
        answered: Key of a prompt -> number of its pairs in the journal, repeat probes included.
            Answers in the file that are part of those are deleted.
        known: Key of a prompt -> model A's answer in an earlier audit. Each is free and taken once,
            so that a repeat probe asks A again.

    Raises:
        JournalError: The file is not of this kind.
    """

    def __init__(
        self,
        path: Path | None,
        about: str,
        answered: Mapping[str, int] | None = None,
        known: Mapping[str, Reply] | None = None,
    ) -> None:
        self._lock, self._about, self._path = threading.Lock(), about, path
        self._whole = Counter(answered or {})
        self._left: dict[tuple[str, str], Reply] = {}
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                refuse_other_names(path)
            self._file = connect(path or Path(":memory:"))
            self._file.execute("PRAGMA synchronous=FULL")
            self._file.execute(_TABLE)
            tables = self._file.query("SELECT name, sql FROM sqlite_master").fetchmany(3)
            if tables != _MADE:
                raise ValueError(f"the tables {[name for name, _ in tables]}")
            self._recall()
        except (sqlite3.Error, OSError, AvttError, ValueError, TypeError, RecursionError) as error:
            raise JournalError(
                f"{path}: expected the answers of an interrupted pair, got something else "
                f"({one_line(error)}); move it away to continue, and its answers are asked again"
            ) from None
        fresh = {key: reply for key, reply in (known or {}).items() if key not in self._whole}
        self._left |= {("a", key): reply for key, reply in fresh.items()}

    def take(self, side: str, prompt: Prompt) -> Reply | None:
        """Return the answer of one model, until the pair is complete."""
        return self._left.get((side, _key(prompt)))

    def keep(self, side: str, prompt: Prompt, reply: Reply) -> None:
        """Write an answer to the disk. Raise JournalError if that fails."""
        key = _key(prompt)
        if self._left.get((side, key)) is reply:
            return  # it was taken from here
        values = [*map(to_json, reply.values)] if isinstance(reply, Answer) else reply.reason
        paid = json.dumps(values), reply.cost, reply.unconfirmed, reply.reply
        row = (self._about, side, key, self._whole[key], *paid)
        try:
            with self._lock:
                self._file.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                )
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: cannot be written: {one_line(error)}") from None
        self._left[side, key] = reply

    def done(self, prompt: Prompt) -> None:
        """Drop the answers to a prompt that both models answered: a repeat probe asks again."""
        key = _key(prompt)
        self._whole[key] += 1
        for side in ("a", "b"):
            self._left.pop((side, key), None)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _recall(self) -> None:
        """Read the oldest answer to each prompt that is not journaled, and delete the others."""
        query = (
            "SELECT side, prompt, time, said, cost, unconfirmed, reply FROM answers "
            "WHERE about = ? ORDER BY time"
        )
        journaled = []
        for side, key, time, values, *paid in self._file.execute(query, (self._about,)).fetchall():
            if time < self._whole[key]:
                journaled.append((self._about, key, time))
            else:
                self._left.setdefault((side, key), _read(values, paid, key))
        drop = "DELETE FROM answers WHERE about = ? AND prompt = ? AND time = ?"
        self._file.executemany(drop, journaled)


def _read(stored: Any, paid: list[Any], key: str) -> Reply:
    """Return an answer that ``keep`` wrote; raise for anything else."""
    *costs, reply = paid
    if not all(isinstance(cost, float) and 0 <= cost < math.inf for cost in costs):
        raise ValueError(f"a cost of {paid!r}")
    if not isinstance(reply, str):
        raise ValueError("a reply that is no text")
    values = json.loads(stored)
    if isinstance(values, str):
        return Unanswered(values, *paid)
    if not isinstance(values, list) or len(values) != len(json.loads(key)[3]):
        raise ValueError("answers to other questions")
    return Answer(tuple(from_json(value, "halves") for value in values), *paid)


def _key(prompt: Prompt) -> str:
    return key_of(prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts)
