"""Count calls that stay unanswered, and end a run in which there are too many of them."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from ..errors import ModelError
from ..journal.rows import CallRow
from ..models.base import ModelDefaults
from ..models.checking import name_of
from ..models.unanswered import FEWEST, FIRST, MUTE, remedy
from ..types import Answer, PairedAnswer, Unanswered, Value
from .loop import Hook, Loop


class UnansweredCalls(Hook):
    """Counts this run's calls that stay unanswered, and ends the run if there are too many.

    ``share`` is the share of calls that may stay unanswered, from ``FEWEST`` calls on; once nothing
    is left to ask, any number of calls is enough. With 1 it never ends the run. With None the share
    is ``MUTE``, and the run also ends if none of the first ``FIRST`` calls was answered. In the
    end, answered calls of earlier runs count, too.

    ``runs`` is True if the audit asks the model itself. Whoever passes answers to the audit sees
    them, so their run is not ended. ``answered`` is True once a call of any run was answered.
    """

    runs = False

    def __init__(self, share: float | None, model: ModelDefaults) -> None:
        self._share, self._model = share, model
        self.answered, self._before = False, 0  # any answer yet; answered calls of earlier runs
        self._calls, self._reasons = 0, Counter[str]()

    def on_received(self, loop: Loop, answers: Collection[Answer | Unanswered]) -> None:
        """Count answers; a call is unanswered if none of its questions has an answer."""
        for answer in answers:
            self._calls += 1
            values = (answer,) if isinstance(answer, Unanswered) else answer.values
            missing = [_missing(value) for value in values]
            if all(missing):
                self._reasons[missing[0] or ""] += 1
            else:
                self.answered = True

    def on_replay(self, loop: Loop, calls: Mapping[int, CallRow]) -> None:
        """Take up a journal: calls of earlier runs show that the model could be reached.

        So a first refused call does not end this run. If one of them has an answer, the run also
        continues when all its first calls stay unanswered, unless ``share`` ends it.
        """
        if calls:
            self._model.trusted = True
        answered = [any(row.unanswered is None for row in c.answers) for c in calls.values()]
        self._before = sum(answered)
        self.answered |= any(answered)

    def on_end(self, loop: Loop) -> None:
        """Raise ModelError before the end is journaled, if too many calls stayed unanswered."""
        if self.runs:
            self._check(self._calls + self._before, fewest=1)

    def check(self) -> None:
        """Raise ModelError where too many calls stayed unanswered while more are to come."""
        if self._share is None and not self.answered and self._calls >= FIRST:
            raise self._error("none was answered; fail_on_error = 1 would continue")
        self._check(self._calls, FEWEST)

    def _check(self, calls: int, fewest: int) -> None:
        share = MUTE if self._share is None else self._share
        if calls >= fewest and self._reasons.total() > share * calls:
            allowed = f"more than fail_on_error = {share:g} allows"
            raise self._error("more than half" if self._share is None else allowed)

    def _error(self, why: str) -> ModelError:
        reason, _ = self._reasons.most_common(1)[0]
        statistics: Mapping[str, Any] = self._model.statistics() or {}
        first = statistics.get("first_malformed")
        text = f"{reason[:80]}{f', the first: {first}' if first else ''}"
        return ModelError(
            f"model {name_of(self._model)!r}: {self._reasons.total()} of {self._calls} calls "
            f"stayed unanswered (most often: {text}), {why}, so nothing is certified; "
            f"{remedy(reason)}; the answers are kept: correct the cause and resume"
        )


def _missing(value: Value) -> str | None:
    """Return why there is no answer, None if there is one; of two models, the first reason."""
    if isinstance(value, PairedAnswer):
        return _missing(value.a) or _missing(value.b)
    return value.reason if isinstance(value, Unanswered) else None
