"""Pictures as bytes, for files and pages."""

from typing import Any

import numpy.typing as npt

from ..types import Image


def png(image: Image) -> bytes:
    """H x W, or H x W x C with C in 1, 3 (RGB), of uint8 as a PNG, which loses nothing."""
    return _encoded(".png", image)


def jpeg(image: Image, quality: int = 88) -> bytes:
    """The same as a JPEG of ``quality`` (1..100), which is smaller."""
    import cv2

    return _encoded(".jpg", image, cv2.IMWRITE_JPEG_QUALITY, quality)


def _encoded(ending: str, image: npt.NDArray[Any], *options: int) -> bytes:
    import cv2

    if image.ndim == 3 and image.shape[2] == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(ending, image, options)
    assert done
    return data.tobytes()
