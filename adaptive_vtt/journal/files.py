"""A journal's file: lock it, open it to read, recognise it, and rescue it after deletion.

One process at a time may write. It holds a lock of the operating system on a file next to the
journal, which ends with the process. The file itself stays and does not mean that a lock is held;
it contains the id of the process that locked it last. Links, folders, and files with any other
content are refused and never written over.

A journal is locked by its real path and must have one name. SQLite writes unfinished commits to a
file named after the path that a writer used, so a writer by another hard link would miss them.
"""

import math
import os
import sqlite3
import stat
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from ..errors import JournalError, one_line

# Each platform has functions to lock a file without waiting, to unlock it, and to test whether
# another process has locked it. The first and the last raise one of BUSY if it has.
if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, 1 << 30, os.SEEK_SET)  # past the process id, so that others can read it
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(file, 0, os.SEEK_SET)

    def _unlock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

    def _test(file: int) -> None:
        _lock(file)
        _unlock(file)

    BUSY: tuple[type[OSError], ...] = (PermissionError, OSError)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

    def _test(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        _unlock(file)

    BUSY = (BlockingIOError,)

JOURNAL = "journal.db"
"""Name of the journal in a run folder."""
DIGITS = 20
"""Most digits of a process id."""
TRIES, PAUSE = 10, 0.02
"""Number of times that a writer tries to lock, and seconds in between: ``holder`` locks for an
instant."""
STEPS = 100_000
"""Steps of SQLite's machine, some milliseconds, between two looks at the clock and for signals."""
PATIENCE = 600.0
"""Most seconds of one query. The longest, over a journal of gigabytes, take one minute."""


def holder(journal: Path) -> int | None:
    """Return the id of the process that writes the journal.

    It writes nothing and does not wait. A writer that begins at this moment tries again.

    Returns:
        The id, 0 if it is unknown, None if no process writes.
    """
    try:
        file = _open(_lock_of(journal), os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    except (OSError, JournalError):
        return None
    try:
        _test(file)
    except BUSY:
        return int(_process_id(file) or 0)
    finally:
        os.close(file)
    return None


def lock_taken(journal: Path) -> float:
    """Return when a process last locked the journal, in seconds since 1970; 0 if none did."""
    try:
        return _lock_of(journal).stat().st_mtime
    except OSError:
        return 0.0


def _lock_of(journal: Path) -> Path:
    """Return the path of the file that is locked while the journal is written."""
    real = Path(os.path.realpath(journal))
    return real.with_name(f"{real.name}.lock")


def _open(path: Path, flags: int) -> int:
    """Open a lock's file without writing or waiting; raise JournalError for any other file."""
    for safe in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
        flags |= getattr(os, safe, 0)
    try:
        if path.is_symlink():  # some systems have no O_NOFOLLOW
            raise _foreign(path)
        file = os.open(path, flags, 0o644)
    except OSError:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise _foreign(path) from None
        raise
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1 and _process_id(file) is not None:
        return file
    os.close(file)
    raise _foreign(path)


def _process_id(file: int) -> str | None:
    """Return the process id in a lock's file, "" if it is empty, None for any other file."""
    os.lseek(file, 0, os.SEEK_SET)
    text = os.read(file, DIGITS + 1)
    if len(text) > DIGITS or text.strip(b"0123456789"):
        return None
    return text.decode("ascii")


def _foreign(path: Path) -> JournalError:
    return JournalError(
        f"{path}: expected a lock of adaptive-vtt, a file with one name that contains a process id "
        "at most, got something else, which was left unchanged: move it away"
    )


class Lock:
    """Lock that is held from its construction until ``release``, or the end of a ``with``.

    Raises:
        JournalError: Another process holds it; the message names that process.
    """

    def __init__(self, journal: Path) -> None:
        path = _lock_of(journal)
        refuse_other_names(journal)
        self._owner = os.getpid()
        self._file = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            for _ in range(TRIES - 1):
                with suppress(*BUSY):
                    _lock(self._file)
                    break
                time.sleep(PAUSE)
            else:
                _lock(self._file)
        except BUSY:
            holder = _process_id(self._file) or ""
            self.release()
            raise JournalError(_busy_message(journal, holder)) from None
        except OSError as error:
            self.release()
            raise JournalError(f"{path}: cannot be locked: {one_line(error)}") from None
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, str(os.getpid()).encode())
        _LOCKS.add(self)

    def release(self) -> None:
        """Let others write. Later calls do nothing.

        A forked child may still share the file. Closing it here would leave the lock with the
        child, so the owner unlocks it first, and a child only closes it.
        """
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):
                if self._owner == os.getpid():
                    _unlock(file)
            with suppress(OSError):
                os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.release()


