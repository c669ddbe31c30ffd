"""Reading images safely: size checked before decoding, always H x W x C uint8."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .base import Image

MAX_PIXELS = 100_000_000
"""Images above this many pixels are refused before they are decoded."""


def as_image(source: Any, where: str) -> Image:
    """``source`` as H x W x C uint8 with C in 1, 3; raises InputError for anything else."""
    image = np.asarray(source)
    if image.ndim == 2:
        image = image[:, :, None]
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        raise InputError(
            f"{where}: expected an image H x W x C of uint8 with 1 or 3 channels, "
            f"got shape {image.shape} of {image.dtype}"
        )
    if 0 in image.shape:
        raise InputError(f"{where}: expected an image with pixels, got shape {image.shape}")
    return image


def read_image(path: Path, where: str) -> Image:
    """The file at ``path`` as H x W x 3 RGB (or H x W x 1 grey) uint8.

    Raises InputError where the file is missing, is no image, or is larger than MAX_PIXELS.
    """
    import cv2

    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{where}: cannot read image {str(path)!r}: {error.strerror or error}"
        ) from None
    size = declared_size(data)
    if size is not None and size[0] * size[1] > MAX_PIXELS:
        raise InputError(
            f"{where}: image {str(path)!r} is {size[0]} x {size[1]} pixels, "
            f"over the limit of {MAX_PIXELS} pixels"
        )
    decoded = None
    if data:
        decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_ANYCOLOR)
    if decoded is None:
        raise InputError(f"{where}: {str(path)!r} is not an image that can be read")
    if decoded.ndim == 2:
        return as_image(decoded, where)
    return as_image(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), where)


def declared_size(data: bytes) -> tuple[int, int] | None:
    """Width and height as a PNG, GIF, BMP or JPEG header declares them, before decoding."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return int(width), int(height)
    if data[:4] == b"GIF8" and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return int(width), int(height)
    if data[:2] == b"BM" and len(data) >= 26:
        width, height = struct.unpack("<ii", data[18:26])
        return abs(int(width)), abs(int(height))
    return _jpeg_size(data) if data[:2] == b"\xff\xd8" else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return int(width), int(height)
        at += 2 + length
    return None
