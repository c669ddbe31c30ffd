"""What a strategy is: one method."""

from typing import TYPE_CHECKING, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from adaptive_vtt.engine.belief import Belief
    from adaptive_vtt.types import Candidates


class Strategy(Protocol):
    """Says how much each candidate is worth asking; the engine draws."""

    def weights(self, candidates: "Candidates", belief: "Belief") -> Tensor:
        """Weights (n,), finite, >= 0, not all zero, for n >= 1 candidates.

        Must depend on nothing but its arguments, and must not change them.
        """
