"""Captions somebody recorded, replayed: from a CSV or JSON file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...datasets.base import Dataset
from ...errors import InputError
from ...relations.base import Variant
from ...types import IDENTITY, Answer, CallMode, Prompt, Unanswered
from ...utils.files import why_unread
from ...utils.tables import check_width, original
from ..base import ModelDefaults

KEYS = ("sample", "relation", "severity")
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
        self._captions: dict[tuple[str, str, int], str] = {}
        for row, (sample, relation, severity, caption) in enumerate(
            captions[list(COLUMNS)].itertuples(index=False), start=1
        ):
            key = str(sample), str(relation), self._number(severity, row)
            if key in self._captions:
                raise InputError(f"{where}: {key} stands twice, again in row {row}")
            self._captions[key] = "" if pd.isna(caption) else str(caption)

        if not any(caption.strip() for caption in self._captions.values()):
            raise InputError(
                f"{where}: expected captions, got {len(self._captions)} rows without any"
            )

    def check(self, dataset: Dataset, variants: Sequence[Variant]) -> None:
        """Raises InputError where a source image, or a follow-up of one, has no caption."""
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

    def _number(self, severity: Any, row: int) -> int:
        try:
            return int(severity)
        except (TypeError, ValueError):
            raise InputError(
                f"{self._where}: expected a whole number as severity, got {severity!r} in row {row}"
            ) from None


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


def _objects(file: Path) -> list[dict[str, Any]]:
    found = json.loads(file.read_text(encoding="utf-8-sig"))
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ValueError('expected a list of objects, as [{"sample": "a.png", "caption": "..."}]')
    return found
