"""Read and write files: atomic writes, reads that stay inside a folder, portable names, TOML.

TOML files are limited in depth and in the size of integers, so that later steps can use all values.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from ..errors import AvttError, InputError, one_line, unexpected

Table = dict[str, Any]
"""A table of a TOML file."""

if TYPE_CHECKING:
    _Path = Path
else:
    _Path = type(Path())  # before Python 3.12 Path itself cannot be derived from


@contextmanager
def _replacing(path: Path) -> Iterator[int]:
    """Yield the handle of a temporary file, which the caller closes; then rename it to ``path``.

    Raises:
        InputError: The file cannot be written; nothing is left of it.
    """
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            yield handle
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_bytes(path: Path, data: bytes) -> None:
    """Replace ``path`` in one step; raise InputError, and leave no partial file, if that fails."""
    with _replacing(path) as handle, os.fdopen(handle, "wb") as file:
        file.write(data)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a temporary file for UTF-8 text that replaces ``path`` at the end.

    After an error the temporary file is deleted. Raises InputError like ``write_bytes``.
    """
    text: Any = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    with _replacing(path) as handle, os.fdopen(handle, "w", **text) as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` with UTF-8 text in one step; raise InputError like ``write_bytes``.

    Surrogates, from file names that are not UTF-8, are written as escapes.
    """
    write_bytes(path, text.encode(errors="backslashreplace"))


def near_file(path: Path) -> str:
    """Return "; did you mean ...?" with a similar name in the same folder, or "".

    Only files with the same suffix count. An existing path gives "".
    """
    if os.path.exists(path):  # Path.exists raises for some names, such as too long ones
        return ""
    try:
        files = list(path.parent.iterdir())
    except OSError:
        return ""
    # a link that points nowhere is listed, too
    alike = [file for file in files if file.suffix == path.suffix and file.name != path.name]
    names = {file.stem.lower(): file.name for file in alike}
    near = get_close_matches(path.stem.lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""


def why_unread(path: Path, error: BaseException) -> str:
    """Return the reason of a failed read, and the remedy if ``path`` does not exist."""
    if isinstance(error, FileNotFoundError):
        return f"it does not exist{instead(path)}"
    return getattr(error, "strerror", None) or one_line(error)


@contextmanager
def reads(path: Path, what: str) -> Iterator[None]:
    """Turn any error of the block into InputError "PATH: cannot read WHAT: ...".

    InputError and other errors of this package pass unchanged.
    """
    try:
        yield
    except AvttError:
        raise
    except Exception as error:  # files may be broken in many ways, and libraries differ in theirs
        raise InputError(f"{path}: cannot read {what}: {why_unread(path, error)}") from None


def instead(path: Path) -> str:
    """Return the remedy for a file or folder that does not exist, as the end of a message."""
    return near_file(path) or "; put it there, or name another"


def check_folder(path: Path, what: str = "a folder") -> None:
    """Raise InputError "expected WHAT, got ..." if ``path`` is not a folder."""
    if not path.is_dir():
        got = "a file" if os.path.exists(path) else f"nothing: it does not exist{instead(path)}"
        raise unexpected(str(path), what, got)


def file_names(names: Iterable[str]) -> list[str]:
    """Return safe file names, in order, that differ even where a file system ignores case."""
    taken: dict[str, str] = {}
    for name in map(safe_name, names):
        unique, number = name, 1
        while unique.lower() in taken:
            number += 1
            unique = f"{name}-{number}"
        taken[unique.lower()] = unique
    return [*taken.values()]


def safe_name(name: str) -> str:
    """Return ``name`` with only ASCII letters, digits and "._-".

    The result is not empty and begins with neither "." (a hidden file) nor "-" (an option).
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip(".-") or "_"


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to ``out`` at the end, or deleted after an error.

    Raises:
        InputError: ``out`` is a file or a folder with files, or cannot be written.
    """
    out = Path(os.path.abspath(out))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(
            f"{out}: exists already; nothing was written: name a folder that is new or empty"
        )
    partial = out.with_name(f"{out.name}.partial")
    with _writing(out):
        try:
            partial.mkdir(parents=True)
        except FileExistsError:
            raise InputError(
                f"{partial}: left by an export that did not end; remove it to export again"
            ) from None
        try:
            yield partial
            os.replace(partial, out)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash, 24 hexadecimal digits, of the names and contents of files in their order."""
    digest = hashlib.blake2b(digest_size=12)
    for path in paths:
        digest.update(f"{path.name}\0{hash_file(path)}".encode())
    return digest.hexdigest()


def hash_file(path: Path) -> str:
    """Return a hash, 16 hexadecimal digits, of the contents of a file."""
    with open(path, "rb", opener=regular) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


REMEDY = "allow_outside = true in [dataset] (in Python allow_outside=True) lets it"
"""End of the messages about files outside their folder."""


class Inside(_Path):
    """Path to a file that ``opened`` reads only inside a folder.

    Attributes:
        within: Real path of the folder; None: no limit.
    """

    within: str | None = None

    def __reduce__(self) -> Any:
        return inside, (str(self), self.within)


def inside(path: Path | str, within: str | None) -> Path:
    """Return ``path`` as one that ``opened`` reads only inside the real path ``within``."""
    guarded = Inside(path)
    guarded.within = within
    return guarded


def holds(folder: str, real: str) -> bool:
    """Return whether the real path ``real`` is ``folder`` or lies in it."""
    try:
        return os.path.commonpath([folder, real]) == folder
    except ValueError:  # on another drive
        return False


def regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file, as the ``opener`` of ``open``, and return its handle.

    Raises:
        OSError: ``path`` is a folder, or a pipe or device, which might never end.
    """
    # O_NONBLOCK: opening a pipe does not wait for its writer
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "expected a file, got a pipe or a device", str(path))


def as_file(path: Path) -> Path:
    """Return ``path``, for a library that opens it; raise OSError if it is not a regular file."""
    os.close(regular(path))
    return path


def text_in(path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Return the text of a regular file; raise OSError or UnicodeDecodeError."""
    with open(path, encoding=encoding, errors=errors, opener=regular) as file:
        return file.read()


def opened(path: Path) -> BinaryIO:
    """Open a file for reading; the caller closes it.

    Raises:
        InputError: ``path`` is an ``Inside`` and leads out of its folder. The check is of the open
            file, since a link may have replaced the path meanwhile.
        OSError: The file cannot be opened.
    """
    file = open(path, "rb", opener=regular)  # noqa: SIM115 - the caller closes it
    within = getattr(path, "within", None)
    if within is None:
        return file
    with suppress(OSError):
        real = os.path.realpath(path)
        if holds(within, real) and os.path.samestat(os.stat(real), os.fstat(file.fileno())):
            return file
    file.close()
    got = "one that is outside, by a link that was made since"
    raise unexpected(str(path), f"a file inside {within!r}", got, REMEDY)


def contents(path: Path) -> bytes:
    """Return the bytes of a file, or of an object with ``read_bytes``; errors as ``opened``."""
    if not isinstance(path, Path):
        return path.read_bytes()
    with opened(path) as file:
        return file.read()


def as_path(source: Path | str) -> Path:
    """Return ``source`` as a path; an ``Inside`` is returned unchanged."""
    return source if isinstance(source, Path) else Path(source)


MAX_DEEP = 50
"""Maximum depth of nested tables and lists."""
MAX_INTEGER = 2**63
"""Integers are smaller than this, the limit of TOML and of databases."""
_TOO_DEEP = f"expected at most {MAX_DEEP} tables or lists within each other, got more"
_TOO_LARGE = "expected integers of 64 bits (19 digits), got a larger one"


def toml_of(text: str) -> Table:
    """Return the tables of a TOML text; raise tomllib.TOMLDecodeError for any other text."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's own limit of digits
        raise tomllib.TOMLDecodeError(_TOO_LARGE) from None
    level: list[Any] = [table]  # the values at one depth
    for _ in range(MAX_DEEP + 1):
        level = [child for value in level for child in _children(value)]
    if level:
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    return table


def _children(value: Any) -> list[Any]:
    """Return the values in a table or list; raise an error for an integer that is too large."""
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise tomllib.TOMLDecodeError(_TOO_LARGE)
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def data_of(package: str, name: str) -> Table:
    """Return the tables of a TOML file in the folder "data" of a package of adaptive_vtt."""
    return tomllib.loads(resources.files(package).joinpath("data", name).read_text("utf-8"))


def read_toml(
    path: Path, what: str, hint: Callable[[Path], str] = lambda path: "", remedy: str = ""
) -> Table:
    """Return the tables of a TOML file.

    Args:
        path: The file.
        what: Kind of file for messages, such as "a spec".
        hint: Function that returns the end of the message for a path that cannot be read.
        remedy: End of the message for a file that is not TOML. The message does not repeat lines
            of the file, since they may contain keys.

    Raises:
        InputError: The file cannot be read or is not TOML.
    """
    try:
        return toml_of(text_in(path, "utf-8-sig"))  # Windows writes a byte order mark
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        if path.is_dir():
            why = f"expected {what}, got a folder"
        elif isinstance(error, FileNotFoundError):
            why = f"expected {what}, got nothing: it does not exist"
        raise InputError(f"{path}: {why}{hint(path)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML: {one_line(error)}{remedy}") from None


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> Table:
    """Return a copy of ``table`` updated with ``changes``; nested tables are updated likewise."""
    result = dict(table)
    for name, new in changes.items():
        old = table.get(name)
        inner = isinstance(new, dict) and isinstance(old, dict | None)
        result[name] = merged(old or {}, new) if inner else new
    return result
