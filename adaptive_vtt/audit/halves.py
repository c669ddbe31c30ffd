"""Answers of one model of a pair whose other was not heard yet, in a file beside the journal.

A pair is one call: it is journaled once both models answered. What the first said is paid for by
then, so it is kept here at once; an audit that goes on after a crash gives it back instead of
asking again.
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
from ..types import Answer, Prompt, Unanswered

Said = Answer | Unanswered
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers (about TEXT, side TEXT, prompt TEXT, time INTEGER,"
    " said TEXT, cost REAL, unconfirmed REAL, reply TEXT, PRIMARY KEY (about, side, prompt, time))"
)


def key_of(sample: str, relation: str, severity: int, concepts: tuple[str, ...]) -> str:
    """What a prompt is told by."""
    return json.dumps([sample, relation, severity, list(concepts)])


class HalfStore:
    """The halves in the file ``path``, made where there is none; None: in memory.

    ``about``: which models and questions; what the file holds of others is not given back.
    ``answered``: key of a prompt -> how many pairs of it are journaled, repeat probes among them;
    what the file holds of those is let go. Raises JournalError for a file that is none of ours.
    """

    def __init__(
        self, path: Path | None, about: str, answered: Mapping[str, int] | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._about, self._path = about, path
        self._whole = Counter(answered or {})
        self._left: dict[tuple[str, str], Said] = {}
        try:
            self._file = _opened(path)
            self._recall()
        except (sqlite3.Error, OSError, AvttError, ValueError, TypeError, RecursionError) as error:
            raise JournalError(
                f"{path}: expected the answers of an interrupted pair, got something else "
                f"({one_line(error)}); move it away to go on, and what it held is asked again"
            ) from None

    def take(self, side: str, prompt: Prompt) -> Said | None:
        """What that model said, until the pair is whole."""
        return self._left.get((side, _key(prompt)))

    def keep(self, side: str, prompt: Prompt, said: Said) -> None:
        """On the disk when this returns. Raises JournalError where it cannot be written."""
        key = _key(prompt)
        whole = said.reason if isinstance(said, Unanswered) else [to_json(v) for v in said.values]
        paid = said.cost, said.unconfirmed, said.reply
        row = (self._about, side, key, self._whole[key], json.dumps(whole), *paid)
        try:
            with self._lock:
                self._file.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                )
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: cannot be written: {one_line(error)}") from None
        self._left[side, key] = said

    def done(self, prompt: Prompt) -> None:
        """Both were heard: who asks again, as repeat probes do, is to hear what is said now."""
        key = _key(prompt)
        self._whole[key] += 1
        for side in ("a", "b"):
            self._left.pop((side, key), None)

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _recall(self) -> None:
        """Reads what is not journaled yet, the oldest of each prompt, and lets go of the rest."""
        wanted = (
            "SELECT side, prompt, time, said, cost, unconfirmed, reply FROM answers "
            "WHERE about = ? ORDER BY time"
        )
        gone = []
        for side, key, time, said, *paid in self._file.execute(wanted, (self._about,)).fetchall():
            if time < self._whole[key]:
                gone.append((self._about, key, time))
            else:
                self._left.setdefault((side, key), _read(said, paid, key))
        drop = "DELETE FROM answers WHERE about = ? AND prompt = ? AND time = ?"
        self._file.executemany(drop, gone)


class KnownAnswers:
    """Model A's ``answers`` by key, from an earlier audit: free, and taken once each, so that a
    repeat probe hears A anew. What else was heard of either model is with ``rest``.

    ``answered``: as for ``HalfStore``.
    """

    def __init__(
        self,
        answers: Mapping[str, Said],
        rest: HalfStore,
        answered: Mapping[str, int] | None = None,
    ) -> None:
        self._answers = {key: said for key, said in answers.items() if key not in (answered or {})}
        self._rest = rest

    def take(self, side: str, prompt: Prompt) -> Said | None:
        known = self._answers.get(_key(prompt)) if side == "a" else None
        return self._rest.take(side, prompt) if known is None else known

    def keep(self, side: str, prompt: Prompt, said: Said) -> None:
        if not (side == "a" and _key(prompt) in self._answers):
            self._rest.keep(side, prompt, said)

    def done(self, prompt: Prompt) -> None:
        self._answers.pop(_key(prompt), None)
        self._rest.done(prompt)


def _opened(path: Path | None) -> sqlite3.Connection:
    if path is None:
        path = Path(":memory:")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_other_names(path)
    file = connect(path)
    file.execute("PRAGMA synchronous=FULL")
    file.execute(_TABLE)
    made = file.query("SELECT name, sql FROM sqlite_master").fetchmany(3)
    if made != [
        ("answers", _TABLE.replace("IF NOT EXISTS ", "")),
        ("sqlite_autoindex_answers_1", None),
    ]:
        raise ValueError(f"the tables {[name for name, _ in made]}")
    return file


def _read(said: Any, paid: list[Any], key: str) -> Said:
    """What ``keep`` wrote; raises ValueError, TypeError or JournalError for anything else."""
    if not all(isinstance(cost, float) and 0 <= cost < math.inf for cost in paid[:2]):
        raise ValueError(f"a cost of {paid!r}")
    if not isinstance(paid[2], str):
        raise ValueError("a reply that is no text")
    values = json.loads(said)
    if isinstance(values, str):
        return Unanswered(values, *paid)
    if not isinstance(values, list) or len(values) != len(json.loads(key)[3]):
        raise ValueError("answers to other questions")
    return Answer(tuple(from_json(value, "halves") for value in values), *paid)


def _key(prompt: Prompt) -> str:
    return key_of(prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts)
