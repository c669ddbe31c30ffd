"""COCO: images of everyday scenes with a box around every object (Lin et al., ECCV 2014).

    annotations/instances_val2017.json      val2017/000000000139.jpg

Format: https://cocodataset.org/#format-data. The JSON has ``images`` (id, file_name, width,
height), ``categories`` (id, name) and ``annotations`` (id, image_id, category_id, iscrowd, bbox
[x, y, width, height] in pixels, segmentation).

A segmentation is a list of polygons, or run lengths. Runs alternate between outside, which is
first, and inside, and follow the columns of the image. They are numbers, or text (comments of
``maskApi.h``): each character, from "0" on, holds five bits of a number, the lowest first, and bit
32 if more follow. From the fourth number on the text holds the difference to the last but one.
"""

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ...errors import InputError, unexpected
from ...types import JsonObject, Mask
from ...utils.files import reads, text_in
from ...utils.options import Option, at_base
from ..pictures import Picture, from_pictures, readable, shown
from ..scanning import BrokenOption, Folder, OutsideOption, Reading, unread_remark
from ..table import TableDataset

_FINE = 4
"""Factor by which polygons are drawn larger than the image, and then sampled at pixel centres. A
drawn outline is one pixel wide, so that masks in the size of the image would be too large."""
PARTS = ("images", "categories", "annotations")
KEY = (int, str)
Key = int | str
"""An id."""


