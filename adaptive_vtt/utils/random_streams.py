"""Random numbers that depend on what they are for, never on when they are drawn."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence


def generator(seed: int | str, purpose: str, *numbers: int) -> np.random.Generator:
    """Return a counter-based generator (Philox) keyed by (seed, purpose, numbers).

    ``seed``: a number, or the key of an audit (``audit_key``).

    The same key gives the same stream on every machine, in any order of use; so a killed audit
    continues with the same draws.
    """
    key = "/".join((str(seed), purpose, *map(str, numbers))).encode()
    digest = hashlib.blake2b(key, digest_size=16).digest()
    seeding: Any = _Key(digest)  # numpy's stubs know no seed sequence but its own
    return np.random.Generator(np.random.Philox(seeding))


class _Key(ISeedSequence):
    """A digest as the Philox key. ``Philox(key=...)`` gives the same stream, but asks the
    operating system for entropy it then throws away, which costs more than all the rest."""

    def __init__(self, digest: bytes) -> None:
        self._digest = digest

    def generate_state(self, n_words: int, dtype: npt.DTypeLike = np.uint32) -> npt.NDArray[Any]:
        return np.frombuffer(self._digest, "<u8", n_words).astype(np.uint64)
