"""What a test may leave behind: files, sockets, threads and processes that it opened."""

import gc
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

PATIENCE = 3.0
"""Seconds that what was told to end may take: a thread whose model was dropped, a program."""
_KEPT = ("/dev/", "anon_inode:", "/proc/", "/memfd:")
_CACHES = (str(Path.home() / ".cache"), str(Path.home() / ".local/share/inspect_ai"))
"""What libraries open once and keep: random numbers, polls, locks of OpenMP, their own caches and
traces."""


def opened() -> Counter[str]:
    """What this process has open now, by what it is."""
    return Counter([*_descriptors(), *_threads(), *_children()])


def left(before: Counter[str]) -> list[str]:
    """What is open beyond ``before``, once it had time to end and what is held by none is gone."""
    if not opened() - before:
        return []
    _emptied()
    for generation in range(3):  # the oldest holds all libraries and takes a fifth of a second
        gc.collect(generation)
        if not opened() - before:
            return []
    end = time.monotonic() + PATIENCE
    while (more := opened() - before) and time.monotonic() < end:
        time.sleep(0.02)
    return sorted(more.elements())


def _emptied() -> None:
    """Lets go of the tables that stay open, 64 at most, in case somebody looks at them again."""
    tables = sys.modules.get("adaptive_vtt.datasets.formats.image_rows")
    for cached in () if tables is None else (tables.opened_parquet,):
        cached.cache_clear()


def _descriptors() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the one that listed them
            continue
        if not target.startswith((*_KEPT, *_CACHES)):
            found.append(target)
    return found


def _threads() -> list[str]:
    return [f"thread {thread.name!r} #{thread.ident}" for thread in threading.enumerate()]


def _children() -> list[str]:
    found: list[str] = []
    for task in os.listdir("/proc/self/task"):
        try:
            descriptor = os.open(f"/proc/self/task/{task}/children", os.O_RDONLY)
            with open(descriptor, encoding="ascii") as file:
                numbers = file.read().split()
        except OSError:  # a thread that ended meanwhile
            continue
        found += [f"process {number}: {_command(number)}" for number in numbers]
    return found


def _command(number: str) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")[:100]
    except OSError:
        return "ended"
