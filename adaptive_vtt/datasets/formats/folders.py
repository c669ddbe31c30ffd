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

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, some, unknown
from ...types import Mask
from ...utils.files import instead
from ...utils.image_files import read_size
from ...utils.mask_values import (
    MaskReading,
    listed_values,
    matching,
    met_values,
    read_values,
    unreadable_values,
)
from ...utils.options import Option
from ..scanning import (
    IMAGES,
    MASKS,
    SPLITS,
    BrokenOption,
    ClassesOption,
    Folder,
    FolderOption,
    OutsideOption,
    SplitOption,
    each,
    image_files,
    natural,
    split_remark,
    unreadable,
)
from ..table import TableDataset, from_table, one_per_class, same_size

HYPER_KVASIR = "labeled-images"


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
    ("image", "mask"),
    ("images", "labels"),
    ("Original", "Ground Truth"),
    ("PNG/Original", "PNG/Ground Truth"),
    ("TIF/Original", "TIF/Ground Truth"),
)

Empty = Literal["refuse", "skip", "absent"]
"""An empty mask: an error, left out, or an image without the concept."""
Values = list[int | str]
MOST = 0.9
"""Share of masks from which on covering more than half of the image is remarked upon."""


class _Pair(NamedTuple):
    split: str
    image: Path
    mask: Path


def mask_layouts(root: Path, split: str | None = None) -> list[tuple[str, Path, Path]]:
    """Return the splits ("" for none), folders of images and folders of masks below ``root``.

    A split may be the folder above images and masks, or a folder in each of the two.
    """
    below = [path for path in sorted(root.iterdir()) if path.is_dir()] if root.is_dir() else []
    splits = [path.name for path in below if path.name.lower() in SPLITS]
    found: list[tuple[str, Path, Path]] = []
    for image, mask in LAYOUTS:
        pairs = [("", root / image, root / mask)]
        inner = sorted((root / image).iterdir()) if (root / image).is_dir() else []
        pairs += [
            (s.name, s, root / mask / s.name)
            for s in inner
            if s.is_dir() and s.name.lower() in SPLITS
        ]
        pairs += [(name, root / name / image, root / name / mask) for name in splits]
        there = [p for p in pairs if all(_any_image(folder) for folder in p[1:])]
        found += there if not found else []
    if split is None:
        return found
    if split not in {name for name, *_ in found}:
        raise unknown("split", split, [name for name, *_ in found if name], str(root))
    return [layout for layout in found if layout[0] == split]


def _any_image(folder: Path) -> bool:
    return folder.is_dir() and bool(image_files(folder, allow_outside=True))


