"""The time that an audit took, interruptions left out."""

from collections.abc import Callable


class Stopwatch:
    """Runs from when it is made, by ``clock``, which tells seconds from any start."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._since = clock, clock()
        self.before = 0.0
        """Seconds that it shows more, as the audit took them before it was interrupted."""

    def seconds(self) -> float:
        """What it shows."""
        return self.before + self._clock() - self._since
