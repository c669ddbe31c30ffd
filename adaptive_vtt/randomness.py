"""Random numbers that depend on what they are for, never on when they are drawn."""

import hashlib

import numpy as np


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """A counter-based generator (Philox) keyed by (seed, purpose, numbers).

    The same key gives the same stream on every machine, in any order of use; this is
    what lets a killed audit go on with the same draws.
    """
    key = "/".join((str(seed), purpose, *map(str, numbers))).encode()
    digest = hashlib.blake2b(key, digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
