"""Where workers run: processes of this machine, and actors of a Ray cluster."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Protocol

from ...errors import OrderError, one_line
from ...types import Answer, Prompt, Unanswered
from ...utils.devices import joined
from .holding import About, Holding

CLOSED = "workers: were closed; they cannot be asked any more"


class Died(Exception):
    """The worker is gone; the message says how it ended."""


class Worker(Protocol):
    """A model held elsewhere. Used by one thread at a time, except for ``close``."""

    def start(self) -> About:
        """Start a worker, in place of one that died, and make the model.

        Raises:
            Died: The worker ended before the model was made.
            AvttError: The model cannot be made.
        """

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """Return one answer per prompt. Raise Died, or ModelError as the model did."""

    def close(self) -> None:
        """End the worker, even while it computes. May be called from any thread, and again."""


class LocalProcess:
    """A process that holds the model: a pool of one, so that it is known which call it died of.

    Args:
        make: The pickled function that makes the model.
        device: The CUDA device that the process sees; None: all.
    """

    def __init__(self, make: bytes, device: str | None = None) -> None:
        self._initial = make, device
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()  # held while a pool is made or closed
        self._closed = False

    def start(self) -> About:
        with self._lock:
            if self._closed:
                raise OrderError(CLOSED)
            self._context = _Context()
            self._pool = ProcessPoolExecutor(1, self._context, _begin, self._initial)
        return self._call(_about)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return self._call(_ask, list(prompts))

    def close(self) -> None:
        with self._lock:
            self._closed, pool, self._pool = True, self._pool, None
        if pool is None:
            return
        pool.shutdown(wait=False, cancel_futures=True)
        if (process := self._context.process) is not None:
            process.join(PATIENCE if self._last.done() else 0.0)  # idle: it closes the model
            process.kill()
        pool.shutdown()
        self._context = _Context()  # the process, once nobody has it, lets go of its pipes

    @property
    def pid(self) -> int | None:
        """The number of the process; None before it was started."""
        process = self._context.process if self._pool else None
        return None if process is None else process.pid

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if (pool := self._pool) is None:
            raise OrderError(CLOSED)
        try:
            self._last = pool.submit(function, *arguments)
            return self._last.result()
        except (BrokenProcessPool, CancelledError):
            pool.shutdown()  # until it is known how the process ended
        code = (self._context.process and self._context.process.exitcode) or 0
        killed = f"was ended by {signal.Signals(abs(code)).name}" if code < 0 else ""
        raise Died(killed or f"ended with code {code}")


PATIENCE = 1.0
"""Seconds that a worker without a call may take to end."""


class _Context(SpawnContext):
    """Keeps the process that a pool starts: pools do not say how theirs ended."""

    process: SpawnProcess | None = None

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]
        self.process = SpawnProcess(*args, **options)
        return self.process


# -- in the worker's process ------------------------------------------------------------------

_holding: Holding


def _begin(make: bytes, device: str | None) -> None:
    global _holding
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the audit, which ends this
    os.dup2(2, 1)  # what a model prints is not part of the command's output
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers are many; PyTorch reads it
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device  # read when CUDA is first used
    _holding = Holding(make)


def _end_with_parent() -> None:
    """End with the audit's process, however that ends, even while the model computes."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _about() -> About:
    return _holding.about()


def _ask(prompts: list[Prompt]) -> list[Answer | Unanswered]:
    return _holding.ask(prompts)


# -- on Ray -----------------------------------------------------------------------------------


class RayActor:
    """An actor that holds the model.

    Args:
        ray: The module, which has joined a cluster.
        make: The pickled function that makes the model.
        cpus: How many CPUs it needs; may be a fraction.
        gpus: How many GPUs it needs; may be a fraction.
    """

    def __init__(self, ray: Any, make: bytes, *, cpus: float, gpus: float) -> None:
        self._ray, self._make = ray, make
        self._class = ray.remote(Holding).options(num_cpus=cpus, num_gpus=gpus, max_restarts=0)
        self._actor: Any = None
        self._lock = threading.Lock()  # held while an actor is started or closed
        self._closed = False

    def start(self) -> About:
        with self._lock:
            if self._closed:
                raise OrderError(CLOSED)
            self._kill()
            self._actor = self._class.remote(self._make)
        return self._result("about")

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return self._result("ask", list(prompts))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._kill()

    def _result(self, method: str, *arguments: Any) -> Any:
        try:
            return self._ray.get(getattr(self._actor, method).remote(*arguments))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # as a process would have raised it
        except self._ray.exceptions.RayError as error:
            raise Died(f"was lost: {one_line(error)[:200]}") from None

    def _kill(self) -> None:
        if self._actor is not None and self._ray.is_initialized():
            with suppress(Exception):  # the cluster may be gone, with the actor
                self._ray.kill(self._actor)


def ray_actors(make: bytes, address: str | None, count: int | None) -> list[RayActor]:
    """Return ``count`` actors that share a cluster's GPUs and CPUs.

    Args:
        make: The pickled function that makes the model.
        address: The cluster's; None: see ``joined``.
        count: None: one for each GPU, or, where there is none, for each CPU.

    Raises:
        InputError: Ray is not installed, or the cluster cannot be joined.
    """
    ray = joined(address)
    resources = ray.cluster_resources()
    gpus, cpus = resources.get("GPU", 0.0), resources.get("CPU", 1.0)
    count = count or max(1, int(gpus or cpus))
    shares = {"cpus": min(1.0, cpus / count), "gpus": min(1.0, gpus / count)}
    return [RayActor(ray, make, **shares) for _ in range(count)]
