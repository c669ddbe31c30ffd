"""The law a call is drawn from: a strategy's weights, mixed with a floor."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import AvttError
from ..journal import packed_law
from ..types import Bools, Floats, Indices


@dataclass(frozen=True)
class Law:
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
        """The law as bytes for the journal."""
        return packed_law.pack(self.calls, self.probabilities)

    @classmethod
    def unpack(cls, packed: bytes) -> "Law":
        """The law that ``pack`` wrote; raises JournalError for what it cannot have written."""
        return cls(*packed_law.unpack(packed))


def mix(calls: Indices, weights: Floats, floor: float, even: Floats | None = None) -> Law:
    """q = (1 - floor) w / sum(w) + floor * even, for m weights >= 0.

    ``even`` (m,) is a law of its own, uniform by default. Raises AvttError where a strategy
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
    if floor == 0:
        return Law(calls, weights / total)
    spread = 1 / len(weights) if even is None else even
    return Law(calls, (1 - floor) * weights / total + floor * spread)


def shares_of(
    mixture: Mapping[str, Floats], mine: Bools, floor: float, probability: float
) -> dict[str, float]:
    """The parts of a call's ``probability``, by reason, "even" last: each of the ``mixture`` of
    weights (n,) gives what its questions ``mine`` weigh, and the floor the rest."""
    total = sum(float(part.sum()) for part in mixture.values())
    found = {n: (1 - floor) * float(part[mine].sum()) / total for n, part in mixture.items()}
    return found | {"even": max(probability - sum(found.values()), 0.0)}
