"""Finding image files in folders, and looking at many of them before anything is asked."""

import os
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from ..errors import InputError, check_known, unexpected
from ..utils.files import REMEDY, holds, inside, instead
from ..utils.image_files import begins_as_image, read_image
from ..utils.options import Option, at_base

_DATA = Path(__file__).parent / "formats" / "data" / "names.toml"
NAMES = tomllib.loads(_DATA.read_text(encoding="utf-8"))
"""Words that data folders and tables are written in."""
ENDINGS = tuple(NAMES["endings"])
"""File name endings of images, in the order in which a name without one is tried."""

_NUMBERED = re.compile(r"0*(\d+)(?:\.0)?(\.[a-z]+)?")
"""A number that names a file, perhaps as a spreadsheet writes it, and the file's ending."""
_MASK = re.compile(rf"[_ -]({'|'.join(NAMES['mask_endings'])})([_-]?\d+)?$", re.IGNORECASE)
_NO_NAMES = ("", ".", "..")
"""Last parts of names that lead to a folder."""

Broken = Literal["refuse", "skip"]
"""A file that cannot be decoded: an error when it is met, or left out (and listed) at load."""
BrokenOption = Annotated[
    Broken, Option("files that cannot be decoded are an error when met, or left out and listed")
]
OutsideOption = Annotated[bool, Option("names of files, and links, may lead out of their folder")]
FolderOption = Annotated[Path | str, Option("the folder", reads=at_base)]
IMAGES = "folder of images within path (default: found by its usual name)"
MASKS = "folder of masks within path (default: found by its usual name)"
SplitOption = Annotated[str | None, Option("one folder such as test, of several (default: all)")]
Classes = Literal["all", "own"]
ClassesOption = Annotated[Classes, Option("ask an image about all classes, or about its own alone")]

T = TypeVar("T")
R = TypeVar("R")


def image_files(folder: Path, *, allow_outside: bool = False) -> list[Path]:
    """Return the image files right in ``folder``; see ``Folder.images``."""
    return Folder(folder, allow_outside).images()


def holds_images(folder: Path) -> bool:
    """Return whether image files lie right in a folder, which may be missing."""
    return folder.is_dir() and bool(image_files(folder, allow_outside=True))


