"""The law a call is drawn from: a strategy's weights, mixed with a floor."""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import AvttError, JournalError
from ..types import Indices

Floats = npt.NDArray[np.float64]

_MOST_BYTES = 2**30
"""A packed law takes 16 bytes per call; no audit looks at so many candidates."""


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
        """The law as bytes for the journal: those of probability zero are left out."""
        kept = np.flatnonzero(self.probabilities)
        kept = kept[np.argsort(self.calls[kept])]
        numbers = np.diff(self.calls[kept], prepend=0)
        body = numbers.astype("<i8").tobytes() + self.probabilities[kept].astype("<f8").tobytes()
        return zlib.compress(body, level=1)

    @classmethod
    def unpack(cls, packed: bytes) -> "Law":
        """The law that ``pack`` wrote, in order of call number.

        Raises JournalError for what it cannot have written, before much is unpacked.
        """
        unpacking = zlib.decompressobj()
        try:
            body = unpacking.decompress(packed, _MOST_BYTES)
        except (TypeError, zlib.error):
            body = b"damaged"
        if len(body) % 16 or not unpacking.eof:
            raise JournalError(
                "journal: expected the law of a draw, got other bytes; the journal is damaged: "
                "restore a copy of it"
            )
        half = len(body) // 2
        numbers = np.cumsum(np.frombuffer(body[:half], "<i8"))
        return cls(numbers, np.frombuffer(body[half:], "<f8"))


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
