"""Recognising a picture that has been tampered with: which of these is it, and how changed?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image, Indices

Floats = npt.NDArray[np.floating[Any]]

SIMILAR = 0.6
"""Correlation of grey thumbnails below which a picture is not taken for any of the gallery's."""

_KEY, _THUMB = 16, 32
_COLOUR_WEIGHT, _DETAIL_WEIGHT = 3.0, 0.5  # MedTest's strongest changes then reach about 0.8


@dataclass(frozen=True)
class Seen:
    """What a picture was taken for.

    ``index``: its place in the gallery, None where nothing is similar. ``similarity``: the
    correlation with it, -1..1. ``strain``: how far it was changed, 0 (not at all) to 1.
    """

    index: int | None
    similarity: float
    strain: float


class Gallery:
    """Fingerprints of H x W x 3 uint8 pictures, about 4 kB each.

    Pictures are matched by the correlation of grey 16 x 16 thumbnails, which neither the
    light nor something in front of a part changes much. Strain adds up the RMS difference
    of colour thumbnails and the change of fine detail, which a thumbnail cannot show.
    """

    def __init__(self, pictures: Iterable[Image]) -> None:
        prints = [(_key(p), _thumb(p), _detail(p)) for p in pictures]
        self._keys = np.stack([key for key, _, _ in prints])
        self._thumbs = np.stack([thumb for _, thumb, _ in prints])
        self._details = np.array([detail for _, _, detail in prints])

    def find(self, picture: Image, among: Indices | None = None) -> Seen:
        """The most similar picture, of all or of those at the places ``among`` (m,)."""
        places = np.arange(len(self._keys)) if among is None else among
        similarities = self._keys[places] @ _key(picture)
        best = int(np.argmax(similarities))
        similarity = float(similarities[best])
        if similarity < SIMILAR:
            return Seen(None, similarity, 1.0)
        return Seen(int(places[best]), similarity, self._strain(picture, int(places[best])))

    def _strain(self, picture: Image, place: int) -> float:
        difference = (_thumb(picture).astype(np.float32) - self._thumbs[place]) / 255
        colour = float(np.sqrt(np.mean(np.square(difference))))
        detail = abs(float(np.log(_detail(picture) / self._details[place])))
        return min(1.0, _COLOUR_WEIGHT * colour + _DETAIL_WEIGHT * detail)


def _thumb(picture: Image) -> Image:
    return np.asarray(cv2.resize(picture, (_THUMB, _THUMB), interpolation=cv2.INTER_AREA), np.uint8)


def _key(picture: Image) -> Floats:
    """The grey thumbnail, flat, with mean 0 and length 1 (all 0 for a uniform picture)."""
    small = cv2.resize(picture, (_KEY, _KEY), interpolation=cv2.INTER_AREA)
    grey = small.astype(np.float32).mean(axis=2).ravel()
    grey -= grey.mean()
    return grey / max(float(np.linalg.norm(grey)), 1e-6)


def _detail(picture: Image) -> float:
    """How much fine detail there is; never 0."""
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    return float(cv2.Laplacian(grey, cv2.CV_32F).std()) + 1.0
