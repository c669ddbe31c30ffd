"""Processes that are killed at any moment: between two SQL statements, and wherever a run ticks."""

import os
import signal
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


class Ticks:
    """Counts; at the ``kill_at``-th kills this process, for good, having written what ticked to the
    file descriptor ``told``. 0: never."""

    def __init__(self, kill_at: int = 0, told: int = -1) -> None:
        self.count = 0
        self._kill_at, self._told = kill_at, told

    def __call__(self, what: str = "a tick of the run") -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.write(self._told, what[:100].encode(errors="replace"))
            os.kill(os.getpid(), signal.SIGKILL)


Run = Callable[[Ticks], object]
"""What is killed; it may tick where it likes."""


def ticking(run: Run, tick: Ticks) -> None:
    """``run(tick)``, in which every SQL statement ticks, from the making of the file on."""
    connect = sqlite3.connect

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        database = connect(*args, **options)
        database.set_trace_callback(tick)
        return database

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connected)
        run(tick)


def killed(run: Run, at: int) -> str | None:
    """``ticking(run)`` in a child that dies at the ``at``-th tick: the beginning of what ticked
    then, or None where the child came to its end before."""
    read, write = os.pipe()
    code = code_of_child(partial(ticking, run, Ticks(at, write)))
    os.close(write)
    with os.fdopen(read) as pipe:
        what = pipe.read()
    assert code in (0, -signal.SIGKILL)
    return what if code else None


def code_of_child(run: Callable[[], object]) -> int:
    """``run()`` in a forked child: 0, 1 where it raised, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
