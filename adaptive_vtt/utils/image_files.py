"""Reading images safely: size checked before decoding, always H x W x C uint8.

Whatever a file holds, the picture is the one a viewer shows, in 8 bits:

- the EXIF orientation is applied;
- 16 bits become 8 by their full range (65535 -> 255), never by an image's own extremes, so
  that two images stay comparable;
- transparent pixels are laid on black, the surround of endoscopy and fundus pictures;
- palettes become RGB; grey stays one channel.
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..types import Image
from .files import contents, opened
from .image_codec import declared_size, is_tiff, orientation, tiff_has_alpha

MAX_PIXELS = 100_000_000
"""Images above this many pixels are refused before they are decoded."""

HEADER = 2**16
"""Bytes of a file in which its size is looked for, where nothing else of it is needed."""


def as_image(source: Any, where: str) -> Image:
    """Return an array or a PIL image as H x W x C uint8 with C in 1, 3. Raise InputError for
    anything else."""
    image = np.asarray(_as_shown(source))
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


def _as_shown(source: Any) -> Any:
    """Return a PIL image upright, grey or RGB, transparent pixels on black; anything else as it
    is."""
    pillow = sys.modules.get("PIL.Image")  # there are no PIL images before it is imported
    if pillow is None or not isinstance(source, pillow.Image):
        return source
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(source)
    if upright.mode in ("1", "L"):
        return upright.convert("L")
    if upright.mode.startswith("I;16"):
        return (np.asarray(upright) // 257).astype(np.uint8)
    if not upright.has_transparency_data:
        return upright.convert("RGB")
    clear = upright.convert("RGBA")
    black = pillow.new("RGBA", clear.size, (0, 0, 0, 255))
    return pillow.alpha_composite(black, clear).convert("RGB")


def read_image(path: Path, where: str) -> Image:
    """Return the file at ``path`` as H x W x 3 RGB (or H x W x 1 grey) uint8.

    Reads PNG, JPEG, GIF, BMP, TIFF and WebP. Raise InputError where the file is missing, is no
    image, has other than 8 or 16 bits, or is larger than MAX_PIXELS.
    """
    return image_of(_read(path, where), path, where)


def image_of(data: bytes, path: Path | str, where: str) -> Image:
    """Return the bytes of an image file as ``read_image`` reads them; ``path``: what errors call
    it."""
    cv2 = _silent_cv2()
    _check_size(data, path, where)
    try:
        decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        decoded = None
    if decoded is None:
        raise _not_an_image(path, where)
    image = _eight_bits(np.asarray(decoded), path, where)
    if is_tiff(data):  # upright already, and 8 bits of alpha are already on black
        transparent = tiff_has_alpha(data) and decoded.dtype == np.uint16
        return as_image(_rgb(image, transparent), where)
    return as_image(np.ascontiguousarray(_upright(_rgb(image, True), orientation(data))), where)


_HEADS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"RIFF")


def begins_as_image(path: Path) -> bool:
    """Return whether a file's first bytes are those of an image of a usual kind."""
    try:
        with opened(path) as file:
            return file.read(4).startswith(_HEADS)
    except OSError:
        return False


@cache
def _silent_cv2() -> Any:
    """Return OpenCV without its own lines about broken files, which errors name here;
    OPENCV_LOG_LEVEL brings them back."""
    import cv2

    if "OPENCV_LOG_LEVEL" not in os.environ:
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    return cv2


def read_size(path: Path, where: str) -> tuple[int, int]:
    """Return height and width of the picture at ``path`` when upright, read from its header."""
    data = _read(path, where)
    width, height = _check_size(data, path, where)
    return (width, height) if orientation(data) >= 5 else (height, width)


def pixels_declared(path: Path) -> float:
    """Return the pixels of the image at ``path`` as its first ``HEADER`` bytes declare them; NaN
    where they do not, or cannot be read."""
    try:
        with opened(path) as file:
            size = declared_size(file.read(HEADER))
    except OSError:
        return np.nan
    return np.nan if size is None else float(size[0] * size[1])


def _read(path: Path, where: str) -> bytes:
    try:
        return contents(path)
    except OSError as error:
        raise InputError(
            f"{where}: cannot read image {str(path)!r}: {error.strerror or error}"
        ) from None


def _check_size(data: bytes, path: Path | str, where: str) -> tuple[int, int]:
    size = declared_size(data)
    if size is None or 0 in size:
        raise _not_an_image(path, where)
    if size[0] * size[1] > MAX_PIXELS:
        raise InputError(
            f"{where}: image {str(path)!r} is {size[0]} x {size[1]} pixels, "
            f"over the limit of {MAX_PIXELS} pixels"
        )
    return size


def _not_an_image(path: Path | str, where: str) -> InputError:
    return InputError(
        f"{where}: {str(path)!r} is not an image that can be read "
        f"(PNG, JPEG, GIF, BMP, TIFF or WebP)"
    )


def _eight_bits(image: npt.NDArray[Any], path: Path | str, where: str) -> Image:
    if image.dtype == np.uint8:
        return image
    if image.dtype == np.uint16:
        return ((image.astype(np.uint32) + 128) // 257).astype(np.uint8)
    raise InputError(
        f"{where}: image {str(path)!r} has pixels of {image.dtype}, expected 8 or 16 bits"
    )


def _rgb(image: Image, transparent: bool) -> Image:
    """Return grey unchanged; BGR as RGB; BGRA as RGB, laid on black where alpha is
    ``transparent``."""
    if image.ndim == 2:
        return image
    colour = image[:, :, 2::-1]
    if image.shape[2] == 4 and transparent:
        alpha = image[:, :, 3:].astype(np.uint16)
        colour = ((colour * alpha + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(colour)


def _upright(image: Image, turn: int) -> Image:
    """Return the picture turned as EXIF orientation ``turn`` (1..8) asks for."""
    if turn >= 5:  # rows and columns stand for each other
        image = image.swapaxes(0, 1)
    if turn in (2, 3, 6, 7):
        image = image[:, ::-1]
    if turn in (3, 4, 7, 8):
        image = image[::-1]
    return image
