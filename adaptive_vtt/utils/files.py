"""Files: written whole or not at all, kept inside their folder, and TOML within bounds.

Names are such that every system takes them. TOML is no deeper, and its integers no larger, than a
specification needs, so that every value of it can be used.
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
    """Yield the handle of a new file, to be closed within, that then takes the place of ``path``.
    Raise InputError, and leave nothing, where the system refuses that."""
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
    """Replace ``path`` in one step. Raise InputError, and leave nothing, where that fails."""
    with _replacing(path) as handle, os.fdopen(handle, "wb") as file:
        file.write(data)


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a file for UTF-8 text that replaces ``path`` in the end, or goes where that fails;
    errors as ``write_bytes``."""
    text: Any = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    with _replacing(path) as handle, os.fdopen(handle, "w", **text) as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` with UTF-8 text in one step; errors as ``write_bytes``. Parts of a file name
    that are no UTF-8 are written as escapes."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def near_file(path: Path) -> str:
    """Return a question after the file of that folder and ending that may have been meant, or
    ""."""
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
    """Return why ``path`` could not be read, and what to do where it does not exist."""
    if isinstance(error, FileNotFoundError):
        return f"it does not exist{instead(path)}"
    return getattr(error, "strerror", None) or one_line(error)


@contextmanager
def reads(path: Path, what: str) -> Iterator[None]:
    """Raise InputError, "PATH: cannot read WHAT: ...", for what goes wrong within."""
    try:
        yield
    except AvttError:
        raise
    except Exception as error:  # files may be broken in many ways, and libraries differ in theirs
        raise InputError(f"{path}: cannot read {what}: {why_unread(path, error)}") from None


def instead(path: Path) -> str:
    """Return what to do about a file or folder that does not exist."""
    return near_file(path) or "; put it there, or name another"


def check_folder(path: Path, what: str = "a folder") -> None:
    """Raise InputError where ``path``, which is to be ``what``, is no folder."""
    if not path.is_dir():
        got = "a file" if os.path.exists(path) else f"nothing: it does not exist{instead(path)}"
        raise unexpected(str(path), what, got)


def file_names(names: Iterable[str]) -> list[str]:
    """Return the names, safe for files and all different, whatever a file system makes of case."""
    taken: dict[str, str] = {}
    for name in map(safe_name, names):
        chosen, times = name, 1
        while chosen.lower() in taken:
            times += 1
            chosen = f"{name}-{times}"
        taken[chosen.lower()] = chosen
    return [*taken.values()]


def safe_name(name: str) -> str:
    """Return ``name`` in letters, digits and "._-" alone, not hidden, no option and not empty."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip(".-") or "_"


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """Yield a new folder that takes the place of ``out`` in the end, or goes where that fails."""
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
    """Return a short hash of the names and bytes of files, in their order."""
    digest = hashlib.blake2b(digest_size=12)
    for path in paths:
        digest.update(f"{path.name}\0{hash_file(path)}".encode())
    return digest.hexdigest()


def hash_file(path: Path) -> str:
    """Return a hash of 16 digits of the bytes of a file."""
    with open(path, "rb", opener=regular) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


REMEDY = "allow_outside = true in [dataset] (in Python allow_outside=True) lets it"


class Inside(_Path):
    """A path with the folder that it may not lead out of, by its real path."""

    within: str | None = None

    def __reduce__(self) -> Any:
        return inside, (str(self), self.within)


def inside(path: Path | str, within: str | None) -> Path:
    """Return ``path``, which ``opened`` refuses outside the folder whose real path is
    ``within``."""
    guarded = Inside(path)
    guarded.within = within
    return guarded


def holds(folder: str, real: str) -> bool:
    """Return whether a real path lies in the folder of another real path."""
    try:
        return os.path.commonpath([folder, real]) == folder
    except ValueError:  # on another drive
        return False


def regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Return the handle of a file, as an ``opener`` of ``open``. Raise OSError for a folder, and
    for pipes and devices, which may never end: they are opened without waiting for a writer."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "expected a file, got a pipe or a device", str(path))


def as_file(path: Path) -> Path:
    """Return the path of a regular file, for libraries that open it. Raise OSError for others."""
    os.close(regular(path))
    return path


def text_in(path: Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Return the text of a regular file. Raise OSError and UnicodeDecodeError."""
    with open(path, encoding=encoding, errors=errors, opener=regular) as file:
        return file.read()


def opened(path: Path) -> BinaryIO:
    """Return the file at ``path``, to be read and closed. Raise InputError where it leads out of
    its folder: the file that was opened is checked, whatever became of its name meanwhile."""
    file = open(path, "rb", opener=regular)  # noqa: SIM115 - handed on
    within = getattr(path, "within", None)
    if within is None:
        return file
    with suppress(OSError):
        real = os.path.realpath(path)
        if holds(within, real) and os.path.samestat(os.stat(real), os.fstat(file.fileno())):
            return file
    file.close()
    raise InputError(
        f"{path}: expected a file inside {within!r}, got one that is outside, by a link that was "
        f"made since; {REMEDY}"
    )


def contents(path: Path) -> bytes:
    """Return all of a file, or of what reads like one. Raise InputError where it leads out of its
    folder."""
    if not isinstance(path, Path):
        return path.read_bytes()
    with opened(path) as file:
        return file.read()


def as_path(source: Path | str) -> Path:
    """Return ``source`` as a path; an ``Inside`` keeps its folder."""
    return source if isinstance(source, Path) else Path(source)


MAX_DEEP = 50
"""Most tables and lists within each other."""
MAX_INTEGER = 2**63
"""Integers stay below this, as TOML says; larger ones fit no database and may not be printed."""
_TOO_DEEP = f"expected at most {MAX_DEEP} tables or lists within each other, got more"
_TOO_LARGE = "expected integers of 64 bits (19 digits), got a larger one"


def toml_of(text: str) -> Table:
    """Return the tables of a TOML text. Raise tomllib.TOMLDecodeError for any other text."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python's own limit of digits
        raise tomllib.TOMLDecodeError(_TOO_LARGE) from None
    level: list[Any] = [table]
    for _ in range(MAX_DEEP + 1):
        level = [value for each in level for value in _within(each)]
    if level:
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    return table


def _within(value: Any) -> list[Any]:
    """Return the values in a table or list. Raise for an integer that is too large."""
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise tomllib.TOMLDecodeError(_TOO_LARGE)
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def data_of(package: str, name: str) -> Table:
    """Return the TOML file ``name`` in the folder "data" of a package of ours."""
    return tomllib.loads(resources.files(package).joinpath("data", name).read_text("utf-8"))


def read_toml(
    path: Path, what: str, hint: Callable[[Path], str] = lambda path: "", remedy: str = ""
) -> Table:
    """Return the tables of a TOML file.

    Args:
        path: The file.
        what: What it is to be, for messages.
        hint: Returns what to do about a path that cannot be read.
        remedy: What to do about a file that is no TOML. Its lines, which may hold keys, are not
            repeated.

    Raises:
        InputError: The file cannot be read, or is no TOML.
    """
    try:
        return toml_of(text_in(path, "utf-8-sig"))  # as Windows writes it
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
    """Return ``table`` with the values of ``changes`` in place of the former ones, table by
    table."""
    result = dict(table)
    for name, new in changes.items():
        old = table.get(name)
        inner = isinstance(new, dict) and isinstance(old, dict | None)
        result[name] = merged(old or {}, new) if inner else new
    return result
