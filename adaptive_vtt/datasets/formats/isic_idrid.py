"""Two sets of images in which each thing to be seen has a mask of its own.

ISIC 2018, task 2: five dermoscopic attributes (Codella et al., 2019). A mask that is zero all over
means that the attribute is absent.
    ISIC2018_Task1-2_*_Input/ISIC_0000000.jpg
    ISIC2018_Task2_*_GroundTruth*/ISIC_0000000_attribute_{attribute}.png

IDRiD segmentation: lesions of diabetic retinopathy (Porwal et al., 2018). A mask that is not there
means that the lesion is absent.
    A. Segmentation/1. Original Images/{a. Training Set,b. Testing Set}/IDRiD_01.jpg
    A. Segmentation/2. All Segmentation Groundtruths/{set}/{1. Microaneurysms,...}/IDRiD_01_MA.tif
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pandas as pd

from ...errors import InputError, check_known
from ...utils.files import instead
from ...utils.mask_values import read_mask
from ...utils.options import Option
from ..scanning import (
    IMAGES,
    MASKS,
    BrokenOption,
    Folder,
    FolderOption,
    OutsideOption,
    Reading,
    each,
)
from ..table import TableDataset, from_table

ATTRIBUTES = ("pigment_network", "negative_network", "streaks", "milia_like_cyst", "globules")


def from_isic(
    path: FolderOption,
    *,
    images: Annotated[Path | str | None, Option(IMAGES)] = None,
    masks: Annotated[Path | str | None, Option(MASKS)] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """The five attributes as concepts ("pigment network", ...), with masks where present.

    Left out, ``images`` and ``masks`` are found by their names in the challenge. All masks are
    decoded once, to see which are empty: some 40 ms each at 6 million pixels, divided by the number
    of cores. Sizes are compared when a mask is used. Raises InputError for folders that are not
    found or not unique, and for masks that miss.
    """
    top, reading = Path(path), Reading(broken, str(path))
    image_data = _folder(top, images, "*_Input", "images", allow_outside)
    mask_data = _folder(top, masks, "*Task2*GroundTruth*", "masks", allow_outside)
    names = {attribute: attribute.replace("_", " ") for attribute in ATTRIBUTES}
    table = {
        image: {
            name: mask_data.file(f"{image.stem}_attribute_{attribute}.png", str(image))
            for attribute, name in names.items()
        }
        for image in image_data.images()
    }
    attributes = [mask for row in table.values() for mask in row.values()]
    for mask in attributes:
        if not os.path.isfile(mask):
            raise InputError(f"mask {str(mask)!r} does not exist; an absent attribute has one, too")
    bad = reading.unreadable([*table, *attributes])
    readable = [mask for mask in attributes if mask not in bad]
    shown = each(lambda mask: bool(read_mask(mask, repr(str(mask))).any()), readable)
    present = {mask for mask, there in zip(readable, shown, strict=True) if there}
    rows = {
        image: {name: mask for name, mask in row.items() if mask in present}
        for image, row in table.items()
        if bad.isdisjoint((image, *row.values()))
    }
    return _dataset(top, rows, [*names.values()], reading, "isic-2018-task-2")


def _dataset(
    top: Path,
    rows: Mapping[Path, Mapping[str, Path]],
    names: list[str],
    reading: Reading,
    name: str,
    metadata: pd.DataFrame | None = None,
) -> TableDataset:
    """Return the dataset of images with masks of what they show, by name."""
    if not rows:
        raise InputError(f"{top}: expected images with masks, found none that can be used")
    labels = [[int(name in masks) for name in names] for masks in rows.values()]
    return from_table(
        [*rows],
        pd.DataFrame(labels, [image.stem for image in rows], names),
        masks={name: [masks.get(name) for masks in rows.values()] for name in names},
        metadata=metadata,
        skipped=reading.skipped,
        name=name,
    )


def _folder(
    top: Path, given: Path | str | None, pattern: str, what: str, allow_outside: bool
) -> Folder:
    if given is not None:
        return Folder(top / given, allow_outside)
    if not top.is_dir():
        raise InputError(f"{top}: is no folder{instead(top)}")
    folders = sorted(path for path in top.glob(pattern) if path.is_dir())
    if len(folders) != 1:
        names = ", ".join(repr(path.name) for path in folders) or "none"
        raise InputError(f"{top}: expected one folder {pattern!r}, found {names}; give {what}=")
    return Folder(folders[0], allow_outside, top)


LESIONS = {
    "microaneurysms": ("1. Microaneurysms", "MA"),
    "haemorrhages": ("2. Haemorrhages", "HE"),
    "hard exudates": ("3. Hard Exudates", "EX"),
    "soft exudates": ("4. Soft Exudates", "SE"),
    "optic disc": ("5. Optic Disc", "OD"),
}
_FRAMES, _TRUTHS = "1. Original Images", "2. All Segmentation Groundtruths"
SETS = {"train": "a. Training Set", "test": "b. Testing Set"}


def from_idrid(
    path: FolderOption,
    *,
    split: Annotated[str | None, Option("train, test (default: all)")] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Four lesions and the optic disc as concepts, with masks where present.

    ``path``: "A. Segmentation" or the folder above it. ``split``: "train" (54 images), "test"
    (27), or None for both; it is also the metadata. Mask sizes are compared when a mask is
    used.
    Raises InputError for folders that are not there, and for a set without any mask.
    """
    if split is not None:
        check_known("split", split, list(SETS), "idrid")
    top, reading = Path(path), Reading(broken, str(path))
    top = top / "A. Segmentation" if (top / "A. Segmentation").is_dir() else top
    data = Folder(top, allow_outside)
    splits: dict[Path, str] = {}
    table: dict[Path, dict[str, Path]] = {}
    for name in [split] if split is not None else SETS:
        for image in data.images(f"{_FRAMES}/{SETS[name]}"):
            splits[image] = name
            table[image] = {}
            for lesion, (folder, short) in LESIONS.items():
                file = f"{_TRUTHS}/{SETS[name]}/{folder}/{image.stem}_{short}.tif"
                if (mask := data.find([file], str(image))) is not None:
                    table[image][lesion] = mask
    files = [file for image, masks in table.items() for file in (image, *masks.values())]
    bad = reading.unreadable(files)
    rows = {i: masks for i, masks in table.items() if bad.isdisjoint((i, *masks.values()))}
    rows = rows if any(rows.values()) else {}  # unlike ISIC's, absent lesions have no masks
    metadata = pd.DataFrame({"split": [splits[image] for image in rows]})
    return _dataset(top, rows, [*LESIONS], reading, "idrid-segmentation", metadata)
