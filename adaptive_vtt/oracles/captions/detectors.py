"""Datasets with the boxes that a detector finds, in place of annotated ones."""

import hashlib
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np

from ...datasets.base import Dataset
from ...datasets.view import View
from ...errors import InputError
from ...types import Box, Image, Sample
from .base import Detector


class Described(Detector, Protocol):
    """A detector that can say what its boxes depend on."""

    @property
    def describe(self) -> str:
        """Equal for detectors that find the same boxes: kind, file content, options."""


class Detected(View):
    """``dataset`` with the boxes that ``detector`` finds, each image looked at once.

    They replace boxes that were there. The fingerprint follows the detector's description.
    ``sample`` raises InputError for a sample without an image.
    """

    def __init__(self, dataset: Dataset, detector: Described) -> None:
        super().__init__(dataset, dataset.concepts, range(len(dataset.concepts)))
        self.detector = detector
        self._found: dict[int, tuple[Box, ...]] = {}

    @cached_property
    def fingerprint(self) -> str:
        said = repr((self.dataset.fingerprint, self.detector.describe))
        return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()

    def sample(self, index: int) -> Sample:
        found = super().sample(index)
        return replace(found, boxes=self._boxes(index, found.id, found.image))

    def _boxes(self, index: int, sample: str, image: Image | None) -> tuple[Box, ...]:
        if index not in self._found:
            if image is None:
                raise InputError(
                    f"sample {sample!r}: expected an image to find things in, has none"
                )
            found = tuple(self.detector.detect(image))
            for box in found:
                if not np.isfinite(box.edges).all():
                    raise InputError(
                        f"sample {sample!r}: expected finite edges of boxes, got {box}"
                    )
            self._found[index] = found
        return self._found[index]
