"""What an oracle's details teach an audit beyond the loss: for predictions and strategies."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor


class Memory(Protocol):
    """Learns from judged answers' details, in draw order; kept by ``Belief``."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns of ``signals`` are."""

    @property
    def extra(self) -> float:
        """How many versions of a source have to be asked about, on average."""

    def take(self, question: int) -> None:
        """A question was drawn."""

    def learn(self, question: int, details: Mapping[str, Any]) -> None:
        """A question was judged."""

    def signals(self, sample: Tensor, variant: Tensor) -> Tensor:
        """(n, P): P guesses at each question's loss, in [0, 1]."""
