"""The queue of calls that wait for an answer, in the order in which they may be made.

A drawn call has the number of its question or image, 0 or more. A call about source image s, or a
version of it, has the number -1 - s. A repeat probe of call c has the number REPEATED - c.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import InputError, OrderError
from ..journal.rows import SourceRow
from ..pool import CONCEPT as ITEM
from ..types import Answer, Image, Prompt, Unanswered
from .source_calls import SourceCalls

REPEATED = -(2**63)
"""Calls about source images have larger numbers than this."""


def is_repeat_probe(number: int) -> bool:
    """Return whether the call of this number is a repeat probe."""
    return number <= REPEATED


def number_of(row: SourceRow) -> int:
    """Return the number that the call of a row had in the queue."""
    return REPEATED + 1 + row.source if row.repeat_probe else -1 - row.source


@dataclass(frozen=True, repr=False)
class Call:
    """One call of the model.

    Attributes:
        number: Its number; below 0 for a call about a source image and for a repeat probe.
        draw: The number of the draw that led to it; -1 for a repeat probe.
        made: The prompt, or a function that makes it when it is sent: the prompt may depend on
            the answer about the source image.
    """

    number: int
    draw: int
    made: Prompt | Callable[[], Prompt]

    @cached_property
    def prompt(self) -> Prompt:
        return self.made if isinstance(self.made, Prompt) else self.made()

    @property
    def item(self) -> int:
        """The item of a ``Pool`` that it is about; raises InputError if it is about an image."""
        if self.prompt.concepts != (ITEM,):
            raise InputError(
                f"call: expected one about an item of a pool, got one about sample "
                f"{self.prompt.sample_id!r}; look at call.image"
            )
        return REPEATED - self.number if is_repeat_probe(self.number) else self.number

    @property
    def image(self) -> Image | None:
        return self.prompt.image

    @property
    def concepts(self) -> tuple[str, ...]:
        return self.prompt.concepts

    def __repr__(self) -> str:
        return f"Call({self.number}, draw {self.draw}: {self.prompt!r})"


class CallQueue:
    """Calls that were committed and are not answered. A call may have to wait for others."""

    def __init__(self) -> None:
        self._waiting: dict[int, Call] = {}
        self._handed_out: set[int] = set()
        self._after: dict[int, int] = {}  # call -> source that has to be answered first
        self._part_of: dict[int, int] = {}  # call about a source or a version -> that source

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, number: int) -> bool:
        return number in self._waiting

    def put(self, call: Call, *, after: int | None = None, part_of: int | None = None) -> None:
        """Add a call to the queue.

        Args:
            call: The call.
            after: The source whose calls must all be answered before this one is made.
            part_of: The source that this call itself asks about.
        """
        self._waiting[call.number] = call
        if after is not None:
            self._after[call.number] = after
        if part_of is not None:
            self._part_of[call.number] = part_of

    @property
    def under_way(self) -> int:
        """The number of calls that are being made."""
        return len(self._handed_out)

    @property
    def source_calls(self) -> int:
        """The number of waiting calls about source images and versions of them."""
        return len(self._part_of)

    @property
    def awaited(self) -> set[int]:
        """The sources that an answer is missing about."""
        return set(self._part_of.values())

    def ready(self) -> list[Call]:
        """Return the calls that may be made now and are not being made."""
        awaited = self.awaited
        return [
            call
            for number, call in self._waiting.items()
            if number not in self._handed_out and self._after.get(number) not in awaited
        ]

    def hand_out(self, calls: list[Call]) -> None:
        """Note that these calls are being made."""
        self._handed_out.update(call.number for call in calls)

    def take_back(self, calls: Sequence[Call]) -> None:
        """Note that these calls were not made, or not answered: they are ready again."""
        self._handed_out.difference_update(call.number for call in calls)

    def expect(self, number: int) -> Call:
        """Return a call that may be answered now; raise OrderError if it may not."""
        if number not in self._waiting:
            raise OrderError(
                f"tell: call {number} is not waiting for an answer: it was never asked, or is "
                "answered already"
            )
        if self._after.get(number) in self.awaited:
            raise OrderError(
                f"tell: call {number} waits for the answer about its source image, which is first"
            )
        return self._waiting[number]

    def done(self, number: int) -> None:
        """Remove a call that was answered."""
        del self._waiting[number]
        self._handed_out.discard(number)
        self._after.pop(number, None)
        self._part_of.pop(number, None)


class SourceQueue:
    """Puts each call about a source image into the queue once, before those about its follow-ups.

    ``begun`` are the sources that were asked about, answered or not.
    """

    def __init__(self, sources: SourceCalls, queue: CallQueue, begun: set[int]) -> None:
        self.sources, self.begun, self._queue = sources, begun, queue

    def owns(self, number: int) -> bool:
        """Return whether a call of this number is about a source image or a version of it."""
        return number < 0 and not is_repeat_probe(number)

    def before(self, question: int, draw: int) -> int | None:
        """Queue the calls that ``question`` has to wait for; return its source, or None."""
        if not self.sources.count:
            return None
        source = self.sources.source_of(question)
        self.begun.add(source)
        self._put(source, draw)
        return source

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """Return the journal's row of the answer to call ``number``, after ``elapsed`` seconds."""
        return self.sources.row(-1 - number, answer, elapsed)

    def received(self, row: SourceRow) -> None:
        """Take an answer, and queue the calls about versions that it makes necessary."""
        draw = self._queue.expect(-1 - row.source).draw
        self.sources.keep(row)
        self._queue.done(-1 - row.source)
        self._put(self.sources.root(row.source), draw)

    def recall(self, row: SourceRow) -> None:
        """Take an answer from the journal."""
        self.sources.keep(row)
        self.begun.add(self.sources.root(row.source))

    @property
    def calls(self) -> int:
        """The number of calls about source images and versions, made or waiting."""
        return len(self.sources.known) + self._queue.source_calls

    @property
    def left(self) -> int:
        """The most calls about source images that may follow, if one more question is drawn."""
        count, most = self.sources.count, self.sources.most_per_source
        fresh = most if len(self.begun) < count else 0
        # Versions of awaited sources that do not wait yet, and may become necessary.
        versions = 0
        for source in self._queue.awaited:
            for number in range(source, source + most * count, count):
                versions += number not in self.sources.known and -1 - number not in self._queue
        return fresh + versions

    def _put(self, source: int, draw: int) -> None:
        for number in self.sources.missing(source):
            if -1 - number not in self._queue:
                prompt = self.sources.prompt(number)
                self._queue.put(Call(-1 - number, draw, prompt), part_of=source)
