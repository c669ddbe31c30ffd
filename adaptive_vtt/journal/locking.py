"""One writer at a time: a lock of the operating system, on a file beside the journal.

It goes with the process that holds it, however that ends. The file stays, and is no sign of
anything; while the lock is held it tells the process's number.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from ..errors import JournalError, one_line

if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        os.lseek(file, 1 << 30, os.SEEK_SET)  # past the number, which others are to read
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(file, 0, os.SEEK_SET)

    def _free(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

    def _look(file: int) -> None:
        _take(file)
        _free(file)

    HELD: tuple[type[OSError], ...] = (PermissionError, OSError)
else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _free(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

    def _look(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        _free(file)

    HELD = (BlockingIOError,)

TRIES, PAUSE = 10, 0.02
"""How often a writer tries, and seconds in between: somebody may just be looking whether the lock
is held."""


def holder(journal: Path) -> int | None:
    """The process that writes the journal, 0 where its number is not known; None where none does.

    Writes nothing and waits for nothing; a writer that begins at this moment tries again.
    """
    try:
        file = os.open(_beside(journal), os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    except OSError:
        return None
    try:
        _look(file)
    except HELD:
        number = os.read(file, 20).decode("ascii", "replace").strip()
        return int(number) if number.isascii() and number.isdigit() else 0
    finally:
        os.close(file)
    return None


def _beside(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.lock")


class Lock:
    """Held from the moment it is made until ``release``.

    Raises JournalError, naming the process, where another holds it.
    """

    def __init__(self, journal: Path) -> None:
        path = _beside(journal)
        self._owner = os.getpid()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            _take_patiently(self._file)
        except HELD:
            holder = os.read(self._file, 20).decode("ascii", "replace").strip()
            self.release()
            raise JournalError(_held(journal, holder)) from None
        except OSError as error:
            self.release()
            raise JournalError(f"{path}: cannot be locked: {one_line(error)}") from None
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, str(os.getpid()).encode())
        _HELD.add(self)

    def release(self) -> None:
        """Lets others write; once, or more than once.

        A child that was forked a moment ago may still share the file: closing it here would
        leave the lock with the child, so its owner gives it up first. A child only closes.
        """
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):
                if self._owner == os.getpid():
                    _free(file)
            with suppress(OSError):
                os.close(file)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.release()


def _take_patiently(file: int) -> None:
    for _ in range(TRIES - 1):
        with suppress(*HELD):
            return _take(file)
        time.sleep(PAUSE)
    _take(file)


def _held(journal: Path, holder: str) -> str:
    if holder == str(os.getpid()):
        return (
            f"journal {str(journal)!r} is being written by this process already: close that "
            "audit or journal first"
        )
    return (
        f"journal {str(journal)!r} is being written by process {holder or '(unknown)'}: wait for "
        "it to end, or stop it; 'avtt report' and 'avtt verify' can read meanwhile"
    )


_HELD: WeakSet[Lock] = WeakSet()


def _forget() -> None:
    """A forked child shares the lock's file, and would hold the lock beyond its parent's end."""
    for lock in list(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
