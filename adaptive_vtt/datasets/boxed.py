"""A table dataset with boxes around the things that were annotated in its images."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..types import UNKNOWN, Box, Image, Sample
from .scanning import Reading
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

    def show(self, label: str, truth: int = 1) -> None:
        """Note that the picture shows a class, or perhaps (UNKNOWN) shows it."""
        if truth != UNKNOWN or label not in self.truth:
            self.truth[label] = truth

    def annotate(
        self,
        reading: Reading,
        where: str,
        label: Callable[[], str],
        edges: Callable[[], Sequence[float]],
        *,
        truth: int = 1,
        boxed: bool = True,
    ) -> Box | None:
        """Add what an annotation says, and return its box; None where it was left out.

        Args:
            reading: leaves out what ``label`` or ``edges`` raise an InputError for, or raises it.
            where: the place of the annotation, for messages.
            label: returns its class.
            edges: returns left, top, right and bottom of its box in pixels.
            truth: of the class in this picture.
            boxed: whether the picture keeps the box.
        """
        name = reading.attempt(label)
        box = name and reading.attempt(
            lambda: within(Box(name, *edges()), self.height, self.width, where)
        )
        if name and box:
            self.show(name, truth)
            self.boxes += [box] * boxed
            return box
        # something is there, though nobody knows where, or of which class
        if name:
            self.show(name, UNKNOWN)
        else:
            self.others = UNKNOWN
        return None


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
    """Return the dataset of n pictures; its concepts are those ``classes`` that any of them shows.

    A class that a picture does not name is ``others`` there. ``masks``: see ``from_table``; those
    of other concepts are left out. Raises InputError where nothing is annotated.
    """
    shown = {label for picture in pictures for label in picture.truth}
    concepts = [label for label in classes if label in shown]
    if not concepts:
        raise InputError(f"{where}: expected images with annotated objects, found none")
    truths = [[picture.truth.get(c, picture.others) for c in concepts] for picture in pictures]
    return BoxedDataset(
        [picture.file for picture in pictures],
        np.array(truths, np.int8),
        [picture.id for picture in pictures],
        concepts,
        boxes=[picture.boxes for picture in pictures],
        sizes=[(picture.height, picture.width) for picture in pictures],
        masks={label: files for label, files in (masks or {}).items() if label in concepts},
        skipped=skipped,
        name=name,
    )


def within(box: Box, height: int, width: int, where: str) -> Box:
    """Return ``box`` clipped to an image of this size.

    Raises InputError where it juts out by more than ROUNDING, or has no area.
    """
    left, top, right, bottom = box.edges
    if not all(map(math.isfinite, box.edges)):
        raise InputError(f"{where}: expected a box of finite numbers, got {list(box.edges)}")
    if right <= left or bottom <= top:
        raise InputError(
            f"{where}: expected a box with an area, got one of {right - left:g} x "
            f"{bottom - top:g} pixels (width x height)"
        )
    edges = max(0.0, left), max(0.0, top), min(float(width), right), min(float(height), bottom)
    clipped = Box(box.label, *edges, box.score)
    if max(-left, -top, right - width, bottom - height) > ROUNDING or clipped.area == 0:
        raise InputError(
            f"{where}: expected a box within the image, {width} x {height} (width x height), got "
            f"left {left:g}, top {top:g}, right {right:g}, bottom {bottom:g}"
        )
    return clipped
