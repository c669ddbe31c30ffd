"""IDRiD segmentation: lesions of diabetic retinopathy, each with masks (Porwal et al., 2018).

    A. Segmentation/1. Original Images/{a. Training Set,b. Testing Set}/IDRiD_01.jpg
    A. Segmentation/2. All Segmentation Groundtruths/{set}/{1. Microaneurysms,...}/IDRiD_01_MA.tif

A mask that is not there means that the lesion is absent.
"""

from pathlib import Path
from typing import Annotated

import pandas as pd

from ...errors import InputError
from ...utils.options import Option
from ..scanning import BrokenOption, Folder, FolderOption, OutsideOption, choose, unreadable
from ..table import TableDataset, from_table

LESIONS = {
    "microaneurysms": ("1. Microaneurysms", "MA"),
    "haemorrhages": ("2. Haemorrhages", "HE"),
    "hard exudates": ("3. Hard Exudates", "EX"),
    "soft exudates": ("4. Soft Exudates", "SE"),
    "optic disc": ("5. Optic Disc", "OD"),
}
IMAGES, MASKS = "1. Original Images", "2. All Segmentation Groundtruths"
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
        choose("split", split, list(SETS), "idrid")
    top = Path(path)
    top = top / "A. Segmentation" if (top / "A. Segmentation").is_dir() else top
    splits = [split] if split is not None else list(SETS)
    data = Folder(top, allow_outside)
    rows = [(name, image) for name in splits for image in data.images(f"{IMAGES}/{SETS[name]}")]
    table = {image: _masks(data, name, image) for name, image in rows}
    files = [f for image, masks in table.items() for f in (image, *masks.values())]
    bad = unreadable(files, broken, str(top))
    kept = [(n, i) for n, i in rows if bad.isdisjoint((i, *table[i].values()))]
    if not any(table[image] for _, image in kept):
        raise InputError(f"{top}: expected images with masks, found none that can be used")
    present = [[int(lesion in table[image]) for lesion in LESIONS] for _, image in kept]
    ids = [image.stem for _, image in kept]
    return from_table(
        [image for _, image in kept],
        pd.DataFrame(present, index=ids, columns=list(LESIONS)),
        metadata=pd.DataFrame({"split": [name for name, _ in kept]}),
        masks={lesion: [table[image].get(lesion) for _, image in kept] for lesion in LESIONS},
        skipped=sorted(map(str, bad)),
        name="idrid-segmentation",
    )


def _masks(data: Folder, split: str, image: Path) -> dict[str, Path]:
    paths = {
        lesion: data.find([f"{MASKS}/{SETS[split]}/{name}/{image.stem}_{short}.tif"], str(image))
        for lesion, (name, short) in LESIONS.items()
    }
    return {lesion: path for lesion, path in paths.items() if path is not None}
