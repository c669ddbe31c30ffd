"""Files that must lie in a folder, looked at again when they are opened."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import InputError

if TYPE_CHECKING:
    _Path = Path
else:
    _Path = type(Path())  # before Python 3.12 Path itself cannot be derived from

REMEDY = "allow_outside = true in [dataset] (in Python allow_outside=True) lets it"


class Inside(_Path):
    """A path with the folder that it may not lead out of, by its real path."""

    within: str | None = None

    def __reduce__(self) -> Any:
        return inside, (str(self), self.within)


def inside(path: Path | str, within: str | None) -> Path:
    """``path``, that ``opened`` takes for a file in the folder whose real path is ``within``."""
    found = Inside(path)
    found.within = within
    return found


def holds(folder: str, real: str) -> bool:
    """Whether the real path of a folder is that of what holds another."""
    try:
        return os.path.commonpath([folder, real]) == folder
    except ValueError:  # on another drive
        return False


def opened(path: Path) -> BinaryIO:
    """The file at ``path``, to be read and closed; InputError where it leads out of its folder.

    What is looked at is the file that was opened, whatever became of its name meanwhile.
    """
    file = path.open("rb")
    within = getattr(path, "within", None)
    if within is None:
        return file
    try:
        real = os.path.realpath(path)
        if holds(within, real) and os.path.samestat(os.stat(real), os.fstat(file.fileno())):
            return file
    except OSError:
        pass
    file.close()
    raise InputError(
        f"{path}: expected a file inside {within!r}, got one that is outside, by a link that was "
        f"made since; {REMEDY}"
    )


def contents(path: Path) -> bytes:
    """All of a file, or of what reads like one; InputError where it leads out of its folder."""
    if not isinstance(path, Inside):
        return path.read_bytes()
    with opened(path) as file:
        return file.read()


def as_path(source: Path | str) -> Path:
    """``source`` as a path, the folder it may not lead out of kept."""
    return source if isinstance(source, Path) else Path(source)
