"""MedMNIST's twelve 2D sets (Yang et al., Scientific Data 10, 2023; sizes 64 to 224: MedMNIST+).

An .npz per set and size: ``pathmnist.npz`` has 28 x 28 pixels, ``pathmnist_224.npz`` 224 x 224.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...errors import InputError
from ...types import UNKNOWN, Truths
from ...utils.files import instead
from ...utils.image_files import MAX_PIXELS
from ...utils.options import Option, at_base
from ..scanning import Classes, ClassesOption, choose
from ..table import TableDataset
from .npz import MAX_BYTES, NpzArray, require

SIZES = (28, 64, 128, 224)
SPLITS = ("train", "val", "test")

"""Whether an image is asked about every class, or about its own class alone."""


@dataclass(frozen=True)
class MedMnistSet:
    """One of the twelve: its task ("binary", "multi-class", "multi-label" or "ordinal"),
    channels (1 or 3) and class names in the order of their label numbers."""

    flag: str
    task: str
    channels: int
    classes: tuple[str, ...]

    @property
    def concepts(self) -> tuple[str, ...]:
        """What can be asked: every class; for a binary set its class 1 alone."""
        return self.classes[1:] if self.task == "binary" else self.classes


@cache
def medmnist_sets() -> dict[str, MedMnistSet]:
    """The twelve sets by flag ("pathmnist", ...)."""
    table = json.loads((Path(__file__).parent / "data" / "medmnist.json").read_text())
    return {
        flag: MedMnistSet(flag, facts["task"], facts["channels"], tuple(facts["classes"]))
        for flag, facts in table.items()
    }


def from_medmnist(
    path: Annotated[
        Path | str,
        Option("the .npz, or the folder it is in", reads=at_base),
    ],
    flag: Annotated[
        str | None, Option("the set, e.g. pathmnist (default: from the file's name)")
    ] = None,
    *,
    size: Annotated[int | None, Option("28 (default in a folder), 64, 128 or 224")] = None,
    split: Annotated[str, Option("train, val or test")] = "test",
    classes: ClassesOption = "all",
    most_bytes: Annotated[
        int, Option("a compressed array may unpack to no more bytes", ge=1)
    ] = MAX_BYTES,
) -> TableDataset:
    """A split of a MedMNIST set as yes/no concepts, one per class.

    ``classes`` "all" knows all classes of every image. With "own" only the class that an
    image has is known, so that the target "overall" is the share of images whose class is
    missed. A binary set has one concept, its class 1, where both mean the same.

    The largest official array, the training images of pathmnist at 224 pixels, takes 13.6e9 bytes.

    Sample ids are the split and the six-digit position. Metadata: ``split``, and ``label`` (the
    class number) unless the set is multi-label. Images are uint8, S x S x 1 or 3.
    Raises InputError for an unknown set, split or size, a file without the expected arrays, and
    arrays of other shapes or labels than the set has.
    """
    file, name = _find(Path(path), flag, size)
    choose("split", split, SPLITS, "medmnist")
    choose("value of classes", classes, ("all", "own"), "medmnist")
    facts = medmnist_sets()[name]
    require(file, [f"{split}_images", f"{split}_labels"])
    images = NpzArray(file, f"{split}_images", most_bytes)
    _check_images(images, facts, size)
    labels = _labels(NpzArray(file, f"{split}_labels", most_bytes), len(images), facts)
    metadata = pd.DataFrame({"split": [split] * len(images)})
    if labels.shape[1] == 1:
        metadata["label"] = labels[:, 0]
    return TableDataset(
        images,
        _truths(labels, facts, classes),
        [f"{split}-{position:06d}" for position in range(len(images))],
        facts.concepts,
        metadata=metadata,
        name=f"{name}-{split}",
    )


def one_per_class(labels: npt.NDArray[np.integer], classes: int, known: Classes) -> Truths:
    """Class numbers (n,) as truths n x ``classes``: 1 for an image's class, and 0 elsewhere,
    or UNKNOWN where only its own class is ``known``."""
    truths = np.full((len(labels), classes), UNKNOWN if known == "own" else 0, np.int8)
    truths[np.arange(len(labels)), labels] = 1
    return truths


def _find(path: Path, flag: str | None, size: int | None) -> tuple[Path, str]:
    """The file and the set's flag."""
    name = flag if flag is not None else path.stem.split("_")[0]
    where = "medmnist" if flag is not None else f"medmnist: {path} (give flag=)"
    choose("dataset flag", name, list(medmnist_sets()), where)
    if size is not None and size not in SIZES:
        raise InputError(f"medmnist: expected a size of 28, 64, 128 or 224, got {size}")
    if path.is_dir():
        path = path / (f"{name}.npz" if size in (None, 28) else f"{name}_{size}.npz")
    if not path.is_file():
        raise InputError(f"medmnist: the file {str(path)!r} does not exist{instead(path)}")
    return path, name


def _check_images(images: NpzArray, facts: MedMnistSet, size: int | None) -> None:
    shape = images.shape
    colours = (3,) if facts.channels == 3 else ()
    fits = len(shape) >= 3 and shape[3:] == colours and images.dtype == np.uint8
    if not fits or 0 in shape or (size is not None and shape[1:3] != (size, size)):
        side = "S" if size is None else size
        wanted = f"(N, {side}, {side}{', 3' if colours else ''})"
        raise InputError(
            f"{images.path}: expected {images.key} of shape {wanted} and uint8 for {facts.flag}, "
            f"got {shape} of {images.dtype}"
        )
    if shape[1] * shape[2] > MAX_PIXELS:
        raise InputError(
            f"{images.path}: images of {shape[1]} x {shape[2]} pixels, over the limit of "
            f"{MAX_PIXELS} pixels"
        )


def _labels(stored: NpzArray, count: int, facts: MedMnistSet) -> npt.NDArray[np.int64]:
    """Class numbers (n, 1), or 0/1 per class (n, C) for a multi-label set."""
    columns = len(facts.classes) if facts.task == "multi-label" else 1
    if stored.shape != (count, columns) or stored.dtype.kind not in "iub":
        raise InputError(
            f"{stored.path}: expected {stored.key} of shape ({count}, {columns}) and whole "
            f"numbers for {facts.flag}, got {stored.shape} of {stored.dtype}"
        )
    labels = stored.array.astype(np.int64)
    most = 1 if columns > 1 else len(facts.classes) - 1
    wrong = np.argwhere((labels < 0) | (labels > most))
    if len(wrong):
        row, column = wrong[0]
        raise InputError(
            f"{stored.path}: {stored.key}: expected labels 0 to {most} for {facts.flag}, "
            f"got {labels[row, column]} in row {row}"
        )
    return labels


def _truths(labels: npt.NDArray[np.int64], facts: MedMnistSet, known: Classes) -> Truths:
    if facts.task == "binary":
        return labels.astype(np.int8)
    if facts.task == "multi-label":
        absent = UNKNOWN if known == "own" else 0
        return np.where(labels == 1, 1, absent).astype(np.int8)
    return one_per_class(labels[:, 0], len(facts.classes), known)
