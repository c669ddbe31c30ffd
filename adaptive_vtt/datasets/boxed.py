"""A table dataset with boxes around the things that were annotated in its images."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..types import UNKNOWN, Box, Image, Sample
from .table import TableDataset

ROUNDING = 1.0
"""Pixels by which a box may reach beyond its image: annotations are rounded, and some count pixels
from 1."""


@dataclass
class Picture:
    """An annotated image file: its size in pixels, its boxes, and what it shows.

    ``truth``: 1 for the classes it shows, UNKNOWN for those nobody should ask about.
    ``others``: the truth of all other classes, 0 unless an annotation of some class was left out.
    """

    id: str
    file: Path
    height: int
    width: int
    boxes: list[Box] = field(default_factory=list)
    truth: dict[str, int] = field(default_factory=dict)
    others: int = 0

    def doubt(self, label: str = "") -> None:
        """Note an annotation that was left out: its class, or any ("") may be there."""
        if label:
            show(self, label, UNKNOWN)
        else:
            self.others = UNKNOWN


class BoxedDataset(TableDataset):
    """A ``TableDataset`` with the ``boxes`` of each of n samples; see ``Sample``.

    ``sizes``: n pairs (height, width) that the images must have, else None; an image that has
    another raises InputError when it is decoded, for its boxes would be elsewhere.
    """

    def __init__(
        self,
        *table: Any,
        boxes: Sequence[Sequence[Box]],
        sizes: Sequence[tuple[int, int]] | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*table, **named)
        self._boxes, self._sizes = tuple(map(tuple, boxes)), sizes

    @cached_property
    def most_boxes(self) -> int:
        """No sample has more."""
        return max(map(len, self._boxes), default=0)

    @cached_property
    def fingerprint(self) -> str:
        """A hash that covers the boxes too, so an audit with other boxes is another audit."""
        digest = hashlib.blake2b(super().fingerprint.encode(), digest_size=12)
        for boxes in self._boxes:
            digest.update(repr(boxes).encode())
        return digest.hexdigest()

    def sample(self, index: int) -> Sample:
        return replace(super().sample(index), boxes=self._boxes[index])

    def _image(self, index: int) -> Image | None:
        image = super()._image(index)
        if image is not None and self._sizes is not None:
            height, width = self._sizes[index]
            if image.shape[:2] != (height, width):
                raise InputError(
                    f"sample {self.sample_id(index)!r}: expected an image of {height} x {width} "
                    f"(height x width) as annotated, got {image.shape[0]} x {image.shape[1]}"
                )
        return image


def from_pictures(
    pictures: Sequence[Picture],
    classes: Sequence[str],
    where: str,
    *,
    name: str,
    skipped: Sequence[str] = (),
    masks: Mapping[str, Sequence[Any]] | None = None,
) -> BoxedDataset:
    """The dataset of n pictures; its concepts are those ``classes`` that any of them shows.

    A class that a picture does not name is ``others`` there. ``masks``: see ``from_table``; those
    of other concepts are left out. Raises InputError where nothing is annotated.
    """
    shown = {label for picture in pictures for label in picture.truth}
    concepts = [label for label in classes if label in shown]
    if not concepts:
        raise InputError(f"{where}: expected images with annotated objects, found none")
    column = {label: k for k, label in enumerate(concepts)}
    truths = np.zeros((len(pictures), len(concepts)), np.int8)
    for row, picture in enumerate(pictures):
        truths[row] = picture.others
        for label, truth in picture.truth.items():
            truths[row, column[label]] = truth
    return BoxedDataset(
        [picture.file for picture in pictures],
        truths,
        [p.id for p in pictures],
        concepts,
        boxes=[picture.boxes for picture in pictures],
        sizes=[(picture.height, picture.width) for picture in pictures],
        masks={label: given for label, given in (masks or {}).items() if label in column},
        skipped=skipped,
        name=name,
    )


def within(box: Box, height: int, width: int, where: str) -> Box:
    """``box`` clipped to an image of this size.

    Raises InputError where it juts out by more than ROUNDING, or has no area.
    """
    sides = (box.left, box.top, box.right, box.bottom)
    if not all(map(math.isfinite, sides)):
        raise InputError(f"{where}: expected a box of finite numbers, got {list(sides)}")
    if box.right <= box.left or box.bottom <= box.top:
        raise InputError(
            f"{where}: expected a box with an area, got one of {box.right - box.left:g} x "
            f"{box.bottom - box.top:g} pixels (width x height)"
        )
    beyond = max(-box.left, -box.top, box.right - width, box.bottom - height)
    clipped = Box(
        box.label,
        max(0.0, box.left),
        max(0.0, box.top),
        min(float(width), box.right),
        min(float(height), box.bottom),
        box.score,
    )
    if beyond > ROUNDING or clipped.area == 0:
        raise InputError(
            f"{where}: expected a box within the image, {width} x {height} (width x height), got "
            f"left {box.left:g}, top {box.top:g}, right {box.right:g}, bottom {box.bottom:g}"
        )
    return clipped


def show(picture: Picture, label: str, truth: int = 1) -> None:
    """Notes that the picture shows ``label``, or perhaps (UNKNOWN) shows it."""
    if truth != UNKNOWN or label not in picture.truth:
        picture.truth[label] = truth
