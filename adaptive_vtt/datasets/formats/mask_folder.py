"""A folder of images beside a folder of masks, as polyp segmentation sets come.

Kvasir-SEG              images/*.jpg        masks/*.jpg         (Jha et al., MMM 2020)
CVC-ClinicDB            Original/*.tif      Ground Truth/*.tif  (Bernal et al., CMIG 43, 2015)
CVC-300, CVC-ColonDB    images/*.png        masks/*.png         (as bundled with PraNet)
training set of PraNet  image/*.png         masks/*.png         (Fan et al., MICCAI 2020)
"""

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import pandas as pd

from ...errors import InputError
from ...utils.files import instead
from ...utils.image_files import read_mask, read_size
from ...utils.options import Option
from ..scanning import (
    IMAGES,
    MASKS,
    BrokenOption,
    Folder,
    FolderOption,
    OutsideOption,
    choose,
    each,
    unreadable,
)
from ..table import TableDataset, from_table, same_size

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
    choose("value of empty", empty, ("refuse", "skip", "absent"), "masks")
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
