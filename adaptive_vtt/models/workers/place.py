"""Where a worker holds the model: what the pool asks of a process or an actor."""

from collections.abc import Sequence
from typing import Protocol

from ...types import Answer, Prompt, Unanswered
from .holding import About


class Died(Exception):
    """The worker is gone; the message says how it ended."""


class Place(Protocol):
    """One worker at a time, begun again after it died. Used by one thread, but for ``close``."""

    def start(self) -> About:
        """Begins a worker and makes the model. Raises Died, or what is wrong with the model."""

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """One answer per prompt. Raises Died, or ModelError as the model did."""

    def close(self) -> None:
        """Ends the worker, whatever it does; a second call does nothing. From any thread."""
