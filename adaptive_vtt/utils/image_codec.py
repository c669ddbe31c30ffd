"""Encode images as PNG and JPEG; open files, and read their sizes, without decoding pixels."""

import warnings
from base64 import b64encode
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy.typing as npt

from ..errors import unexpected
from ..types import Image

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

BEGINNINGS = {
    b"\x89PNG": "Png",
    b"\xff\xd8\xff": "Jpeg",
    b"GIF8": "Gif",
    b"BM": "Bmp",
    b"RIFF": "WebP",
    **dict.fromkeys((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), "Tiff"),
}
"""First bytes of a file -> Pillow's name of its format."""


def png(image: Image) -> bytes:
    """Return an image of uint8, H x W, H x W x 1 or H x W x 3 (RGB), as a lossless PNG.

    Raise InputError for another shape.
    """
    return _encoded(".png", image)


def jpeg(image: Image, quality: int = 88) -> bytes:
    """Return an image of the same shapes as a JPEG, with a quality from 1 to 100."""
    import cv2

    return _encoded(".jpg", image, cv2.IMWRITE_JPEG_QUALITY, quality)


def _encoded(ending: str, image: npt.NDArray[Any], *options: int) -> bytes:
    import cv2

    channels = image.shape[2] if image.ndim == 3 else 1
    if image.ndim in (2, 3) and channels in (1, 3) and image.size:
        bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if channels == 3 else image
        done, data = cv2.imencode(ending, bgr, options)
        if done:
            return data.tobytes()
    got = f"{image.shape} of {image.dtype}"
    raise unexpected("image", "H x W or H x W x 1 or 3 of uint8", got)


def data_address(data: bytes) -> str:
    """Return a PNG or JPEG as a data URL."""
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{b64encode(data).decode('ascii')}"


@cache
def _reader(kind: str) -> "type[ImageFile]":
    """Return Pillow's class of files of a format, without its warnings about broken files."""
    warnings.filterwarnings("ignore", module=r"PIL\.TiffImagePlugin")
    return getattr(import_module(f"PIL.{kind}ImagePlugin"), f"{kind}ImageFile")


def opened_image(file: BinaryIO) -> "ImageFile | None":
    """Return Pillow's image of a file without decoding it; None if Pillow cannot read it.

    ``PIL.Image.open`` has another limit of size, so it is not used.
    """
    start = file.read(4)
    file.seek(0)
    kind = next((kind for head, kind in BEGINNINGS.items() if start.startswith(head)), None)
    try:
        return None if kind is None else _reader(kind)(file)
    except (SyntaxError, OSError, ValueError, OverflowError):  # Pillow's errors of broken headers
        return None


def size_in(file: BinaryIO) -> tuple[int, int] | None:
    """Return width and height in pixels from the header of an image file.

    The result is None if the file is no image, or ends within its header.
    """
    head = file.read(30)
    file.seek(0)
    if head[:4] == b"RIFF":  # WebP: Pillow would read the whole file
        return _webp_size(head) if head[8:12] == b"WEBP" and len(head) == 30 else None
    image = opened_image(file)
    return None if image is None else image.size


def declared_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels from the bytes of an image file, None if it is none."""
    return size_in(BytesIO(data))


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height from the first 30 bytes of a WebP file (RFC 9649)."""
    width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (26, 28))
    if data[12:16] == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
    elif data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif data[12:16] != b"VP8 ":
        return None
    return width, height
