"""The proposal a call is drawn from: a strategy's weights, mixed with exploration."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import AvttError
from ..journal import packed_proposal
from ..types import Bools, Floats, Indices


@dataclass(frozen=True)
class Proposal:
    """m calls (m,) and their probabilities (m,), which sum to one."""

    calls: Indices
    probabilities: Floats

    def draw(self, rng: np.random.Generator) -> int:
        """The place (0..m-1) of one call, by inverse transform."""
        ends = np.cumsum(self.probabilities)
        place = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        # rounding may point past the end, or at a call of probability zero there
        place = min(place, len(ends) - 1)
        while self.probabilities[place] == 0:
            place -= 1
        return place

    def pack(self) -> bytes:
        """The proposal as bytes for the journal."""
        return packed_proposal.pack(self.calls, self.probabilities)

    @classmethod
    def unpack(cls, packed: bytes) -> "Proposal":
        """The proposal that ``pack`` wrote; raises JournalError for what it cannot have written."""
        return cls(*packed_proposal.unpack(packed))


def mix(
    calls: Indices, weights: Floats, exploration: float, even: Floats | None = None
) -> Proposal:
    """q = (1 - exploration) w / sum(w) + exploration * even, for m weights >= 0.

    ``even`` (m,) is a proposal of its own, uniform by default. Raises AvttError where a strategy
    returned something that is no set of weights.
    """
    if weights.shape != calls.shape:
        raise AvttError(f"strategy: expected {calls.shape} weights, got {weights.shape}")
    total = weights.sum()
    # a sum is finite only where every weight is
    if not (np.isfinite(total) and weights.min(initial=0.0) >= 0):
        raise AvttError("strategy: expected finite weights of at least 0, got others")
    if total <= 0:
        raise AvttError(f"strategy: expected weight on some of {len(weights)} candidates, got none")
    if exploration == 0:
        return Proposal(calls, weights / total)
    spread = 1 / len(weights) if even is None else even
    return Proposal(calls, (1 - exploration) * weights / total + exploration * spread)


def shares_of(
    mixture: Mapping[str, Floats], mine: Bools, exploration: float, probability: float
) -> dict[str, float]:
    """The parts of a call's ``probability``, by reason, "even" last: each of the ``mixture`` of
    weights (n,) gives what its questions ``mine`` weigh, and the exploration the rest."""
    total = sum(float(part.sum()) for part in mixture.values())
    found = {n: (1 - exploration) * float(part[mine].sum()) / total for n, part in mixture.items()}
    return found | {"even": max(probability - sum(found.values()), 0.0)}
