"""The calls that wait for an answer, in the order in which they may be made.

A drawn call has the number of its question or image, 0 or more. One about source image s, or a
version of it, has the number -1 - s, and a repeat probe, which asks call c again, REPEATED - c.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import InputError, OrderError
from ..journal.rows import SourceRow
from ..pool import CONCEPT as ITEM
from ..types import Answer, Image, Prompt, Unanswered
from .judge import SourceCalls

REPEATED = -(2**63)
"""Calls about source images have larger numbers than this."""


def is_repeat_probe(number: int) -> bool:
    """Whether the call of this number is asked again."""
    return number <= REPEATED


def number_of(row: SourceRow) -> int:
    """The number under which the call of such a row waited in the queue."""
    return REPEATED + 1 + row.source if row.repeat_probe else -1 - row.source


@dataclass(frozen=True, repr=False)
class Call:
    """One call of the model: its number, the draw that led to it, and what to send.

    A call about a source image, to which others are compared, has a number below 0. ``made``: the
    prompt, or what makes it once it may be sent, as the answer about its source may decide on it.
    """

    number: int
    draw: int
    made: Prompt | Callable[[], Prompt]

    @cached_property
    def prompt(self) -> Prompt:
        return self.made if isinstance(self.made, Prompt) else self.made()

    @property
    def item(self) -> int:
        """Which item of a ``Pool`` it is about. Raises InputError for a call about an image."""
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
    """Calls that were committed and not yet answered. A call may have to wait for another."""

    def __init__(self) -> None:
        self._waiting: dict[int, Call] = {}
        self._handed: set[int] = set()
        self._after: dict[int, int] = {}
        self._part_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, number: int) -> bool:
        return number in self._waiting

    def put(self, call: Call, *, after: int | None = None, part_of: int | None = None) -> None:
        """Adds a call to the queue.

        ``after``: the source whose calls must all be answered before this one may be made.
        ``part_of``: the source that this call itself asks about.
        """
        self._waiting[call.number] = call
        if after is not None:
            self._after[call.number] = after
        if part_of is not None:
            self._part_of[call.number] = part_of

    @property
    def numbers(self) -> list[int]:
        return list(self._waiting)

    @property
    def under_way(self) -> int:
        """How many calls are being made."""
        return len(self._handed)

    @property
    def parts(self) -> int:
        """How many of the calls are about source images."""
        return len(self._part_of)

    @property
    def awaited(self) -> set[int]:
        """The sources that still lack an answer."""
        return set(self._part_of.values())

    def ready(self) -> list[Call]:
        """The calls that may be made now and are not being made."""
        awaited = self.awaited
        return [
            call
            for number, call in self._waiting.items()
            if number not in self._handed and self._after.get(number) not in awaited
        ]

    def hand_out(self, calls: list[Call]) -> None:
        self._handed.update(call.number for call in calls)

    def take_back(self, calls: Sequence[Call]) -> None:
        """The calls were not made; they are to be asked again."""
        self._handed.difference_update(call.number for call in calls)

    def expect(self, number: int) -> Call:
        """The call, if it may be answered now; raises OrderError if not."""
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
        """The call is answered."""
        del self._waiting[number]
        self._handed.discard(number)
        self._after.pop(number, None)
        self._part_of.pop(number, None)


class SourceQueue:
    """Puts calls about source images into the queue, each once, before those about follow-ups.

    ``begun``: the sources asked about, whether answered or not.
    """

    def __init__(self, sources: SourceCalls, queue: CallQueue, begun: set[int]) -> None:
        self.sources, self.begun, self._queue = sources, begun, queue

    def owns(self, number: int) -> bool:
        """Whether a call of this number is about a source image."""
        return number < 0 and not is_repeat_probe(number)

    def before(self, question: int, draw: int) -> int | None:
        """Queue the calls that ``question`` has to wait for; return its source, if any."""
        if not self.sources.count:
            return None
        source = self.sources.source_of(question)
        self.begun.add(source)
        self._put(source, draw)
        return source

    def row(self, number: int, answer: Answer | Unanswered, elapsed: float) -> SourceRow:
        """The answer to the call of this number, ready for the journal."""
        return self.sources.row(-1 - number, answer, elapsed)

    def received(self, row: SourceRow) -> None:
        """Take the answer to a call, which may make (more) versions necessary."""
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
        """Calls about source images, made or waiting."""
        return len(self.sources.known) + self._queue.parts

    @property
    def left(self) -> int:
        """The most calls about source images that another question, and what is asked already, may
        yet take."""
        fresh = self.sources.most_per_source if len(self.begun) < self.sources.count else 0
        return fresh + sum(map(self._not_received, self._queue.awaited))

    def _not_received(self, source: int) -> int:
        """How many versions may yet have to be asked about, in addition to those that wait."""
        count, most = self.sources.count, self.sources.most_per_source
        numbers = range(source, source + most * count, count)
        return sum(n not in self.sources.known and -1 - n not in self._queue for n in numbers)

    def _put(self, source: int, draw: int) -> None:
        for number in self.sources.missing(source):
            if -1 - number not in self._queue:
                prompt = self.sources.prompt(number)
                self._queue.put(Call(-1 - number, draw, prompt), part_of=source)
