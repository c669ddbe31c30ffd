"""Images as they come over the wire."""

import base64
import binascii

import cv2
import numpy as np

from ...types import Image
from ...utils.image_codec import declared_size
from .http import Rejected

MAX_PIXELS = 4096 * 4096


def decoded(text: str, most_pixels: int = MAX_PIXELS) -> Image:
    """Base64 of an image file, as a data URI or bare, as H x W x 3 RGB uint8.

    Raises Rejected: 400 for what is no image, 413 for one above ``most_pixels``, and 400
    for another address, as nothing is fetched.
    """
    if text.startswith(("http:", "https:", "file:")):
        raise Rejected(400, "expected an image as a data URI; none is fetched from elsewhere")
    encoded = text.partition(",")[2] if text.startswith("data:") else text
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Rejected(400, "expected an image in base64") from None
    size = declared_size(data)
    if size is None:
        raise Rejected(400, "expected an image file: PNG, JPEG, GIF, BMP, TIFF or WebP")
    if size[0] * size[1] > most_pixels:
        raise Rejected(
            413, f"expected at most {most_pixels} pixels, got an image of {size[0]} x {size[1]}"
        )
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise Rejected(400, "the image cannot be decoded")
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)
