"""Images in memory to the bytes of PNG and JPEG files."""

from base64 import b64encode
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..types import Image


def png(image: Image) -> bytes:
    """H x W, or H x W x C with C in 1, 3 (RGB), of uint8 as a PNG, which loses nothing.

    Raises InputError for another shape.
    """
    return _encoded(".png", image)


def jpeg(image: Image, quality: int = 88) -> bytes:
    """The same as a JPEG of ``quality`` (1..100), which is smaller."""
    import cv2

    return _encoded(".jpg", image, cv2.IMWRITE_JPEG_QUALITY, quality)


def _encoded(ending: str, image: npt.NDArray[Any], *options: int) -> bytes:
    import cv2

    channels = image.shape[2] if image.ndim == 3 else 1
    done, data = False, np.empty(0, np.uint8)
    if image.ndim in (2, 3) and channels in (1, 3) and image.size:
        turned = cv2.cvtColor(image, cv2.COLOR_RGB2BGR) if channels == 3 else image
        done, data = cv2.imencode(ending, turned, options)
    if not done:
        raise InputError(
            f"image: expected H x W or H x W x 1 or 3 of uint8, got {image.shape} of {image.dtype}"
        )
    return data.tobytes()


def data_address(image: Image) -> str:
    """The image as a PNG in an address that a page may hold ("data:...")."""
    return "data:image/png;base64," + b64encode(png(image)).decode("ascii")
