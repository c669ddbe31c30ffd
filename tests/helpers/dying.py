"""Processes that are killed at any moment: between two SQL statements, or at ticks of a run."""

import os
import signal
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


class Ticks:
    """Counter that kills its process at the tick ``kill_at`` (0: never).

    Before, it writes the tick's text to the file descriptor ``output``.
    """

    def __init__(self, kill_at: int = 0, output: int = -1) -> None:
        self.count = 0
        self._kill_at, self._output = kill_at, output

    def __call__(self, what: str = "a tick of the run") -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.write(self._output, what[:100].encode(errors="replace"))
            os.kill(os.getpid(), signal.SIGKILL)


Run = Callable[[Ticks], object]
"""A function that is killed, and that may tick."""


def ticking(run: Run, tick: Ticks) -> None:
    """Call ``run(tick)``, in which every SQL statement ticks, from the first on."""
    connect = sqlite3.connect

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        database = connect(*args, **options)
        database.set_trace_callback(tick)
        return database

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connected)
        run(tick)


def killed(run: Run, at: int) -> str | None:
    """Call ``ticking(run)`` in a child process that dies at this tick.

    Return the beginning of the tick's text, or None if the child ended before.
    """
    read, write = os.pipe()
    code = code_of_child(partial(ticking, run, Ticks(at, write)))
    os.close(write)
    with os.fdopen(read) as pipe:
        what = pipe.read()
    assert code in (0, -signal.SIGKILL)
    return what if code else None


def code_of_child(run: Callable[[], object]) -> int:
    """Call ``run()`` in a forked child. Return 0, 1 if it raised, or minus its signal."""
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
