"""A journal's file: opened to be read, recognised, and saved where it was deleted."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ..errors import JournalError, one_line
from .locking import holder

JOURNAL = "journal.db"
"""What the journal is called in a run folder."""


def journal_at(where: Path | str) -> Path:
    """The journal of a run folder, or the file itself."""
    path = Path(where)
    return path / JOURNAL if path.is_dir() else path


def connect_to_read(path: Path) -> sqlite3.Connection:
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
    db = sqlite3.connect(f"{address}?{options}", uri=True, isolation_level=None)
    db.execute("PRAGMA query_only=ON")
    return db


def identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at ``path``, whatever it is called; None where none does."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def save_beside(db: sqlite3.Connection, path: Path, target: Path | None = None) -> Path:
    """Copies the database to ``target``, or to a new file beside ``path``; gives its name."""
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
