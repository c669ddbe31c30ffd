"""A journal's file: locked, opened to be read, recognised, and saved where it was deleted.

One writer at a time: a lock of the operating system, on a file next to the journal. It ends with
the process that holds it. The file stays, and is no sign of anything; its text is the number of the
process that locked it last. Nothing else is ever written over: links, folders, and files with any
other content are refused.

A journal is locked by its real path, and has one name: SQLite keeps what a writer was about to
commit next to the name it wrote by, where writers by another hard link would not find it.
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

DIGITS = 20
"""How many digits a process's number has at most."""
TRIES, PAUSE = 10, 0.02
"""How often a writer tries, and seconds in between: somebody may just be looking whether the lock
is held."""


def holder(journal: Path) -> int | None:
    """The process that writes the journal, 0 where its number is not known; None where none does.

    Writes nothing and waits for nothing; a writer that begins at this moment tries again.
    """
    try:
        file = _open(_beside(journal), os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    except (OSError, JournalError):
        return None
    try:
        _look(file)
    except HELD:
        return int(_number(file) or 0)
    finally:
        os.close(file)
    return None


def lock_taken(journal: Path) -> float:
    """When a process last took the journal's lock, in seconds since 1970; 0 where none did."""
    try:
        return _beside(journal).stat().st_mtime
    except OSError:
        return 0.0


def _beside(journal: Path) -> Path:
    real = Path(os.path.realpath(journal))
    return real.with_name(f"{real.name}.lock")


def _open(path: Path, flags: int) -> int:
    """Raises JournalError for what no lock made here is; nothing is written, nothing waited for."""
    for safe in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
        flags |= getattr(os, safe, 0)
    try:
        if path.is_symlink():  # where the system knows no O_NOFOLLOW
            raise _foreign(path)
        file = os.open(path, flags, 0o644)
    except OSError:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise _foreign(path) from None
        raise
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1 and _number(file) is not None:
        return file
    os.close(file)
    raise _foreign(path)


def _number(file: int) -> str | None:
    """Return the text of a lock's file, a process's number or nothing; None for other files."""
    os.lseek(file, 0, os.SEEK_SET)
    text = os.read(file, DIGITS + 1)
    if len(text) > DIGITS or text.strip(b"0123456789"):
        return None
    return text.decode("ascii")


def _foreign(path: Path) -> JournalError:
    return JournalError(
        f"{path}: expected a lock of adaptive-vtt, a file of its own with nothing but a process's "
        "number, and found something else, which stays as it is: move it away"
    )


class Lock:
    """Held from the moment it is made until ``release``, or the end of a ``with``.

    Raises JournalError, naming the process, where another holds it.
    """

    def __init__(self, journal: Path) -> None:
        path = _beside(journal)
        refuse_other_names(journal)
        self._owner = os.getpid()
        self._file = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            _take_patiently(self._file)
        except HELD:
            holder = _number(self._file) or ""
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.release()


def refuse_other_names(journal: Path) -> None:
    """Raise JournalError where writing the journal would write to a file of another name.

    A link that leads nowhere would be made into a file where it leads to, and so would the files
    that SQLite keeps next to the journal; hard links are names by which two could write at once.
    """
    if journal.is_symlink() and not journal.exists():
        raise JournalError(
            f"journal {str(journal)!r}: expected a file or a new name, got a link that leads "
            f"nowhere ({os.readlink(journal)!r}): delete the link, or name another journal"
        )
    refuse_links_beside(journal)
    with suppress(FileNotFoundError):
        status = os.stat(journal)
        names = status.st_nlink
        if stat.S_ISREG(status.st_mode) and names > 1:
            raise JournalError(
                f"journal {str(journal)!r}: expected a file of one name, got one of {names} (hard "
                "links), by which two could write it at once: go on with a copy ('cp'), or delete "
                "the other names"
            )


def refuse_links_beside(journal: Path) -> None:
    """Raise JournalError where a file that SQLite keeps next to the journal is none of its own."""
    real = os.path.realpath(journal)
    for path in (Path(f"{real}-{suffix}") for suffix in ("wal", "shm", "journal")):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise JournalError(
                f"{path}: expected a file that SQLite made, got something else, which stays as it "
                "is: move it away"
            )


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


JOURNAL = "journal.db"
"""What the journal is called in a run folder."""


def journal_at(where: Path | str) -> Path:
    """The journal of a run folder, or the file itself."""
    path = Path(where)
    return path / JOURNAL if path.is_dir() else path


STEPS = 100_000
"""Steps of SQLite's machine, some milliseconds, between two looks at the clock and for signals."""
PATIENCE = 600.0
"""Seconds that one query may take. The longest, over a journal of gigabytes, take one minute."""


class Connection(sqlite3.Connection):
    """A connection that trusts nothing in the file, ends long queries, and lets signals through.

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
        """Run a query that reads; raise sqlite3.Error where it takes longer than ``PATIENCE``."""
        self.until = time.monotonic() + PATIENCE
        return super().execute(query)

    def check_owner(self) -> None:
        """Raise JournalError in a forked child, where SQLite would damage the file."""
        if os.getpid() != self.owner:
            raise JournalError(
                f"journal: expected the process that opened it, {self.owner}, got a forked child, "
                f"{os.getpid()}: open the journal there, or ask and tell in threads"
            )

    def heed(self, error: sqlite3.Error) -> None:
        """Raise what ended a query: KeyboardInterrupt where a signal's handler raised, which SQLite
        drops, JournalError where it took too long."""
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            return
        if not self._is_late():
            raise KeyboardInterrupt from None
        raise JournalError(
            f"journal: expected a query to end within {PATIENCE:g} s, got none; the journal is "
            "damaged: restore a copy of it"
        ) from None


def connect(path: Path | str, *, uri: bool = False) -> Connection:
    """Return a connection to write by; a new file is made where none is."""
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=Connection, uri=uri
    )


def connect_to_read(path: Path) -> Connection:
    """A connection that creates no file and writes to none.

    Where the folder can be written, SQLite keeps its own account of readers there while the
    connection is open, so that one may read while another writes; elsewhere it is opened as a
    file that does not change. What a killed writer left in the WAL is read there, and stays
    there: the last connection that may write would move it into the journal's file.
    """
    address = Path(os.path.abspath(path)).as_uri()
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    left = path.with_name(f"{path.name}-wal").exists()
    if writable and not (left and holder(path) is None):
        options = "mode=rw"
    else:
        options = "mode=ro" if left else "mode=ro&immutable=1"
    refuse_links_beside(path)
    db = connect(f"{address}?{options}", uri=True)
    db.execute("PRAGMA query_only=ON")
    return db


def identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at ``path``, whatever it is called; None where none does."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def save_beside(db: sqlite3.Connection, path: Path, target: Path | None = None) -> Path:
    """Copies the database to ``target``, or to a new file next to ``path``; gives its name."""
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
