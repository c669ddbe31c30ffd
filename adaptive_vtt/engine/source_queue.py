"""Calls beside those that are drawn: about source images before their follow-ups, and repeat
probes."""

from ..journal.rows import SourceRow
from ..types import Answer, Unanswered
from .call_queue import Call, CallQueue
from .repeat_probes import RepeatProbes, is_repeat_probe
from .source_calls import SourceCalls


class SourceQueue:
    """Puts calls about source images into the queue, each once.

    ``begun``: the sources asked about, whether answered or not. What is told of repeat probes goes
    on to them.
    """

    def __init__(
        self, sources: SourceCalls, queue: CallQueue, begun: set[int], repeat_probes: RepeatProbes
    ) -> None:
        self.sources = sources
        self.begun = begun
        self._queue = queue
        self._repeat_probes = repeat_probes

    def before(self, question: int, draw: int) -> int | None:
        """Queues what has to be heard before ``question`` can be asked; its source, if any."""
        if not self.sources.count:
            return None
        source = self.sources.of(question)
        self.begun.add(source)
        self._put(source, draw)
        return source

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """The answer to the call of this number, ready for the journal."""
        if is_repeat_probe(number):
            return self._repeat_probes.row(number, answer, elapsed)
        return self.sources.row(-1 - number, answer, elapsed)

    def received(self, row: SourceRow) -> None:
        """Takes the answer to a call; what was said may call for (more) versions."""
        if row.repeat_probe:
            self._repeat_probes.received(row)
            return
        draw = self._queue.expect(-1 - row.source).draw
        self.sources.know(row)
        self._queue.done(-1 - row.source)
        self._put(self.sources.root(row.source), draw)

    def recall(self, row: SourceRow) -> None:
        """An answer that the journal tells of."""
        if row.repeat_probe:
            self._repeat_probes.recall(row)
            return
        self.sources.know(row)
        self.begun.add(self.sources.root(row.source))

    @property
    def calls(self) -> int:
        """Calls about source images and repeat probes, made or waiting."""
        return len(self.sources.known) + self._queue.parts + self._repeat_probes.calls

    @property
    def most(self) -> int:
        """The most calls that another question, and what is asked already, may yet take."""
        fresh = self.sources.most if len(self.begun) < self.sources.count else 0
        return (
            1 + fresh + sum(map(self._not_received, self._queue.awaited)) + self._repeat_probes.left
        )

    def _not_received(self, source: int) -> int:
        """How many versions may yet have to be asked about, beside those that wait."""
        count, most = self.sources.count, self.sources.most
        numbers = range(source, source + most * count, count)
        return sum(n not in self.sources.known and -1 - n not in self._queue for n in numbers)

    def _put(self, source: int, draw: int) -> None:
        for number in self.sources.missing(source):
            if -1 - number not in self._queue:
                prompt = self.sources.prompt(number)
                self._queue.put(Call(-1 - number, draw, prompt), part_of=source)