class Folder:
    """A folder that files are taken from, by names of the user's or as they lie there.

    ``allow_outside``: they may lie out of it, by "..", from the root, or by links.
    ``top``: the folder of the data, where that is above it: links, but no names, may lead to all
    of it. Its folders are listed once, when they are needed.
    """

    def __init__(self, path: Path, allow_outside: bool, top: Path | None = None) -> None:
        self.path = path
        self._allow_outside = allow_outside
        self._real = os.path.realpath(path if top is None else top)
        self._below = top is not None
        self._listings: dict[str, _Listing] = {}

    def file(self, name: str, where: str) -> Path:
        """Return the path of the file called ``name``, whether there is one or not.

        ``where``: what names it, e.g. "labels.csv, row 3", for the InputError that is raised
        where it is outside; it is looked for again when the file is opened.
        """
        if self._allow_outside:
            return self.path / name
        if self._is_outside(name):
            expected = f"a file inside {str(self.path)!r}"
            raise unexpected(where, expected, f"{name!r}, which is outside", REMEDY)
        return inside(self.path / name, self._real)

    def find(self, names: Iterable[str], where: str) -> Path | None:
        """Return the first of these files that is there; InputError where one is outside."""
        for name in names:
            parent, last = os.path.split(name)
            if "\0" not in name and last not in _NO_NAMES:
                listing = self._listing(parent)
                if listing.inside and _folded(last) not in listing.names:
                    continue
            path = self.file(name, where)
            if os.path.isfile(path):
                return path
        return None

    def near(self, name: str, where: str) -> Path | None:
        """Return the only image called so but for slashes, letter case, Unicode form, its ending,
        or zeros in front of a number; None for none, and for several."""
        *parents, last = [part for part in name.replace("\\", "/").split("/") if part != "."]
        parent = ""
        for part in parents:
            names = self._listing(parent).names.get(_folded(part), [])
            if len(names) != 1:
                return None
            parent = os.path.join(parent, names[0])
        listing = self._listing(parent)
        known = [
            real
            for ending in ("", *ENDINGS)
            for real in listing.names.get(_folded(last + ending), [])
        ]
        number = _NUMBERED.fullmatch(_folded(last))
        if not known and number:
            known = listing.numbers.get((number[1], number[2] or ""), [])
        return self.file(os.path.join(parent, known[0]), where) if len(known) == 1 else None

    def images(self, below: str = "") -> list[Path]:
        """Return the image files right in it, or in a folder of it, 2 before 10.

        Raises:
            InputError: where there is no such folder, and where one of them is outside.
        """
        folder = self.path / below
        if not folder.is_dir():
            raise InputError(f"{str(folder)!r} is no folder of images{instead(folder)}")
        shown = sorted(images_and_masks(folder)[0], key=natural)
        return [self.file(os.path.join(below, path.name), str(folder)) for path in shown]

    def _is_outside(self, name: str) -> bool:
        if "\0" in name:
            return True  # no path at all
        parent, last = os.path.split(name)
        if last not in _NO_NAMES:
            listing = self._listing(parent)
            if not listing.inside or _folded(last) not in listing.links:
                return not listing.inside  # nearly all: spares following every part of the path
        return not holds(self._real, os.path.realpath(self.path / name))

    def _listing(self, parent: str) -> "_Listing":
        if parent not in self._listings:
            folder = os.path.join(self.path, parent)
            named = holds(os.path.abspath(self.path), os.path.abspath(folder)) or not self._below
            safe = self._allow_outside or (named and holds(self._real, os.path.realpath(folder)))
            listing = self._listings[parent] = _Listing(safe)
            with suppress(OSError):
                for entry in os.scandir(folder) if safe else ():
                    name = _folded(entry.name)
                    listing.names.setdefault(name, []).append(entry.name)
                    if entry.is_symlink():
                        listing.links.add(name)
        return self._listings[parent]


@dataclass
class _Listing:
    """What a folder holds; ``inside``: whether it is where it may be, else it is not looked at.

    Names count as the same whatever their case, which some file systems do not tell apart.
    """

    inside: bool
    names: dict[str, list[str]] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)

    @cached_property
    def numbers(self) -> dict[tuple[str, str], list[str]]:
        """Images called by a number, by the number without zeros in front, with and without their
        ending."""
        images: dict[tuple[str, str], list[str]] = {}
        for name, real in self.names.items():
            number = _NUMBERED.fullmatch(name)
            if number and number[2] in ENDINGS:
                for ending in ("", number[2]):
                    images.setdefault((number[1], ending), []).extend(real)
        return images


