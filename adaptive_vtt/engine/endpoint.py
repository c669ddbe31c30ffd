"""What is known of the model: how it is asked, what is on its way, if it fails.

The journal keeps how a model and its judge are asked, so that an audit that goes on asks in the
same way and reserves as much money, and the batches that were submitted, until their calls are
answered.
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


class JournaledWays(Hook):
    """``ModelDefaults.ways`` of ``model``, as the fact "ways"; and the ``bounds`` of tokens that it
    and its ``judge`` turned out to have, as the fact "bounds"."""

    def __init__(
        self, journal: Journal, model: ModelDefaults, judge: ModelDefaults | None = None
    ) -> None:
        self._journal, self._model, self._judge = journal, model, judge
        self._kept: Mapping[str, WayFacts] = {}
        self._bounds: Bounds = {}

    def recall(self, ways: Mapping[str, WayFacts], bounds: Bounds) -> None:
        """Tells the models what the journal has."""
        self._kept, self._bounds = ways, bounds
        self._model.keep_to(ways)
        self._model.keep_bounds(bounds)
        if self._judge is not None and "judge" in bounds:
            self._judge.keep_bounds({"": bounds["judge"]})

    def before_commit(self, loop: Loop) -> None:
        """Write how the model is asked, where that is new, before the answers to it."""
        ways, bounds = self._model.elicitation(), dict(self._model.bounds())
        if ways != self._kept:
            modes = {side: mode.model_dump(mode="json") for side, mode in ways.items()}
            self._journal.set_facts(ways=modes)
            self._kept = ways
        if self._judge is not None and (limits := self._judge.bounds()):
            bounds["judge"] = limits[""]
        if bounds != self._bounds:
            self._journal.set_facts(bounds=bounds)
            self._bounds = bounds


class JournalRecord:
    """``models.base.Record`` in an audit's journal; ``awaits`` says which calls wait.

    The fact "batches" is written before anything is submitted. Batches that were lost stay in it,
    for the report to tell of.
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
        """The numbers of the calls that were submitted and wait."""
        return {number for batch in self.read() for number in batch.calls if self._awaits(number)}

    def _all(self) -> tuple[BatchFacts, ...]:
        return read_facts(self._journal.facts()).batches


def give_up(journal: Journal, name: str) -> None:
    """Counts the batch of which the provider's id is ``name`` as lost, at its worst price. Raises
    InputError where no answers of such a batch are awaited."""
    waiting = [batch.id for batch in under_way(journal) if batch.id is not None]
    if name not in waiting:
        awaited = ", ".join(waiting) or "none is"
        raise InputError(
            f"--give-up-batch: expected a batch that is awaited ({awaited}), got {name!r}"
        )
    batches = read_facts(journal.facts()).batches
    given_up = [b.model_copy(update={"lost": True}) if b.id == name else b for b in batches]
    journal.set_facts(batches=[batch.model_dump(mode="json") for batch in given_up])


def submitted(model: ModelDefaults, journal: Journal, awaits: Callable[[int], bool]) -> set[int]:
    """The numbers of an audit's calls in batches that may be answered yet."""
    return JournalRecord(journal, awaits).calls() if isinstance(model, BatchModel) else set()


def under_way(journal: Journal) -> list[BatchFacts]:
    """The batches of a journal, at rest, of which some call was not answered."""
    answered = {row.call for row in journal.calls()} | {number_of(r) for r in journal.sources()}
    answered |= {row.call for row in journal.judging()}
    sent = JournalRecord(journal, lambda number: number not in answered)
    return [batch for batch in sent.read() if not batch.lost]


class Failing(Hook):
    """Counts the calls that this process made, and those that stayed unanswered.

    ``share``: raise ModelError when more than this share of calls stays unanswered, of
    ``FEWEST`` calls or more, and of all calls once nothing is left to ask; 1: never; None: when it
    is more than half, or none of the first ``FIRST`` was answered. Of earlier runs only answered
    calls count, and only in the end. ``runs``: whether the audit asks the model itself; who tells
    answers by hand sees what they are.
    """

    runs = False

    def __init__(self, share: float | None, model: ModelDefaults) -> None:
        self._share, self._model = share, model
        self._answered, self._before = False, 0  # answered calls of earlier runs
        self._calls, self._reasons = 0, Counter[str]()

    def on_received(self, loop: Loop, answers: Collection[Answer | Unanswered]) -> None:
        """Counts these; a call is unanswered where none of its questions has an answer."""
        for answer in answers:
            self._calls += 1
            values = (answer,) if isinstance(answer, Unanswered) else answer.values
            missing = [_missing(value) for value in values]
            if all(missing):
                self._reasons[missing[0] or ""] += 1
            else:
                self._answered = True

    def on_replay(self, loop: Loop, calls: Mapping[int, CallRow]) -> None:
        """Calls of an earlier run show that the model could be reached, so a first refused call
        does not end this run.

        Where one of them has an answer, the model is known to answer: a run whose first calls all
        stay unanswered then goes on, unless ``share`` ends it.
        """
        if calls:
            self._model.trusted = True
        answered = [any(row.unanswered is None for row in c.answers) for c in calls.values()]
        self._before = sum(answered)
        self._answered |= any(answered)

    def on_end(self, loop: Loop) -> None:
        """An end is not journaled where too many calls stayed unanswered."""
        if self.runs:
            self._check(self._calls + self._before, fewest=1)

    def check(self) -> None:
        """Raise ModelError where too many calls stayed unanswered while more are to come."""
        if self._share is None and not self._answered and self._calls >= FIRST:
            raise self._error("none was answered, where fail_on_error = 1 would go on")
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
            f"{remedy(reason)}; what came back is kept: mend the cause and go on"
        )


def _missing(value: Value) -> str | None:
    """Why there is no answer; of two models, why there is none of one of them."""
    if isinstance(value, PairedAnswer):
        return _missing(value.a) or _missing(value.b)
    return value.reason if isinstance(value, Unanswered) else None
