"""Files, sockets, threads and processes that a test leaves open."""

import gc
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path

PATIENCE = 3.0
"""Most seconds until threads and programs end."""
_KEPT = ("/dev/", "anon_inode:", "/proc/", "/memfd:")
_CACHES = (str(Path.home() / ".cache"), str(Path.home() / ".local/share/inspect_ai"))
"""Files that libraries open once and keep: random numbers, polls, locks of OpenMP, caches and
traces."""


def opened() -> Counter[str]:
    """Return the files, sockets, threads and processes that this process has open, with counts."""
    return Counter([*_descriptors(), *_threads(), *_children()])


def left(before: Counter[str]) -> list[str]:
    """Return what was opened since ``before`` and is still open after a wait and a collection."""
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
    """Close the tables of the cache, which keeps up to 64 open."""
    tables = sys.modules.get("adaptive_vtt.datasets.formats.image_rows")
    for cached in () if tables is None else (tables.opened_parquet,):
        cached.cache_clear()


def _descriptors() -> list[str]:
    targets = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the descriptor of the listing itself
            continue
        if not target.startswith((*_KEPT, *_CACHES)):
            targets.append(target)
    return targets


def _threads() -> list[str]:
    return [f"thread {thread.name!r} #{thread.ident}" for thread in threading.enumerate()]


def _children() -> list[str]:
    children: list[str] = []
    for task in os.listdir("/proc/self/task"):
        try:
            descriptor = os.open(f"/proc/self/task/{task}/children", os.O_RDONLY)
            with open(descriptor, encoding="ascii") as file:
                numbers = file.read().split()
        except OSError:  # a thread that ended meanwhile
            continue
        children += [f"process {number}: {_command(number)}" for number in numbers]
    return children


def _command(number: str) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")[:100]
    except OSError:
        return "ended"