def from_coco(
    labels: Annotated[Path | str, Option("the instances JSON", reads=at_base)],
    images: Annotated[Path | str, Option("folder of images", reads=at_base)],
    *,
    crowds: Annotated[bool, Option("take boxes around groups, too")] = False,
    outlines: Annotated[bool, Option("keep objects' outlines, to cut out or remove them")] = False,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read an ``instances_*.json`` and the folder of its images.

    Samples are all images, named by their COCO id; concepts are the categories that are annotated
    at least once, in the order of the file; boxes are the annotations.

    Args:
        labels: The JSON.
        images: The folder of images.
        crowds: Whether to keep boxes around groups. If not, the class of a group is present, but
            has no box.
        outlines: Whether to keep outlines as masks, which are decoded on access. If not, they are
            dropped while the file is read, which saves most of its memory.
        broken: "skip" leaves out annotations and images that cannot be read.
        allow_outside: Whether names and links may lead out of the folder.

    Returns:
        The dataset.

    Raises:
        InputError: An image or annotation is broken. It names the file, the id and the field.
    """
    path, reading = Path(labels), Reading(broken, "COCO")
    folder = Folder(Path(images), allow_outside)
    content = _content(path, outlines)
    names = _names(content["categories"], path)
    pictures: dict[Key, Picture | None] = {}
    for place, entry in enumerate(content["images"]):
        key = _field(entry, "id", KEY, f"{path}, images[{place}]")
        if key in pictures:
            raise InputError(f"{path}, image {key}: its id stands twice")
        pictures[key] = reading.attempt(_picture, entry, folder, f"{path}, image {key}")
    files = [picture.file for picture in pictures.values() if picture]
    kept = readable([*pictures.values()], reading)
    kept_ids = {picture.id for picture in kept}
    drawn = defaultdict[tuple[str, str], list[Any]](list)
    for place, entry in enumerate(content["annotations"]):
        where = f"{path}, annotations[{place}]"
        image = reading.attempt(_image, entry, pictures, path, where)
        picture = None if image is None else pictures[image]
        if not picture or picture.id not in kept_ids:
            continue
        where = f"{path}, annotation {entry['id']}"
        label = reading.attempt(_label, entry, names, where)
        edges, boxed = partial(_edges, entry, where), crowds or not entry.get("iscrowd", 0)
        box = picture.annotate(reading, f"{where}, bbox", label, edges, boxed=boxed)
        if box and outlines:
            own = drawn[picture.id, box.label]
            own.append(entry.get("segmentation"))
            where = f"{path}, image {picture.id}, segmentation of {box.label!r}"
            picture.masks[box.label] = partial(_drawn, own, picture.height, picture.width, where)
    classes = shown(kept)
    return from_pictures(
        kept,
        [name for name in names.values() if name in classes],
        str(path),
        name=path.stem,
        skipped=reading.skipped,
        remarks=unread_remark([folder.path], [*files, path]),
    )


def _content(path: Path, outlines: bool) -> dict[str, list[Any]]:
    def bare(entry: JsonObject) -> JsonObject:
        entry.pop("segmentation", None)
        return entry

    with reads(path, "annotations as JSON"):
        content = json.loads(text_in(path), object_hook=None if outlines else bare)
    for part in PARTS:
        if not isinstance(content, dict) or not isinstance(content.get(part), list):
            raise InputError(f"{path}: expected lists {', '.join(PARTS)}, got no list {part!r}")
    return content


def _names(categories: Sequence[Any], path: Path) -> dict[Key, str]:
    names: dict[Key, str] = {}
    for place, entry in enumerate(categories):
        key = _field(entry, "id", KEY, f"{path}, categories[{place}]")
        name = _field(entry, "name", (str,), f"{path}, category {key}")
        if key in names or name in names.values():
            raise InputError(f"{path}, category {key}: its id or name {name!r} stands twice")
        names[key] = name
    return names


def _picture(entry: JsonObject, folder: Folder, where: str) -> Picture:
    file = folder.file(_field(entry, "file_name", (str,), where), where)
    height, width = (_field(entry, side, (int,), where) for side in ("height", "width"))
    if min(height, width) < 1:
        raise unexpected(where, "height and width of 1 or more", f"{height}, {width}")
    if not os.path.isfile(file):
        raise InputError(f"{where}: its file_name {str(file)!r} does not exist")
    return Picture(str(entry["id"]), file, height, width)


def _image(entry: Any, pictures: Mapping[Key, Any], path: Path, where: str) -> Key:
    """Return the image of an annotation."""
    where = f"{path}, annotation {_field(entry, 'id', KEY, where)}"
    image: Key = _field(entry, "image_id", KEY, where)
    if image not in pictures:
        raise InputError(f"{where}: its image_id {image!r} is that of no image")
    return image


def _label(entry: JsonObject, names: Mapping[Key, str], where: str) -> str:
    kind = _field(entry, "category_id", KEY, where)
    if kind not in names:
        raise InputError(f"{where}: its category_id {kind!r} is that of no category")
    return names[kind]


def _edges(entry: JsonObject, where: str) -> tuple[float, float, float, float]:
    sides = _field(entry, "bbox", (list,), where)
    if len(sides) != 4 or not all(isinstance(side, int | float) for side in sides):
        raise unexpected(where, "bbox [x, y, width, height]", str(sides)[:60])
    x, y, width, height = map(float, sides)
    return x, y, x + width, y + height


def _field(entry: Any, name: str, kinds: tuple[type, ...], where: str) -> Any:
    if not isinstance(entry, dict):
        raise unexpected(where, f"an object with {name!r}", repr(str(entry)[:60]))
    if not isinstance(entry.get(name), kinds):
        words = " or ".join(kind.__name__ for kind in kinds)
        got = repr(str(entry[name])[:60]) if name in entry else "none"
        raise unexpected(where, f"a field {name!r} of type {words}", got)
    return entry[name]


# -- outlines --------------------------------------------------------------------------------------


def _drawn(outlines: Sequence[Any], height: int, width: int, where: str) -> Mask:
    """Return the mask H x W of all outlines together."""
    try:
        return np.asarray(np.any([mask(one, height, width) for one in outlines], axis=0))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def mask(outline: Any, height: int, width: int) -> Mask:
    """Return a segmentation as a mask H x W.

    Args:
        outline: A list of polygons [x1, y1, x2, y2 ...], or run lengths. A pixel is inside a
            polygon if its centre is; corners are rounded to quarters of a pixel.
        height: Height of the image in pixels.
        width: Width of the image in pixels.

    Raises:
        InputError: The outline has another form, or its run lengths are for another size.
    """
    if isinstance(outline, dict):
        return _runs(outline, height, width)
    if not isinstance(outline, list) or not all(map(_is_polygon, outline)):
        raise unexpected("", "polygons or run lengths", str(outline)[:60])
    import cv2

    drawn = np.zeros((height * _FINE, width * _FINE), np.uint8)
    for polygon in outline:  # one by one, as the overlap of two drawn at once would be outside
        corners = np.rint(np.array(polygon).reshape(-1, 2) * _FINE).astype(np.int32)
        cv2.fillPoly(drawn, [corners], 1)
    return drawn[_FINE // 2 :: _FINE, _FINE // 2 :: _FINE] > 0


def _is_polygon(numbers: Any) -> bool:
    if not isinstance(numbers, list) or len(numbers) < 6 or len(numbers) % 2:
        return False
    return all(isinstance(n, int | float) and abs(n) < 1e6 for n in numbers)


def _runs(outline: JsonObject, height: int, width: int) -> Mask:
    size, counts = outline.get("size"), outline.get("counts")
    if size != [height, width]:
        raise unexpected("", f"run lengths of size [{height}, {width}]", str(size)[:60])
    lengths = _lengths(counts) if isinstance(counts, str) else counts
    if not isinstance(lengths, list) or not all(isinstance(n, int) and n >= 0 for n in lengths):
        raise unexpected("", "run lengths as numbers or text", repr(str(counts)[:60]))
    if sum(lengths) != height * width:
        raise unexpected("", f"run lengths of {height * width} pixels together", sum(lengths))
    return np.repeat(np.arange(len(lengths)) % 2 == 1, lengths).reshape(width, height).T


def _lengths(text: str) -> list[int]:
    """Return the run lengths in a text; see the module's docstring."""
    lengths: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:  # negative
            value -= 1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
        value = shift = 0
    return lengths
