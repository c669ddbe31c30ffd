"""An inspector's way through what there is to label; every label is saved as it is given."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from ..errors import OrderError
from .items import Item
from .labels import Label, Labels


def now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


class Session:
    """Begins at the first object without label; at the end, ``item`` is None.

    ``mine``: the inspector's labels so far; ``save`` is called with every new one.
    """

    def __init__(
        self,
        queue: Sequence[Item],
        inspector: str,
        mine: Labels,
        save: Callable[[Label], None],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.queue = list(queue)
        self.inspector = inspector
        self.place = -1
        self._mine = dict(mine)
        self._save = save
        self._clock = clock
        self._forward()

    @property
    def item(self) -> Item | None:
        """What is to be labelled now; None at the end."""
        return self.queue[self.place] if self.place < len(self.queue) else None

    @property
    def label(self) -> Label | None:
        """What this inspector said of it before."""
        return None if self.item is None else self._mine.get(self.item.key)

    @property
    def done(self) -> int:
        """How many objects of the queue are labelled."""
        return sum(item.key in self._mine for item in self.queue)

    def answer(self, type: str) -> None:
        """Labels the current object with an error type, or NONE, and goes on.

        Raises OrderError where every object of the queue has its label.
        """
        if self.item is None:
            raise OrderError("label: expected an object left to label, got an answer to none")
        question, name = self.item.key
        label = Label(question, name, self.inspector, type, self._clock())
        self._save(label)
        self._mine[label.key] = label
        self._forward()

    def skip(self) -> None:
        """Leaves the current object for later and goes on."""
        self._forward()

    def back(self) -> None:
        """Goes one object back, to see or change what was said of it."""
        self.place = max(0, self.place - 1)

    def _forward(self) -> None:
        """To the next object without label."""
        rest = range(self.place + 1, len(self.queue))
        free = (k for k in rest if self.queue[k].key not in self._mine)
        self.place = next(free, len(self.queue))
