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
from collections.abc import Mapping, Sequence
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
    each,
    unreadable,
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
    top = Path(path)
    image_folder = _folder(top, images, "*_Input", "images")
    mask_folder = _folder(top, masks, "*Task2*GroundTruth*", "masks")
    image_data = Folder(image_folder, allow_outside, top if images is None else None)
    mask_data = Folder(mask_folder, allow_outside, top if masks is None else None)
    table = {
        image: [mask_data.file(f"{image.stem}_attribute_{n}.png", str(image)) for n in ATTRIBUTES]
        for image in image_data.images()
    }
    attributes = [mask for row in table.values() for mask in row]
    for mask in attributes:
        if not os.path.isfile(mask):
            raise InputError(f"mask {str(mask)!r} does not exist; an absent attribute has one, too")
    bad = unreadable([*table, *attributes], broken, str(top))
    readable = [mask for mask in attributes if mask not in bad]
    shown = each(lambda mask: bool(read_mask(mask, repr(str(mask))).any()), readable)
    present = {mask for mask, there in zip(readable, shown, strict=True) if there}
    names = [name.replace("_", " ") for name in ATTRIBUTES]
    masks_of = {
        image: {name: mask for name, mask in zip(names, row, strict=True) if mask in present}
        for image, row in table.items()
        if bad.isdisjoint((image, *row))
    }
    return _dataset(masks_of, names, image_folder, bad, "isic-2018-task-2")


def _dataset(
    masks_of: Mapping[Path, Mapping[str, Path]],
    names: Sequence[str],
    where: Path,
    bad: set[Path],
    name: str,
    metadata: pd.DataFrame | None = None,
) -> TableDataset:
    """The dataset of images with masks of what they show, by name."""
    if not masks_of or (metadata is not None and not any(masks_of.values())):
        raise InputError(f"{where}: expected images with masks, found none that can be used")
    labels = [[int(name in masks) for name in names] for masks in masks_of.values()]
    return from_table(
        [*masks_of],
        pd.DataFrame(labels, [image.stem for image in masks_of], [*names]),
        masks={name: [masks.get(name) for masks in masks_of.values()] for name in names},
        metadata=metadata,
        skipped=sorted(map(str, bad)),
        name=name,
    )


def _folder(top: Path, given: Path | str | None, pattern: str, what: str) -> Path:
    if given is not None:
        return top / given
    if not top.is_dir():
        raise InputError(f"{top}: is no folder{instead(top)}")
    found = sorted(path for path in top.glob(pattern) if path.is_dir())
    if len(found) != 1:
        names = ", ".join(repr(path.name) for path in found) or "none"
        raise InputError(f"{top}: expected one folder {pattern!r}, found {names}; give {what}=")
    return found[0]


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
    top = Path(path)
    top = top / "A. Segmentation" if (top / "A. Segmentation").is_dir() else top
    splits = [split] if split is not None else list(SETS)
    data = Folder(top, allow_outside)
    rows = [(name, image) for name in splits for image in data.images(f"{_FRAMES}/{SETS[name]}")]
    table = {image: _masks_of(data, name, image) for name, image in rows}
    files = [f for image, masks in table.items() for f in (image, *masks.values())]
    bad = unreadable(files, broken, str(top))
    kept = [(n, i) for n, i in rows if bad.isdisjoint((i, *table[i].values()))]
    metadata = pd.DataFrame({"split": [name for name, _ in kept]})
    masks_of = {image: table[image] for _, image in kept}
    return _dataset(masks_of, [*LESIONS], top, bad, "idrid-segmentation", metadata)


def _masks_of(data: Folder, split: str, image: Path) -> dict[str, Path]:
    paths = {
        lesion: data.find([f"{_TRUTHS}/{SETS[split]}/{name}/{image.stem}_{short}.tif"], str(image))
        for lesion, (name, short) in LESIONS.items()
    }
    return {lesion: path for lesion, path in paths.items() if path is not None}
