"""The random states that a whole process shares, set for a moment and put back."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np

_LOCK = RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within it, ``random``, ``numpy.random`` and PyTorch (on the CPU) draw from ``seed``, which
    lies in 0..2**32-1; after it they go on as if nothing had been drawn.

    One thread at a time may be within; threads that draw from these states outside of it, at the
    same moment, are not kept away.
    """
    import torch

    with _LOCK:
        python, pytorch = random.getstate(), torch.get_rng_state()
        legacy = np.random.get_state()  # noqa: NPY002 -- the state of other people's code
        try:
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            torch.default_generator.manual_seed(seed)
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002
            torch.set_rng_state(pytorch)
