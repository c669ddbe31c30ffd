"""The journal's record of a model's endpoint: elicitation, token bounds, batches; failed calls.

A resumed audit asks the model and its judge in the same way and reserves as much money. It knows
the batches that were submitted until their calls are answered.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..errors import InputError, ModelError
from ..journal import Journal
from ..journal.facts import BatchFacts, WayFacts, read_facts
from ..journal.rows import CallRow
from ..models.base import BatchModel, ModelDefaults
from ..models.checking import name_of
from ..models.unanswered import FEWEST, FIRST, MUTE, remedy
from ..types import Answer, PairedAnswer, Unanswered, Value
from .call_queue import number_of
from .loop import Hook, Loop

Bounds = Mapping[str, tuple[int, int]]


class JournaledElicitation(Hook):
    """Writes how the model is asked, as the fact "ways", and token bounds, as the fact "bounds".

    Bounds are those that the model and its ``judge`` turned out to have.
    """

    def __init__(
        self, journal: Journal, model: ModelDefaults, judge: ModelDefaults | None = None
    ) -> None:
        self._journal, self._model, self._judge = journal, model, judge
        self._modes: Mapping[str, WayFacts] = {}
        self._bounds: Bounds = {}

    def recall(self, ways: Mapping[str, WayFacts], bounds: Bounds) -> None:
        """Let the models continue with the journal's elicitation and bounds."""
        self._modes, self._bounds = ways, bounds
        self._model.keep_to(ways)
        self._model.keep_bounds(bounds)
        if self._judge is not None and "judge" in bounds:
            self._judge.keep_bounds({"": bounds["judge"]})

    def before_commit(self, loop: Loop) -> None:
        """Write elicitation and bounds if they changed, before the answers that follow."""
        modes, bounds = self._model.elicitation(), dict(self._model.bounds())
        if modes != self._modes:
            facts = {side: mode.model_dump(mode="json") for side, mode in modes.items()}
            self._journal.set_facts(ways=facts)
            self._modes = modes
        if self._judge is not None and (limits := self._judge.bounds()):
            bounds["judge"] = limits[""]
        if bounds != self._bounds:
            self._journal.set_facts(bounds=bounds)
            self._bounds = bounds


class JournalRecord:
    """``models.base.Record`` in an audit's journal.

    The fact "batches" is written before anything is submitted. Lost batches stay in it, for the
    report. ``awaits`` returns whether the call of a number waits for its answer.
    """

    def __init__(self, journal: Journal, awaits: Callable[[int], bool]) -> None:
        self._journal, self._awaits = journal, awaits

    def read(self) -> tuple[BatchFacts, ...]:
        return tuple(batch for batch in self._all() if any(map(self._awaits, batch.calls)))

    def write(self, batches: Sequence[BatchFacts]) -> None:
        known = {batch.key for batch in batches}
        lost = [batch for batch in self._all() if batch.lost and batch.key not in known]
        self._journal.set_facts(
            batches=[batch.model_dump(mode="json") for batch in (*lost, *batches)]
        )

    def calls(self) -> set[int]:
        """Return the numbers of the submitted calls that wait."""
        return {number for batch in self.read() for number in batch.calls if self._awaits(number)}

    def _all(self) -> tuple[BatchFacts, ...]:
        return read_facts(self._journal.facts()).batches


def give_up(journal: Journal, name: str) -> None:
    """Count a batch as lost, at its worst price.

    Args:
        journal: The audit's journal.
        name: The provider's id of the batch.

    Raises:
        InputError: If no answers of such a batch are awaited.
    """
    awaited = [batch.id for batch in under_way(journal) if batch.id is not None]
    if name not in awaited:
        raise InputError(
            f"--give-up-batch: expected a batch that is awaited ({', '.join(awaited) or 'none is'})"
            f", got {name!r}"
        )
    batches = read_facts(journal.facts()).batches
    given_up = [b.model_copy(update={"lost": True}) if b.id == name else b for b in batches]
    journal.set_facts(batches=[batch.model_dump(mode="json") for batch in given_up])


def submitted(model: ModelDefaults, journal: Journal, awaits: Callable[[int], bool]) -> set[int]:
    """Return the numbers of an audit's calls whose batches may still be answered."""
    return JournalRecord(journal, awaits).calls() if isinstance(model, BatchModel) else set()


def under_way(journal: Journal) -> list[BatchFacts]:
    """Return the batches of a journal, with no audit running, that have unanswered calls."""
    answered = {row.call for row in journal.calls()} | {number_of(r) for r in journal.sources()}
    answered |= {row.call for row in journal.judging()}
    sent = JournalRecord(journal, lambda number: number not in answered)
    return [batch for batch in sent.read() if not batch.lost]


class UnansweredCalls(Hook):
    """Counts this run's calls that stay unanswered, and ends the run if there are too many.

    ``share`` is the share of calls that may stay unanswered, from ``FEWEST`` calls on; once nothing
    is left to ask, any number of calls is enough. With 1 it never ends the run. With None the share
    is ``MUTE``, and the run also ends if none of the first ``FIRST`` calls was answered. In the
    end, answered calls of earlier runs count, too.

    ``runs`` is True if the audit asks the model itself. Whoever passes answers to the audit sees
    them, so their run is not ended.
    """

    runs = False

    def __init__(self, share: float | None, model: ModelDefaults) -> None:
        self._share, self._model = share, model
        self._answered, self._before = False, 0  # any answer yet; answered calls of earlier runs
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
                self._answered = True

    def on_replay(self, loop: Loop, calls: Mapping[int, CallRow]) -> None:
        """Take up a journal: calls of earlier runs show that the model could be reached.

        So a first refused call does not end this run. If one of them has an answer, the run also
        continues when all its first calls stay unanswered, unless ``share`` ends it.
        """
        if calls:
            self._model.trusted = True
        answered = [any(row.unanswered is None for row in c.answers) for c in calls.values()]
        self._before = sum(answered)
        self._answered |= any(answered)

    def on_end(self, loop: Loop) -> None:
        """Raise ModelError before the end is journaled, if too many calls stayed unanswered."""
        if self.runs:
            self._check(self._calls + self._before, fewest=1)

    def check(self) -> None:
        """Raise ModelError where too many calls stayed unanswered while more are to come."""
        if self._share is None and not self._answered and self._calls >= FIRST:
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
