"""Labels on disk: a CSV file per inspector, replaced whole with every label that is given.

Columns: question (its number in the journal), object (as the captions name it), inspector,
error (yes or no), type (1.1, 1.2, 2.1, 2.2, 3; none without an error), time (ISO 8601).
"""

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..oracles.caption_rules import ERROR_TYPES
from ..utils.files import write_text
from ..utils.tables import csv_lines, original
from .items import NONE, Key

COLUMNS = ("question", "object", "inspector", "error", "type", "time")
_NAME = re.compile(r"\w[\w .-]{0,59}(?<![ .])")


@dataclass(frozen=True)
class Label:
    """What one inspector says of one object; ``type`` is NONE where there is no error."""

    question: int
    object: str
    inspector: str
    type: str
    time: datetime

    @property
    def key(self) -> Key:
        return self.question, self.object

    @property
    def error(self) -> bool:
        return self.type != NONE


Labels = dict[Key, Label]


def check_name(name: str, where: str = "--inspector") -> str:
    """``name``, where it can name a file; else raises InputError."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{where}: expected a name of up to 60 letters, digits and ' _.-', that begins with "
            f"a letter or digit, got {name!r}"
        )
    return name


def read_labels(path: Path) -> list[Label]:
    """The rows of one file. Raises InputError naming file, row (the header is 1) and field."""
    return [label for _, label in _placed(path)]


def _placed(path: Path) -> list[tuple[str, Label]]:
    """The rows of one file, each with where it stands; blank lines are passed over."""
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: expected a CSV file in UTF-8: {error}") from None
    if not rows or tuple(rows[0]) != COLUMNS:
        got = ",".join(rows[0]) if rows else "an empty file"
        raise InputError(f"{path}, row 1: expected {','.join(COLUMNS)}, got {got}")
    places = [(f"{path}, row {k}", row) for k, row in enumerate(rows[1:], 2) if row]
    return [(where, _label(row, where)) for where, row in places]


def read_folder(folder: Path) -> dict[str, Labels]:
    """Each inspector's labels, of ``folder``/NAME.csv; none where there is no such folder.

    Raises InputError for bad rows, for a row by somebody else, and for two of one object.
    """
    return {path.stem: _read_own(path) for path in sorted(folder.glob("*.csv"))}


def read_own(folder: Path, inspector: str) -> Labels:
    """One inspector's labels; none where there is no file yet. Raises as ``read_folder``."""
    path = folder / f"{check_name(inspector)}.csv"
    return _read_own(path) if path.exists() else {}


def keep(folder: Path, labels: Iterable[Label]) -> None:
    """Adds labels to their inspectors' files, in place of what stood there of the same object.

    Each file is replaced in one step: a crash leaves it as it was, or with all of them.
    """
    by_inspector: dict[str, Labels] = {}
    for label in labels:
        if label.inspector not in by_inspector:
            by_inspector[label.inspector] = read_own(folder, label.inspector)
        by_inspector[label.inspector][label.key] = label
    for inspector, found in by_inspector.items():
        write_text(folder / f"{inspector}.csv", to_csv(found.values()))


def later(folder: Path, labels: Iterable[Label]) -> list[Label]:
    """The ``labels`` that no file of ``folder`` holds yet, or holds with an earlier time."""
    stand = read_folder(folder)
    before = {(name, key): label.time for name, own in stand.items() for key, label in own.items()}
    known = [(label, before.get((label.inspector, label.key))) for label in labels]
    return [label for label, time in known if time is None or label.time > time]


def to_csv(labels: Iterable[Label]) -> str:
    """Labels as the text of a file."""
    return csv_lines([COLUMNS, *map(_cells, labels)])


def _cells(label: Label) -> tuple[Any, ...]:
    error = "yes" if label.error else "no"
    time = label.time.isoformat(timespec="milliseconds")
    return label.question, label.object, label.inspector, error, label.type, time


def check_known(labels: Mapping[Key, Label], known: Collection[Key], where: str) -> None:
    """Raises InputError for a label of something the audit did not judge."""
    for question, name in labels:
        if (question, name) not in known:
            raise InputError(
                f"{where}: question {question} of this audit has no object {name!r}; "
                "is the file of another audit?"
            )


def _read_own(path: Path) -> Labels:
    found: Labels = {}
    for where, label in _placed(path):
        if label.inspector != path.stem:
            raise InputError(
                f"{where}: inspector: expected {path.stem!r}, as the file is called, "
                f"got {label.inspector!r}"
            )
        if label.key in found:
            raise InputError(
                f"{where}: object: {label.object!r} of question {label.question} stands there twice"
            )
        found[label.key] = label
    return found


def _label(row: list[str], where: str) -> Label:
    if len(row) != len(COLUMNS):
        raise InputError(f"{where}: expected {len(COLUMNS)} fields, got {len(row)}")
    question, name, inspector, error, type, time = map(original, row)
    if not re.fullmatch(r"\d{1,18}", question):
        raise InputError(f"{where}: question: expected its number, got {question!r}")
    if not name:
        raise InputError(f"{where}: object: expected its name, got nothing")
    check_name(inspector, f"{where}: inspector")
    if error not in ("yes", "no"):
        raise InputError(f"{where}: error: expected yes or no, got {error!r}")
    allowed = [*ERROR_TYPES] if error == "yes" else [NONE]
    if type not in allowed:
        raise InputError(
            f"{where}: type: expected {' or '.join(allowed)} where error is {error}, got {type!r}"
        )
    return Label(int(question), name, inspector, type, read_time(time, where))


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
