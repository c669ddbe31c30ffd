"""Random numbers that depend on their purpose, and not on the order in which they are drawn."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence


def generator(seed: int | str, purpose: str, *numbers: int) -> np.random.Generator:
    """Return a counter-based generator (Philox) keyed by (seed, purpose, numbers).

    The same key gives the same stream on all machines, in any order of use, so that a killed audit
    resumes with the same draws.

    Args:
        seed: A number, or the key of an audit (``audit_key``).
        purpose: A text, different for each use of random numbers.
        *numbers: Further parts of the key, such as the number of a draw.
    """
    key = "/".join((str(seed), purpose, *map(str, numbers))).encode()
    digest = hashlib.blake2b(key, digest_size=16).digest()
    seed_sequence: Any = _Key(digest)  # numpy's stubs accept only its own class
    return np.random.Generator(np.random.Philox(seed_sequence))


class _Key(ISeedSequence):
    """A digest as the key of Philox. ``Philox(key=...)`` gives the same stream, but reads entropy
    from the operating system without using it, which takes most of the time."""

    def __init__(self, digest: bytes) -> None:
        self._digest = digest

    def generate_state(self, n_words: int, dtype: npt.DTypeLike = np.uint32) -> npt.NDArray[Any]:
        return np.frombuffer(self._digest, "<u8", n_words).astype(np.uint64)
