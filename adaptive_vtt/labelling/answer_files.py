"""Answers of people on disk: a CSV file per person, replaced whole with every answer given.

The first three columns are a number, a text, which are what is asked about, and the person's name;
the last is a time (ISO 8601). Those between are of the kind of answer.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ..errors import InputError
from ..utils.files import write_text
from ..utils.tables import csv_lines, original

Key = tuple[int, str]
"""What is asked about: a number and a text."""
_NAME = re.compile(r"\w[\w .-]{0,59}(?<![ .])")


class Given(Protocol):
    """What one person answered to one thing."""

    @property
    def key(self) -> Key: ...

    @property
    def person(self) -> str: ...

    @property
    def time(self) -> datetime: ...


One = TypeVar("One", bound=Given)


def check_name(name: str, where: str = "--inspector") -> str:
    """``name``, where it can name a file; else raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{where}: expected a name of up to 60 letters, digits and ' _.-', that begins with "
            f"a letter or digit, got {name!r}"
        )
    return name


def read_time(text: str, where: str) -> datetime:
    """A time with its zone; raises InputError for anything else, naming ``where`` it stands."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InputError(
            f"{where}: time: expected one as 2024-05-31T12:00:00Z, with its zone, got {text!r}"
        )
    return time


@dataclass(frozen=True)
class AnswerFiles(Generic[One]):
    """Files of one kind of answer. ``columns``: the header; ``made``: an answer of its key, the
    person, the cells after those and where they stand; ``cells``: those between person and time.
    """

    columns: Sequence[str]
    made: Callable[[Key, str, Sequence[str], str], One]
    cells: Callable[[One], Sequence[str]]

    def read(self, path: Path) -> list[One]:
        """The rows of one file. Raises InputError naming file, row (the header is 1) and field."""
        return [given for _, given in self._placed(path)]

    def read_own(self, folder: Path, person: str) -> dict[Key, One]:
        """One person's answers; none where there is no file yet. Raises as ``read_folder``."""
        path = folder / f"{check_name(person)}.csv"
        return self._own(path) if path.exists() else {}

    def read_folder(self, folder: Path) -> dict[str, dict[Key, One]]:
        """Each person's answers, of ``folder``/NAME.csv; none where there is no such folder.

        Raises InputError for bad rows, for a row by somebody else, and for two of one thing.
        """
        return {path.stem: self._own(path) for path in sorted(folder.glob("*.csv"))}

    def keep(self, folder: Path, given: Iterable[One]) -> None:
        """Adds answers to their people's files, in place of what stood there of the same thing.

        Each file is replaced in one step: a crash leaves it as it was, or with all of them.
        """
        by_person: dict[str, dict[Key, One]] = {}
        for one in given:
            if one.person not in by_person:
                by_person[one.person] = self.read_own(folder, one.person)
            by_person[one.person][one.key] = one
        for person, own in by_person.items():
            write_text(folder / f"{person}.csv", self.to_csv(own.values()))

    def later(self, folder: Path, given: Iterable[One]) -> list[One]:
        """The answers that no file of ``folder`` holds yet, or holds with an earlier time; by time,
        so that of two to one thing ``keep`` keeps the later."""
        stand = self.read_folder(folder)
        before = {(name, key): one.time for name, own in stand.items() for key, one in own.items()}
        ordered = sorted(given, key=lambda one: one.time)
        known = [(one, before.get((one.person, one.key))) for one in ordered]
        return [one for one, time in known if time is None or one.time > time]

    def to_csv(self, given: Iterable[One]) -> str:
        """Answers as the text of a file."""
        rows = (
            (*g.key, g.person, *self.cells(g), g.time.isoformat(timespec="milliseconds"))
            for g in given
        )
        return csv_lines([self.columns, *rows])

    def _placed(self, path: Path) -> list[tuple[str, One]]:
        """The rows of one file, each with where it stands; blank lines are passed over."""
        try:
            rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: expected a CSV file in UTF-8: {error}") from None
        if not rows or rows[0] != [*self.columns]:
            got = ",".join(rows[0]) if rows else "an empty file"
            raise InputError(f"{path}, row 1: expected {','.join(self.columns)}, got {got}")
        places = [(f"{path}, row {k}", row) for k, row in enumerate(rows[1:], 2) if row]
        return [(where, self._row(row, where)) for where, row in places]

    def _row(self, row: Sequence[str], where: str) -> One:
        if len(row) != len(self.columns):
            raise InputError(f"{where}: expected {len(self.columns)} fields, got {len(row)}")
        number, name, person, *rest = map(original, row)
        if not re.fullmatch(r"\d{1,18}", number):
            raise InputError(f"{where}: {self.columns[0]}: expected its number, got {number!r}")
        check_name(person, f"{where}: {self.columns[2]}")
        return self.made((int(number), name), person, rest, where)

    def _own(self, path: Path) -> dict[Key, One]:
        found: dict[Key, One] = {}
        about, name, who = self.columns[:3]
        for where, given in self._placed(path):
            if given.person != path.stem:
                raise InputError(
                    f"{where}: {who}: expected {path.stem!r}, as the file is called, "
                    f"got {given.person!r}"
                )
            if given.key in found:
                number, text = given.key
                raise InputError(
                    f"{where}: {name}: {text!r} of {about} {number} stands there twice"
                )
            found[given.key] = given
        return found
