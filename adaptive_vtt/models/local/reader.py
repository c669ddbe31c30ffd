"""Answers that a person gave on a page of ``avtt label``: the CSV file, and its replay as a model.

A row is one answer: card (the picture, by a hash that does not tell its name), question, reader,
answer, time (ISO 8601 with its zone).
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import InputError
from ...types import Answer, CallMode, Prompt, Unanswered, Value
from ...utils.files import as_file, regular, why_unread
from ...utils.tables import check_width, original, restored
from ..base import ModelDefaults

COLUMNS = ("card", "question", "reader", "answer", "time")
YES, NO, UNSURE = "yes", "no", "unsure"
"""Answers by button: the first two are P(yes) of 1 and 0, the third is Unanswered."""
CLASS = "class of the picture"
"""The one question about a picture that is of exactly one class; its answer is a class."""
MAX_WORDS = 2000
"""Characters of an answer in words, at most."""
NAME = r"\w[\w .-]{0,59}(?<![ .])"
"""A reader's name, which names a file."""


def check_name(name: str, where: str) -> str:
    """Return ``name``; raise InputError where it cannot name a file."""
    if not re.fullmatch(NAME, name):
        raise InputError(
            f"{where}: expected a name of up to 60 letters, digits and ' _.-', that begins with "
            f"a letter or digit, got {name!r}"
        )
    return name


def card_id(sample: str, relation: str, severity: int) -> str:
    """Return the name of a picture in files of answers."""
    text = f"{sample}\0{relation}\0{severity}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def read_rows(path: Path, what: str, *, only: Sequence[str] = (), **options: Any) -> pd.DataFrame:
    """Return the rows of a CSV, cells of all columns, or of ``only`` some, without the marks that
    `utils.tables` writes against formulas. Raise InputError, which names ``what`` the rows are,
    where they cannot be read."""
    check_width(path)
    try:
        rows = pd.read_csv(as_file(path), **options)
        if not only:
            return restored(rows)
        return rows.assign(**{c: rows[c].map(original) for c in only if c in rows})
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path}: cannot read {what}: {why_unread(path, error)}") from None


def read_answers(path: Path) -> pd.DataFrame:
    """Return the rows of a file, the later of two answers to one question.

    Raises:
        InputError: The file cannot be read, or a row (the header is 1) has a bad field.
    """
    rows = read_rows(path, "answers", dtype=str, keep_default_na=False, encoding="utf-8-sig")
    rows = rows.fillna("")
    if [*rows] != [*COLUMNS]:
        raise InputError(
            f"{path}: expected the columns {','.join(COLUMNS)}, got {','.join(map(str, rows))}"
        )
    zoned = rows["time"].str.fullmatch(r".+(Z|[+-]\d\d:\d\d)")
    times = pd.to_datetime(rows["time"].where(zoned), format="ISO8601", utc=True, errors="coerce")
    checks = {
        "reader": (rows["reader"].str.fullmatch(NAME), "a name of up to 60 letters and digits"),
        "answer": (rows["answer"].str.strip().str.len().between(1, MAX_WORDS), "1 to 2000 letters"),
        "time": (times.notna(), "a time with its zone, such as 2024-05-31T12:00:00Z"),
    }
    for column, (fine, expected) in checks.items():
        if not fine.all():
            row = int(fine.argmin())
            got = rows[column][row]
            raise InputError(f"{path}, row {row + 2}: {column}: expected {expected}, got {got!r}")
    return latest(rows)


def is_of_reader(path: Path) -> bool:
    """Return whether a file begins with the header of a reader's answers."""
    try:
        with open(path, encoding="utf-8-sig", opener=regular) as file:
            return file.readline(200).strip() == ",".join(COLUMNS)
    except (OSError, UnicodeDecodeError):
        return False


def latest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the latest answer of each reader to each question."""
    ordered = rows.sort_values(
        "time", key=lambda t: pd.to_datetime(t, format="ISO8601", utc=True), kind="stable"
    )
    return ordered.drop_duplicates(["card", "question", "reader"], keep="last")


class Replayed(ModelDefaults, ABC):
    """Model whose answers were recorded."""

    needs_image = False
    takes_words = True

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    @abstractmethod
    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        """Return what was recorded for a prompt."""


_VALUES: Mapping[str | None, Value] = {
    None: Unanswered("not recorded"),
    UNSURE: Unanswered("the reader cannot tell"),
    YES: 1.0,
    NO: 0.0,
}
"""What an answer by button says, and none; any other is words."""


class RecordedReader(Replayed):
    """Model that gives one person's ``answers``, as ``read_answers`` returns them.

    A question that the person did not answer, or could not tell, is Unanswered. ``per_call``: None
    is "all" where a picture has several questions, else "one".
    """

    def __init__(self, answers: pd.DataFrame, *, per_call: CallMode | None = None) -> None:
        names = answers["reader"].unique().tolist()
        if len(names) != 1:
            raise InputError(f"recorded answers: expected those of one reader, got {len(names)}")
        several = answers["card"].duplicated().any() or (answers["question"] == CLASS).any()
        self.answers: CallMode = per_call or ("all" if several else "one")
        self.name = f"reader {names[0]}"
        keys = zip(answers["card"], answers["question"], strict=True)
        self._answers = dict(zip(keys, answers["answer"], strict=True))

    def content(self) -> str:
        """Return a short hash of all answers: other answers are another model."""
        text = repr(sorted(self._answers.items()))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _answer(self, prompt: Prompt) -> Answer:
        card = card_id(prompt.sample_id, prompt.relation, prompt.severity)
        chosen = self._answers.get((card, CLASS))
        if chosen is not None and chosen != UNSURE:
            return Answer(tuple(float(concept == chosen) for concept in prompt.concepts))
        answers = [chosen or self._answers.get((card, concept)) for concept in prompt.concepts]
        return Answer(tuple(_VALUES.get(answer, answer or "") for answer in answers))
