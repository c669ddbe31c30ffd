"""Find image files in folders, keep names within them, and check files before an audit begins."""

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from ..errors import InputError, check_known, some, unexpected
from ..utils.files import REMEDY, check_folder, data_of, holds, inside
from ..utils.image_files import begins_as_image, read_image
from ..utils.options import Option, at_base

NAMES = data_of(f"{__package__}.formats", "names.toml")
"""Usual names and words in folders and tables of data, in lower case."""
ENDINGS = tuple(NAMES["endings"])
"""Endings of image files, in the order in which they are appended to a name without one."""

NUMBERED = re.compile(r"0*(\d+)(?:\.0)?(\.[a-z]+)?")
"""Matches a file name that is a number, perhaps with a spreadsheet's ".0", and its ending."""
_MASK = re.compile(rf"[_ -]({'|'.join(NAMES['mask_endings'])})([_-]?\d+)?$", re.IGNORECASE)
_NO_NAMES = ("", ".", "..")
"""Last parts of paths that lead to a folder."""

Broken = Literal["refuse", "skip"]
"""Treatment of a file that cannot be decoded: raise an error, or leave it out and list it."""
BrokenOption = Annotated[
    Broken, Option("files that cannot be decoded are an error when met, or left out and listed")
]
OutsideOption = Annotated[bool, Option("names of files, and links, may lead out of their folder")]
FolderOption = Annotated[Path | str, Option("the folder", reads=at_base)]
IMAGES = "folder of images within path (default: the one with a usual name)"
MASKS = "folder of masks within path (default: the one with a usual name)"
SplitOption = Annotated[str | None, Option("one folder such as test, of several (default: all)")]
Classes = Literal["all", "own"]
ClassesOption = Annotated[Classes, Option("ask an image about all classes, or about its own alone")]

T = TypeVar("T")
R = TypeVar("R")


def image_files(folder: Path, *, allow_outside: bool = False) -> list[Path]:
    """Return the image files directly in a folder; see ``Folder.images``."""
    return Folder(folder, allow_outside).images()


def holds_images(folder: Path) -> bool:
    """Return whether a path is a folder with image files directly in it."""
    return folder.is_dir() and bool(image_files(folder, allow_outside=True))


class Folder:
    """A folder whose files are read, by name or all of them, and which names may not leave.

    Args:
        path: The folder.
        allow_outside: Whether names and links may lead out of the folder.
        top: A folder above it. Links, but not names, may lead to any file in it. Default None: the
            folder itself.
    """

    def __init__(self, path: Path, allow_outside: bool, top: Path | None = None) -> None:
        self.path = path
        self._allow_outside = allow_outside
        self._real = os.path.realpath(path if top is None else top)
        self._below = top is not None
        self._listings: dict[str, _Listing] = {}

    def file(self, name: str, where: str) -> Path:
        """Return the path of a file in the folder, which need not exist.

        When the path is opened it is checked again to be inside.

        Args:
            name: A path relative to the folder.
            where: The place that names the file, such as "labels.csv, row 3", for errors.

        Raises:
            InputError: The file is outside the folder.
        """
        path = self.path / name
        if self._allow_outside:
            return path
        parent, last = os.path.split(name)
        outside = "\0" in name  # no valid path
        if not outside and last not in _NO_NAMES:
            outside = not self._listing(parent).inside
        # resolving the whole path is slow, and only needed for links and names such as ".."
        if not outside and (last in _NO_NAMES or os.path.islink(path)):
            outside = not holds(self._real, os.path.realpath(path))
        if outside:
            expected = f"a file inside {str(self.path)!r}"
            raise unexpected(where, expected, f"{name!r}, which is outside", REMEDY)
        return inside(path, self._real)

    def find(self, names: Iterable[str], where: str) -> Path | None:
        """Return the first of these files that exists. Raise InputError if one is outside."""
        for name in names:
            parent, last = os.path.split(name)
            if "\0" not in name and last not in _NO_NAMES:
                listing = self._listing(parent)
                if listing.inside and folded(last) not in listing.names:
                    continue
            path = self.file(name, where)
            if os.path.isfile(path):
                return path
        return None

    def near(self, name: str, where: str) -> Path | None:
        """Return the only image with a similar name; None if there is none, or several.

        Slashes, letter case, Unicode form, the ending and leading zeros of a number may differ.

        Args:
            name: A path relative to the folder.
            where: The place that names the file, for errors.
        """
        *parents, last = [part for part in name.replace("\\", "/").split("/") if part != "."]
        parent = ""
        for part in parents:
            names = self._listing(parent).names.get(folded(part), [])
            if len(names) != 1:
                return None
            parent = os.path.join(parent, names[0])
        listing = self._listing(parent)
        endings = ("", *ENDINGS)
        known = [real for end in endings for real in listing.names.get(folded(last + end), [])]
        if not known and (number := NUMBERED.fullmatch(folded(last))):
            known = listing.numbers.get((number[1], number[2] or ""), [])
        return self.file(os.path.join(parent, known[0]), where) if len(known) == 1 else None

    def images(self, below: str = "") -> list[Path]:
        """Return the image files directly in the folder, without masks; "2.png" before "10.png".

        Args:
            below: A folder within it to list instead.

        Raises:
            InputError: There is no such folder, or a link leads out of it.
        """
        folder = self.path / below
        check_folder(folder, "a folder of images")
        images = sorted(images_and_masks(folder)[0], key=natural)
        return [self.file(os.path.join(below, path.name), str(folder)) for path in images]

    def _listing(self, parent: str) -> "_Listing":
        if parent not in self._listings:
            folder = os.path.join(self.path, parent)
            within = holds(os.path.abspath(self.path), os.path.abspath(folder)) or not self._below
            inside = self._allow_outside or (within and holds(self._real, os.path.realpath(folder)))
            listing = self._listings[parent] = _Listing(inside)
            with suppress(OSError):
                for name in os.listdir(folder) if inside else ():
                    listing.names.setdefault(folded(name), []).append(name)
        return self._listings[parent]


