"""Folders of images: one per class, beside masks, or alone.

One folder per class:
    kvasir-dataset-v2/{class}/*.jpg                                 (Pogorelov et al., MMSys 2017)
    labeled-images/{tract}/{group}/{class}/*.jpg  (HyperKvasir: Borgli et al., Sci. Data 7, 2020)
    {train,val,test}/{class}/*.jpg                              (curated capsule endoscopy images)

Beside masks, as polyp segmentation sets come:
    Kvasir-SEG              images/*.jpg        masks/*.jpg         (Jha et al., MMM 2020)
    CVC-ClinicDB            Original/*.tif      Ground Truth/*.tif  (Bernal et al., CMIG 43, 2015)
    CVC-300, CVC-ColonDB    images/*.png        masks/*.png         (as bundled with PraNet)
    training set of PraNet  image/*.png         masks/*.png         (Fan et al., MICCAI 2020)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd

from ...errors import InputError, check_known
from ...utils.files import instead
from ...utils.image_files import read_mask, read_size
from ...utils.options import Option
from ..scanning import (
    IMAGES,
    MASKS,
    BrokenOption,
    ClassesOption,
    Folder,
    FolderOption,
    OutsideOption,
    each,
    image_files,
    natural,
    unreadable,
)
from ..table import TableDataset, from_table, one_per_class, same_size

HYPER_KVASIR = "labeled-images"
SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def from_class_folders(
    path: FolderOption,
    *,
    classes: ClassesOption = "all",
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """A dataset of all images under ``path``: the folder that holds an image is its class.

    One concept per class, in the order of their names. With ``classes`` "all" every image is
    known to lack all classes but its own; with "own" only its own class is asked about, so that
    "overall" is the share of images whose class is missed. A class that stands in several
    places, say under train and test, is one class.

    Sample ids are paths from ``path``. Metadata: ``class``, and the folders above it: ``tract``
    and ``group`` for HyperKvasir (whose ``path`` may also be the folder above labeled-images),
    ``split`` for train, val, test, else ``level 1``, ``level 2`` ... Other files, such as
    image-labels.csv, are left alone: the folders say the same.
    """
    check_known("value of classes", classes, ("all", "own"), "class folders")
    given = Path(path)
    top = given / HYPER_KVASIR if (given / HYPER_KVASIR).is_dir() else given
    files = _files(top, Folder(top, allow_outside))
    left_out = unreadable(files, broken, str(given))
    kept = [file for file in files if file not in left_out]
    if not kept:
        raise InputError(f"{given}: expected folders of images, one per class, found no image")
    ids = [file.relative_to(top).as_posix() for file in kept]
    labels = one_per_class(pd.Series([file.parent.name for file in kept], ids))
    return from_table(
        kept,
        labels if classes == "all" else labels.replace(0, np.nan),
        metadata=_metadata(kept, top),
        skipped=sorted(map(str, left_out)),
        name=given.resolve().name,
    )


def _files(top: Path, data: Folder) -> list[Path]:
    loose = data.images()
    folders = sorted((path for path in top.rglob("*") if path.is_dir()), key=natural)
    found = [file for folder in folders for file in data.images(str(folder.relative_to(top)))]
    if loose and found:
        raise InputError(
            f"{str(loose[0])!r}: expected every image in the folder of its class, found one "
            f"beside the folders"
        )
    return found or loose


def _metadata(files: list[Path], top: Path) -> pd.DataFrame:
    above = [file.relative_to(top).parent.parts[:-1] for file in files]
    depth = max(map(len, above))
    rows = [(*folders, *[None] * (depth - len(folders))) for folders in above]
    table = pd.DataFrame(rows, columns=_levels(rows, depth), dtype=object)
    return table.assign(**{"class": [file.parent.name for file in files]})


def _levels(rows: list[tuple[str | None, ...]], depth: int) -> list[str]:
    first = {row[0] for row in rows} if depth else set()
    names = [f"level {number + 1}" for number in range(depth)]
    if first and first <= {"upper-gi-tract", "lower-gi-tract"}:
        names[:2] = ["tract", "group"][:depth]
    elif first and first <= SPLITS:
        names[0] = "split"
    return names


LAYOUTS = (
    ("images", "masks"),
    ("image", "masks"),
    ("Original", "Ground Truth"),
    ("PNG/Original", "PNG/Ground Truth"),
    ("TIF/Original", "TIF/Ground Truth"),
)

Empty = Literal["refuse", "skip", "absent"]
"""An empty mask: an error, left out, or an image without the concept."""


class _Pair(NamedTuple):
    image: Path
    mask: Path


def from_masks(
    path: FolderOption,
    concept: Annotated[str, Option("what the masks show", min_length=1)] = "polyp",
    *,
    images: Annotated[Path | str | None, Option(IMAGES)] = None,
    masks: Annotated[Path | str | None, Option(MASKS)] = None,
    empty: Annotated[
        Empty, Option("an empty mask is an error, left out, or means absent")
    ] = "refuse",
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """A dataset of one concept, to be seen where the masks say.

    Without ``images`` and ``masks``, the layouts of Kvasir-SEG, CVC-ClinicDB and PraNet's bundle
    are tried. An image and its mask have the same
    name, but for the ending. A mask is inside where it is above 127.

    All masks are decoded once, to see that they fit and are not empty. What was left out is named
    in ``skipped``. Raises InputError for a mask whose size is not its image's, and for images or
    masks alone.
    """
    root = Path(path)
    check_known("value of empty", empty, ("refuse", "skip", "absent"), "masks")
    pairs = _pairs(*_folders(root, images, masks, allow_outside))
    bad = unreadable([file for pair in pairs for file in pair], broken, str(root))
    pairs = [pair for pair in pairs if bad.isdisjoint(pair)]
    shown = dict(zip(pairs, each(_is_shown, pairs), strict=True))
    hollow = [pair for pair in pairs if not shown[pair]]
    if hollow and empty == "refuse":
        raise InputError(
            f"{str(hollow[0].mask)!r}: expected a mask with something inside (above 127), got an "
            f'empty one; {len(hollow)} of {len(pairs)} are, empty="skip" or "absent" takes them'
        )
    if empty == "skip":
        pairs = [pair for pair in pairs if shown[pair]]
        bad |= {pair.mask for pair in hollow}
    if not pairs:
        raise InputError(f"{root}: expected images with masks, found none that can be used")
    return from_table(
        [pair.image for pair in pairs],
        pd.DataFrame(
            {concept: [int(shown[p]) for p in pairs]}, index=[p.image.stem for p in pairs]
        ),
        masks={concept: [pair.mask if shown[pair] else None for pair in pairs]},
        skipped=sorted(map(str, bad)),
        name=root.resolve().name,
    )


def _folders(
    root: Path, images: Path | str | None, masks: Path | str | None, allow_outside: bool
) -> tuple[Folder, Folder]:
    if (images is None) != (masks is None):
        given = "images" if masks is None else "masks"
        raise InputError(f"{root}: expected both images= and masks= or neither, got {given}= alone")
    if images is not None and masks is not None:
        return Folder(root / images, allow_outside), Folder(root / masks, allow_outside)
    if not root.is_dir():
        raise InputError(f"{root}: is no folder{instead(root)}")
    for image_name, mask_name in LAYOUTS:
        if (root / image_name).is_dir() and (root / mask_name).is_dir():
            images, masks = root / image_name, root / mask_name
            return Folder(images, allow_outside, root), Folder(masks, allow_outside, root)
    layouts = ", ".join(f"{i!r} and {m!r}" for i, m in LAYOUTS)
    raise InputError(f"{root}: expected folders of images and masks, one of {layouts}; found none")


def _pairs(image_folder: Folder, mask_folder: Folder) -> list[_Pair]:
    images, masks = _by_stem(image_folder), _by_stem(mask_folder)
    for files, others, folder, kind in (
        (images, masks, mask_folder, "mask"),
        (masks, images, image_folder, "image"),
    ):
        alone = [file for stem, file in files.items() if stem not in others]
        if alone:
            raise InputError(
                f"{str(alone[0])!r} has no {kind} of that name in {str(folder.path)!r}, and so "
                f"have {len(alone)} of {len(files)}"
            )
    return [_Pair(image, masks[stem]) for stem, image in images.items()]


def _by_stem(folder: Folder) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in folder.images():
        if file.stem in found:
            raise InputError(f"{str(file)!r}: another image is named {found[file.stem].name!r}")
        found[file.stem] = file
    return found


def _is_shown(pair: _Pair) -> bool:
    """Whether the mask has anything inside; raises InputError where its size is another."""
    where = f"{str(pair.mask)!r}"
    mask = read_mask(pair.mask, where)
    same_size(mask.shape, read_size(pair.image, where), where)
    return bool(mask.any())


NOTHING = "image"
"""The concept where none is named; its truth is unknown."""


def from_images(
    path: FolderOption,
    *,
    concepts: Annotated[
        Sequence[str] | None,
        Option("what the model answers about, a column each (default: image)"),
    ] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """A dataset of the images right in ``path``, named by their files.

    It can be asked about where an oracle needs no truth: in captions, or for consistency.
    Raises InputError for a folder that is none, or holds no image.
    """
    folder = Path(path)
    files = image_files(folder, allow_outside=allow_outside)
    left_out = unreadable(files, broken, str(folder))
    kept = [file for file in files if file not in left_out]
    if not kept:
        raise InputError(f"{folder}: expected a folder of images, found none in it")
    return from_table(
        kept,
        pd.DataFrame(np.nan, [file.name for file in kept], [*(concepts or [NOTHING])]),
        skipped=sorted(map(str, left_out)),
        name=folder.resolve().name,
    )
