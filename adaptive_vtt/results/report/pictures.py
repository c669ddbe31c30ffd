"""Pictures that stand in a page: as data addresses, each once, as long as there is room."""

from base64 import b64encode
from typing import NamedTuple

from ...types import JsonObject
from ...utils.image_codec import declared_size

MAX_CHARACTERS = 6_000_000
"""Of all pictures of the gallery together, so that the page can be mailed."""
SMALL_PNG = 6_000
"""PNGs of so many bytes stay as they are; larger ones become WebP, at a tenth of the size."""
QUALITY = 82
"""Of WebP, 1 to 100: faults of the compression do not show beside those of an image."""
LARGEST_SIDE = 1024
"""Pixels a side that are decoded, at most: a journal's own are far smaller."""
NO_ROOM = "left out: this page would be too large to send"


class Picture(NamedTuple):
    """A picture as a data address, and its size in pixels."""

    address: str
    width: int
    height: int


class Album:
    """Pictures by number, the same one once, as long as their addresses have ``room``.

    ``full``: how many were left out for lack of it.
    """

    def __init__(self, room: int = MAX_CHARACTERS) -> None:
        self.pictures: list[Picture] = []
        self._places: dict[bytes, int] = {}
        self._room = room
        self.full = 0

    def add(self, png: bytes | None) -> int | None:
        """Return the picture's number; None where there is none, or where it no longer fits."""
        if png is None:
            return None
        if png not in self._places:
            made = picture(png)
            if len(made.address) > self._room:
                self.full += 1
                return None
            self._room -= len(made.address)
            self._places[png] = len(self.pictures)
            self.pictures.append(made)
        return self._places[png]

    def view(self, png: bytes | None, caption: str) -> JsonObject:
        """Return a picture's number, None where there is none to show, with its caption; ``bare``:
        why it is left out."""
        number = self.add(png)
        why = {} if number is not None or png is None else {"bare": NO_ROOM}
        return {"picture": number, "caption": caption, **why}


def picture(png: bytes) -> Picture:
    """Return a PNG as it is, or, where that is large, as WebP."""
    width, height = declared_size(png) or (1, 1)
    kind, data = "png", png
    if len(png) > SMALL_PNG and max(width, height) <= LARGEST_SIDE:
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
