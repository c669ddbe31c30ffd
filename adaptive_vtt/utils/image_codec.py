"""Encode images as PNG and JPEG; read sizes and orientation from headers, without decoding."""

import struct
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from ..errors import InputError
from ..types import Image


def png(image: Image) -> bytes:
    """Return an image of uint8, H x W, H x W x 1 or H x W x 3 (RGB), as a lossless PNG.

    Raise InputError for another shape.
    """
    return _encoded(".png", image)


def jpeg(image: Image, quality: int = 88) -> bytes:
    """Return the same as a JPEG of a quality from 1 to 100, which is smaller."""
    import cv2

    return _encoded(".jpg", image, cv2.IMWRITE_JPEG_QUALITY, quality)


def _encoded(ending: str, image: npt.NDArray[Any], *options: int) -> bytes:
    import cv2

    channels = image.shape[2] if image.ndim == 3 else 1
    if image.ndim in (2, 3) and channels in (1, 3) and image.size:
        turned = cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if channels == 3 else image
        done, data = cv2.imencode(ending, turned, options)
        if done:
            return data.tobytes()
    raise InputError(
        f"image: expected H x W or H x W x 1 or 3 of uint8, got {image.shape} of {image.dtype}"
    )


def data_address(image: Image) -> str:
    """Return the image as a PNG in an address that a page may hold ("data:...")."""
    return "data:image/png;base64," + b64encode(png(image)).decode("ascii")


_WIDTH, _HEIGHT, _ORIENTATION, _EXTRA = 256, 257, 274, 338  # tags of TIFF 6.0, section 8
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # JPEG markers that start a frame
_NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}  # TIFF field types that hold a whole number
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"

_CUT_SHORT = (struct.error, IndexError, OverflowError)
"""Errors of reading past the end of a file, or at an absurd place in it."""


def declared_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in stored pixels, as a PNG, JPEG, GIF, BMP, TIFF or WebP declares
    them; None for any other format, and for a header that is cut short."""
    try:
        return _size(data)
    except _CUT_SHORT:
        return None


def orientation(data: bytes) -> int:
    """Return the EXIF orientation, 1 to 8; 1 (upright) where none is given.

    The numbers are those of EXIF 2.3, tag 274: 1 upright, 3 upside down, 6 and 8 turned.
    """
    value = _tag(data if is_tiff(data) else _exif(data), _ORIENTATION)
    return value if value is not None and 1 <= value <= 8 else 1


def is_tiff(data: bytes) -> bool:
    """Return whether the file is a TIFF, whose decoder turns it upright and applies 8-bit alpha."""
    return data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def tiff_has_alpha(data: bytes) -> bool:
    """Return whether the last channel of a TIFF is alpha that its colours are not multiplied by."""
    return _tag(data, _EXTRA) == 2


def _tag(tiff: bytes, tag: int) -> int | None:
    try:
        return _tags(tiff).get(tag)
    except _CUT_SHORT:
        return None


def _size(data: bytes) -> tuple[int, int] | None:
    if data.startswith(_PNG):
        return _unpack(">II", data, 16)
    if data.startswith(b"GIF8"):
        return _unpack("<HH", data, 6)
    if data.startswith(b"BM"):
        old = data[14] == 12  # the header of OS/2
        width, height = _unpack("<HH" if old else "<ii", data, 18)
        return abs(width), abs(height)
    if data.startswith(_JPEG):
        frames = (at for marker, at, _ in _jpeg_segments(data) if marker in _FRAMES)
        start = next(frames, None)
        return None if start is None else _unpack(">HH", data, start + 1)[::-1]  # height first
    if _is_webp(data):
        return _webp_size(data)
    tags = _tags(data)
    return (tags[_WIDTH], tags[_HEIGHT]) if {_WIDTH, _HEIGHT} <= tags.keys() else None


def _unpack(layout: str, data: bytes, at: int) -> tuple[int, int]:
    first, second = struct.unpack_from(layout, data, at)
    return int(first), int(second)


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the marker, start and length of each segment before the pixels."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if marker == 0xDA:
            return
        length = struct.unpack_from(">H", data, at + 2)[0]
        yield marker, at + 4, length - 2
        at += 2 + length


def _is_webp(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        width, height = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return width + 1, height + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = _unpack("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _exif(data: bytes) -> bytes:
    """Return the EXIF block of a JPEG, PNG or WebP, which is laid out like a TIFF; may be empty."""
    if data.startswith(_JPEG):
        for marker, at, length in _jpeg_segments(data):
            if marker == 0xE1 and data[at : at + 6] == b"Exif\0\0":
                return data[at + 6 : at + length]
    elif data.startswith(b"\x89PNG"):
        return _chunk(data, b"eXIf", 8, ">I4s", length_first=True)
    elif _is_webp(data):
        return _chunk(data, b"EXIF", 12, "<4sI", length_first=False).removeprefix(b"Exif\0\0")
    return b""


def _chunk(data: bytes, wanted: bytes, at: int, layout: str, *, length_first: bool) -> bytes:
    while at + 8 <= len(data):
        fields = struct.unpack_from(layout, data, at)
        length, kind = fields if length_first else fields[::-1]
        if kind == wanted:
            return data[at + 8 : at + 8 + length]
        # a PNG chunk ends with a checksum; a WebP chunk is padded to an even length
        at += 8 + length + (4 if length_first else length % 2)
    return b""


def _tags(data: bytes) -> dict[int, int]:
    """Return the whole numbers of the first directory of a TIFF, or of a BigTIFF."""
    if not is_tiff(data):
        return {}
    order, big = "<" if data[:2] == b"II" else ">", b"+" in data[2:4]
    start = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)[0]
    count, width, entry = ("Q", 8, 20) if big else ("H", 2, 12)
    entries, tags = struct.unpack_from(order + count, data, start)[0], {}
    for at in range(start + width, start + width + min(entries, 4096) * entry, entry):
        tag, kind = struct.unpack_from(order + "HH", data, at)
        if kind in _NUMBERS:
            number = struct.unpack_from(order + _NUMBERS[kind], data, at + (12 if big else 8))
            tags[tag] = int(number[0])
    return tags
