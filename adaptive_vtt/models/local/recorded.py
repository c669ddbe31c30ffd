"""Models that replay recorded answers: of a model, of a captioner, or of a person.

The answers of a person, from a page of ``avtt label``, are in a CSV of their own form. Each row is
one answer: card (a hash that stands for the picture and hides its name), question, reader, answer,
time (ISO 8601 with a time zone).
"""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from ...datasets.base import Dataset
from ...errors import InputError
from ...relations.base import Variant
from ...types import IDENTITY, Answer, CallMode, Floats, Prompt, Unanswered, Value
from ...utils.files import reads, regular, text_in
from ...utils.options import Option, at_base
from ...utils.table_text import delimited
from ...utils.tables import original, restored
from ..base import ModelDefaults

KEYS = ("sample", "relation", "severity")
CAPTION_COLUMNS = (*KEYS, "caption")
COLUMNS = ("card", "question", "reader", "answer", "time")
YES, NO, UNSURE = "yes", "no", "unsure"
"""A reader's answers by button: P(yes) of 1, of 0, and Unanswered. Any other answer is a text."""
CLASS = "class of the picture"
"""The only question about a picture with exactly one class; its answer is the name of a class."""
MAX_WORDS = 2000
"""Maximum number of characters of a reader's answer in words."""
NAME = r"\w[\w .-]{0,59}(?<![ .])"
"""Pattern of a reader's name, which is also the name of a file."""
RECORDED = (
    "CSV with sample, relation, severity, one column per concept; a reader's CSV, as 'avtt label "
    "--questions' takes it; of captions a CSV or JSON with the column caption"
)
MISSING = Unanswered("not recorded")
_VALUES: Mapping[str | None, Value] = {
    None: MISSING,
    UNSURE: Unanswered("the reader is unsure"),
    YES: 1.0,
    NO: 0.0,
}


class Replayed(ModelDefaults, ABC):
    """Model whose answers were recorded."""

    needs_image = False
    takes_words = True

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    @abstractmethod
    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        """Return what was recorded for a prompt."""


class Recorded(Replayed):
    """Model that gives recorded P(yes).

    Args:
        answers: One row per image, one column per concept, with P(yes) or NaN. The columns
            ``sample``, ``relation`` and ``severity`` name the image. Without ``sample`` the index
            names it; without ``relation`` each row is about a source image (identity, severity 0).
            Images without a row, and NaN, are Unanswered.
        per_call: Concepts that one call answers: "all" or "one".
        name: Name in errors, journals and reports.

    Raises:
        InputError: A value is outside [0, 1], or a row repeats.
    """

    def __init__(
        self, answers: pd.DataFrame, *, per_call: CallMode = "all", name: str = "recorded"
    ) -> None:
        self.answers, self.name = per_call, name
        table = answers.reset_index(names="sample") if "sample" not in answers else answers
        table = table.assign(
            relation=table.get("relation", "identity"), severity=table.get("severity", 0)
        )
        values = table[[column for column in table if column not in KEYS]]
        self._columns = {str(column): place for place, column in enumerate(values)}
        self._values = _probabilities(values)
        self._rows = _rows(table, "recorded answers")

    def holds(self, sample: str, relation: str, severity: int) -> bool:
        """Return whether there is a row for this image."""
        return (sample, relation, severity) in self._rows

    def content(self) -> str:
        """Return a short hash of all answers."""
        digest = hashlib.blake2b(repr((self._columns, self._rows)).encode(), digest_size=8)
        digest.update(self._values.tobytes())
        return digest.hexdigest()

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        for concept in prompt.concepts:
            if concept not in self._columns:
                known = f"there are {', '.join(self._columns)}"
                raise InputError(f"recorded answers: no column for concept {concept!r}; {known}")
        row = self._rows.get((prompt.sample_id, prompt.relation, prompt.severity))
        if row is None:
            return MISSING
        values = self._values[row, [self._columns[concept] for concept in prompt.concepts]]
        return Answer(tuple(MISSING if np.isnan(v) else v for v in values.tolist()))


def _probabilities(table: pd.DataFrame) -> Floats:
    """Return a table's values, NaN for empty cells; raise InputError for one outside [0, 1]."""
    try:
        values = table.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"recorded answers: expected numbers: {error}") from None
    for row, column in np.argwhere((values < 0) | (values > 1)).tolist():
        raise InputError(
            f"recorded answers: expected P(yes) between 0 and 1, got {values[row, column]} "
            f"in row {row + 1}, column {table.columns[column]!r}"
        )
    return values


def _rows(table: pd.DataFrame, where: str) -> dict[tuple[str, str, int], int]:
    """Return the number of each image's row, by sample, relation and severity.

    Raises:
        InputError: A severity is no whole number, or an image has two rows.
    """
    rows: dict[tuple[str, str, int], int] = {}
    for row, (sample, relation, severity) in enumerate(table[[*KEYS]].itertuples(index=False)):
        try:
            key = str(sample), str(relation), int(severity)
            if key[2] != float(severity):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            got = f"{severity!r} in row {row + 1}"
            raise InputError(f"{where}: expected a whole number as severity, got {got}") from None
        if rows.setdefault(key, row) != row:
            raise InputError(f"{where}: {key} stands twice, again in row {row + 1}")
    return rows


