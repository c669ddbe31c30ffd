"""MedMNIST's twelve 2D sets (Yang et al., Scientific Data 10, 2023; sizes 64 to 224: MedMNIST+).

Each set and size has an .npz: ``pathmnist.npz`` has 28 x 28 pixels, ``pathmnist_224.npz`` 224 x
224. Uncompressed arrays (``numpy.savez``) are memory-mapped; compressed ones are read as a whole on
first access. Nothing is unpickled.
"""

import json
import math
import struct
import zipfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...errors import InputError, check_known, unexpected
from ...types import UNKNOWN, Indices
from ...utils.files import as_file, instead, reads
from ...utils.image_files import MAX_PIXELS
from ...utils.options import Option, at_base
from ..scanning import ClassesOption
from ..table import TableDataset

MAX_BYTES = 2 * 2**30
"""Default maximum size in bytes of an array after decompression."""


class NpzArray:
    """An array in an .npz file, indexed along its first axis.

    An uncompressed array is memory-mapped.

    Args:
        path: The .npz file.
        key: Name of the array.
        most_bytes: Maximum size in bytes of a compressed array after decompression.

    Raises:
        InputError: The file is no .npz or lacks the array, or the array is too large, has another
            size than its header says, or contains Python objects. Nothing was decompressed then.
    """

    def __init__(self, path: Path, key: str, most_bytes: int = MAX_BYTES) -> None:
        self.path, self.key, self.most_bytes = path, key, most_bytes
        self._stored_at: int | None = None  # offset of its numbers in the file, if uncompressed
        with reads(path, f"array {key!r}"):
            self._read_header()

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        return np.array(self.array[index])  # a copy: the file stays unchanged

    def __reduce__(self) -> tuple[Any, ...]:
        # worker processes open the file themselves
        return type(self), (self.path, self.key, self.most_bytes)

    @cached_property
    def array(self) -> npt.NDArray[Any]:
        """The whole array, n x ..., which is read-only."""
        with reads(self.path, f"array {self.key!r}"):
            if self._stored_at is not None:
                place = self._stored_at
                return np.memmap(self.path, self.dtype, "r", place, self.shape, order=self._order)
            with np.load(self.path, allow_pickle=False) as stored:
                return stored[self.key]

    def _read_header(self) -> None:
        """Set shape, dtype, order and offset of the array."""
        with zipfile.ZipFile(as_file(self.path)) as archive:
            name, names = f"{self.key}.npy", archive.namelist()
            if name not in names:
                known = ", ".join(sorted(n.removesuffix(".npy") for n in names)) or "none"
                raise InputError(f"{self.path}: expected the array {self.key}, got {known}")
            info = archive.getinfo(name)
            with archive.open(info) as member:
                first, kind = np.lib.format.read_magic(member) == (1, 0), np.lib.format
                read = kind.read_array_header_1_0 if first else kind.read_array_header_2_0
                self.shape, fortran, self.dtype = read(member)
                header = member.tell()
        if self.dtype.hasobject:
            raise ValueError("it holds Python objects")
        self._check_size(info, info.file_size - header)
        self._order = cast(Any, "F" if fortran else "C")
        plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1  # unencrypted
        if plain and 0 not in self.shape:
            # A local file header has 30 bytes, name and extra field (PKWARE's APPNOTE, 4.3.7);
            # the lengths of the last two, at byte 26, may differ from those in the directory.
            with self.path.open("rb") as file:
                file.seek(info.header_offset + 26)
                lengths = struct.unpack("<HH", file.read(4))
            self._stored_at = info.header_offset + 30 + sum(map(int, lengths)) + header

    def _check_size(self, info: zipfile.ZipInfo, held: int) -> None:
        """Raise InputError if the array is too large, or not as large as its data.

        Args:
            info: The entry of the archive.
            held: Number of bytes of the data.
        """
        where = f"{self.path}: array {self.key!r}"
        if any(side < 0 for side in self.shape):
            raise unexpected(where, "sides of 0 or more", self.shape)
        size = math.prod(self.shape) * self.dtype.itemsize
        if info.compress_type != zipfile.ZIP_STORED and max(size, held) > self.most_bytes:
            raise InputError(
                f"{where} unpacks to {max(size, held)} bytes, over the limit of {self.most_bytes}; "
                "a larger most_bytes lets it in"
            )
        if size != held:
            expected = f"{size} bytes, as its shape {self.shape} and type {self.dtype} say"
            raise unexpected(where, expected, held)


SIZES = (28, 64, 128, 224)
SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class MedMnistSet:
    """One of the twelve sets.

    Attributes:
        flag: Its name, such as "pathmnist".
        task: "binary", "multi-class", "multi-label" or "ordinal".
        channels: 1 or 3.
        classes: Class names in the order of their label numbers.
    """

    flag: str
    task: str
    channels: int
    classes: tuple[str, ...]

    @property
    def concepts(self) -> tuple[str, ...]:
        """The concepts to ask about: all classes, but only class 1 of a binary set."""
        return self.classes[1:] if self.task == "binary" else self.classes


@cache
def medmnist_sets() -> dict[str, MedMnistSet]:
    """Return the twelve sets by flag ("pathmnist", ...)."""
    table = json.loads((Path(__file__).parent / "data" / "medmnist.json").read_text())
    parts = {flag: {**facts, "classes": tuple(facts["classes"])} for flag, facts in table.items()}
    return {flag: MedMnistSet(flag, **facts) for flag, facts in parts.items()}


