"""Number of threads of numerical libraries: one for the audit's small arrays, all for models.

The nets, posteriors and proposals of an audit are thousands of operations on tiny tensors. On
several threads each of them would spend more time on synchronisation than on computation.
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
    """Numbers of threads outside of ``one_thread``: of PyTorch, and of BLAS and OpenMP."""

    torch: int
    limits: threadpool_limits


_outside: ContextVar[_Outside | None] = ContextVar("threads outside of one_thread", default=None)


@cache
def _libraries() -> ThreadpoolController:
    """Return a controller of all loaded BLAS and OpenMP libraries."""
    import cv2  # noqa: F401  (it and SciPy load further BLAS libraries)
    import scipy.linalg  # noqa: F401
    import torch  # noqa: F401

    return ThreadpoolController()


@contextmanager
def one_thread(models: bool = False) -> Iterator[None]:
    """Compute with one thread within the block.

    Nothing is limited before PyTorch is loaded, as NumPy alone has little to compute.

    Args:
        models: Whether models are limited, too (``users_threads``), for audits in parallel.
    """
    torch = import_module("torch") if models else sys.modules.get("torch")
    threads = 1 if torch is None else torch.get_num_threads()
    if torch is None or threads == 1:
        yield
        return
    with _libraries().limit(limits=1) as limits:
        token = _outside.set(None if models else _Outside(threads, limits))
        torch.set_num_threads(1)  # the controller does not know PyTorch's MKL
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            _outside.reset(token)


@contextmanager
def users_threads() -> Iterator[None]:
    """Compute with as many threads as outside of ``one_thread``, for users' models."""
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
