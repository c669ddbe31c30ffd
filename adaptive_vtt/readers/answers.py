"""People's answers on disk: a CSV file per reader, replaced whole with every answer that is given.

Columns: card (its number), question (what is asked of it), reader, answer, time (ISO 8601).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..errors import InputError
from ..labelling.answer_files import AnswerFiles, read_time
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

    @property
    def person(self) -> str:
        return self.reader


Answers = dict[Key, Given]


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
        if asked.choices and one.answer not in (*asked.choices, UNSURE):
            raise InputError(
                f"{where}: card {one.card}, {one.question!r}: expected "
                f"{', '.join(asked.choices)} or {UNSURE}, got {one.answer!r}"
            )


def _given(key: Key, reader: str, cells: Sequence[str], where: str) -> Given:
    answer, time = cells
    if not answer.strip() or len(answer) > MOST_WORDS:
        raise InputError(
            f"{where}: answer: expected 1 to {MOST_WORDS} characters, got {len(answer)}"
        )
    return Given(*key, reader, answer, read_time(time, where))


FILES = AnswerFiles(COLUMNS, _given, lambda given: (given.answer,))
read_file, read_folder, read_own = FILES.read, FILES.read_folder, FILES.read_own
keep, later, to_csv = FILES.keep, FILES.later, FILES.to_csv
