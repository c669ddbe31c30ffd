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
from ...types import IDENTITY, Answer, CallMode, Floats, Prompt, Unanswered
from ...utils.files import text_in, why_unread
from ...utils.options import Option, at_base
from .reader import RecordedReader, Replayed, is_of_reader, read_answers, read_rows

KEYS = ("sample", "relation", "severity")


class Recorded(Replayed):
    """``answers``: one row per image, one column per concept, values P(yes) or NaN.

    The image is named by the columns ``sample``, ``relation`` and ``severity``; without
    ``sample`` the index names it, without ``relation`` every row is about the source image
    (identity, severity 0). What was not recorded, or is NaN, is Unanswered.
    Raises InputError for values outside [0, 1] and rows that repeat.
    """

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
        values = table[[column for column in table if column not in KEYS]]
        self._columns = {str(column): place for place, column in enumerate(values)}
        self._values = _probabilities(values)
        self._rows = _rows(table, "recorded answers")

    def holds(self, sample: str, relation: str, severity: int) -> bool:
        """Whether there is a row for that picture."""
        return (sample, relation, severity) in self._rows

    def content(self) -> str:
        """A short hash of all answers: other answers are another model."""
        digest = hashlib.blake2b(repr((self._columns, self._rows)).encode(), digest_size=8)
        digest.update(self._values.tobytes())
        return digest.hexdigest()

    def _answer(self, prompt: Prompt) -> Answer | Unanswered:
        row = self._rows.get((prompt.sample_id, prompt.relation, prompt.severity))
        unknown = [concept for concept in prompt.concepts if concept not in self._columns]
        if unknown:
            raise InputError(
                f"recorded answers: no column for concept {unknown[0]!r}; "
                f"there are {', '.join(self._columns)}"
            )
        missing = Unanswered("not recorded")
        if row is None:
            return missing
        values = self._values[row, [self._columns[concept] for concept in prompt.concepts]]
        return Answer(tuple(missing if np.isnan(v) else v for v in values.tolist()))


def _probabilities(table: pd.DataFrame) -> Floats:
    """The values of a table, NaN for what is missing; raises InputError for what is no P(yes)."""
    try:
        values = table.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"recorded answers: expected numbers: {error}") from None
    wrong = np.argwhere((values < 0) | (values > 1))
    if len(wrong):
        row, column = map(int, wrong[0])
        raise InputError(
            f"recorded answers: expected P(yes) between 0 and 1, got {values[row, column]} "
            f"in row {row + 1}, column {table.columns[column]!r}"
        )
    return values


def _rows(table: pd.DataFrame, where: str) -> dict[tuple[str, str, int], int]:
    """Sample, relation and severity of each picture -> its row."""
    rows: dict[tuple[str, str, int], int] = {}
    for row, (sample, relation, severity) in enumerate(table[[*KEYS]].itertuples(index=False)):
        try:
            key = str(sample), str(relation), int(severity)
            if key[2] != float(severity):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"{where}: expected a whole number as severity, got {severity!r} in row {row + 1}"
            ) from None
        if rows.setdefault(key, row) != row:
            raise InputError(f"{where}: {key} stands twice, again in row {row + 1}")
    return rows


COLUMNS = (*KEYS, "caption")


class RecordedCaptions(Replayed):
    """``captions``: one row per image, with the columns sample, relation, severity, caption.

    The source image has relation identity and severity 0; a version of it with box k hidden
    "hidden/blur", "hidden/black" or "hidden/inpaint" and severity k. An empty caption is
    Unanswered. Raises InputError for a missing column, rows that repeat, and, when it is asked
    for, a caption that was not recorded; ``where`` is named in it.
    """

    answers: CallMode = "one"

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
    what = "recorded captions"
    if file.suffix != ".json":
        return read_rows(file, what, dtype=str, keep_default_na=False, only=["sample"])
    try:
        rows = json.loads(text_in(file, "utf-8-sig"))
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError('expected a list of objects, [{"sample": "a.png", "caption": "..."}]')
        return pd.DataFrame(rows, dtype=object)  # numbers as they are
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: cannot read {what}: {why_unread(file, error)}") from None


def answers_table(path: Path) -> pd.DataFrame:
    """The answers in a CSV, without the files and words that ``export --questions`` wrote there.

    Raises InputError where it cannot be read.
    """
    table = read_rows(path, "recorded answers", dtype={"sample": str})
    written = [column for column in ("file", "words") if column in table]
    return table.drop(columns=table[written].select_dtypes(exclude=["number", "bool"]).columns)


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
    model: Recorded | RecordedCaptions | RecordedReader
    if captions:
        model = RecordedCaptions.read(answers, name)
    elif is_of_reader(answers):
        model = RecordedReader(read_answers(answers), per_call=per_call)
    else:
        table = answers_table(answers)
        model = Recorded(table, per_call=per_call or "all", name=name or answers.stem)
    model.model_files = (answers,)
    return model
