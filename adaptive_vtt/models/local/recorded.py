"""Answers and captions somebody recorded, replayed: audits and comparisons without calls."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd

from ...datasets.base import Dataset
from ...errors import InputError
from ...relations.base import Variant
from ...types import IDENTITY, Answer, CallMode, JsonObject, Prompt, Unanswered
from ...utils.files import why_unread
from ...utils.options import Option, at_base
from ...utils.tables import check_width, original, restored
from ..base import ModelDefaults
from .reader import RecordedReader, is_of_reader, read_answers

KEYS = ("sample", "relation", "severity")


class Recorded(ModelDefaults):
    """``answers``: one row per image, one column per concept, values P(yes) or NaN.

    The image is named by the columns ``sample``, ``relation`` and ``severity``; without
    ``sample`` the index names it, without ``relation`` every row is about the source image
    (identity, severity 0). What was not recorded, or is NaN, is Unanswered.
    Raises InputError for values outside [0, 1] and rows that repeat.
    """

    needs_image = False
    takes_words = True

    def __init__(
        self,
        answers: pd.DataFrame,
        *,
        per_call: CallMode = "all",
        name: str = "recorded",
    ) -> None:
        self.answers = per_call
        self.name = name
        table = answers.reset_index(names="sample") if "sample" not in answers else answers
        table = table.assign(
            relation=table.get("relation", "identity"), severity=table.get("severity", 0)
        )
        self._columns = {str(c): i for i, c in enumerate(c for c in table if c not in KEYS)}
        self._values = self._numbers(table[[c for c in table if c not in KEYS]])
        self.hard_answers = bool((np.isnan(self._values) | np.isin(self._values, (0, 1))).all())
        self._rows = _rows(table, "recorded answers")

    def holds(self, sample: str, relation: str, severity: int) -> bool:
        """Whether there is a row for that picture."""
        return (sample, relation, severity) in self._rows

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    def content(self) -> str:
        """A short hash of all answers: other answers are another model."""
        digest = hashlib.blake2b(repr((self._columns, self._rows)).encode(), digest_size=8)
        digest.update(self._values.tobytes())
        return digest.hexdigest()

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        row = self._rows.get((prompt.sample_id, prompt.relation, prompt.severity))
        missing = [c for c in prompt.concepts if c not in self._columns]
        if missing:
            raise InputError(
                f"recorded answers: no column for concept {missing[0]!r}; "
                f"there are {', '.join(self._columns)}"
            )
        if row is None:
            return Unanswered("not recorded")
        values = self._values[row, [self._columns[c] for c in prompt.concepts]]
        missing_value = Unanswered("not recorded")
        return Answer(tuple(missing_value if np.isnan(v) else v for v in values.tolist()))

    @staticmethod
    def _numbers(table: pd.DataFrame) -> np.ndarray:
        try:
            values = table.to_numpy(dtype=float, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise InputError(f"recorded answers: expected numbers: {error}") from None
        wrong = ~np.isnan(values) & ((values < 0) | (values > 1))
        if wrong.any():
            row, column = map(int, np.argwhere(wrong)[0])
            raise InputError(
                f"recorded answers: expected P(yes) between 0 and 1, got {values[row, column]} "
                f"in row {row + 1}, column {table.columns[column]!r}"
            )
        return values


def _rows(table: pd.DataFrame, where: str) -> dict[tuple[str, str, int], int]:
    """Sample, relation and severity of each picture -> its row."""
    found: dict[tuple[str, str, int], int] = {}
    for row, (sample, relation, told) in enumerate(table[[*KEYS]].itertuples(index=False)):
        try:
            key = str(sample), str(relation), int(told)
            if key[2] != float(told):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"{where}: expected a whole number as severity, got {told!r} in row {row + 1}"
            ) from None
        if found.setdefault(key, row) != row:
            raise InputError(f"{where}: {key} stands twice, again in row {row + 1}")
    return found


COLUMNS = (*KEYS, "caption")


class RecordedCaptions(ModelDefaults):
    """``captions``: one row per image, with the columns sample, relation, severity, caption.

    The source image has relation identity and severity 0; a version of it with box k hidden
    "hidden/blur", "hidden/black" or "hidden/inpaint" and severity k. An empty caption is
    Unanswered. Raises InputError for a missing column, rows that repeat, and, when it is asked
    for, a caption that was not recorded; ``where`` is named in it.
    """

    answers: CallMode = "one"
    needs_image = False
    takes_words = True

    def __init__(
        self, captions: pd.DataFrame, *, name: str = "recorded", where: str = "recorded captions"
    ) -> None:
        self.name = name
        self._where = where
        require_columns(captions, COLUMNS, where)
        words = captions["caption"].fillna("").astype(str)
        self._captions = dict(zip(_rows(captions, where), words, strict=True))

        if not any(caption.strip() for caption in self._captions.values()):
            raise InputError(
                f"{where}: expected captions, got {len(self._captions)} rows without any"
            )

    def check(self, dataset: Dataset, variants: Sequence[Variant]) -> None:
        """Raises InputError where a source image, or a follow-up of one, has no caption, and for
        follow-ups that depend on captions, as those that were captioned may be others."""
        if any(v.relation.needs_answer for v in variants):
            raise InputError(
                f"{self._where}: recorded captions are of pictures made beforehand, and captions = "
                "'own' in [space] makes them anew; name the file there instead"
            )
        versions = [(IDENTITY, 0), *((v.relation.name, v.severity) for v in variants)]
        wanted = [
            (dataset.sample_id(index), *version)
            for index in range(len(dataset))
            for version in versions
        ]
        missing = [key for key in wanted if key not in self._captions]
        if missing:
            raise InputError(
                f"{self._where}: expected a caption of sample {missing[0][0]!r}, relation "
                f"{missing[0][1]!r}, severity {missing[0][2]}, got none; {len(missing)} of "
                f"{len(wanted)} are missing"
            )

    @classmethod
    def read(cls, path: Path | str, name: str | None = None) -> "RecordedCaptions":
        """From a CSV with a header, or a JSON list of objects with these fields."""
        file = Path(path)
        return cls(read_captions(file), name=name or file.stem, where=str(file))

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        key = prompt.sample_id, prompt.relation, prompt.severity
        if key not in self._captions:
            hint = "; or set oracle.occlusion = false" if prompt.relation[:7] == "hidden/" else ""
            raise InputError(
                f"{self._where}: expected a caption of sample {key[0]!r}, relation {key[1]!r}, "
                f"severity {key[2]}, got none among {len(self._captions)}{hint}"
            )
        caption = self._captions[key]
        return Answer((caption,)) if caption.strip() else Unanswered("an empty caption")


def require_columns(table: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Raises InputError for a column that ``table`` lacks."""
    for column in columns:
        if column not in table:
            raise InputError(
                f"{where}: expected the columns {', '.join(columns)}, got no {column!r}"
            )