def images_and_masks(folder: Path) -> tuple[set[Path], set[Path]]:
    """Return the images right in a folder, and their masks beside them: "a_mask.png" of "a.png"."""
    named = (path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    # "._a.jpg" is a leaving of macOS
    files = {path for path in named if path.is_file() and not path.name.startswith(".")}
    stems = {path.stem for path in files}
    masks = {p for p in files if (own := image_stem(p.stem)) != p.stem and own in stems}
    return files - masks, masks


def image_stem(stem: str) -> str:
    """Return the name of the image that a mask called "a_mask" or "a_mask_1" belongs to; other
    names as they are."""
    return _MASK.sub("", stem)


def is_aside(folder: str) -> bool:
    """Return whether a system or a tool left a folder of that name; its images are none of the
    user's."""
    return folder[0] in ".@" or folder.lower() in NAMES["aside"]


def folders_below(top: Path) -> list[Path]:
    """Return all folders below ``top``, 2 before 10, without those that are aside."""
    folders = []
    for folder, below, _ in os.walk(top):
        below[:] = [name for name in below if not is_aside(name)]
        folders += [Path(folder, name) for name in below]
    return sorted(folders, key=natural)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def split_remark(splits: Sequence[str]) -> dict[str, str]:
    """Return a remark on the splits of all samples, {} where there are none."""
    counts = Counter(filter(None, splits))
    if not counts:
        return {}
    used = ", ".join(f"{name} ({count:,} images)" for name, count in counts.items())
    advice = '; split = "..." in [dataset] takes one' if len(counts) > 1 else ""
    learnt = any(name.lower().startswith("train") for name in counts)
    known = "; a model does better on images that it was trained on" if learnt else ""
    return {"splits": f"{used}{advice}{known}"}


def is_split(name: str | None) -> bool:
    """Return whether a folder of that name is a split, such as train."""
    return name is not None and name.lower() in NAMES["splits"]


def unread_remark(folders: Iterable[Path], used: Iterable[Path]) -> dict[str, str]:
    """Return a remark with the number of files per ending that lie in the folders and were not
    used, {} where all were. Hidden ones, and those of audits, are left aside."""
    known, counts = {os.path.abspath(path) for path in used}, Counter[str]()
    for top in dict.fromkeys(folders):
        for folder, below, names in os.walk(top):
            below[:] = [] if "journal.db" in names else [n for n in below if not is_aside(n)]
            for name in () if "journal.db" in names else names:
                ending = os.path.splitext(name)[1].lower()
                other = os.path.abspath(os.path.join(folder, name)) not in known
                if other and name[0] != "." and ending not in _ASIDE:
                    counts[ending or "without an ending"] += 1
    summary = ", ".join(f"{number:,} {ending}" for ending, number in counts.most_common())
    return {"not read": summary} if summary else {}


_ASIDE = {".py", ".pyc", ".md", ".toml", ".html"}


def natural(path: Path) -> tuple[Any, ...]:
    """Sorts paths by name with the numbers in them as numbers."""
    parts = re.split(r"(\d+)", path.as_posix())
    return tuple((int(p), p) if i % 2 else p for i, p in enumerate(parts))


def each(look: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """``look`` of every item, in order; decoding leaves Python free, so threads help."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(look, items))


SKIP = "broken = 'skip' in [dataset] leaves such things out, and says so"


class Reading:
    """Refuse what cannot be read, or leave it out and note it (``broken``: "refuse" or "skip").

    ``skipped`` names what was left out: entries of files, then files. Raises InputError, which
    names ``where``, for another value of ``broken``.
    """

    def __init__(self, broken: str, where: str) -> None:
        check_known("value of broken", broken, ("refuse", "skip"), where)
        self._skip = broken == "skip"
        self._entries: list[str] = []
        self._files: set[Path] = set()

    @property
    def skipped(self) -> list[str]:
        return [*self._entries, *sorted(map(str, self._files))]

    def attempt(self, make: Callable[[], T]) -> T | None:
        """Return what ``make`` returns, None where it raises InputError and entries are skipped."""
        try:
            return make()
        except InputError as error:
            if not self._skip:
                remedy = "" if SKIP in str(error) else f"; {SKIP}"
                raise InputError(f"{error}{remedy}") from None
            self._entries.append(str(error))
            return None

    def unreadable(self, files: Iterable[Path]) -> set[Path]:
        """Return the files to leave out: those that cannot be decoded, where they are skipped.

        Else raise InputError for the first that does not begin as an image does; the rest of each
        is decoded when it is asked about.
        """
        if not self._skip:
            for file in files:
                if not begins_as_image(file):
                    self.attempt(partial(read_image, file, ""))
            return set()
        files = [*files]
        bad = {file for file, broken in zip(files, each(_is_broken, files), strict=True) if broken}
        self._files |= bad
        return bad


def _is_broken(path: Path) -> bool:
    try:
        read_image(path, "")
    except InputError:
        return True
    return False
