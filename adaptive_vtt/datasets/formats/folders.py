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
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd

from ...errors import InputError, check_known, listed, some, unexpected, unknown
from ...types import Mask
from ...utils import mask_values
from ...utils.files import check_folder
from ...utils.image_files import read_size
from ...utils.mask_values import MaskReading
from ...utils.options import Option
from .. import scanning
from ..columns import one_per_class
from ..pictures import Picture, from_pictures
from ..scanning import BrokenOption, Folder, FolderOption, OutsideOption, Reading, SplitOption
from ..table import TableDataset, from_table, same_size

HYPER_KVASIR = "labeled-images"
PICTURES, NEARBY = {*scanning.NAMES["pictures"]}, {*scanning.NAMES["nearby"]}
"""Names, in lower case, of folders of images, and of folders next to them with other data."""

_STUDY = re.compile(r"(study|series|session|visit|exam|scan|patient|subject|case|p)[ _-]*\d+")


def from_class_folders(
    path: FolderOption,
    *,
    classes: scanning.ClassesOption = "all",
    split: SplitOption = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read all images below a folder; the class of an image is the folder that contains it.

    Each class is a concept; they are ordered by name, with numbers as numbers. Splits, folders
    called images, folders next to those (masks, labels), and numbered studies are no classes.

    Sample ids are paths relative to ``path``. Metadata are ``class``, and the folders above it:
    ``tract`` and ``group`` for HyperKvasir (``path`` may then be the folder above labeled-images,
    too), ``split`` for train, val, test, else ``level 1``, ``level 2`` ...

    Args:
        path: The folder.
        classes: "all": the truth of all classes is known for each image. "own": only that of its
            class is, so that "overall" is the share of images whose class is missed.
        split: The split to read. Default None: all.
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
    metadata = _metadata(kept, top, places).assign(**{"class": named}).set_axis(labels.index)
    labels = labels if classes == "all" else labels.replace(0, np.nan)
    dataset = from_table(kept, labels, metadata=metadata, **reading.named(root))
    splits = scanning.split_remark([*metadata.get("split", [])])
    dataset.remarks = splits | scanning.unread_remark([top], files)
    if empty := [folder.name for folder in below if not any(folder.iterdir())]:
        dataset.remarks["no images"] = f"folders {some(empty, 4)}: no classes, and no outputs"
    return dataset


def class_places(files: Sequence[Path], top: Path) -> dict[Path, int]:
    """Return, for each folder of images with a class, the depth of the class below ``top``."""
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
        if plain and not any(name in NEARBY and PICTURES & others for name, others in levels):
            places[folder] = plain[-1]
    return places


def _parts(file: Path, top: Path) -> tuple[str, ...]:
    """Return the names of the folders between ``top`` and a file."""
    return file.relative_to(top).parent.parts


def _metadata(files: list[Path], top: Path, places: Mapping[Path, int]) -> pd.DataFrame:
    """Return a table of the folders above the class, a column per level, and of the split."""
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
"""Meaning of an empty mask: an error, an image to leave out, or one without the concept."""
Values = list[int | str]
MOST = 0.9
"""Share of masks that cover more than half of their image from which on a remark asks about it."""


class Place(NamedTuple):
    """The split, "" for none, and the folders, or files, of images and masks."""

    split: str
    image: Path
    mask: Path


def mask_layouts(root: Path, split: str | None = None) -> list[Place]:
    """Return the folders of images and masks below a folder, by split.

    A split may be the folder above images and masks, or a folder in each of the two.

    Args:
        root: The folder.
        split: The split to return. Default None: all.

    Raises:
        InputError: There is no such split.
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
    are tried, in the folder or in each split. An image and its mask have the same name, except for
    the ending. In a mask of two values far apart the lighter one is inside. For other masks the
    options give the meaning of their values. All masks are decoded once.

    Args:
        path: The folder.
        concept: The concept that masks show.
        images: The folder of images. Default None: the one with a usual name.
        masks: The folder of masks. Default None: the one with a usual name.
        split: The split to read. Default None: all.
        inside: Values or colours of pixels with the concept. Default None: the lighter one of two.
        ignore: Values or colours of pixels that scores ignore. Default None: none.
        classes: Concept -> values or colours, instead of ``concept`` and ``inside``.
        empty: Meaning of an empty mask: "refuse" (an error), "skip" (left out), or "absent" (an
            image without the concept).
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
    files = [file for pair in pairs for file in pair[1:]]
    bad = reading.unreadable(files)
    pairs = [pair for pair in pairs if bad.isdisjoint(pair[1:])]
    wanted, ignored = classes or {concept: inside or []}, tuple(ignore or ())
    listed_values = mask_values.listed_values
    meanings = {c: MaskReading(listed_values(v), ignored) for c, v in wanted.items()}
    looks = scanning.each(lambda pair: _look(pair, meanings), pairs)
    empties = [str(look.pair.mask) for look in looks if not any(look.shown)]
    if empties and (empty == "refuse" or len(empties) == len(pairs)) and not classes:
        remedy = 'empty="skip" or "absent" takes them'
        if len(empties) == len(pairs):
            remedy = "what they show has to be lighter, not less transparent"
        remedy = f"{len(empties)} of {len(pairs)} are, {remedy}"
        raise unexpected(repr(empties[0]), "a mask with something inside", "an empty one", remedy)
    skip_empty = empty == "skip" and not classes
    looks = [look for look in looks if any(look.shown) or not skip_empty]
    splits = [look.pair.split for look in looks]
    pictures = []
    for look in looks:
        name, image, mask = look.pair
        key = f"{name}/{image.stem}" if len({*splits}) > 1 else image.stem
        picture = Picture(key, image, metadata={"split": name} if any(splits) else {})
        picture.truth = dict(zip(meanings, map(int, look.shown), strict=True))
        for label, meaning in meanings.items():
            if picture.truth[label]:
                picture.masks[label] = partial(_read, mask, meaning)
        picture.ignored = partial(_read, mask, meaning, ignored=True) if ignore else None
        pictures.append(picture)
    remarks = _remarks(looks, None if classes or inside else root) | scanning.split_remark(splits)
    remarks |= scanning.unread_remark({file.parent for file in files}, files)
    dataset = from_pictures(
        pictures, [*meanings], str(root), remarks=remarks, **reading.named(root)
    )
    dataset.skipped = tuple(sorted([*reading.skipped, *empties * skip_empty]))
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
    check_folder(root)
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
    """Return each image of a split with its mask; raise InputError for a file without a partner."""
    images, masks = _by_stem(image_folder), _by_stem(mask_folder)
    stems = {stem if stem in images else scanning.image_stem(stem): stem for stem in masks}
    if len(stems) == len(masks):  # masks may be called "a_mask"
        masks = {stem: masks[mask_stem] for stem, mask_stem in stems.items()}
    for files, others, folder, kind in (
        (images, masks, mask_folder, "mask"),
        (masks, images, image_folder, "image"),
    ):
        if alone := [file for stem, file in files.items() if stem not in others]:
            raise InputError(
                f"{str(alone[0])!r} has no {kind} of that name in {str(folder.path)!r}, and so "
                f"have {len(alone)} of {len(files)}"
            )
    return [Place(split, image, masks[stem]) for stem, image in images.items()]


def _by_stem(folder: Folder) -> dict[str, Path]:
    """Return the images of a folder by name without ending; raise InputError if two are equal."""
    files: dict[str, Path] = {}
    for file in folder.images():
        if file.stem in files:
            raise InputError(f"{str(file)!r}: another image is named {files[file.stem].name!r}")
        files[file.stem] = file
    return files


class _Look(NamedTuple):
    """Facts on a decoded mask."""

    pair: Place
    shown: list[bool]
    """For each concept, whether the mask shows it."""
    share: float
    """Share of the image that any concept covers."""
    met: set[str]
    """The values of its pixels, without ignored ones."""
    outside: set[str]
    """The values of its pixels outside of all concepts, without ignored ones."""


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

    Args:
        looks: The decoded masks.
        root: The folder of masks whose values no option explains; None: an option does.

    Raises:
        InputError: No option explains the values, and masks have different pairs of values.
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


def _read(path: Path, reading: MaskReading, *, ignored: bool = False) -> Mask:
    """Return the pixels of a mask file that show the concept, or those that no score counts."""
    where = repr(str(path))
    values = mask_values.read_values(path, where)
    return reading.ignored(values) if ignored else reading.mask(values, where)


# -- images alone ----------------------------------------------------------------------------------

NOTHING = "image"
"""Default name of the concept of images without labels; its truth is unknown."""


def from_images(
    path: FolderOption,
    *,
    concepts: Annotated[
        Sequence[str] | None, Option("what the model answers about, a column each (default: image)")
    ] = None,
    broken: BrokenOption = "refuse",
    allow_outside: OutsideOption = False,
) -> TableDataset:
    """Read the images directly in a folder, without labels. Sample ids are file names.

    Only oracles that need no truth can judge answers about them, such as those of captions and of
    consistency.

    Args:
        path: The folder.
        concepts: Names of the concepts that the model answers about. Default None: "image".
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