def read_captions(file: Path) -> pd.DataFrame:
    """The rows of a CSV with a header, or of a JSON list of objects, words as they are.

    Raises InputError for a file that is neither.
    """
    try:
        if file.suffix == ".json":
            return pd.DataFrame(_objects(file), dtype=object)  # numbers as they are, too
        check_width(file)
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    except (OSError, ValueError, RecursionError, pd.errors.ParserError) as error:
        raise InputError(
            f"{file}: cannot read recorded captions: {why_unread(file, error)}"
        ) from None
    if "sample" in table:
        table["sample"] = table["sample"].map(original)  # captions are words as they are
    return table


def _objects(file: Path) -> list[JsonObject]:
    found = json.loads(file.read_text(encoding="utf-8-sig"))
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ValueError('expected a list of objects, as [{"sample": "a.png", "caption": "..."}]')
    return found


def answers_table(path: Path) -> pd.DataFrame:
    """The answers in a CSV, without the files and words that ``export --questions`` wrote there.

    Raises InputError where it cannot be read.
    """
    check_width(path)
    try:
        table = restored(pd.read_csv(path, dtype={"sample": str}))
        written = ("file", "words")
        text = [c for c in written if c in table and not pd.api.types.is_numeric_dtype(table[c])]
        return table.drop(columns=text)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        why = why_unread(path, error)
        raise InputError(f"{path}: cannot read recorded answers: {why}") from None


def recorded(
    answers: Annotated[
        Path,
        Option(
            "CSV with sample, relation, severity, one column per concept; a reader's CSV, as "
            "'avtt label --questions' takes it; of captions a CSV or JSON with the column caption",
            reads=at_base,
        ),
    ],
    *,
    captions: bool = False,
    name: str | None = None,
    per_call: Annotated[
        CallMode | None,
        Option("one or all: concepts of a call (all; of a reader's CSV as it was read)"),
    ] = None,
) -> Recorded | RecordedCaptions | RecordedReader:
    """A CSV of answers, or of captions."""
    if captions:
        return RecordedCaptions.read(answers, name)
    if is_of_reader(answers):
        return RecordedReader(read_answers(answers), per_call=per_call)
    table = answers_table(answers)
    return Recorded(table, per_call=per_call or "all", name=name or answers.stem)