def from_masks(
    path: FolderOption,
    concept: Annotated[str, Option("what the masks show", min_length=1)] = "polyp",
    *,
    images: Annotated[Path | str | None, Option(IMAGES)] = None,
    masks: Annotated[Path | str | None, Option(MASKS)] = None,
    split: SplitOption = None,
    inside: Annotated[
        Values | None, Option('values or colours ("#ff0000") inside; "nonzero": all but 0')
    ] = None,
    ignore: Annotated[
        Values | None, Option("values or colours of pixels that no score counts")
    ] = None,
    classes: Annotated[
        dict[str, int | str | Values] | None,
        Option("instead of concept and inside: the values or colours of several concepts"),
    ] = None,
    empty: Annotated[
        Empty, Option("an empty mask is an error, left out, or means absent")
    ] = "refuse",
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read images with masks of one concept, or of several ``classes``.

    Without ``images`` and ``masks``, the layouts of Kvasir-SEG, CVC-ClinicDB and PraNet's bundle
    are tried, as they stand or in each split. An image and its mask have the same name, but for
    the ending. A mask of two values far apart is inside where it is lighter; of any other, the
    options say what its values mean. All masks are decoded once.

    Raises:
        InputError: for a mask whose size is not its image's, for images or masks alone, for
            values that no option explains, and for empty masks unless ``empty`` takes them.
    """
    root = Path(path)
    check_known("value of empty", empty, ("refuse", "skip", "absent"), "masks")
    if classes and inside:
        raise InputError(f"{root}: expected inside or classes, got both")
    pairs = _pairs_of(root, images, masks, split, allow_outside)
    bad = unreadable([file for pair in pairs for file in pair[1:]], broken, str(root))
    pairs = [pair for pair in pairs if bad.isdisjoint(pair[1:])]
    named = {
        n: MaskReading(listed_values(v), tuple(ignore or ())) for n, v in (classes or {}).items()
    }
    readings = named or {concept: MaskReading(tuple(inside or ()), tuple(ignore or ()))}
    looks = each(lambda pair: _look(pair, readings), pairs)
    _check_alike(looks, readings, root)
    shown = np.array([look.shown for look in looks]).reshape(len(pairs), len(readings))
    hollow = [k for k in range(len(pairs)) if not classes and not shown[k].any()]
    if hollow and empty == "refuse":
        raise InputError(
            f"{str(pairs[hollow[0]].mask)!r}: expected a mask with something inside, got an "
            f'empty one; {len(hollow)} of {len(pairs)} are, empty="skip" or "absent" takes them'
        )
    kept = [k for k in range(len(pairs)) if empty != "skip" or k not in {*hollow}]
    bad |= {pairs[k].mask for k in range(len(pairs)) if k not in {*kept}}
    if not kept:
        raise InputError(f"{root}: expected images with masks, found none that can be used")
    used, shown = [pairs[k] for k in kept], shown[kept]
    several = len({pair.split for pair in pairs}) > 1
    splits = [pair.split for pair in used]
    dataset = from_table(
        [pair.image for pair in used],
        pd.DataFrame(
            shown.astype(int),
            [f"{p.split}/{p.image.stem}" if several else p.image.stem for p in used],
            [*readings],
        ),
        masks={
            name: [
                partial(_read, pair.mask, reading) if there else None
                for pair, there in zip(used, shown[:, column], strict=True)
            ]
            for column, (name, reading) in enumerate(readings.items())
        },
        ignored=[partial(_ignored, p.mask, tuple(ignore)) for p in used] if ignore else None,
        metadata=pd.DataFrame({"split": splits}) if any(splits) else None,
        skipped=sorted(map(str, bad)),
        name=root.resolve().name,
    )
    dataset.remarks = _remarks([looks[k] for k in kept], splits, [*readings], len(used))
    return dataset


def _pairs_of(
    root: Path,
    images: Path | str | None,
    masks: Path | str | None,
    split: str | None,
    allow_outside: bool,
) -> list[_Pair]:
    if (images is None) != (masks is None):
        given = "images" if masks is None else "masks"
        raise InputError(f"{root}: expected both images= and masks= or neither, got {given}= alone")
    if images is not None and masks is not None:
        folders = Folder(root / images, allow_outside), Folder(root / masks, allow_outside)
        return _pairs("", *folders)
    if not root.is_dir():
        raise InputError(f"{root}: is no folder{instead(root)}")
    layouts = mask_layouts(root, split)
    if not layouts:
        known = ", ".join(f"{i!r} and {m!r}" for i, m in LAYOUTS)
        raise InputError(
            f"{root}: expected folders of images and masks, one of {known}; found none"
        )
    return [
        pair
        for name, image, mask in layouts
        for pair in _pairs(
            name, Folder(image, allow_outside, root), Folder(mask, allow_outside, root)
        )
    ]


def _pairs(split: str, image_folder: Folder, mask_folder: Folder) -> list[_Pair]:
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
    return [_Pair(split, image, masks[stem]) for stem, image in images.items()]


def _by_stem(folder: Folder) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in folder.images():
        if file.stem in found:
            raise InputError(f"{str(file)!r}: another image is named {found[file.stem].name!r}")
        found[file.stem] = file
    return found


class _Look(NamedTuple):
    """What a mask's file holds: which concepts it shows, the share of the image inside any, its
    values, whether they are noise, and those that no option names."""

    shown: list[bool]
    share: float
    met: set[str]
    noise: bool
    unnamed: set[str]


def _look(pair: _Pair, readings: Mapping[str, MaskReading]) -> _Look:
    where = f"{str(pair.mask)!r}"
    values = read_values(pair.mask, where)
    same_size(values.shape[:2], read_size(pair.image, where), where)
    masks = [reading.mask(values, where) for reading in readings.values()]
    covered = np.any(masks, axis=0)
    ignored = next(iter(readings.values())).ignored(values)
    met = met_values(values[~ignored][None])
    told = any(reading.inside for reading in readings.values())
    unnamed = met_values(values[~ignored & ~covered][None]) if told else set[str]()
    shown = [bool(mask.any()) for mask in masks]
    return _Look(shown, float(covered.mean()), met, len(met) > 2, unnamed)


def _check_alike(looks: Sequence[_Look], readings: Mapping[str, MaskReading], root: Path) -> None:
    """Raise InputError where masks of two values each have other ones together."""
    if any(reading.inside for reading in readings.values()):
        return
    met = set[str]().union(*(look.met for look in looks if not look.noise))
    lit = met - {"0", "#000000"}
    if len(lit) > 1 and not all(value.isdigit() and int(value) > 127 for value in lit):
        raise unreadable_values(met, f"{root}, all masks together")


def _remarks(
    looks: Sequence[_Look], splits: Sequence[str], names: Sequence[str], count: int
) -> dict[str, str]:
    remarks = {}
    large = sum(look.share > 0.5 for look in looks)
    if large >= MOST * count:
        remarks["masks"] = (
            f"{large:,} of {count:,} cover more than half of their image: are they black on white? "
            "Then inside = [0] in [dataset]"
        )
    unnamed = Counter(value for look in looks for value in look.unnamed - {"0", "#000000"})
    if unnamed:
        values = some([f"{value} (in {n:,})" for value, n in unnamed.most_common()], 6)
        remarks["values of masks"] = f"outside, as no option names them: {values}"
    return remarks | split_remark(splits)


def _read(path: Path, reading: MaskReading) -> Mask:
    return reading.mask(read_values(path, repr(str(path))), repr(str(path)))


def _ignored(path: Path, ignore: tuple[int | str, ...]) -> Mask:
    return matching(read_values(path, repr(str(path))), ignore)


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
