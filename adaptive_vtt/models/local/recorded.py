"""Answers somebody recorded, replayed: audits and comparisons without calls."""

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...errors import InputError, one_line
from ...types import Answer, CallMode, Prompt, Unanswered
from ..base import ModelDefaults

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
        keys = zip(table["sample"].astype(str), table["relation"], _severities(table), strict=True)
        self.hard_answers = bool((np.isnan(self._values) | np.isin(self._values, (0, 1))).all())
        self._rows: dict[tuple[str, str, int], int] = {}
        for row, key in enumerate(keys):
            if key in self._rows:
                raise InputError(f"recorded answers: {key} stands twice, again in row {row}")
            self._rows[key] = row

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
                f"in row {row}, column {table.columns[column]!r}"
            )
        return values


def _severities(table: pd.DataFrame) -> "pd.Series[int]":
    try:
        return table["severity"].astype(int)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"recorded answers: expected whole numbers as severities: {one_line(error)}"
        ) from None