# -- captions --------------------------------------------------------------------------------------


class RecordedCaptions(Replayed):
    """Model that gives recorded captions. An empty one is Unanswered.

    Args:
        captions: One row per image, with the columns sample, relation, severity, caption. The
            source image has relation "identity" and severity 0. A version of it with box k hidden
            has relation "hidden/blur", "hidden/black" or "hidden/inpaint", and severity k.
        name: Name in errors, journals and reports.
        where: Name of the table in errors.

    Raises:
        InputError: A column is missing, a row repeats, or no row has a caption. When asked: the
            caption of the image was not recorded.
    """

    answers: CallMode = "one"

    def __init__(
        self, captions: pd.DataFrame, *, name: str = "recorded", where: str = "recorded captions"
    ) -> None:
        self.name, self._where = name, where
        require_columns(captions, CAPTION_COLUMNS, where)
        texts = captions["caption"].fillna("").astype(str)
        self._captions = dict(zip(_rows(captions, where), texts, strict=True))
        if not any(caption.strip() for caption in self._captions.values()):
            got = f"{len(self._captions)} rows without any"
            raise InputError(f"{where}: expected captions, got {got}")

    def check(self, dataset: Dataset, variants: Sequence[Variant]) -> None:
        """Check that the captions of all images are recorded.

        Args:
            dataset: The source images.
            variants: The relations and severities of follow-ups.

        Raises:
            InputError: A caption is missing, or follow-ups depend on captions, so that those of
                this audit may differ from the recorded ones.
        """
        if any(v.relation.needs_answer for v in variants):
            raise InputError(
                f"{self._where}: recorded captions are of pictures made beforehand, and captions = "
                "'own' in [space] makes them again; name the file there instead"
            )
        versions = [(IDENTITY, 0), *((v.relation.name, v.severity) for v in variants)]
        samples = [dataset.sample_id(index) for index in range(len(dataset))]
        wanted = [(sample, *version) for sample in samples for version in versions]
        missing = [key for key in wanted if key not in self._captions]
        if missing:
            raise self._lacks(missing[0], f"; {len(missing)} of {len(wanted)} are missing")

    def _lacks(self, key: tuple[str, str, int], more: str) -> InputError:
        """Return the error of a missing caption."""
        return InputError(
            f"{self._where}: expected a caption of sample {key[0]!r}, relation {key[1]!r}, "
            f"severity {key[2]}, got none{more}"
        )

    @classmethod
    def read(cls, path: Path | str, name: str | None = None) -> "RecordedCaptions":
        """Read a CSV with a header, or a JSON list of objects with these fields."""
        file = Path(path)
        return cls(read_captions(file), name=name or file.stem, where=str(file))

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        key = prompt.sample_id, prompt.relation, prompt.severity
        if key not in self._captions:
            hint = "; or set oracle.occlusion = false" if prompt.relation[:7] == "hidden/" else ""
            raise self._lacks(key, f" among {len(self._captions)}{hint}")
        caption = self._captions[key]
        return Answer((caption,)) if caption.strip() else Unanswered("an empty caption")


