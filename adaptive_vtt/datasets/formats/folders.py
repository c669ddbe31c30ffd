"""Folders of images: one per class, with masks, or alone.

Layouts with one folder per class:

- kvasir-dataset-v2/{class}/*.jpg (Pogorelov et al., MMSys 2017)
- labeled-images/{tract}/{group}/{class}/*.jpg (HyperKvasir: Borgli et al., Sci. Data 7, 2020)
- {train,val,test}/{class}/*.jpg (curated capsule endoscopy images)

Layouts with masks, of polyp segmentation sets:

- Kvasir-SEG: images/*.jpg, masks/*.jpg (Jha et al., MMM 2020)
- CVC-ClinicDB: Original/*.tif, Ground Truth/*.tif (Bernal et al., CMIG 43, 2015)
- CVC-300, CVC-ColonDB: images/*.png, masks/*.png (as bundled with PraNet)
- training set of PraNet: image/*.png, masks/*.png (Fan et al., MICCAI 2020)
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, listed, some, unexpected, unknown
from ...types import Mask
from ...utils import mask_values
from ...utils.files import instead
from ...utils.image_files import read_size
from ...utils.mask_values import MaskReading
from ...utils.options import Option
from .. import scanning
from ..pictures import Picture, from_pictures
from ..scanning import BrokenOption, Folder, FolderOption, OutsideOption, Reading, SplitOption
from ..table import TableDataset, from_table, one_per_class, same_size

HYPER_KVASIR = "labeled-images"
PICTURES, BESIDE = {*scanning.NAMES["pictures"]}, {*scanning.NAMES["beside"]}
"""Names of folders of images, in small letters, and of folders next to them that hold no images."""
_STUDY = re.compile(r"(study|series|session|visit|exam|scan|patient|subject|case|p)[ _-]*\d+")


def from_class_folders(
    path: FolderOption,
    *,
    classes: scanning.ClassesOption = "all",
    split: SplitOption = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read all images under ``path``; the folder that holds an image is its class.

    One concept per class, in the order of their names, numbers as numbers. Splits, folders called
    images, folders next to those (masks, labels), and numbered studies are no classes.

    Sample ids are paths from ``path``. Metadata: ``class``, and the folders above it: ``tract``
    and ``group`` for HyperKvasir (whose ``path`` may also be the folder above labeled-images),
    ``split`` for train, val, test, else ``level 1``, ``level 2`` ...

    Args:
        path: The folder.
        classes: "all": an image is known to lack all classes but its own. "own": only its own class
            is asked about, so that "overall" is the share of images whose class is missed.
        split: The split to read.
        broken: "skip" leaves out files that cannot be decoded.
        allow_outside: Whether links may lead out of the folder.

    Returns:
        The dataset.

    Raises:
        InputError: There is no image, or all would be of one class.
    """
    check_known("value of classes", classes, ("all", "own"), "class folders")
    root, reading = Path(path), Reading(broken, str(path))
    top = root / HYPER_KVASIR if (root / HYPER_KVASIR).is_dir() else root
    data, below = Folder(top, allow_outside), scanning.folders_below(top)
    loose = data.images()
    images = [file for folder in below for file in data.images(str(folder.relative_to(top)))]
    if loose and images:
        expected = "every image in the folder of its class"
        raise unexpected(repr(str(loose[0])), expected, "one outside of the folders")
    images = images or loose
    if split is not None:
        known = {part for file in images for part in _parts(file, top) if scanning.is_split(part)}
        check_known("split", split, sorted(known), str(root))
        images = [file for file in images if split in _parts(file, top)]
    places = class_places(images, top)
    files = [file for file in images if file.parent in places]
    bad = reading.unreadable(files)
    kept = [file for file in files if file not in bad]
    named = [_parts(file, top)[places[file.parent]] for file in kept]
    if not kept and (files or not images):
        raise InputError(f"{root}: expected folders of images, one per class, got no image")
    if len({*named}) < 2:
        raise InputError(
            f"{root}: expected a folder of images for each of two or more classes, got "
            f"{listed({*named}) or 'none'} for all images; name their classes in a table of labels,"
            ' or read them without labels: kind = "images" in [dataset]'
        )
    labels = one_per_class(pd.Series(named, [file.relative_to(top).as_posix() for file in kept]))
    metadata = _metadata(kept, top, places).assign(**{"class": named})
    labels = labels if classes == "all" else labels.replace(0, np.nan)
    dataset = from_table(kept, labels, metadata=metadata, **reading.named(root))
    splits = scanning.split_remark([*metadata.get("split", [])])
    dataset.remarks = splits | scanning.unread_remark([top], files)
    empty = [folder.name for folder in below if not any(folder.iterdir())]
    if empty:
        dataset.remarks["no images"] = f"folders {some(empty, 4)}: no classes, and no outputs"
    return dataset


