"""Two datasets with one mask per attribute or lesion.

ISIC 2018, task 2: five dermoscopic attributes (Codella et al., 2019). A mask of only zeros means
that the attribute is absent.
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
from ...utils.files import check_folder
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
    """Read ISIC 2018, task 2, with its five attributes as concepts ("pigment network", ...).

    All masks are decoded once, to find empty ones, which takes some 40 ms for 6 million pixels,
    divided by the number of cores. The size of a mask is compared with that of its image on access.

    Args:
        path: The folder.
        images: The folder of images. Default None: by its name in the challenge.
        masks: The folder of masks. Default None: by its name in the challenge.
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
    files = [picture.masks[name] for picture, name in pairs]
    filled = scanning.each(lambda mask: read_mask(mask, repr(str(mask))).any(), files)
    for (picture, name), present in zip(pairs, filled, strict=True):
        picture.show(name, int(present))
        if not present:
            del picture.masks[name]
    labels, skipped = [*names.values()], reading.skipped
    return from_pictures(pictures, labels, str(top), name="isic-2018-task-2", skipped=skipped)


def _folder(
    top: Path, name: Path | str | None, pattern: str, what: str, allow_outside: bool
) -> Folder:
    """Return a folder within ``top``, by its name or as the only match of a pattern."""
    if name is not None:
        return Folder(top / name, allow_outside)
    check_folder(top)
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
    """Read IDRiD's segmentation set, with four lesions and the optic disc as concepts.

    The metadata has a column ``split``. The size of a mask is compared with that of its image on
    access.

    Args:
        path: "A. Segmentation", or the folder above it.
        split: "train" (54 images) or "test" (27). Default None: both.
        broken: "skip" leaves out files that cannot be decoded.
        allow_outside: Whether links may lead out of the folder.

    Returns:
        The dataset.

    Raises:
        InputError: A folder is missing, or no image has a mask.
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
    # absent lesions have no masks, so without any mask the folders of masks are missing
    pictures = pictures if any(picture.masks for picture in pictures) else []
    skipped = reading.skipped
    return from_pictures(pictures, [*LESIONS], str(top), name="idrid-segmentation", skipped=skipped)
