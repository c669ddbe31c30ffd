"""Ray, where it is wanted: imported when it is used, and quiet."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InputError, one_line
from .extras import pip_install


def joined(address: str | None = None) -> Any:
    """The module ``ray``, connected to the cluster at ``address``.

    None: to the one that this program has joined, or that RAY_ADDRESS names; else one is started on
    this machine, without a dashboard and without sending statistics of its use anywhere, which
    ends with this program. Raises InputError where Ray is not installed or cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when a cluster is started
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else a warning
    try:
        import ray
    except ImportError:
        raise InputError(f"workers on Ray need ray: {pip_install('ray')}") from None
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {"address": address, "log_to_driver": False}
    if address is None and not os.environ.get("RAY_ADDRESS"):
        options |= {"address": "local", "include_dashboard": False}
    try:
        with _own_handlers():
            ray.init(configure_logging=True, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises whatever the layer below it does
        where = address or os.environ.get("RAY_ADDRESS") or "this machine"
        raise InputError(f"workers: cannot join Ray at {where}: {one_line(error)[:200]}") from None
    return ray


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Ray sets handlers of signals; those that were there are put back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