@dataclass
class _Listing:
    """The names in a folder.

    Attributes:
        inside: Whether the folder is allowed to be read. Otherwise it is not listed.
        names: Name without case -> the names that differ in case alone.
    """

    inside: bool
    names: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def numbers(self) -> dict[tuple[str, str], list[str]]:
        """Images whose name is a number, by (number, ending) and by (number, "")."""
        images = defaultdict[tuple[str, str], list[str]](list)
        for name, names in self.names.items():
            if (number := NUMBERED.fullmatch(name)) and number[2] in ENDINGS:
                for ending in ("", number[2]):
                    images[number[1], ending] += names
        return images


def images_and_masks(folder: Path) -> tuple[set[Path], set[Path]]:
    """Return the images directly in a folder, and their masks: "a_mask.png" of "a.png"."""
    files = (path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    # macOS writes hidden files such as "._a.jpg", which are no images
    images = {path for path in files if path.is_file() and not path.name.startswith(".")}
    stems = {path.stem for path in images}
    masks = {p for p in images if (stem := image_stem(p.stem)) != p.stem and stem in stems}
    return images - masks, masks


def image_stem(stem: str) -> str:
    """Return the image's name for a mask: "a" for "a_mask" or "a_mask_1"; others unchanged."""
    return _MASK.sub("", stem)


def is_aside(folder: str) -> bool:
    """Return whether a folder of that name belongs to a system or tool, not to the data."""
    return folder[0] in ".@" or folder.lower() in NAMES["aside"]


def folders_below(top: Path) -> list[Path]:
    """Return all folders of data below a folder; "2" before "10"."""
    folders = []
    for folder, below, _ in os.walk(top):
        below[:] = [name for name in below if not is_aside(name)]
        folders += [Path(folder, name) for name in below]
    return sorted(folders, key=natural)


def folded(name: str) -> str:
    """Return a name without case, in one Unicode form, as some file systems compare names."""
    return unicodedata.normalize("NFC", name).casefold()


def split_remark(splits: Sequence[str]) -> dict[str, str]:
    """Return a remark on the splits of all samples ("" for none), {} if there are no splits."""
    counts = Counter(filter(None, splits))
    remark = ", ".join(f"{name} ({count:,} images)" for name, count in counts.items())
    if len(counts) > 1:
        remark += '; split = "..." in [dataset] takes one'
    if any(name.lower().startswith("train") for name in counts):
        remark += "; a model does better on images that it was trained on"
    return {"splits": remark} if counts else {}


def is_split(name: str | None) -> bool:
    """Return whether a folder of that name is a split, such as train."""
    return name is not None and name.lower() in NAMES["splits"]


def unread_remark(
    folders: Iterable[Path], used: Iterable[Path], *, table: bool = False
) -> dict[str, str]:
    """Return a remark on the number of unused files in folders, by ending; {} if all are used.

    Hidden files, code, pages and folders of audits do not count.

    Args:
        folders: Folders, which are searched with all folders below.
        used: The files that the dataset uses.
        table: Whether a table names the images, so that others lack a row, and are named.
    """
    without_row = list[str]()
    known, counts = {os.path.abspath(path) for path in used}, Counter[str]()
    for top in dict.fromkeys(folders):
        for folder, below, names in os.walk(top):
            if "journal.db" in names:
                below[:] = names[:] = []
            below[:] = [name for name in below if not is_aside(name)]
            for name in names:
                ending = os.path.splitext(name)[1].lower()
                if name[0] == "." or os.path.abspath(os.path.join(folder, name)) in known:
                    continue
                if table and ending in ENDINGS and not _MASK.search(name[: -len(ending)]):
                    without_row.append(name)
                elif ending not in _ASIDE:
                    counts[ending or "without an ending"] += 1
    parts = [f"{number:,} {ending}" for ending, number in counts.most_common()]
    if without_row:
        have = "images have" if len(without_row) > 1 else "image has"
        first = some(sorted(without_row, key=by_number), 3)
        parts.insert(0, f"{len(without_row):,} {have} no row in the table: {first}")
    return {"not read": ", ".join(parts)} if parts else {}


_ASIDE = {".py", ".pyc", ".md", ".toml", ".html"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def by_number(name: str) -> tuple[Any, ...]:
    """Return a sort key of a name in which numbers are compared as numbers: "2" before "10"."""
    if _NUMBER.fullmatch(name):
        return (0, float(name), name)
    parts = re.split(r"(\d+)", name)
    return (1, [(int(p), p) if i % 2 else (p,) for i, p in enumerate(parts)], name)


def natural(path: Path) -> tuple[Any, ...]:
    """Return ``by_number`` of a path."""
    return by_number(path.as_posix())


def each(look: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return ``look(item)`` for each item, in order, from threads: decoding releases the GIL."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(look, items))


SKIP = "broken = 'skip' in [dataset] leaves such things out, and says so"


class Reading:
    """Handler of files and entries that cannot be read: it raises, or leaves them out and lists
    them.

    Args:
        broken: "refuse" or "skip".
        where: Name of the data, for errors.

    Raises:
        InputError: ``broken`` is neither.
    """

    def __init__(self, broken: str, where: str) -> None:
        check_known("value of broken", broken, ("refuse", "skip"), where)
        self.skips = broken == "skip"
        self._entries: list[str] = []
        self._files: set[Path] = set()
        self.missing: list[str] = []
        """Names of files that do not exist."""

    @property
    def skipped(self) -> list[str]:
        """The names of the entries, then of the files, that were left out, missing ones last."""
        return [*self._entries, *sorted(map(str, self._files)), *self.missing]

    def named(self, root: Path) -> dict[str, Any]:
        """Return the arguments ``name`` and ``skipped`` of a dataset read from a folder."""
        return {"name": root.resolve().name, "skipped": self.skipped}

    def attempt(self, make: Callable[..., T], *arguments: Any, **named: Any) -> T | None:
        """Return the result of ``make(*arguments, **named)``, or None if a broken entry is skipped.

        Raises:
            InputError: ``make`` raised it, and broken entries are refused.
        """
        try:
            return make(*arguments, **named)
        except InputError as error:
            if not self.skips:
                remedy = "" if SKIP in str(error) else f"; {SKIP}"
                raise InputError(f"{error}{remedy}") from None
            self._entries.append(str(error))
            return None

    def unreadable(self, files: Iterable[Path]) -> set[Path]:
        """Return the files that cannot be decoded, which are to be left out.

        If broken files are skipped, all files are decoded now. Else only the first bytes of each
        are checked, as the rest is decoded when the model is asked about it.

        Raises:
            InputError: Broken files are refused, and one does not begin like an image.
        """
        if self.skips:
            self._files |= set(filter(None, each(_broken, files)))
            return self._files
        for file in files:
            if not begins_as_image(file):
                self.attempt(read_image, file, "")
        return set()


def _broken(path: Path) -> Path | None:
    """Return the file if it cannot be decoded, else None."""
    try:
        read_image(path, "")
    except InputError:
        return path
    return None
