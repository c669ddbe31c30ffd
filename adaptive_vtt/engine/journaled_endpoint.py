"""The journal's record of a model's endpoint: elicitation, token bounds, batches.

A resumed audit asks the model and its judge in the same way and reserves as much money. It knows
the batches that were submitted until their calls are answered.
"""

from collections.abc import Callable, Mapping, Sequence

from ..errors import InputError
from ..journal import Journal
from ..journal.facts import BatchFacts, WayFacts, read_facts
from ..models.base import ModelDefaults
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


def under_way(journal: Journal) -> list[BatchFacts]:
    """Return the batches of a journal, with no audit running, that have unanswered calls."""
    answered = {row.call for row in journal.calls()} | {number_of(r) for r in journal.sources()}
    answered |= {row.call for row in journal.judging()}
    sent = JournalRecord(journal, lambda number: number not in answered)
    return [batch for batch in sent.read() if not batch.lost]
