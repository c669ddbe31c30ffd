"""Where workers hold the model: processes on this machine, and actors of a Ray cluster."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Protocol

from ...errors import one_line
from ...types import Answer, Prompt, Unanswered
from ...utils.devices import joined
from .holding import About, Failure, Holding, Make, opened, unforeseen


class Died(Exception):
    """The worker is gone; the message says how it ended."""


class Place(Protocol):
    """One worker at a time, begun again after it died. Used by one thread, but for ``close``."""

    def start(self) -> About:
        """Begins a worker and makes the model. Raises Died, or what is wrong with the model."""

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        """One answer per prompt. Raises Died, or ModelError as the model did."""

    def close(self) -> None:
        """Ends the worker, whatever it does; a second call does nothing. From any thread."""


PATIENCE = 1.0
"""Seconds that a worker without work may take to end."""
BEGIN = "import sys; sys.path[:] = {path!r}; from {home} import main; main({descriptor})"
"""A plain interpreter, and not ``multiprocessing``, which would run the user's script again."""
HOME = __name__


class LocalProcess:
    """A process that holds the model; ``device``: the CUDA devices that it sees, None: all.

    It computes with one thread, unless OMP_NUM_THREADS says otherwise: workers are many, and sums
    by other numbers of threads may differ in their last digit.
    """

    def __init__(self, make: Make, device: str | None = None) -> None:
        self._make, self._device = make, device
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._closed = self._busy = False
        self._lock = threading.Lock()  # held while a process is begun or ended

    def start(self) -> About:
        with self._lock:
            if self._closed:
                raise Died("was closed")
            self._end(patience=0.0)
            self._pipe, theirs = Pipe()
            with theirs:
                self._process = self._begun(theirs.fileno())
        return self._exchange(self._make)

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return self._exchange(list(prompts))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._end(0.0 if self._busy else PATIENCE)

    @property
    def pid(self) -> int | None:
        """The process's number; None where none was begun, or it is known to have ended, after
        which the number may be another's."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    def _begun(self, descriptor: int) -> "subprocess.Popen[bytes]":
        code = BEGIN.format(path=sys.path, home=HOME, descriptor=descriptor)
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        if self._device is not None:
            environment["CUDA_VISIBLE_DEVICES"] = self._device
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what a model prints is none of the command's output
            pass_fds=[descriptor],
            env=environment,
            process_group=0,  # Ctrl-C in a terminal goes to the driver alone
        )

    def _exchange(self, thing: Any) -> Any:
        pipe = self._pipe
        if pipe is None:
            raise Died("was closed")
        self._busy = True
        try:
            pipe.send(thing)
            told = pipe.recv()
        except (EOFError, OSError):
            raise Died(self._how()) from None
        finally:
            self._busy = False
        return opened(told)

    def _how(self) -> str:
        process = self._process
        if process is None:
            return "was closed"
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        code = process.returncode
        if code is not None and code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with code {code}"

    def _end(self, patience: float) -> None:
        """Ends the process, after ``patience`` seconds by force."""
        process, pipe = self._process, self._pipe
        if process is None or pipe is None:
            return
        if patience:
            with suppress(OSError):
                pipe.send(END)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        process.kill()
        process.wait()
        self._process = self._pipe = None  # the pipe closes once nobody waits for its answer


END = "end"
"""What is sent instead of prompts when no more will come."""


def main(descriptor: int) -> None:
    """The far side of a process: is told how to make the model, then asked until its pipe ends.

    It ends with the process that began it, however that ends, even while the model computes: the
    only other end of its pipe goes with that, and a thread of its own notices.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which ends this
    pipe, told = Connection(descriptor), SimpleQueue[Any]()
    threading.Thread(target=_listen, args=(pipe, told), daemon=True).start()
    make = told.get()
    if isinstance(make, Failure):
        _say(pipe, make)
        return
    holding = Holding(make)
    _say(pipe, holding.about())
    while (prompts := told.get()) != END:
        _say(pipe, prompts if isinstance(prompts, Failure) else holding.ask(prompts))
    holding.close()


def _listen(pipe: Connection, told: "SimpleQueue[Any]") -> None:
    """Puts what comes through the pipe into the queue; at the pipe's end it ends the process."""
    while True:
        try:
            told.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)  # nobody waits for the answer that may be computed just now
        except Exception as error:  # how to make the model was told by what is not found here
            told.put(unforeseen(error))


def _say(pipe: Connection, thing: Any) -> None:
    with suppress(BrokenPipeError):
        pipe.send(thing)


class RayActor:
    """An actor that holds the model. ``ray``: the module, which has joined a cluster; ``cpus`` and
    ``gpus``: how many of these it needs, parts of one too."""

    def __init__(self, ray: Any, make: Make, *, cpus: float, gpus: float) -> None:
        self._ray, self._make = ray, make
        self._class = ray.remote(Holding).options(num_cpus=cpus, num_gpus=gpus, max_restarts=0)
        self._actor: Any = None
        self._closed = False
        self._lock = threading.Lock()  # held while an actor is begun or ended

    def start(self) -> About:
        with self._lock:
            if self._closed:
                raise Died("was closed")
            self._end()
            self._actor = actor = self._class.remote(self._make)
        return self._result(actor, "about")

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        return self._result(self._actor, "ask", list(prompts))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._end()

    def _result(self, actor: Any, method: str, *arguments: Any) -> Any:
        if actor is None:
            raise Died("was closed")
        try:
            told = self._ray.get(getattr(actor, method).remote(*arguments))
        except self._ray.exceptions.RayError as error:
            raise Died(f"was lost: {one_line(error)[:200]}") from None
        return opened(told)

    def _end(self) -> None:
        if self._actor is not None and self._ray.is_initialized():
            with suppress(Exception):  # the cluster may be gone, with the actor
                self._ray.kill(self._actor)
        self._actor = None


def ray_actors(make: Make, address: str | None, count: int | None) -> list[RayActor]:
    """``count`` actors of the cluster at ``address`` (None: see ``joined``), which share its GPUs
    and CPUs. Default: one for each GPU, or, where there is none, for each CPU.

    Raises InputError where Ray is not installed, or the cluster cannot be joined.
    """
    ray = joined(address)
    resources = ray.cluster_resources()
    gpus, cpus = resources.get("GPU", 0.0), resources.get("CPU", 1.0)
    count = count or max(1, int(gpus or cpus))
    shares = {"cpus": min(1.0, cpus / count), "gpus": min(1.0, gpus / count)}
    return [RayActor(ray, make, **shares) for _ in range(count)]
