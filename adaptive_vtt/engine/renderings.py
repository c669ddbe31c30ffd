"""Small follow-up pictures, rendered once each and kept within a bound of memory.

Predictions look at thousands of candidate follow-ups per draw and mostly at the same ones again.
Rendering is what costs, so thumbnails are kept, and the least recently used make room.
"""

from functools import cached_property
from itertools import groupby

import numpy as np
import numpy.typing as npt

from ..models.local.tensors import shrunk, small
from ..space import QuestionSpace
from ..types import Indices

SIDE = 16
"""Thumbnails are at most SIDE pixels high and wide; smaller images keep their size."""

LIMIT_BYTES = 256 * 2**20
"""Thumbnails kept, at most: 350,000 in colour, a million in grey, at the full 16 x 16."""

Thumbnails = npt.NDArray[np.uint8]


class Renderings:
    """Thumbnails of a space's follow-ups, as ``space.follow_up(image)`` renders them.

    ``side``: of thumbnails in pixels, at most. ``limit_bytes``: of what is kept; pictures pushed
    out are rendered again when asked about again, and come out the same. All thumbnails have the
    shape that the first source image gives: grey where that is grey.
    """

    def __init__(
        self,
        space: QuestionSpace,
        *,
        side: int = SIDE,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self._space, self._side = space, side
        self._limit = limit_bytes
        self._slot: dict[int, int] = {}  # row of each image that is kept
        self._image = np.empty(0, np.int64)  # image of each row
        self._used = np.empty(0, np.int64)  # request that asked for each row last
        self._rows: Thumbnails = np.empty((0, 0), np.uint8)
        self._request = 0

    @property
    def available(self) -> bool:
        """Whether the dataset has images; where not, thumbnails are (n, 0)."""
        return self._space.dataset.has_images

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels (1 or 3) of every thumbnail; zeros without images."""
        if not self.available:
            return 0, 0, 0
        return small(self._space.dataset.sample(0).require_image(), self._side)

    def thumbnails(self, images: Indices) -> Thumbnails:
        """(n, height * width * channels) uint8 of follow-ups by number (n,), repeats allowed."""
        width = int(np.prod(self.shape))
        distinct, back = np.unique(images, return_inverse=True)
        if not width:
            return np.empty((len(back), 0), np.uint8)
        most = max(1, self._limit // width)
        parts = [distinct[i : i + most] for i in range(0, len(distinct), most)]
        rows = [self._rows_of(part, most, width) for part in parts]
        return np.concatenate(rows or [np.empty((0, width), np.uint8)])[back]

    def pictures(self, images: Indices) -> Thumbnails:
        """The same as pictures: (n, height, width, channels) uint8."""
        return self.thumbnails(images).reshape(len(images), *self.shape)

    def _rows_of(self, images: Indices, most: int, width: int) -> Thumbnails:
        """Thumbnails of at most ``most`` distinct images."""
        self._request += 1
        numbers = images.tolist()
        self._used[[self._slot[n] for n in numbers if n in self._slot]] = self._request
        missing = [n for n in numbers if n not in self._slot]
        rows = dict(zip(missing, self._room(len(missing), most, width), strict=True))
        for sample, follow_ups in groupby(missing, lambda n: n // self._space.numbering.variants):
            source = self._space.dataset.sample(sample)  # read once for all of its follow-ups
            for number in follow_ups:
                made = self._space.made_of(source, number).require_image()
                row = self._slot[number] = rows[number]
                self._rows[row] = shrunk(made, self.shape).ravel()
                self._image[row], self._used[row] = number, self._request
        return self._rows[[self._slot[n] for n in numbers]]

    def _room(self, count: int, most: int, width: int) -> list[int]:
        """``count`` rows to write to: unused ones, then those whose image waited longest."""
        start, size = len(self._slot), len(self._image)
        if start + count > size:
            self._grow(min(most, max(start + count, 2 * size)), width)
        fresh = list(range(start, min(start + count, len(self._image))))
        if len(fresh) == count:
            return fresh
        gone = np.argsort(self._used[:start], kind="stable")[: count - len(fresh)].tolist()
        for row in gone:
            del self._slot[int(self._image[row])]
        return fresh + gone

    def _grow(self, size: int, width: int) -> None:
        more = size - len(self._image)
        self._rows = np.concatenate(
            [self._rows.reshape(-1, width), np.empty((more, width), np.uint8)]
        )
        self._image = np.concatenate([self._image, np.empty(more, np.int64)])
        self._used = np.concatenate([self._used, np.empty(more, np.int64)])