def from_medmnist(
    path: Annotated[Path | str, Option("the .npz, or the folder it is in", reads=at_base)],
    flag: Annotated[
        str | None, Option("the set, e.g. pathmnist (default: from the file's name)")
    ] = None,
    *,
    size: Annotated[int | None, Option("28 (default in a folder), 64, 128 or 224")] = None,
    split: Annotated[str, Option("train, val or test")] = "test",
    classes: ClassesOption = "all",
    most_bytes: Annotated[int, Option("most bytes of a compressed array", ge=1)] = MAX_BYTES,
) -> TableDataset:
    """Read a split of a MedMNIST set, with one concept per class.

    Sample ids are the split and the six-digit position. Metadata are ``split``, and ``label`` (the
    number of the class) unless the set is multi-label. Images are S x S x 1 or 3 of uint8.

    Args:
        path: The .npz, or its folder.
        flag: Name of the set. Default None: from the name of the file.
        size: 28, 64, 128 or 224 pixels. Default None: 28 in a folder, any for a file.
        split: "train", "val" or "test".
        classes: "all": the truth of all classes is known for each image. "own": only that of its
            class is, so that "overall" is the share of images whose class is missed. For a binary
            set, with its single concept, both mean the same.
        most_bytes: Maximum size of an array after decompression. The largest official array, the
            training images of pathmnist at 224 pixels, takes 13.6e9 bytes.

    Returns:
        The dataset.

    Raises:
        InputError: The set, split or size is unknown, the file lacks an array, or an array has
            another shape or other labels than the set.
    """
    file, name = _find(Path(path), flag, size)
    check_known("split", split, SPLITS, "medmnist")
    check_known("value of classes", classes, ("all", "own"), "medmnist")
    facts = medmnist_sets()[name]
    images = NpzArray(file, f"{split}_images", most_bytes)
    _check_images(images, facts, size)
    labels = _labels(NpzArray(file, f"{split}_labels", most_bytes), len(images), facts)
    if facts.task == "binary":
        truths = labels.astype(np.int8)
    else:
        multi_label = facts.task == "multi-label"
        present = labels == 1 if multi_label else labels == np.arange(len(facts.classes))
        truths = np.where(present, 1, UNKNOWN if classes == "own" else 0).astype(np.int8)
    metadata = pd.DataFrame({"split": [split] * len(images)})
    if labels.shape[1] == 1:
        metadata["label"] = labels[:, 0]
    return TableDataset(
        images,
        truths,
        [f"{split}-{position:06d}" for position in range(len(images))],
        facts.concepts,
        metadata=metadata,
        name=f"{name}-{split}",
    )


def _find(path: Path, flag: str | None, size: int | None) -> tuple[Path, str]:
    """Return the file and the set's flag."""
    name = flag if flag is not None else path.stem.split("_")[0]
    where = "medmnist" if flag is not None else f"medmnist: {path} (give flag=)"
    check_known("dataset flag", name, list(medmnist_sets()), where)
    if size is not None and size not in SIZES:
        raise InputError(f"medmnist: expected a size of 28, 64, 128 or 224, got {size}")
    if path.is_dir():
        path = path / (f"{name}.npz" if size in (None, 28) else f"{name}_{size}.npz")
    if not path.is_file():
        raise InputError(f"medmnist: the file {str(path)!r} does not exist{instead(path)}")
    return path, name


def _check_images(images: NpzArray, facts: MedMnistSet, size: int | None) -> None:
    """Raise InputError unless the array has images of the set, in this size (None: any)."""
    shape = images.shape
    colours = (3,) if facts.channels == 3 else ()
    fits = len(shape) >= 3 and shape[3:] == colours and images.dtype == np.uint8
    if not fits or 0 in shape or (size is not None and shape[1:3] != (size, size)):
        side = "S" if size is None else size
        wanted = f"(N, {side}, {side}{', 3' if colours else ''})"
        expected = f"{images.key} of shape {wanted} and uint8 for {facts.flag}"
        raise unexpected(str(images.path), expected, f"{shape} of {images.dtype}")
    if shape[1] * shape[2] > MAX_PIXELS:
        expected, got = f"images of at most {MAX_PIXELS} pixels", f"{shape[1]} x {shape[2]} pixels"
        raise unexpected(str(images.path), expected, got)


def _labels(stored: NpzArray, count: int, facts: MedMnistSet) -> Indices:
    """Return class numbers (n, 1), or 0/1 per class (n, C) for a multi-label set."""
    columns = len(facts.classes) if facts.task == "multi-label" else 1
    if stored.shape != (count, columns) or stored.dtype.kind not in "iub":
        expected = f"{stored.key} of shape ({count}, {columns}) and whole numbers for {facts.flag}"
        raise unexpected(str(stored.path), expected, f"{stored.shape} of {stored.dtype}")
    labels = stored.array.astype(np.int64)
    most = 1 if columns > 1 else len(facts.classes) - 1
    wrong = np.argwhere((labels < 0) | (labels > most))
    if len(wrong):
        row, column = wrong[0]
        where, got = f"{stored.path}: {stored.key}", f"{labels[row, column]} in row {row}"
        raise unexpected(where, f"labels 0 to {most} for {facts.flag}", got)
    return labels
