"""Answers of one model of a pair whose other was not heard yet, in a file beside the journal.

A pair is one call: it is journaled once both models answered. What the first said is paid for by
then, so it is kept here at once; an audit that goes on after a crash gives it back instead of
asking again.
"""

import json
import sqlite3
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import JournalError, one_line
from ..types import Answer, Prompt, Unanswered
from .answer_json import from_json, to_json

Said = Answer | Unanswered


def key_of(sample: str, relation: str, severity: int, concepts: tuple[str, ...]) -> str:
    """What a prompt is told by."""
    return json.dumps([sample, relation, severity, list(concepts)])


class HalfStore:
    """The halves in the file ``path``, made where there is none.

    ``about``: which models and questions; what the file holds of others is not given back.
    ``answered``: keys of the prompts whose pairs are journaled; what the file holds of them is
    let go. Raises JournalError for a file that is none of ours.
    """

    def __init__(self, path: Path, about: str, answered: Collection[str] = ()) -> None:
        self._lock = threading.Lock()
        self._about = about
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS halves (about TEXT, side TEXT, prompt TEXT, said TEXT,"
                " cost REAL, PRIMARY KEY (about, side, prompt))"
            )
            wanted = "SELECT side, prompt, said, cost FROM halves WHERE about = ?"
            rows = self._file.execute(wanted, (about,)).fetchall()
            done = [(about, prompt) for _, prompt, _, _ in rows if prompt in answered]
            self._file.executemany("DELETE FROM halves WHERE about = ? AND prompt = ?", done)
        except sqlite3.Error as error:
            raise JournalError(
                f"{path}: expected the answers of an interrupted pair, got something else "
                f"({one_line(error)}); move it away to go on, and what it held is asked again"
            ) from None
        self._left = {(s, p): (said, cost) for s, p, said, cost in rows if p not in answered}

    def take(self, side: str, prompt: Prompt) -> Said | None:
        """What that model said, until the pair is whole."""
        found = self._left.get((side, _key(prompt)))
        if found is None:
            return None
        said, cost = found
        values: Any = json.loads(said)
        if isinstance(values, str):
            return Unanswered(values, cost)
        return Answer(tuple(from_json(v, "halves") for v in values), cost)

    def keep(self, side: str, prompt: Prompt, said: Said) -> None:
        """On the disk when this returns."""
        whole = said.reason if isinstance(said, Unanswered) else [to_json(v) for v in said.values]
        row = (self._about, side, _key(prompt), json.dumps(whole), said.cost)
        with self._lock:
            self._file.execute("INSERT OR REPLACE INTO halves VALUES (?, ?, ?, ?, ?)", row)
        self._left[side, row[2]] = row[3:]

    def done(self, prompt: Prompt) -> None:
        """Both were heard: who asks again, as canaries do, is to hear what is said now."""
        for side in ("a", "b"):
            self._left.pop((side, _key(prompt)), None)

    def close(self) -> None:
        with self._lock:
            self._file.close()


class KnownAnswers:
    """Model A's ``answers`` by key, from an earlier audit: never asked again, and free. What else
    was heard of either model is with ``rest``."""

    def __init__(self, answers: Mapping[str, Said], rest: HalfStore | None = None) -> None:
        self._answers, self._rest = answers, rest

    def take(self, side: str, prompt: Prompt) -> Said | None:
        known = self._answers.get(_key(prompt)) if side == "a" else None
        if known is not None or self._rest is None:
            return known
        return self._rest.take(side, prompt)

    def keep(self, side: str, prompt: Prompt, said: Said) -> None:
        if self._rest is not None and not (side == "a" and _key(prompt) in self._answers):
            self._rest.keep(side, prompt, said)

    def done(self, prompt: Prompt) -> None:
        if self._rest is not None:
            self._rest.done(prompt)


def _key(prompt: Prompt) -> str:
    return key_of(prompt.sample_id, prompt.relation, prompt.severity, prompt.concepts)
