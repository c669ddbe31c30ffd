"""PASCAL VOC: images with the boxes of 20 classes (Everingham et al., IJCV 88, 2010).

    VOC2012/Annotations/2008_000002.xml    VOC2012/JPEGImages/2008_000002.jpg
    VOC2012/ImageSets/Main/val.txt         (one name per line)

Boxes count pixels from 1, and include the last one. VOC's evaluations leave out objects that are
marked as ``difficult``; a class with only such objects in an image is unknown there.
"""

import math
import os
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from ...errors import InputError, unexpected, unknown
from ...types import UNKNOWN
from ...utils.files import check_folder, contents, reads
from ...utils.options import Option
from ..pairing import check_unique
from ..pictures import Picture, from_pictures, readable, shown
from ..scanning import BrokenOption, Folder, FolderOption, OutsideOption, Reading, natural
from ..table import TableDataset

SIDES = ("xmin", "ymin", "xmax", "ymax")


def from_voc(
    path: FolderOption,
    *,
    split: Annotated[str | None, Option("a list in ImageSets/Main (default: all)")] = None,
    difficult: Annotated[bool, Option("take difficult objects, too")] = False,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read a folder in the layout of VOC2007 to VOC2012.

    Concepts are the classes that any image names, in alphabetical order.

    Args:
        path: The folder.
        split: A list in ImageSets/Main. Default None: all annotated images.
        difficult: Whether to include difficult objects.
        broken: "skip" leaves out annotations and images that cannot be read.
        allow_outside: Whether names and links may lead out of the folders.

    Returns:
        The dataset.

    Raises:
        InputError: An annotation is broken. The message names the file, the object and the field.
    """
    top, reading = Path(path), Reading(broken, "VOC")
    parts = top / "Annotations", top / "JPEGImages"
    annotations, images = (Folder(part, allow_outside, top) for part in parts)

    def picture(name: str) -> Picture:
        where = f"{top}, image {name!r}"
        path, file = annotations.file(f"{name}.xml", where), images.file(f"{name}.jpg", where)
        tree = _tree(path)
        if not os.path.isfile(file):
            raise InputError(f"{path}: its image file {str(file)!r} does not exist")
        sides = ("height", "width")
        height, width = (int(_number(tree, f"size/{side}", str(path))) for side in sides)
        if min(height, width) < 1:
            raise unexpected(str(path), "a size of 1 x 1 or more", f"{width} x {height}")
        picture = Picture(name, file, height, width)
        for place, entry in enumerate(tree.findall("object"), start=1):
            where = f"{path}, object {place}"
            left_out = not difficult and entry.findtext("difficult", "0").strip() == "1"
            label, edges = reading.attempt(_label, entry, where), partial(_edges, entry, where)
            truth = UNKNOWN if left_out else 1
            where = f"{where}, bndbox"
            picture.annotate(reading, where, label, edges, truth=truth, boxed=not left_out)
        return picture

    pictures = readable([reading.attempt(picture, n) for n in _listed(top, split)], reading)
    return from_pictures(pictures, sorted(shown(pictures)), str(top), **reading.named(top))


def _listed(top: Path, split: str | None) -> list[str]:
    """Return the names of the images of a split; None: of all annotated images."""
    folder, lists = top / "Annotations", top / "ImageSets" / "Main"
    if split is None:
        check_folder(folder, "a folder of annotations")
        return [path.stem for path in sorted(folder.glob("*.xml"), key=natural)]
    path = lists / f"{split}.txt"
    if not path.is_file():
        raise unknown("split", split, [file.stem for file in lists.glob("*.txt")], str(lists))
    lines = path.read_text().splitlines()
    names = [line.strip() for line in lines if line.strip()]
    for place, name in enumerate(names):
        if len(name.split()) > 1:
            raise unexpected(f"{path}, line {place + 1}", "one image name", repr(name))
    check_unique(names, "the image", str(path))
    return names


class _NoDeclarations(ET.TreeBuilder):
    """Builder that refuses document types, whose entities may expand without limit."""

    def doctype(self, *_: Any) -> None:
        raise ET.ParseError("a document type is not allowed")


def _tree(path: Path) -> ET.Element:
    with reads(path, "it as XML"):
        return ET.fromstring(contents(path), ET.XMLParser(target=_NoDeclarations()))


def _label(entry: ET.Element, where: str) -> str:
    label = entry.findtext("name", "").strip()
    if not label:
        raise unexpected(where, "a class in <name>", "none")
    return label


def _edges(entry: ET.Element, where: str) -> tuple[float, float, float, float]:
    left, top, right, bottom = (_number(entry, f"bndbox/{side}", where) for side in SIDES)
    return left - 1, top - 1, right, bottom


def _number(entry: ET.Element, field: str, where: str) -> float:
    text = entry.findtext(field)
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise unexpected(where, f"a number in <{field}>", repr(text))
    return number
