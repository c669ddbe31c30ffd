"""When so many calls stay unanswered that asking on only burns the budget."""

from collections import Counter
from collections.abc import Iterable

from ..errors import InputError, ModelError
from ..types import Answer, Unanswered

FEWEST = 20
"""Calls before a share of them says anything."""


class Failing:
    """Counts the calls that this process made, and those that stayed unanswered.

    ``share``: raise ModelError when more than this share of calls stays unanswered, of
    ``FEWEST`` calls or more; None: never. Raises InputError for a share outside (0, 1].
    """

    def __init__(self, share: float | None, who: str) -> None:
        if share is not None and not 0 < share <= 1:
            raise InputError(f"fail_on_error: expected a share above 0 and up to 1, got {share}")
        self._share, self._who = share, who
        self._calls, self._reasons = 0, Counter[str]()

    def note(self, answers: Iterable[Answer | Unanswered]) -> None:
        """Counts these; a call is unanswered where none of its questions has an answer."""
        for answer in answers:
            self._calls += 1
            values = (answer,) if isinstance(answer, Unanswered) else answer.values
            missing = [value.reason for value in values if isinstance(value, Unanswered)]
            if len(missing) == len(values):
                self._reasons[missing[0]] += 1

    def check(self) -> None:
        """Raises ModelError where too many calls stayed unanswered."""
        count = self._reasons.total()
        if self._share is None or self._calls < FEWEST or count <= self._share * self._calls:
            return
        reason, _ = self._reasons.most_common(1)[0]
        raise ModelError(
            f"model {self._who!r}: {count} of {self._calls} calls stayed unanswered (most often: "
            f"{reason[:80]}), more than fail_on_error = {self._share:g} allows; what came back "
            "is kept: mend the cause and go on with resume"
        )
