"""COCO: images of everyday scenes with a box around every object (Lin et al., ECCV 2014).

    annotations/instances_val2017.json      val2017/000000000139.jpg

Format: https://cocodataset.org/#format-data. The JSON has ``images`` (id, file_name, width,
height), ``categories`` (id, name) and ``annotations`` (id, image_id, category_id, iscrowd, bbox
[x, y, width, height] in pixels, segmentation).
"""

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from ...errors import InputError
from ...types import Box
from ...utils.files import why_unread
from ...utils.options import Option, at_base
from ..boxed import BoxedDataset, Picture, from_pictures, show, within
from ..scanning import BrokenOption, Folder, OutsideOption, choose, unreadable
from .coco_masks import Outlines
from .image_rows import Reading

PARTS = ("images", "categories", "annotations")


def from_coco(
    labels: Annotated[Path | str, Option("the instances JSON", reads=at_base)],
    images: Annotated[Path | str, Option("folder of images", reads=at_base)],
    *,
    crowds: Annotated[bool, Option("take boxes around groups, too")] = False,
    outlines: Annotated[bool, Option("keep objects' outlines, to cut out or remove them")] = False,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> BoxedDataset:
    """A dataset from an ``instances_*.json`` and the folder of its images.

    Samples are all images, named by their COCO id; concepts are the categories that are
    annotated at least once, in the order of the file; boxes are the annotations.
    Without ``crowds`` a group has no box, but its class counts as present. ``outlines`` are masks,
    decoded when a sample's masks are; without, they are dropped while the file is read, which
    saves most of its memory. Errors name file, image or annotation id, and field.
    """
    path, folder = Path(labels), Folder(Path(images), allow_outside)
    choose("value of broken", broken, ("refuse", "skip"), "COCO")
    reading = Reading(broken == "skip")
    content = _content(path, outlines)
    names = _names(content["categories"], path)
    pictures = _pictures(content["images"], path, folder, reading)
    there = {key: picture for key, picture in pictures.items() if picture is not None}
    bad = unreadable([picture.file for picture in there.values()], broken, str(path))
    kept = {key: picture for key, picture in there.items() if picture.file not in bad}
    drawn: dict[str, dict[str, list[Any]]] = {name: {} for name in names.values()}
    for place, entry in enumerate(content["annotations"]):
        thing = reading.attempt(partial(_thing, entry, place, pictures, names, path))
        if thing is None or thing.image not in kept:
            continue
        picture, label = kept[thing.image], thing.box.label
        show(picture, label)
        if outlines:
            drawn[label].setdefault(picture.id, []).append(entry.get("segmentation"))
        if crowds or not thing.crowd:
            picture.boxes.append(thing.box)
    rows = list(kept.values())
    return from_pictures(
        rows,
        list(names.values()),
        str(path),
        name=path.stem,
        skipped=[*reading.skipped, *sorted(map(str, bad))],
        masks={n: _masks(rows, n, found, path) for n, found in drawn.items()} if outlines else None,
    )


class _Thing(NamedTuple):
    image: int | str
    box: Box
    crowd: bool


def _masks(
    pictures: Sequence[Picture], label: str, outlines: Mapping[str, list[Any]], path: Path
) -> list[Outlines | None]:
    def of(picture: Picture) -> Outlines | None:
        where = f"{path}, image {picture.id}, segmentation of {label!r}"
        found = outlines.get(picture.id)
        return None if found is None else Outlines(found, picture.height, picture.width, where)

    return [of(picture) for picture in pictures]


def _content(path: Path, outlines: bool) -> dict[str, list[Any]]:
    def bare(entry: dict[str, Any]) -> dict[str, Any]:
        entry.pop("segmentation", None)
        return entry

    try:
        with path.open(encoding="utf-8") as file:
            found = json.load(file, object_hook=None if outlines else bare)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot read annotations as JSON: {why_unread(path, error)}"
        ) from None
    for part in PARTS:
        if not isinstance(found, dict) or not isinstance(found.get(part), list):
            raise InputError(f"{path}: expected lists {', '.join(PARTS)}, found no list {part!r}")
    return found


def _names(categories: Sequence[Any], path: Path) -> dict[int | str, str]:
    names: dict[int | str, str] = {}
    for place, entry in enumerate(categories):
        key = _field(entry, "id", (int, str), f"{path}, categories[{place}]")
        name = _field(entry, "name", (str,), f"{path}, category {key}")
        if key in names or name in names.values():
            raise InputError(f"{path}, category {key}: its id or name {name!r} stands twice")
        names[key] = name
    return names


def _pictures(
    images: Sequence[Any], path: Path, folder: Folder, reading: Reading
) -> dict[int | str, Picture | None]:
    """By image id; None for one that was skipped."""
    found: dict[int | str, Picture | None] = {}
    for place, entry in enumerate(images):
        key = _field(entry, "id", (int, str), f"{path}, images[{place}]")
        if key in found:
            raise InputError(f"{path}, image {key}: its id stands twice")
        found[key] = reading.attempt(partial(_picture, entry, key, path, folder))
    return found


def _picture(entry: dict[str, Any], key: int | str, path: Path, folder: Folder) -> Picture:
    where = f"{path}, image {key}"
    file = folder.file(_field(entry, "file_name", (str,), where), where)
    height, width = (_field(entry, side, (int,), where) for side in ("height", "width"))
    if min(height, width) < 1:
        raise InputError(f"{where}: expected height and width of 1 or more, got {height}, {width}")
    if not os.path.isfile(file):
        raise InputError(f"{where}: its file_name {str(file)!r} does not exist")
    return Picture(str(key), file, height, width)


def _thing(
    entry: Any,
    place: int,
    pictures: Mapping[int | str, Picture | None],
    names: Mapping[int | str, str],
    path: Path,
) -> _Thing | None:
    """What an annotation says; None for one of an image that was skipped."""
    where = f"{path}, annotation {_field(entry, 'id', (int, str), f'{path}, annotations[{place}]')}"
    image, kind = (_field(entry, n, (int, str), where) for n in ("image_id", "category_id"))
    if image not in pictures:
        raise InputError(f"{where}: its image_id {image!r} is that of no image")
    if kind not in names:
        raise InputError(f"{where}: its category_id {kind!r} is that of no category")
    picture = pictures[image]
    if picture is None:
        return None
    sides = _field(entry, "bbox", (list,), where)
    if len(sides) != 4 or not all(isinstance(side, int | float) for side in sides):
        raise InputError(f"{where}: expected bbox [x, y, width, height], got {str(sides)[:60]}")
    x, y, width, height = map(float, sides)
    box = Box(names[kind], x, y, x + width, y + height)
    bounded = within(box, picture.height, picture.width, f"{where}, bbox")
    return _Thing(image, bounded, bool(entry.get("iscrowd", 0)))


def _field(entry: Any, name: str, kinds: tuple[type, ...], where: str) -> Any:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected an object with {name!r}, got {str(entry)[:60]!r}")
    if not isinstance(entry.get(name), kinds):
        words = " or ".join(kind.__name__ for kind in kinds)
        got = f"got {str(entry[name])[:60]!r}" if name in entry else "found none"
        raise InputError(f"{where}: expected a field {name!r} of type {words}, {got}")
    return entry[name]
