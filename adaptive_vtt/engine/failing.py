"""Ends an audit of a model that leaves most calls unanswered, before they use up the budget."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..errors import InputError, ModelError
from ..journal.rows import CallRow
from ..models.base import ModelDefaults
from ..models.checking import name_of
from ..types import Answer, Both, Unanswered, Value

FEWEST = 20
"""Fewest calls of which the unanswered share is judged: that of fewer is mostly chance."""


class Failing:
    """Counts the calls that this process made, and those that stayed unanswered.

    ``share``: raise ModelError when more than this share of calls stays unanswered, of
    ``FEWEST`` calls or more; 1: never; None: when none of the first ``FEWEST`` was answered.
    Raises InputError for a share outside (0, 1].
    """

    def __init__(self, share: float | None, model: ModelDefaults) -> None:
        if share is not None and not 0 < share <= 1:
            raise InputError(f"fail_on_error: expected a share above 0 and up to 1, got {share}")
        self._share, self._model = share, model
        self._answered = False
        self._calls, self._reasons = 0, Counter[str]()

    def note(self, answers: Iterable[Answer | Unanswered]) -> None:
        """Counts these; a call is unanswered where none of its questions has an answer."""
        for answer in answers:
            self._calls += 1
            values = (answer,) if isinstance(answer, Unanswered) else answer.values
            missing = [_missing(value) for value in values]
            if all(missing):
                self._reasons[missing[0] or ""] += 1
            else:
                self._answered = True

    def trust(self, calls: Collection[CallRow]) -> None:
        """Takes note of calls that the journal holds from an earlier run.

        They show that the model could be reached, so a first refused call does not end this run.
        Where one of them has an answer, the model is known to answer: a run whose first calls
        all stay unanswered then goes on, unless ``share`` ends it.
        """
        if calls:
            self._model.trusted = True
        self._answered |= any(row.unanswered is None for call in calls for row in call.answers)

    def check(self) -> None:
        """Raises ModelError where too many calls stayed unanswered."""
        count = self._reasons.total()
        if self._calls < FEWEST:
            return
        if self._share is not None and count > self._share * self._calls:
            raise self._error(f"more than fail_on_error = {self._share:g} allows")
        if self._share is None and not self._answered:
            raise self._error("and none was answered, where fail_on_error = 1 would go on")

    def _error(self, why: str) -> ModelError:
        reason, _ = self._reasons.most_common(1)[0]
        statistics: Mapping[str, Any] = self._model.statistics() or {}
        first = statistics.get("first_malformed")
        said = f"{reason[:80]}{f', the first: {first}' if first else ''}"
        return ModelError(
            f"model {name_of(self._model)!r}: {self._reasons.total()} of {self._calls} calls "
            f"stayed unanswered (most often: {said}), {why}; what came back is kept: mend the "
            "cause and go on"
        )


def _missing(value: Value) -> str | None:
    """Why there is no answer; of two models, why there is none of one of them."""
    if isinstance(value, Both):
        return _missing(value.a) or _missing(value.b)
    return value.reason if isinstance(value, Unanswered) else None
