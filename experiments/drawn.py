"""Base of datasets of planned scenes, whose images are drawn when they are needed."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, TypeVar

import pandas as pd

from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.types import Image, Truths

Scene = TypeVar("Scene")
Drawing = TypeVar("Drawing")

_KEPT = 32
"""Number of drawings in the cache."""


class DrawnDataset(TableDataset, Generic[Scene, Drawing]):
    """Dataset with a scene per sample, which a subclass draws in ``draw``.

    The fingerprint is a hash of ``made_from``: everything that scenes and drawings depend on.
    """

    def __init__(
        self,
        scenes: Sequence[Scene],
        made_from: tuple[object, ...],
        truths: Truths,
        ids: Sequence[str],
        concepts: Sequence[str],
        metadata: pd.DataFrame,
        name: str,
    ) -> None:
        self._scenes, self._made_from = scenes, made_from
        self._drawn: OrderedDict[int, Drawing] = OrderedDict()
        super().__init__(None, truths, ids, tuple(concepts), metadata=metadata, name=name)

    @property
    def has_images(self) -> bool:
        return True

    @property
    def fingerprint(self) -> str:
        return hashlib.blake2b(repr(self._made_from).encode(), digest_size=12).hexdigest()

    def scene(self, index: int) -> Scene:
        """Return the plan of a sample's picture."""
        return self._scenes[index]

    def draw(self, index: int) -> Drawing:
        """Return the drawing of a sample, the same in every call."""
        raise TypeError(f"{type(self).__name__} defines no draw")

    def drawing(self, index: int) -> Drawing:
        """Return ``draw``'s drawing, from the cache if it is there; callers must not change it."""
        if index in self._drawn:
            self._drawn.move_to_end(index)
        else:
            self._drawn[index] = self.draw(index)
            if len(self._drawn) > _KEPT:
                self._drawn.popitem(last=False)
        return self._drawn[index]

    def _image(self, index: int, where: str) -> Image | None:
        return None  # ``sample`` draws it together with its masks
