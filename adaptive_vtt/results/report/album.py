"""The pictures of the page: each stands in it once, as a data address, within a bound."""

from base64 import b64encode
from dataclasses import dataclass

from ...utils.image_headers import declared_size

MAX = 6_000_000
"""Characters of all pictures together, so that the page can be mailed."""
SMALL = 6_000
"""PNGs of so many bytes stay as they are; larger ones become WebP, at a tenth of the size."""
QUALITY = 82
"""Of WebP, 1 to 100: faults of the compression do not show beside those of an image."""
LARGEST = 1024
"""Pixels a side that are decoded, at most: a journal's own are far smaller."""


@dataclass(frozen=True)
class Picture:
    """A picture as a data address, and its size in pixels."""

    address: str
    width: int
    height: int


class Album:
    """Pictures by number, the same one once, as long as there is room."""

    def __init__(self, room: int = MAX) -> None:
        self.pictures: list[Picture] = []
        self._places: dict[bytes, int] = {}
        self._room = room

    def add(self, png: bytes) -> int | None:
        """The picture's number; None where it no longer fits."""
        if png not in self._places:
            made = picture(png)
            if len(made.address) > self._room:
                return None
            self._room -= len(made.address)
            self._places[png] = len(self.pictures)
            self.pictures.append(made)
        return self._places[png]


def picture(png: bytes) -> Picture:
    """A PNG as it is, or, where that is large, as WebP."""
    width, height = declared_size(png) or (1, 1)
    kind, data = "png", png
    if len(png) > SMALL and max(width, height) <= LARGEST:
        kind, data = _smaller(png)
    return Picture(f"data:image/{kind};base64," + b64encode(data).decode("ascii"), width, height)


def _smaller(png: bytes) -> tuple[str, bytes]:
    import cv2
    import numpy as np

    image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        return "png", png
    done, data = cv2.imencode(".webp", image, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])
    return ("webp", data.tobytes()) if done and len(data) < len(png) else ("png", png)