def class_places(files: Sequence[Path], top: Path) -> dict[Path, int]:
    """Return the depth below ``top`` of the class, by folder of images that has a class."""
    parts = {file.parent: _parts(file, top) for file in files}
    siblings = defaultdict[tuple[str, ...], set[str]](set)
    for names in parts.values():
        for depth, name in enumerate(names):
            siblings[names[:depth]].add(name.lower())
    places: dict[Path, int] = {}
    for folder, names in parts.items():
        levels = [(name.lower(), siblings[names[:depth]]) for depth, name in enumerate(names)]
        plain = [
            depth
            for depth, (name, others) in enumerate(levels)
            if not (scanning.is_split(name) or name in PICTURES)
            and not all(map(_STUDY.fullmatch, others))
        ]
        if plain and not any(name in BESIDE and PICTURES & others for name, others in levels):
            places[folder] = plain[-1]
    return places


def _parts(file: Path, top: Path) -> tuple[str, ...]:
    return file.relative_to(top).parent.parts


def _metadata(files: list[Path], top: Path, places: Mapping[Path, int]) -> pd.DataFrame:
    """Return the folders above the class, a column per level, and the split."""
    parts = [_parts(file, top) for file in files]
    above = [names[: places[file.parent]] for file, names in zip(files, parts, strict=True)]
    table = pd.DataFrame([*zip_longest(*above)], columns=range(len(above)), dtype=object).T
    columns = [f"level {number + 1}" for number in range(table.shape[1])]
    first = {*table[0]} if columns else set()
    if first and first <= {"upper-gi-tract", "lower-gi-tract"}:
        columns[:2] = ["tract", "group"][: len(columns)]
    elif first and all(map(scanning.is_split, first)):
        columns[0] = "split"
    table = table.set_axis(columns, axis=1)
    splits = [next(filter(scanning.is_split, names), None) for names in parts]
    if not any(splits) or "split" in table:
        return table
    return table.assign(split=pd.Series(splits, dtype=object))


# -- images with masks -----------------------------------------------------------------------------

LAYOUTS = scanning.NAMES["masks"]
Empty = Literal["refuse", "skip", "absent"]
"""An empty mask: an error, left out, or an image without the concept."""
Values = list[int | str]
MOST = 0.9
"""Share of masks that cover more than half of the image, from which on a remark says so."""


class Place(NamedTuple):
    """The split of images, "" for none, their folder or file, and that of their masks."""

    split: str
    image: Path
    mask: Path


def mask_layouts(root: Path, split: str | None = None) -> list[Place]:
    """Return the splits ("" for none), folders of images and folders of masks below ``root``.

    A split may be the folder above images and masks, or a folder in each of the two.
    """
    layouts: list[Place] = []
    for images, masks in LAYOUTS:
        below = sorted([*root.glob(f"*/{images}"), *root.glob(f"{images}/*")])
        for folder in (root / images, *below):
            path = folder.relative_to(root).as_posix()
            name = path.replace(images, "", 1).strip("/")
            place = Place(name, folder, root / path.replace(images, masks, 1))
            if (not name or scanning.is_split(name)) and all(map(scanning.holds_images, place[1:])):
                layouts.append(place)
        if layouts:
            break
    if split is not None and split not in {layout.split for layout in layouts}:
        raise unknown("split", split, filter(None, (layout.split for layout in layouts)), str(root))
    return [layout for layout in layouts if split in (None, layout.split)]


