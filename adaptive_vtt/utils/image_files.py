"""Read images safely: the size is checked before decoding, and arrays are H x W x C uint8.

The array has the pixels that an image viewer shows, in 8 bits:

- the EXIF orientation is applied;
- 16 bits become 8 by their full range (65535 -> 255), never by an image's own extremes, so
  that two images stay comparable;
- transparent pixels are laid on black, the surround of endoscopy and fundus pictures;
- palettes become RGB; grey stays one channel.
"""

import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, unexpected
from ..types import Image
from .files import contents, opened, why_unread
from .image_codec import BEGINNINGS, declared_size, opened_image, size_in

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

MAX_PIXELS = 100_000_000
"""Images above this many pixels are refused before they are decoded."""
_DEEP = {"F": "float32", "I": "int32"}
"""Pillow mode of pixels with more than 16 bits -> their type."""


def as_image(source: Any, where: str) -> Image:
    """Return an array or a PIL image as H x W x C uint8 with 1 or 3 channels.

    Raises:
        InputError: The source has another shape or type, or no pixels; the message begins with
            ``where``.
    """
    pillow = sys.modules.get("PIL.Image")  # there are no PIL images before it is imported
    is_pillow = pillow is not None and isinstance(source, pillow.Image)
    image = np.asarray(_as_shown(source) if is_pillow else source)
    if image.ndim == 2:
        image = image[:, :, None]
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        got = f"shape {image.shape} of {image.dtype}"
        raise unexpected(where, "an image H x W x C of uint8 with 1 or 3 channels", got)
    if 0 in image.shape:
        raise InputError(f"{where}: expected an image with pixels, got shape {image.shape}")
    return image


def _as_shown(image: "PillowImage") -> Any:
    """Return a PIL image as a viewer shows it: upright, grey or RGB, transparency on black."""
    from PIL import Image as Pillow
    from PIL import ImageOps

    with suppress(Exception):  # EXIF may be broken in many ways while the pixels are whole
        image = ImageOps.exif_transpose(image)
    if image.mode in ("1", "L"):
        return image.convert("L")
    if image.mode.startswith("I;16"):
        return ((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8)
    if not image.has_transparency_data:
        return image.convert("RGB")
    black = Pillow.new("RGBA", image.size, (0, 0, 0, 255))
    return Pillow.alpha_composite(black, image.convert("RGBA")).convert("RGB")


def read_image(path: Path, where: str) -> Image:
    """Read a PNG, JPEG, GIF, BMP, TIFF or WebP file as H x W x 3 RGB or H x W x 1 grey uint8.

    Args:
        path: The file.
        where: Beginning of error messages.

    Raises:
        InputError: The file is missing, is not an image, has other than 8 or 16 bits per channel,
            or has more than MAX_PIXELS pixels.
    """
    return as_picture(decoded(path, where), path, where)


def image_of(data: bytes, name: str, where: str) -> Image:
    """Decode the bytes of an image file like ``read_image``; messages call the file ``name``."""
    return as_picture(_decoded(data, name, where), name, where)


def as_picture(image: "PillowImage", name: Path | str, where: str) -> Image:
    """Return a file's PIL image as H x W x C uint8; raise InputError for more than 16 bits."""
    if image.mode in _DEEP:
        pixels = f"pixels of {_DEEP[image.mode]}, expected 8 or 16 bits"
        raise InputError(f"{where}: image {str(name)!r} has {pixels}")
    return as_image(image, where)


def decoded(path: Path, where: str) -> "PillowImage":
    """Return the decoded PIL image of a file; raise InputError like ``read_image``."""
    return _decoded(_read(path, where), path, where)


def _decoded(data: bytes, name: Path | str, where: str) -> "PillowImage":
    image = _opened(data, name, where)
    try:
        image.load()
    except Exception:  # files may be broken in many ways
        raise _not_an_image(name, where) from None
    return image


def begins_as_image(path: Path) -> bool:
    """Return whether a file begins with the signature of an image format that can be read."""
    try:
        with opened(path) as file:
            return file.read(4).startswith((*BEGINNINGS,))
    except OSError:
        return False


def read_size(path: Path, where: str) -> tuple[int, int]:
    """Return height and width of an image when upright, from its header."""
    image, orientation = _opened(_read(path, where), path, where), 1
    if image.format != "TIFF":  # Pillow gives the upright size of a TIFF
        with suppress(Exception):
            orientation = image.getexif().get(274, 1)  # the tag of EXIF; 5-8 swap the axes
    return image.size if orientation in (5, 6, 7, 8) else (image.height, image.width)


def pixels_declared(path: Path) -> float:
    """Return the number of pixels that an image's header declares; NaN if it cannot be read."""
    try:
        with opened(path) as file:
            size = size_in(file)
    except OSError:
        return np.nan
    return np.nan if size is None else float(size[0] * size[1])


def _read(path: Path, where: str) -> bytes:
    try:
        return contents(path)
    except OSError as error:
        why = why_unread(path, error)
        raise InputError(f"{where}: cannot read image {str(path)!r}: {why}") from None


def _opened(data: bytes, name: Path | str, where: str) -> "PillowImage":
    checked_size(data, name, where)
    image = opened_image(BytesIO(data))
    if image is None:
        raise _not_an_image(name, where)
    return image


def checked_size(data: bytes, name: Path | str, where: str) -> tuple[int, int]:
    """Return width and height of an image file's bytes.

    Raises:
        InputError: The bytes are not an image, or the image has more than MAX_PIXELS pixels.
    """
    width, height = declared_size(data) or (0, 0)
    if width * height > MAX_PIXELS:
        raise InputError(
            f"{where}: image {str(name)!r} is {width} x {height} pixels, "
            f"over the limit of {MAX_PIXELS} pixels"
        )
    if not width * height:
        raise _not_an_image(name, where)
    return width, height


def _not_an_image(name: Path | str, where: str) -> InputError:
    return InputError(
        f"{where}: {str(name)!r} is not an image that can be read "
        f"(PNG, JPEG, GIF, BMP, TIFF or WebP)"
    )
