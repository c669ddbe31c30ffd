"""The proposal of a draw as bytes, as it stands in the journal: calls and their probabilities."""

import zlib
from typing import NamedTuple

import numpy as np

from ..errors import JournalError
from ..types import Floats, Indices

_MAX_BYTES = 2**30
"""A packed proposal takes 16 bytes per call; no audit looks at so many candidates."""


class PackedProposal(NamedTuple):
    """m calls (m,), ascending, and their probabilities (m,), none of them 0 as written."""

    calls: Indices
    probabilities: Floats


def pack(calls: Indices, probabilities: Floats) -> bytes:
    """The proposal (m,), (m,) as bytes: calls of probability zero are left out."""
    kept = np.flatnonzero(probabilities)
    kept = kept[np.argsort(calls[kept])]
    numbers = np.diff(calls[kept], prepend=0)
    body = numbers.astype("<i8").tobytes() + probabilities[kept].astype("<f8").tobytes()
    return zlib.compress(body, level=1)


def unpack(packed: bytes) -> PackedProposal:
    """The proposal that ``pack`` wrote, in order of call number.

    Raises JournalError for what it cannot have written, before much is unpacked.
    """
    unpacking = zlib.decompressobj()
    try:
        body = unpacking.decompress(packed, _MAX_BYTES)
    except (TypeError, zlib.error):
        body = b"damaged"
    if len(body) % 16 or not unpacking.eof:
        raise JournalError(
            "journal: expected the proposal of a draw, got other bytes; the journal is damaged: "
            "restore a copy of it"
        )
    half = len(body) // 2
    numbers = np.cumsum(np.frombuffer(body[:half], "<i8"))
    return PackedProposal(numbers, np.frombuffer(body[half:], "<f8"))