def from_masks(
    path: FolderOption,
    concept: Annotated[str, Option("what the masks show", min_length=1)] = "polyp",
    *,
    images: Annotated[Path | str | None, Option(scanning.IMAGES)] = None,
    masks: Annotated[Path | str | None, Option(scanning.MASKS)] = None,
    split: SplitOption = None,
    inside: Annotated[
        Values | None, Option('values or colours ("#ff0000") inside; "nonzero": all but 0')
    ] = None,
    ignore: Annotated[Values | None, Option("values or colours that no score counts")] = None,
    classes: Annotated[
        dict[str, int | str | Values] | None,
        Option("instead of concept and inside: the values or colours of several concepts"),
    ] = None,
    empty: Annotated[Empty, Option("an empty mask: an error, left out, or absent")] = "refuse",
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read images with masks of one concept, or of several ``classes``.

    Without ``images`` and ``masks``, the layouts of Kvasir-SEG, CVC-ClinicDB and PraNet's bundle
    are tried, in the folder or in each split. An image and its mask have the same name, but for
    the ending. A mask of two values far apart is inside where it is lighter. For other masks the
    options give the meaning of their values. All masks are decoded once.

    Args:
        path: The folder.
        concept: What the masks show.
        images: The folder of images.
        masks: The folder of masks.
        split: The split to read.
        inside: Values or colours of pixels that show the concept.
        ignore: Values or colours that no score counts.
        classes: Values or colours by concept, instead of ``concept`` and ``inside``.
        empty: Whether an empty mask is an error, left out, or an image without the concept.
        broken: "skip" leaves out files that cannot be decoded.
        allow_outside: Whether links may lead out of the folder.

    Returns:
        The dataset.

    Raises:
        InputError: A mask differs in size from its image, an image or a mask has no partner, no
            option explains a value, or a mask is empty and ``empty`` refuses it.
    """
    root, reading = Path(path), Reading(broken, str(path))
    check_known("value of empty", empty, ("refuse", "skip", "absent"), "masks")
    if classes and inside:
        raise unexpected(str(root), "inside or classes", "both")
    pairs = _pairs_of(root, images, masks, split, allow_outside)
    bad = reading.unreadable([file for pair in pairs for file in pair[1:]])
    pairs = [pair for pair in pairs if bad.isdisjoint(pair[1:])]
    named = {name: mask_values.listed_values(value) for name, value in (classes or {}).items()}
    meanings = {
        name: MaskReading(values, tuple(ignore or ()))
        for name, values in (named or {concept: tuple(inside or ())}).items()
    }
    looks = scanning.each(lambda pair: _look(pair, meanings), pairs)
    hollow = [str(look.pair.mask) for look in looks if not any(look.shown)]
    if hollow and (empty == "refuse" or len(hollow) == len(pairs)) and not classes:
        remedy = 'empty="skip" or "absent" takes them'
        if len(hollow) == len(pairs):
            remedy = "what they show has to be lighter, not less transparent"
        remedy = f"{len(hollow)} of {len(pairs)} are, {remedy}"
        raise unexpected(repr(hollow[0]), "a mask with something inside", "an empty one", remedy)
    files = [file for pair in pairs for file in pair[1:]]
    left_out = empty == "skip" and not classes
    looks = [look for look in looks if any(look.shown) or not left_out]
    if not looks:
        raise InputError(f"{root}: expected images with masks, got none that can be used")
    splits = [look.pair.split for look in looks]
    pictures = []
    for look in looks:
        name, image, mask = look.pair
        key = f"{name}/{image.stem}" if len({*splits}) > 1 else image.stem
        picture = Picture(key, image, metadata={"split": name} if any(splits) else {})
        picture.truth = dict(zip(meanings, map(int, look.shown), strict=True))
        for label, meaning in meanings.items():
            if picture.truth[label]:
                picture.masks[label] = partial(_read, mask, meaning.mask)
        picture.ignored = partial(_read, mask, meaning.ignored) if ignore else None
        pictures.append(picture)
    remarks = _remarks(looks, None if named or inside else root) | scanning.split_remark(splits)
    remarks |= scanning.unread_remark({file.parent for file in files}, [*files, *bad])
    dataset = from_pictures(
        pictures, [*meanings], str(root), remarks=remarks, **reading.named(root)
    )
    dataset.skipped = tuple(sorted([*reading.skipped, *hollow * left_out]))
    return dataset


def _pairs_of(
    root: Path,
    images: Path | str | None,
    masks: Path | str | None,
    split: str | None,
    allow_outside: bool,
) -> list[Place]:
    """Return the split, image and mask of each sample."""
    if images is not None and masks is not None:
        return _pairs("", *(Folder(root / part, allow_outside) for part in (images, masks)))
    if images is not None or masks is not None:
        got = f"{'images' if masks is None else 'masks'}= alone"
        raise unexpected(str(root), "both images= and masks= or neither", got)
    if not root.is_dir():
        raise InputError(f"{root}: is no folder{instead(root)}")
    layouts = mask_layouts(root, split)
    if not layouts:
        known = ", ".join(f"{i!r} and {m!r}" for i, m in LAYOUTS)
        raise InputError(f"{root}: expected folders of images and masks, got none of {known}")
    return [
        pair
        for name, *folders in layouts
        for pair in _pairs(name, *(Folder(folder, allow_outside, root) for folder in folders))
    ]


def _pairs(split: str, image_folder: Folder, mask_folder: Folder) -> list[Place]:
    images, masks = _by_stem(image_folder), _by_stem(mask_folder)
    stems = {stem if stem in images else scanning.image_stem(stem): stem for stem in masks}
    if len(stems) == len(masks):
        masks = {stem: masks[own] for stem, own in stems.items()}
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
    return [Place(split, image, masks[stem]) for stem, image in images.items()]


def _by_stem(folder: Folder) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for file in folder.images():
        if file.stem in files:
            raise InputError(f"{str(file)!r}: another image is named {files[file.stem].name!r}")
        files[file.stem] = file
    return files


class _Look(NamedTuple):
    """A decoded pair: which concepts its mask shows, the share of the image inside any of them, its
    values, and those outside."""

    pair: Place
    shown: list[bool]
    share: float
    met: set[str]
    outside: set[str]


def _look(pair: Place, readings: Mapping[str, MaskReading]) -> _Look:
    where = repr(str(pair.mask))
    values = mask_values.read_values(pair.mask, where)
    same_size(values.shape[:2], read_size(pair.image, where), where)
    masks = [reading.mask(values, where) for reading in readings.values()]
    inside, ignored = np.any(masks, axis=0), next(iter(readings.values())).ignored(values)
    parts = (~ignored, ~ignored & ~inside)
    met, outside = (mask_values.met_values(values[part][None]) for part in parts)
    return _Look(pair, [bool(m.any()) for m in masks], float(inside.mean()), met, outside)


def _remarks(looks: Sequence[_Look], root: Path | None) -> dict[str, str]:
    """Return remarks on masks that are likely misread.

    ``root``: of masks whose values nobody named. Raise InputError if these have two values each
    that differ from mask to mask.
    """
    black, remarks = {"0", "#000000"}, {}
    met = set[str]().union(*(look.met for look in looks if len(look.met) < 3))
    if root and len(met - black) > 1 and not all(v.isdigit() and int(v) > 127 for v in met - black):
        raise mask_values.unreadable_values(met, f"{root}, all masks together")
    large = sum(look.share > 0.5 for look in looks)
    if large >= MOST * len(looks):
        remarks["masks"] = f"{large:,} of {len(looks):,} cover more than half of their image: are "
        remarks["masks"] += "they black on white? Then inside = [0] in [dataset]"
    unnamed = Counter(value for look in looks for value in look.outside - black)
    if unnamed and not root:
        values = some([f"{value} (in {n:,})" for value, n in unnamed.most_common()], 6)
        remarks["values of masks"] = f"outside, as no option names them: {values}"
    return remarks


def _read(path: Path, reading: Callable[..., Mask]) -> Mask:
    where = repr(str(path))
    return reading(mask_values.read_values(path, where), where)


# -- images alone ----------------------------------------------------------------------------------

NOTHING = "image"
"""The concept where none is named; its truth is unknown."""


def from_images(
    path: FolderOption,
    *,
    concepts: Annotated[
        Sequence[str] | None, Option("what the model answers about, a column each (default: image)")
    ] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read the images directly in ``path``, named by their files.

    Oracles that need no truth can ask about them: in captions, or for consistency.

    Args:
        path: The folder.
        concepts: What the model answers about.
        broken: "skip" leaves out files that cannot be decoded.
        allow_outside: Whether links may lead out of the folder.

    Returns:
        The dataset, whose truths are unknown.

    Raises:
        InputError: The path is no folder, or the folder has no image.
    """
    folder, reading = Path(path), Reading(broken, str(path))
    files = scanning.image_files(folder, allow_outside=allow_outside)
    bad = reading.unreadable(files)
    kept = [file for file in files if file not in bad]
    if not kept:
        raise InputError(f"{folder}: expected a folder of images, got none in it")
    labels = pd.DataFrame(np.nan, [file.name for file in kept], [*(concepts or [NOTHING])])
    dataset = from_table(kept, labels, **reading.named(folder))
    dataset.remarks = scanning.unread_remark([folder], files)
    return dataset
