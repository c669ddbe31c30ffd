"""Devices of PyTorch, and Ray clusters. Both libraries are imported on first use."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InputError, one_line
from .importing import needed

if TYPE_CHECKING:
    import torch


def pick(device: str = "auto") -> "torch.device":
    """Return a device of PyTorch.

    Args:
        device: "auto" (CUDA if available, else the CPU), "cpu", "cuda" or another name.

    Raises:
        InputError: The device is unknown or cannot be used.
    """
    import torch

    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError:
        raise InputError(
            f"device {device!r} cannot be used: expected auto, cpu, cuda, or another name that "
            "torch knows"
        ) from None
    try:
        torch.ones(1, dtype=torch.float64, device=chosen).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(
            f"device {device!r} cannot be used: {one_line(error)[:120]}; 'auto' is CUDA where "
            "there is one, else cpu"
        ) from None
    return chosen


def cuda_devices() -> list[str]:
    """Return the CUDA devices that this process may use, in the form of CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def joined(address: str | None = None) -> Any:
    """Return the module ``ray``, connected to a cluster.

    Args:
        address: Address of the cluster. Default None: the one that this program has joined, or that
            RAY_ADDRESS names. Without either, a cluster is started on this machine, which ends with
            this program, has no dashboard, and sends no usage statistics.

    Raises:
        InputError: Ray is not installed, or cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when a cluster is started
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # avoids a warning
    with needed("ray", "workers on Ray need ray"):
        import ray
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {"address": address, "log_to_driver": False}
    if address is None and not os.environ.get("RAY_ADDRESS"):
        options |= {"address": "local", "include_dashboard": False}
    try:
        with _own_handlers():
            ray.init(configure_logging=True, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises errors of many types
        where = address or os.environ.get("RAY_ADDRESS") or "this machine"
        raise InputError(f"workers: cannot join Ray at {where}: {one_line(error)[:200]}") from None
    return ray


@contextmanager
def _own_handlers() -> Iterator[None]:
    """Restore the handlers of signals that Ray replaces within the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
