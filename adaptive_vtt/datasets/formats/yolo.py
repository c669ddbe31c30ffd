"""YOLO: a text file of boxes, or of outlines, per image, as Ultralytics' tools write them.

    data.yaml    {train,val,test}/images/1.jpg      {train,val,test}/labels/1.txt
    data.yaml    images/{train,val,test}/1.jpg      labels/{train,val,test}/1.txt

Each line has the number of a class, then a box (x and y of its centre, width, height) or an outline
(x and y of each corner), as shares of the image. An image without a text file has no objects. The
names of classes are in a .yaml file, or line by line in classes.txt or obj.names.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path

from ...errors import InputError, unexpected
from ...utils.files import contents, text_in
from ...utils.image_files import read_size
from .. import scanning
from ..pictures import Picture, from_pictures, shown
from ..scanning import BrokenOption, Folder, FolderOption, OutsideOption, Reading
from ..table import TableDataset

NAMES = ("*.yaml", "*.yml", "classes.txt", "obj.names", "labels/classes.txt")
"""Patterns of files that name the classes."""
FEW = 0.1
"""Minimum share of images with a text of boxes in the same folder: fewer texts have another use."""
_LINE = re.compile(rb"\d+( +[\d.eE+-]+){4,}\s")


def yolo_folders(root: Path) -> list[tuple[str, Path, Path]]:
    """Return the splits ("" for none), folders of images and folders of labels below ``root``."""
    places = []
    for folder in (root, *scanning.folders_below(root)):
        *above, last = ("", *folder.relative_to(root).as_posix().rpartition("images"))
        labels = root / f"{above[1]}labels{last}" if above[2] else folder
        files = filter(Path.is_file, sorted(labels.glob("*.txt")))
        texts = [contents(file)[:9999] + b"\n" for file in files]
        boxes = sum(map(bool, map(_LINE.match, texts)))
        images = scanning.image_files(folder, allow_outside=True) if boxes else []
        if images and (labels != folder or boxes >= FEW * len(images)):
            split = next(filter(scanning.is_split, folder.relative_to(root).parts), "")
            places.append((split, folder, labels))
    return places


def from_yolo(
    path: FolderOption,
    *,
    split: scanning.SplitOption = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read a folder of images with YOLO's text files.

    Concepts are the classes that any image shows, by number.

    Args:
        path: The folder.
        split: The split to read.
        broken: "skip" leaves out lines that cannot be read; the class that they name, or any, is
            unknown in their image.
        allow_outside: Whether links may lead out of the folder.

    Returns:
        The dataset.

    Raises:
        InputError: A line cannot be read, or no image has labels. It names file and line.
    """
    top, reading = Path(path), Reading(broken, "YOLO")
    places = [place for place in yolo_folders(top) if split in (None, place[0])]
    if not places:
        of = f" of the split {split!r}" if split else ""
        raise InputError(f"{top}: expected images{of} with YOLO's labels (.txt), got none")
    rows = [
        (name, file, Folder(labels, allow_outside, top).file(f"{file.stem}.txt", str(labels)))
        for name, images, labels in places
        for file in Folder(images, allow_outside, top).images()
    ]
    bad = reading.unreadable([file for _, file, _ in rows])
    names, pictures = class_names(top), []
    for _, file, text in rows:
        if file in bad:
            continue
        key = file.relative_to(top).as_posix() if len(places) > 1 else file.stem
        picture = Picture(key, file, *read_size(file, str(file)))
        lines = contents(text).decode(errors="replace").splitlines() if text.is_file() else []
        for number, line in enumerate(lines, start=1):
            if words := line.split():
                where = f"{text}, line {number}"
                label = reading.attempt(_label, words[0], names, where)
                picture.annotate(reading, where, label, partial(_edges, words[1:], picture, where))
        pictures.append(picture)
    met = shown(pictures)
    unnamed = sorted(met - {*names.values()}, key=lambda label: int(label.split()[1]))
    used = [each for _, *files in rows for each in files]
    used += [file for pattern in NAMES for file in top.rglob(pattern)]
    splits = [name for name, file, _ in rows if file not in bad]
    concepts = [name for name in [*names.values(), *unnamed] if name in met]
    remarks = scanning.split_remark(splits) | scanning.unread_remark([top], used)
    return from_pictures(pictures, concepts, str(top), remarks=remarks, **reading.named(top))


def _label(word: str, names: Mapping[int, str], where: str) -> str:
    number = int(word) if word.isdecimal() else -1
    if number < 0 or (names and number not in names):
        known = f" from 0 to {max(names)}" if names else ""
        raise unexpected(where, f"the number of a class{known}", repr(word[:40]))
    return names.get(number, f"class {number}")


def _edges(words: Sequence[str], picture: Picture, where: str) -> list[float]:
    """Return left, top, right and bottom in pixels of a box or an outline in shares."""
    try:
        x, y, across, down, *more = map(float, words)
    except ValueError:
        raise unexpected(where, "4 numbers or more", words[:6]) from None
    edges = x - across / 2, y - down / 2, x + across / 2, y + down / 2
    if len(more) > 1:  # an outline; a fifth number alone is a detector's score
        xs, ys = (x, across, *more[::2]), (y, down, *more[1::2])
        edges = min(xs), min(ys), max(xs), max(ys)
    return [e * (picture.height if k % 2 else picture.width) for k, e in enumerate(edges)]


def class_names(top: Path) -> dict[int, str]:
    """Return the names of classes by number, {} if no file of the folder names them."""
    files = (file for pattern in NAMES for file in sorted(top.glob(pattern)))
    for file in filter(Path.is_file, files):
        lines = text_in(file, errors="replace").splitlines()
        if file.suffix not in (".yaml", ".yml"):
            return {number: line.strip() for number, line in enumerate(lines) if line.strip()}
        if names := _yaml_names([re.sub(r"(^|\s)#.*", "", line).rstrip() for line in lines]):
            return names
    return {}


def _yaml_names(lines: list[str]) -> dict[int, str]:
    """Return the class names in the list or table under ``names:``, by number."""
    start = next((k for k, line in enumerate(lines) if line.startswith("names:")), len(lines))
    own = "".join(lines[start : start + 1]).removeprefix("names:").strip()
    below = takewhile(lambda line: not line or line[0] in " \t-]}", lines[start + 1 :])
    texts = [own, *below] if own else []
    cells = [cell for text in texts for cell in text.strip().strip("[]{}").split(",")] or [*below]
    names: dict[int, str] = {}
    for cell in filter(None, (cell.strip().removeprefix("- ").strip() for cell in cells)):
        number, _, name = cell.partition(":") if re.match(r"\d+\s*:", cell) else ("", "", cell)
        names[int(number) if number else len(names)] = name.strip().strip("\"'")
    return names
