"""One array of an .npz file: its shape known from the header, its rows read when asked for.

Stored arrays (``numpy.savez``) are memory-mapped; compressed ones are read once, whole, on
first use. Nothing is unpickled.
"""

import math
import struct
import zipfile
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...errors import InputError, one_line
from ...utils.files import why_unread

MAX_BYTES = 2 * 2**30
"""Bytes to which a compressed array may unpack, unless more is allowed; a larger one is refused."""

_UNREADABLE = (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


class NpzArray:
    """The array ``key`` of the file ``path``, indexed along its first axis.

    ``most_bytes``: to how much a compressed array may unpack; stored ones are mapped, and take no
    memory. Raises InputError, before anything is unpacked, where the file is no .npz, has no
    such array, or declares one that is larger, has another size than the archive says, or
    holds objects.
    """

    def __init__(self, path: Path, key: str, most_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.key = key
        self.most_bytes = most_bytes
        self._stored_at: int | None = None  # where its numbers begin, where they can be mapped
        try:
            self._read_header()
        except InputError:
            raise
        except _UNREADABLE as error:
            raise InputError(f"{path}: cannot read array {key!r}: {one_line(error)}") from None

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        return np.array(self.array[index])  # a copy: the file stays as it is

    def __reduce__(self) -> tuple[Any, ...]:
        # worker processes open the file themselves
        return type(self), (self.path, self.key, self.most_bytes)

    @cached_property
    def array(self) -> npt.NDArray[Any]:
        """All of it: n x ..., not to be written to."""
        try:
            if self._stored_at is not None:
                return np.memmap(
                    self.path, self.dtype, "r", self._stored_at, self.shape, order=self._order
                )
            with np.load(self.path, allow_pickle=False) as stored:
                return stored[self.key]
        except _UNREADABLE as error:
            message = f"{self.path}: cannot read array {self.key!r}: {one_line(error)}"
            raise InputError(message) from None

    def _read_header(self) -> None:
        with zipfile.ZipFile(self.path) as archive:
            name = f"{self.key}.npy"
            if name not in archive.namelist():
                raise missing(self.path, [self.key], archive)
            info = archive.getinfo(name)
            with archive.open(info) as member:
                version = np.lib.format.read_magic(member)
                read = (
                    np.lib.format.read_array_header_1_0
                    if version == (1, 0)
                    else np.lib.format.read_array_header_2_0
                )
                self.shape, fortran, self.dtype = read(member)
                header = member.tell()
        if self.dtype.hasobject:
            raise ValueError("it holds Python objects")
        self._check_size(info, header)
        self._order = cast(Any, "F" if fortran else "C")
        plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
        if plain and 0 not in self.shape:
            self._stored_at = _content_start(self.path, info) + header

    def _check_size(self, info: zipfile.ZipInfo, header: int) -> None:
        """Raises InputError where the array is not as large as its file, or too large."""
        if any(side < 0 for side in self.shape):
            raise InputError(
                f"{self.path}: array {self.key!r}: expected sides of 0 or more, got {self.shape}"
            )
        size = math.prod(self.shape) * self.dtype.itemsize
        packed = info.compress_type != zipfile.ZIP_STORED
        if packed and max(size, info.file_size - header) > self.most_bytes:
            raise InputError(
                f"{self.path}: array {self.key!r} unpacks to {max(size, info.file_size - header)} "
                f"bytes, over the limit of {self.most_bytes}; a larger most_bytes lets it in"
            )
        if size != info.file_size - header:
            raise InputError(
                f"{self.path}: array {self.key!r}: expected {size} bytes, as its shape "
                f"{self.shape} and type {self.dtype} say, got {info.file_size - header}"
            )


def missing(path: Path, expected: Sequence[str], archive: zipfile.ZipFile) -> InputError:
    """The error for an .npz without the ``expected`` arrays, naming those it has."""
    found = sorted(name.removesuffix(".npy") for name in archive.namelist())
    return InputError(
        f"{path}: expected the arrays {', '.join(expected)}, found {', '.join(found) or 'none'}"
    )


def require(path: Path, keys: Sequence[str]) -> None:
    """Raises InputError where ``path`` is no .npz file with all of ``keys``."""
    try:
        with zipfile.ZipFile(path) as archive:
            if not {f"{key}.npy" for key in keys} <= set(archive.namelist()):
                raise missing(path, keys, archive)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot read an .npz file: {why_unread(path, error)}") from None


def _content_start(path: Path, info: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin; the lengths in the local header may differ from the index's."""
    with path.open("rb") as file:
        file.seek(info.header_offset + 26)
        name, extra = struct.unpack("<HH", file.read(4))
    return info.header_offset + 30 + int(name) + int(extra)
