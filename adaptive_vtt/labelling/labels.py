"""Labels on disk: a CSV file per inspector, replaced whole with every label that is given.

Columns: question (its number in the journal), object (as the captions name it), inspector,
error (yes or no), type (1.1, 1.2, 2.1, 2.2, 3; none without an error), time (ISO 8601).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..errors import InputError
from ..oracles.caption_rules import ERROR_TYPES
from .answer_files import AnswerFiles, read_time
from .items import NONE, Key

COLUMNS = ("question", "object", "inspector", "error", "type", "time")


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
    def person(self) -> str:
        return self.inspector

    @property
    def error(self) -> bool:
        return self.type != NONE


Labels = dict[Key, Label]


def check_known(labels: Iterable[Label], known: Collection[Key], where: str) -> None:
    """Raises InputError for a label of something the audit did not judge."""
    for label in labels:
        if label.key not in known:
            raise InputError(
                f"{where}: question {label.question} of this audit has no object "
                f"{label.object!r}; is the file of another audit?"
            )


def _label(key: Key, inspector: str, cells: Sequence[str], where: str) -> Label:
    error, type, time = cells
    if not key[1]:
        raise InputError(f"{where}: object: expected its name, got nothing")
    if error not in ("yes", "no"):
        raise InputError(f"{where}: error: expected yes or no, got {error!r}")
    allowed = [*ERROR_TYPES] if error == "yes" else [NONE]
    if type not in allowed:
        raise InputError(
            f"{where}: type: expected {' or '.join(allowed)} where error is {error}, got {type!r}"
        )
    return Label(*key, inspector, type, read_time(time, where))


def _cells(label: Label) -> tuple[str, str]:
    return "yes" if label.error else "no", label.type


FILES = AnswerFiles(COLUMNS, _label, _cells)
read_labels, read_folder, read_own = FILES.read, FILES.read_folder, FILES.read_own
keep, later, to_csv = FILES.keep, FILES.later, FILES.to_csv