def refuse_other_names(journal: Path) -> None:
    """Raise JournalError if writing the journal would write to a file of another name.

    Writing through a broken link, of the journal or of SQLite's files next to it, would create
    the file that it points to. Two processes could write by two hard links at once.
    """
    if journal.is_symlink() and not journal.exists():
        raise JournalError(
            f"journal {str(journal)!r}: expected a file or a new name, got a link that leads "
            f"nowhere ({os.readlink(journal)!r}): delete the link, or name another journal"
        )
    refuse_links_near(journal)
    with suppress(FileNotFoundError):
        status = os.stat(journal)
        names = status.st_nlink
        if stat.S_ISREG(status.st_mode) and names > 1:
            raise JournalError(
                f"journal {str(journal)!r}: expected a file of one name, got one of {names} (hard "
                "links), by which two could write it at once: resume a copy ('cp'), or delete the "
                "other names"
            )


def refuse_links_near(journal: Path) -> None:
    """Raise JournalError if a file in the place of SQLite's files next to the journal is a link
    or a folder."""
    real = os.path.realpath(journal)
    for path in (Path(f"{real}-{suffix}") for suffix in ("wal", "shm", "journal")):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise JournalError(
                f"{path}: expected a file that SQLite made, got something else, which stays as it "
                "is: move it away"
            )


def _busy_message(journal: Path, holder: str) -> str:
    if holder == str(os.getpid()):
        return (
            f"journal {str(journal)!r} is being written by this process already: close that "
            "audit or journal first"
        )
    return (
        f"journal {str(journal)!r} is being written by process {holder or '(unknown)'}: wait for "
        "it to end, or stop it; 'avtt report' and 'avtt verify' can read meanwhile"
    )


_LOCKS: WeakSet[Lock] = WeakSet()


def _release_all() -> None:
    """Close all locks in a forked child, which would hold them after its parent's end."""
    for lock in list(_LOCKS):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_all)


def journal_at(where: Path | str) -> Path:
    """Return the file of the journal in a run folder, or ``where`` itself if it is a file."""
    path = Path(where)
    return path / JOURNAL if path.is_dir() else path


class Connection(sqlite3.Connection):
    """Connection that distrusts the file's schema, ends long queries, and can be interrupted.

    Any thread may use it, one at a time; a forked child may not.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.until, self.owner = math.inf, os.getpid()
        self.set_progress_handler(self._is_late, STEPS)
        self.execute("PRAGMA trusted_schema=OFF")
        self.execute("PRAGMA cell_size_check=ON")

    def _is_late(self) -> bool:
        return time.monotonic() > self.until

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        """Run a statement, however long it takes."""
        self.until = math.inf
        return super().execute(*statement)

    def query(self, query: str) -> sqlite3.Cursor:
        """Run a query that reads; raise sqlite3.Error if it takes longer than ``PATIENCE``."""
        self.until = time.monotonic() + PATIENCE
        return super().execute(query)

    def check_owner(self) -> None:
        """Raise JournalError in a forked child, where SQLite would damage the file."""
        if os.getpid() != self.owner:
            raise JournalError(
                f"journal: expected the process that opened it, {self.owner}, got a forked child, "
                f"{os.getpid()}: open the journal there, or use threads"
            )

    def raise_interruption(self, error: sqlite3.Error) -> None:
        """Raise the exception that interrupted a query, if one did.

        Raises:
            KeyboardInterrupt: A signal's handler raised, which SQLite drops.
            JournalError: The query took longer than ``PATIENCE``.
        """
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            return
        if not self._is_late():
            raise KeyboardInterrupt from None
        raise JournalError(
            f"journal: expected a query to end within {PATIENCE:g} s, got none; the journal is "
            "damaged: restore a copy of it"
        ) from None


def connect(path: Path | str, *, uri: bool = False) -> Connection:
    """Return a connection that can write; it creates the file if there is none."""
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=Connection, uri=uri
    )


def connect_to_read(path: Path) -> Connection:
    """Return a connection that does not write to the journal, nor create it.

    If the folder is writable, SQLite lists its readers in a file there while the connection is
    open, so that one process may read while another writes. Otherwise the journal is opened as a
    file that does not change. Commits that a killed writer left in the write-ahead log (WAL) are
    read and stay there. Closing a connection that may write would move them into the journal.
    """
    address = Path(os.path.abspath(path)).as_uri()
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    has_wal = path.with_name(f"{path.name}-wal").exists()
    if writable and not (has_wal and holder(path) is None):
        options = "mode=rw"
    else:
        options = "mode=ro" if has_wal else "mode=ro&immutable=1"
    refuse_links_near(path)
    db = connect(f"{address}?{options}", uri=True)
    db.execute("PRAGMA query_only=ON")
    return db


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at ``path``, None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def save_nearby(db: sqlite3.Connection, path: Path, target: Path | None = None) -> Path:
    """Copy the database to ``target``, or to a new file next to ``path``, and return its path."""
    if target is None:
        target, times = path.with_name(f"{path.stem}-rescued{path.suffix}"), 1
        while target.exists():
            times += 1
            target = path.with_name(f"{path.stem}-rescued-{times}{path.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(target)) as copy:
            db.backup(copy)
    except (sqlite3.Error, OSError) as error:
        raise JournalError(
            f"journal {str(path)!r} was deleted or replaced while it was being written, and "
            f"could not be saved as {str(target)!r}: {one_line(error)}"
        ) from None
    return target
