"""How many threads numerical libraries compute with: one for the audit's own small arrays, as many
as before for models.

The nets, posteriors and proposals of an audit are thousands of operations on tiny tensors. Spread
over all cores, each waits longer for the threads to meet than it computes.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import NamedTuple

from threadpoolctl import ThreadpoolController, threadpool_limits


class _Outside(NamedTuple):
    """The threads outside of ``one_thread``: PyTorch's, and those of BLAS and OpenMP."""

    torch: int
    limits: threadpool_limits


_outside: ContextVar[_Outside | None] = ContextVar("threads outside of one_thread", default=None)


@cache
def _libraries() -> ThreadpoolController:
    """Return the control of every BLAS and OpenMP that is loaded, NumPy's and SciPy's included."""
    import cv2  # noqa: F401  (it and SciPy bring a BLAS of their own)
    import scipy.linalg  # noqa: F401
    import torch  # noqa: F401

    return ThreadpoolController()


@contextmanager
def one_thread(models: bool = False) -> Iterator[None]:
    """Compute with one thread, and restore the numbers of threads afterwards.

    Before PyTorch is loaded nothing is limited: NumPy alone has little to compute for an audit.

    Args:
        models: Whether ``users_threads`` are limited, too, for audits that run next to each other.
    """
    torch = import_module("torch") if models else sys.modules.get("torch")
    threads = 1 if torch is None else torch.get_num_threads()
    if torch is None or threads == 1:
        yield
        return
    with _libraries().limit(limits=1) as limits:
        token = _outside.set(None if models else _Outside(threads, limits))
        torch.set_num_threads(1)  # its MKL is none of the libraries above
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            _outside.reset(token)


@contextmanager
def users_threads() -> Iterator[None]:
    """Compute with as many threads as outside of ``one_thread``, for code that is not ours."""
    outside = _outside.get()
    if outside is None:
        yield
        return
    import torch

    outside.limits.restore_original_limits()
    torch.set_num_threads(outside.torch)
    try:
        yield
    finally:
        _libraries().limit(limits=1)
        torch.set_num_threads(1)
