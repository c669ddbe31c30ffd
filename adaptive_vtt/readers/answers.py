"""People's answers on disk: a CSV file per reader, replaced whole with every answer that is given.

Columns: card (its number), question (what is asked of it), reader, answer, time (ISO 8601).
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..errors import InputError
from ..labelling.labels import check_name, read_time
from ..utils.files import write_text
from ..utils.tables import csv_lines, original
from .cards import UNSURE, Asked, Key

COLUMNS = ("card", "question", "reader", "answer", "time")
MOST_WORDS = 2000
"""Characters of an answer in words, at most."""


@dataclass(frozen=True)
class Given:
    """What one reader answered to one question of one card."""

    card: int
    question: str
    reader: str
    answer: str
    time: datetime

    @property
    def key(self) -> Key:
        return self.card, self.question


Answers = dict[Key, Given]


def read_file(path: Path) -> list[Given]:
    """The rows of one file. Raises InputError naming file, row (the header is 1) and field."""
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: expected a CSV file in UTF-8: {error}") from None
    if not rows or tuple(rows[0]) != COLUMNS:
        got = ",".join(rows[0]) if rows else "an empty file"
        raise InputError(f"{path}, row 1: expected {','.join(COLUMNS)}, got {got}")
    return [_given(row, f"{path}, row {k}") for k, row in enumerate(rows[1:], 2) if row]


def read_own(folder: Path, reader: str) -> Answers:
    """One reader's answers; none where there is no file yet. Raises InputError for bad rows, for a
    row by somebody else, and for two answers to one question."""
    path = folder / f"{check_name(reader)}.csv"
    found: Answers = {}
    for given in read_file(path) if path.exists() else ():
        if given.reader != reader:
            raise InputError(
                f"{path}: reader: expected {reader!r}, as the file is called, got {given.reader!r}"
            )
        if given.key in found:
            raise InputError(
                f"{path}: question {given.question!r} of card {given.card} is answered twice"
            )
        found[given.key] = given
    return found


def read_folder(folder: Path) -> dict[str, Answers]:
    """Each reader's answers, of ``folder``/NAME.csv; raises as ``read_own``."""
    return {path.stem: read_own(folder, path.stem) for path in sorted(folder.glob("*.csv"))}


def keep(folder: Path, given: Iterable[Given]) -> None:
    """Adds answers to their readers' files, in place of what stood there; each file is replaced in
    one step."""
    by_reader: dict[str, Answers] = {}
    for one in given:
        if one.reader not in by_reader:
            by_reader[one.reader] = read_own(folder, one.reader)
        by_reader[one.reader][one.key] = one
    for reader, own in by_reader.items():
        write_text(folder / f"{reader}.csv", to_csv(own.values()))


def later(folder: Path, given: Iterable[Given]) -> list[Given]:
    """The answers that no file of ``folder`` holds yet, or holds with an earlier time."""
    stand = read_folder(folder)
    before = {(name, key): one.time for name, own in stand.items() for key, one in own.items()}
    known = [(one, before.get((one.reader, one.key))) for one in given]
    return [one for one, time in known if time is None or one.time > time]


def to_csv(given: Iterable[Given]) -> str:
    """Answers as the text of a file."""
    rows = (
        (g.card, g.question, g.reader, g.answer, g.time.isoformat(timespec="milliseconds"))
        for g in given
    )
    return csv_lines([COLUMNS, *rows])


def check_known(given: Iterable[Given], known: Mapping[Key, Asked], where: str) -> None:
    """Raises InputError for an answer to what was not asked, and for one that is no choice."""
    for one in given:
        asked = known.get(one.key)
        if asked is None:
            raise InputError(
                f"{where}: card {one.card} of this audit has no question {one.question!r}; is the "
                "file of another audit, or of another kind of reading?"
            )
        if asked.choices and one.answer not in (*asked.choices, UNSURE):
            raise InputError(
                f"{where}: card {one.card}, {one.question!r}: expected "
                f"{', '.join(asked.choices)} or {UNSURE}, got {one.answer!r}"
            )


def _given(row: list[str], where: str) -> Given:
    if len(row) != len(COLUMNS):
        raise InputError(f"{where}: expected {len(COLUMNS)} fields, got {len(row)}")
    card, question, reader, answer, time = map(original, row)
    if not re.fullmatch(r"\d{1,18}", card):
        raise InputError(f"{where}: card: expected its number, got {card!r}")
    check_name(reader, f"{where}: reader")
    if not answer.strip() or len(answer) > MOST_WORDS:
        raise InputError(
            f"{where}: answer: expected 1 to {MOST_WORDS} characters, got {len(answer)}"
        )
    return Given(int(card), question, reader, answer, read_time(time, where))
