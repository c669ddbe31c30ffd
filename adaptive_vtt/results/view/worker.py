"""A process of its own for what takes long, so that no request waits for it.

It ends with the process that began it, however that ends: the only other end of its pipe goes
with that.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from ...errors import AvttError, one_line

Done = TypeVar("Done")
SAFE = "PYTHONSAFEPATH"
"""The variable that does what python -P does."""
SETTLING = 0.5
"""Seconds in which a process whose pipe is closed ends by itself, so that it has an exit code."""


class Worker:
    """One process, begun with the first job and again where it was killed; one job at a time.

    A job is a function of a module, and its arguments and result can be pickled. ``close`` may
    come from another thread, while a job is done.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # held while a process is begun or ended

    def do(self, job: Callable[..., Done], *arguments: Any) -> Done:
        """The job's result. Raises AvttError, in a sentence, where it could not be done."""
        try:
            pipe = self._running()
            pipe.send((job, arguments))
            done, told = pipe.recv()
        except (EOFError, OSError):
            with self._lock:
                code = self._end()
            raise AvttError(
                f"the process that builds pages ended before it was done (exit code {code}); the "
                "terminal of 'avtt view' says why, and the page tries again"
            ) from None
        if told is not None:
            raise AvttError(told)
        return done

    def close(self) -> None:
        """Ends the process for good, whatever it does. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._end(0.0)

    def _running(self) -> Connection:
        with self._lock:
            if self._closed:
                raise EOFError
            if self._pipe is None:
                context = get_context("spawn")  # a fork would share locks and threads of a server
                self._pipe, theirs = context.Pipe()
                self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
                with _standard_modules_first():
                    self._process.start()
                theirs.close()
            return self._pipe

    def _end(self, patience: float = SETTLING) -> int | None:
        """Ends the process, and gives the exit code of one that had ended by itself."""
        process, code = self._process, None
        if process is not None:
            process.join(patience)
            code = process.exitcode
            process.kill()
            process.join()
        self._process = self._pipe = None  # the pipe closes once nobody waits for its answer
        return code


@contextmanager
def _standard_modules_first() -> Iterator[None]:
    """Processes that are begun here take no ``re.py`` of the folder they are begun in for Python's.

    They are started by "python -c", which looks there first unless it is told not to.
    """
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE]
        else:
            os.environ[SAFE] = before


def _serve(pipe: Connection) -> None:
    """Does what comes through the pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this
    if hasattr(os, "nice"):
        os.nice(10)  # the audit that is watched goes first
    with suppress(EOFError, OSError):
        while True:
            job, arguments = pipe.recv()
            pipe.send(_outcome(job, arguments))


def _outcome(job: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str | None]:
    try:
        return job(*arguments), None
    except AvttError as error:
        return None, one_line(error)
    except Exception as error:  # a damaged journal may raise anything; the next one is asked for
        return None, f"{type(error).__name__}: {one_line(error)[:300]}"
