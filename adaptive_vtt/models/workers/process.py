"""A worker that is a process on this machine."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from ...types import Answer, Prompt, Unanswered
from .holding import About, Make, opened
from .place import Died
from .serve import END

PATIENCE = 1.0
"""Seconds that a worker without work may take to end."""
BEGIN = "import sys; sys.path[:] = {path!r}; from {home} import main; main({descriptor})"
"""A plain interpreter, and not ``multiprocessing``, which would run the user's script again."""
HOME = f"{__package__}.serve"


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
        """How the process ended."""
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
