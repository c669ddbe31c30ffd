"""Annotated image files, as the readers of COCO, VOC, YOLO and masks make them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, unexpected
from ..types import UNKNOWN, Box
from .scanning import Reading
from .table import TableDataset, check_unique

ROUNDING = 1.0
"""Pixels by which a box may reach beyond its image: annotations are rounded, and some count pixels
from 1."""


@dataclass
class Picture:
    """An annotated image file.

    Attributes:
        id: The sample's id.
        file: The image.
        height, width: The size in pixels that the annotations are for; 0 if none is declared.
        truth: By class: 1 if the picture shows it, 0 if not, UNKNOWN if nobody should ask.
        others: The truth of all other classes, 0 unless an annotation of some class was left out.
        boxes: Annotated boxes.
        masks: By class: a file, an array H x W, or a function that makes one.
        ignored: The mask of the pixels that no score counts, in one of these forms.
        metadata: Cells by column.
    """

    id: str
    file: Path
    height: int = 0
    width: int = 0
    truth: dict[str, int] = field(default_factory=dict)
    others: int = 0
    boxes: list[Box] = field(default_factory=list)
    masks: dict[str, Any] = field(default_factory=dict)
    ignored: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def show(self, label: str, truth: int = 1) -> None:
        """Note that the picture shows a class, or may show it (UNKNOWN)."""
        if truth != UNKNOWN or label not in self.truth:
            self.truth[label] = truth

    def annotate(
        self,
        reading: Reading,
        where: str,
        label: str | None,
        edges: Callable[[], Sequence[float]],
        *,
        truth: int = 1,
        boxed: bool = True,
    ) -> Box | None:
        """Add an annotation, and return its box; None if it was left out.

        Args:
            reading: Decides whether a broken box is left out or refused.
            where: The place of the annotation, for messages.
            label: Its class; None if that was left out.
            edges: Returns left, top, right and bottom of its box in pixels.
            truth: The truth of the class in this picture.
            boxed: Whether the picture keeps the box.

        Raises:
            InputError: The box is broken, and broken entries are refused.
        """
        if label is None:  # the picture shows a thing of an unknown class
            self.others = UNKNOWN
            return None
        box = reading.attempt(lambda: within(Box(label, *edges()), self.height, self.width, where))
        self.show(label, truth if box else UNKNOWN)
        self.boxes += [box] if box and boxed else []
        return box


def readable(pictures: Sequence[Picture | None], reading: Reading) -> list[Picture]:
    """Return the pictures whose files can be decoded; all, unless broken files are skipped."""
    files = {
        id(picture): [picture.file, *(m for m in picture.masks.values() if isinstance(m, Path))]
        for picture in pictures
        if picture is not None
    }
    bad = reading.unreadable([file for own in files.values() for file in own])
    return [p for p in pictures if p is not None and bad.isdisjoint(files[id(p)])]


def shown(pictures: Sequence[Picture]) -> set[str]:
    """Return the classes that any picture shows or may show."""
    return {label for picture in pictures for label in picture.truth}


def from_pictures(
    pictures: Sequence[Picture],
    concepts: Sequence[str],
    where: str,
    *,
    name: str,
    skipped: Sequence[str] = (),
    remarks: Mapping[str, str] | None = None,
) -> TableDataset:
    """Return a dataset of pictures whose questions are about ``concepts``.

    Raises:
        InputError: There are no pictures or no concepts, or an id repeats. It names ``where``.
    """
    if not pictures or not concepts:
        raise InputError(f"{where}: expected images with annotated objects, got none")
    ids = [picture.id for picture in pictures]
    check_unique(ids, "sample id", where)
    truths = [[picture.truth.get(c, picture.others) for c in concepts] for picture in pictures]
    masks = {c: [picture.masks.get(c) for picture in pictures] for c in concepts}
    masks = {c: own for c, own in masks.items() if any(mask is not None for mask in own)}
    more: dict[str, Any] = {"masks": masks, "skipped": skipped, "name": name}
    if any(picture.metadata for picture in pictures):
        more["metadata"] = pd.DataFrame([picture.metadata for picture in pictures])
    if any(picture.ignored is not None for picture in pictures):
        more["ignored"] = [picture.ignored for picture in pictures]
    if all(picture.height for picture in pictures):
        more["boxes"] = [picture.boxes for picture in pictures]
        more["sizes"] = [(picture.height, picture.width) for picture in pictures]
    files = [picture.file for picture in pictures]
    dataset = TableDataset(files, np.array(truths, np.int8), ids, tuple(concepts), **more)
    dataset.remarks = remarks or {}
    return dataset


def within(box: Box, height: int, width: int, where: str) -> Box:
    """Return ``box`` clipped to an image of this size.

    Raises:
        InputError: The box reaches out by more than ROUNDING, or has no area.
    """
    left, top, right, bottom = box.edges
    if not all(map(math.isfinite, box.edges)):
        raise unexpected(where, "a box of finite numbers", list(box.edges))
    if right <= left or bottom <= top:
        got = f"one of {right - left:g} x {bottom - top:g} pixels (width x height)"
        raise unexpected(where, "a box with an area", got)
    edges = max(0.0, left), max(0.0, top), min(float(width), right), min(float(height), bottom)
    clipped = Box(box.label, *edges, box.score)
    if max(-left, -top, right - width, bottom - height) > ROUNDING or clipped.area == 0:
        expected = f"a box within the image, {width} x {height} (width x height)"
        got = f"left {left:g}, top {top:g}, right {right:g}, bottom {bottom:g}"
        raise unexpected(where, expected, got)
    return clipped
