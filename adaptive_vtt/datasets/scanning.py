"""Finding image files in folders, and looking at many of them before anything is asked."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..errors import InputError, unknown
from ..utils.files import instead
from ..utils.image_files import read_image

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""File name endings of images, in the order in which a name without one is tried."""

Broken = Literal["refuse", "skip"]
"""A file that cannot be decoded: an error when it is met, or left out (and listed) at load."""

T = TypeVar("T")
R = TypeVar("R")


def image_files(folder: Path) -> list[Path]:
    """The image files right in ``folder``, 2 before 10; raises InputError where it is none."""
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is no folder of images{instead(folder)}")
    found = (path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    return sorted((path for path in found if _is_shown(path)), key=natural)


class Folder:
    """A folder that a file of the user's names files in; see ``file``.

    ``allow_outside``: those names may lead out of it, by "..", from the root, or by links.
    """

    def __init__(self, path: Path, allow_outside: bool) -> None:
        self.path = path
        self._allow_outside = allow_outside
        self._real = os.path.realpath(path)

    def file(self, name: str, where: str) -> Path:
        """The path of the file called ``name``, whether there is one or not.

        ``where``: what names it, e.g. "labels.csv, row 3", for the InputError that is raised
        where it is outside.
        """
        path = self.path / name
        if not self._allow_outside and self._is_outside(path, name):
            raise InputError(
                f"{where}: expected a file inside {str(self.path)!r}, got {name!r}, which is "
                "outside; allow_outside = true in [dataset] (in Python allow_outside=True) lets it"
            )
        return path

    def _is_outside(self, path: Path, name: str) -> bool:
        if "\0" in name:
            return True  # no path at all
        plain = not {"/", os.sep} & set(name) and name not in ("..", "")
        if plain and not os.path.islink(path):
            return False  # nearly all are: spares following every part of the path
        real = os.path.realpath(path)
        return os.path.commonpath([self._real, real]) != self._real


def natural(path: Path) -> tuple[Any, ...]:
    """Sorts paths by name with the numbers in them as numbers."""
    parts = re.split(r"(\d+)", path.as_posix())
    return tuple((int(p), p) if i % 2 else p for i, p in enumerate(parts))


def choose(kind: str, name: str, choices: Sequence[str], where: str) -> None:
    """Raises InputError where ``name`` is not one of ``choices``."""
    if name not in choices:
        raise unknown(kind, name, choices, where)


def each(look: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``look`` of every item, in order; decoding leaves Python free, so threads help."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(look, items))


def unreadable(paths: Sequence[Path], broken: str, where: str) -> set[Path]:
    """The files to leave out: those that cannot be decoded, where ``broken`` is "skip"."""
    choose("value of broken", broken, ("refuse", "skip"), where)
    if broken == "refuse":
        return set()
    flags = each(_is_broken, paths)
    return {path for path, bad in zip(paths, flags, strict=True) if bad}


def _is_broken(path: Path) -> bool:
    try:
        read_image(path, "")
    except InputError:
        return True
    return False


def _is_shown(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")  # "._a.jpg" is a leaving of macOS
