"""Batches that a model submitted, kept in the journal until their calls are answered."""

from collections.abc import Callable, Sequence

from ..errors import InputError
from ..journal import Journal
from ..journal.facts import BatchFacts, read_facts
from ..models.base import BatchModel, ModelDefaults
from .repeat_probes import number_of


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
