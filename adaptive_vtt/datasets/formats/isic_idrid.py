"""Two sets of images with one mask per attribute or lesion.

ISIC 2018, task 2: five dermoscopic attributes (Codella et al., 2019). A mask of zeros
alone means that the attribute is absent.
    ISIC2018_Task1-2_*_Input/ISIC_0000000.jpg
    ISIC2018_Task2_*_GroundTruth*/ISIC_0000000_attribute_{attribute}.png

IDRiD segmentation: lesions of diabetic retinopathy (Porwal et al., 2018). A missing
mask means that the lesion is absent.
    A. Segmentation/1. Original Images/{a. Training Set,b. Testing Set}/IDRiD_01.jpg
    A. Segmentation/2. All Segmentation Groundtruths/{set}/{1. Microaneurysms,...}/IDRiD_01_MA.tif
"""

import os
from pathlib import Path
from typing import Annotated

from ...errors import InputError, check_known
from ...utils.files import instead
from ...utils.mask_values import read_mask
from ...utils.options import Option
from .. import scanning
from ..pictures import Picture, from_pictures, readable
from ..scanning import BrokenOption, Folder, FolderOption, OutsideOption, Reading
from ..table import TableDataset

ATTRIBUTES = ("pigment_network", "negative_network", "streaks", "milia_like_cyst", "globules")


def from_isic(
    path: FolderOption,
    *,
    images: Annotated[Path | str | None, Option(scanning.IMAGES)] = None,
    masks: Annotated[Path | str | None, Option(scanning.MASKS)] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read the five attributes as concepts ("pigment network", ...), with masks where present.

    All masks are decoded once, to see which are empty: some 40 ms each at 6 million pixels, divided
    by the number of cores. A mask's size is compared with its image's when it is used.

    Args:
        path: The folder.
        images: The folder of images (default: by its name in the challenge).
        masks: The folder of masks (default: by its name in the challenge).
        broken: "skip" leaves out files that cannot be decoded.
        allow_outside: Whether links may lead out of the folders.

    Returns:
        The dataset.

    Raises:
        InputError: A folder is missing or not unique, or a mask is missing.
    """
    top, reading = Path(path), Reading(broken, str(path))
    image_data = _folder(top, images, "*_Input", "images", allow_outside)
    mask_data = _folder(top, masks, "*Task2*GroundTruth*", "masks", allow_outside)
    names = {attribute: attribute.replace("_", " ") for attribute in ATTRIBUTES}
    pictures = []
    for image in image_data.images():
        picture = Picture(image.stem, image)
        for attribute, name in names.items():
            mask = mask_data.file(f"{image.stem}_attribute_{attribute}.png", str(image))
            if not os.path.isfile(mask):
                expected = "an absent attribute needs one, too, all zeros"
                raise InputError(f"mask {str(mask)!r} does not exist; {expected}")
            picture.masks[name] = mask
        pictures.append(picture)
    pictures = readable(pictures, reading)
    pairs = [(picture, name) for picture in pictures for name in names.values()]
    masks_of = [picture.masks[name] for picture, name in pairs]
    seen = scanning.each(lambda mask: read_mask(mask, repr(str(mask))).any(), masks_of)
    for (picture, name), present in zip(pairs, seen, strict=True):
        picture.show(name, int(present))
        if not present:
            del picture.masks[name]
    return _dataset(top, pictures, [*names.values()], reading, "isic-2018-task-2")


def _dataset(
    top: Path, pictures: list[Picture], names: list[str], reading: Reading, name: str
) -> TableDataset:
    if not pictures:
        raise InputError(f"{top}: expected images with masks, got none that can be used")
    return from_pictures(pictures, names, str(top), name=name, skipped=reading.skipped)


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
        raise InputError(f"{top}: expected one folder {pattern!r}, got {names}; give {what}=")
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
    """Read four lesions and the optic disc as concepts, with masks where present.

    Args:
        path: "A. Segmentation" or the folder above it.
        split: "train" (54 images), "test" (27), or None for both; it is also the metadata.
        broken: "skip" leaves out files that cannot be decoded.
        allow_outside: Whether links may lead out of the folder.

    Returns:
        The dataset.

    Raises:
        InputError: A folder is missing, or a set has no mask. The size of a mask is compared when
            it is used.
    """
    if split is not None:
        check_known("split", split, list(SETS), "idrid")
    top, reading = Path(path), Reading(broken, str(path))
    top = top / "A. Segmentation" if (top / "A. Segmentation").is_dir() else top
    data = Folder(top, allow_outside)
    pictures = []
    for name in [split] if split is not None else SETS:
        for image in data.images(f"{_FRAMES}/{SETS[name]}"):
            picture = Picture(image.stem, image, metadata={"split": name})
            for lesion, (folder, short) in LESIONS.items():
                file = f"{_TRUTHS}/{SETS[name]}/{folder}/{image.stem}_{short}.tif"
                if (mask := data.find([file], str(image))) is not None:
                    picture.masks[lesion] = mask
                    picture.show(lesion)
            pictures.append(picture)
    pictures = readable(pictures, reading)
    # unlike ISIC's, absent lesions have no masks
    pictures = pictures if any(picture.masks for picture in pictures) else []
    return _dataset(top, pictures, [*LESIONS], reading, "idrid-segmentation")
