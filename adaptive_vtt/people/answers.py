"""People's answers on disk: a CSV file per person, replaced whole with every answer that is given.

Columns: card (its number), question (what is asked of it), reader, answer, time (ISO 8601).
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..errors import InputError
from ..utils.files import write_text
from ..utils.tables import csv_lines, original
from .cards import Asked, Key

COLUMNS = ("card", "question", "reader", "answer", "time")
MAX_WORDS = 2000
"""Characters of an answer in words, at most."""
_NAME = re.compile(r"\w[\w .-]{0,59}(?<![ .])")


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


def check_name(name: str, where: str = "--reader") -> str:
    """``name``, where it can name a file; else raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{where}: expected a name of up to 60 letters, digits and ' _.-', that begins with "
            f"a letter or digit, got {name!r}"
        )
    return name


def by_question(readers: Mapping[str, Answers]) -> dict[Key, list[str]]:
    """What was answered to each question, by whomever."""
    said: dict[Key, list[str]] = {}
    for own in readers.values():
        for key, given in own.items():
            said.setdefault(key, []).append(given.answer)
    return said


def check_known(given: Iterable[Given], known: Mapping[Key, Asked], where: str) -> None:
    """Raises InputError for an answer to what was not asked, and for one that is no choice."""
    for one in given:
        asked = known.get(one.key)
        if asked is None:
            raise InputError(
                f"{where}: card {one.card} of this audit has no question {one.question!r}; is the "
                "file of another audit, or of another kind of reading?"
            )
        if asked.choices and one.answer not in asked.answers:
            raise InputError(
                f"{where}: card {one.card}, {one.question!r}: expected "
                f"{', '.join(asked.answers[:-1])} or {asked.answers[-1]}, got {one.answer!r}"
            )


# -- files -------------------------------------------------------------------------------------


def read_file(path: Path) -> list[Given]:
    """The rows of one file. Raises InputError naming file, row (the header is 1) and field."""
    return [given for _, given in _placed(path)]


def read_own(folder: Path, reader: str) -> Answers:
    """One reader's answers; none where there is no file yet. Raises as ``read_folder``."""
    path = folder / f"{check_name(reader)}.csv"
    return _own(path) if path.exists() else {}


def read_folder(folder: Path) -> dict[str, Answers]:
    """Each reader's answers, of ``folder``/NAME.csv; none where there is no such folder.

    Raises InputError for bad rows, for a row by somebody else, and for two of one thing.
    """
    return {path.stem: _own(path) for path in sorted(folder.glob("*.csv"))}


def keep(folder: Path, given: Iterable[Given]) -> None:
    """Adds answers to their readers' files, in place of what stood there of the same thing.

    Each file is replaced in one step: a crash leaves it as it was, or with all of them.
    """
    by_reader: dict[str, Answers] = {}
    for one in given:
        if one.reader not in by_reader:
            by_reader[one.reader] = read_own(folder, one.reader)
        by_reader[one.reader][one.key] = one
    for reader, own in by_reader.items():
        write_text(folder / f"{reader}.csv", to_csv(own.values()))


def later(folder: Path, given: Iterable[Given]) -> list[Given]:
    """The answers that no file of ``folder`` holds yet, or holds with an earlier time; by time, so
    that of two to one thing ``keep`` keeps the later."""
    stand = read_folder(folder)
    before = {(name, key): one.time for name, own in stand.items() for key, one in own.items()}
    known = [(g, before.get((g.reader, g.key))) for g in sorted(given, key=lambda g: g.time)]
    return [g for g, time in known if time is None or g.time > time]


def to_csv(given: Iterable[Given]) -> str:
    """Answers as the text of a file."""
    rows = ((*g.key, g.reader, g.answer, g.time.isoformat(timespec="milliseconds")) for g in given)
    return csv_lines([COLUMNS, *rows])


def _placed(path: Path) -> list[tuple[str, Given]]:
    """The rows of one file, each with where it stands; blank lines are passed over."""
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: expected a CSV file in UTF-8: {error}") from None
    if not rows or rows[0] != [*COLUMNS]:
        got = ",".join(rows[0]) if rows else "an empty file"
        raise InputError(f"{path}, row 1: expected {','.join(COLUMNS)}, got {got}")
    places = [(f"{path}, row {k}", row) for k, row in enumerate(rows[1:], 2) if row]
    return [(where, _given(row, where)) for where, row in places]


def _given(row: Sequence[str], where: str) -> Given:
    if len(row) != len(COLUMNS):
        raise InputError(f"{where}: expected {len(COLUMNS)} fields, got {len(row)}")
    number, question, reader, answer, time = map(original, row)
    if not re.fullmatch(r"\d{1,18}", number):
        raise InputError(f"{where}: card: expected its number, got {number!r}")
    check_name(reader, f"{where}: reader")
    if not answer.strip() or len(answer) > MAX_WORDS:
        raise InputError(
            f"{where}: answer: expected 1 to {MAX_WORDS} characters, got {len(answer)}"
        )
    return Given(int(number), question, reader, answer, _time(time, where))


def _time(text: str, where: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InputError(
            f"{where}: time: expected one as 2024-05-31T12:00:00Z, with its zone, got {text!r}"
        )
    return time


def _own(path: Path) -> Answers:
    found: Answers = {}
    for where, given in _placed(path):
        if given.reader != path.stem:
            raise InputError(
                f"{where}: reader: expected {path.stem!r}, as the file is called, "
                f"got {given.reader!r}"
            )
        if given.key in found:
            raise InputError(
                f"{where}: question: {given.question!r} of card {given.card} stands there twice"
            )
        found[given.key] = given
    return found