def require_columns(table: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Raise InputError for a column that ``table`` lacks."""
    for column in columns:
        if column not in table:
            expected = f"expected the columns {', '.join(columns)}"
            raise InputError(f"{where}: {expected}, got no {column!r}")


def read_captions(file: Path) -> pd.DataFrame:
    """Return the rows of a CSV with a header, or of a JSON list of objects; captions are unchanged.

    Raises:
        InputError: The file is neither.
    """
    what = "recorded captions"
    if file.suffix != ".json":
        return read_rows(file, what, dtype=str, keep_default_na=False, only=["sample"])
    with reads(file, what):
        rows = json.loads(text_in(file, "utf-8-sig"))
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError('expected a list of objects, [{"sample": "a.png", "caption": "..."}]')
        return pd.DataFrame(rows, dtype=object)  # numbers as they are


# -- answers of a person ---------------------------------------------------------------------------


class RecordedReader(Replayed):
    """Model that gives one person's answers. A question that the person left out, or was unsure
    about, is Unanswered.

    Args:
        answers: Rows, as ``read_answers`` returns them.
        per_call: Concepts that one call answers. Default None: "all" if a picture has several
            questions, else "one".

    Raises:
        InputError: The answers are not of exactly one person.
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
        """Return a short hash of all answers."""
        text = repr(sorted(self._answers.items()))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _answer(self, prompt: Prompt) -> Answer:
        card = card_id(prompt.sample_id, prompt.relation, prompt.severity)
        chosen = self._answers.get((card, CLASS))
        if chosen is not None and chosen != UNSURE:
            return Answer(tuple(float(concept == chosen) for concept in prompt.concepts))
        answers = [chosen or self._answers.get((card, concept)) for concept in prompt.concepts]
        return Answer(tuple(_VALUES.get(answer, answer or "") for answer in answers))


def check_name(name: str, where: str) -> str:
    """Return a reader's name; raise InputError if it cannot name a file."""
    if not re.fullmatch(NAME, name):
        expected = (
            "a name of up to 60 letters, digits and ' _.-', that begins with a letter or digit"
        )
        raise InputError(f"{where}: expected {expected}, got {name!r}")
    return name


def card_id(sample: str, relation: str, severity: int) -> str:
    """Return the hash that stands for a picture in files of answers."""
    text = f"{sample}\0{relation}\0{severity}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def read_answers(path: Path) -> pd.DataFrame:
    """Return the rows of a file of people's answers; of two answers to a question the later one.

    Raises:
        InputError: The file cannot be read, or a field is malformed. Rows count from 1, the header.
    """
    rows = read_rows(path, "answers", dtype=str, keep_default_na=False).fillna("")
    if [*rows] != [*COLUMNS]:
        expected = f"expected the columns {','.join(COLUMNS)}"
        raise InputError(f"{path}: {expected}, got {','.join(map(str, rows))}")
    zoned = rows["time"].str.fullmatch(r".+(Z|[+-]\d\d:\d\d)")
    times = pd.to_datetime(rows["time"].where(zoned), format="ISO8601", utc=True, errors="coerce")
    checks = {
        "reader": (rows["reader"].str.fullmatch(NAME), "a name of up to 60 letters and digits"),
        "answer": (rows["answer"].str.strip().str.len().between(1, MAX_WORDS), "1 to 2000 letters"),
        "time": (times.notna(), "a time with its zone, such as 2024-05-31T12:00:00Z"),
    }
    for column, (valid, expected) in checks.items():
        if not valid.all():
            row = int(valid.argmin())
            got = rows[column][row]
            raise InputError(f"{path}, row {row + 2}: {column}: expected {expected}, got {got!r}")
    return latest(rows)


def latest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the latest answer of each reader to each question."""
    ordered = rows.sort_values(
        "time", key=lambda t: pd.to_datetime(t, format="ISO8601", utc=True), kind="stable"
    )
    return ordered.drop_duplicates(["card", "question", "reader"], keep="last")


# -- files -----------------------------------------------------------------------------------------


def read_rows(path: Path, what: str, *, only: Sequence[str] = (), **options: Any) -> pd.DataFrame:
    """Return the rows of a CSV, without the marks that `utils.tables` adds to cells like formulas.

    Args:
        path: The file.
        what: Name of the content, for errors.
        only: Columns whose marks are removed. Default: all.
        **options: Options of ``pandas.read_csv``.

    Raises:
        InputError: The file cannot be read.
    """
    with reads(path, what):
        text, delimiter = delimited(path)
        rows = pd.read_csv(text, sep=delimiter, **options)
        if not only:
            return restored(rows)
        return rows.assign(**{c: rows[c].map(original) for c in only if c in rows})


def answers_table(path: Path) -> pd.DataFrame:
    """Return recorded answers in a CSV, without the columns that ``export --questions`` adds: names
    of files, and words. Raise InputError if the file cannot be read."""
    table = read_rows(path, "recorded answers", dtype={"sample": str})
    written = [column for column in ("file", "words") if column in table]
    return table.drop(columns=table[written].select_dtypes(exclude=["number", "bool"]).columns)


def recorded(
    answers: Annotated[Path, Option(RECORDED, reads=at_base)],
    *,
    captions: bool = False,
    name: str | None = None,
    per_call: Annotated[
        CallMode | None, Option("one or all: concepts of a call (all; of a reader as it was read)")
    ] = None,
) -> Recorded | RecordedCaptions | RecordedReader:
    """Return a file of recorded answers as a model.

    Args:
        answers: A CSV of answers or of a reader, or a CSV or JSON of captions.
        captions: Whether the file has captions.
        name: Name in errors, journals and reports. Default None: that of the file.
        per_call: Concepts that one call answers. Default None: as in `Recorded` and
            `RecordedReader`.

    Raises:
        InputError: The file cannot be read, or is malformed.
    """
    try:
        with open(answers, encoding="utf-8-sig", opener=regular) as file:
            of_reader = re.split("[,;\\t]", file.readline(200).strip()) == [*COLUMNS]
    except (OSError, UnicodeDecodeError):
        of_reader = False
    model: Recorded | RecordedCaptions | RecordedReader
    if captions:
        model = RecordedCaptions.read(answers, name)
    elif of_reader:
        model = RecordedReader(read_answers(answers), per_call=per_call)
    else:
        table = answers_table(answers)
        model = Recorded(table, per_call=per_call or "all", name=name or answers.stem)
    model.model_files = (answers,)
    return model
