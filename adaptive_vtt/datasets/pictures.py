"""Annotated image files: the common step of the readers of COCO, VOC, YOLO and masks."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import InputError, unexpected
from ..types import UNKNOWN, Box
from .pairing import check_unique
from .scanning import Reading
from .table import TableDataset

ROUNDING = 1.0
"""Number of pixels by which a box may reach beyond its image: annotations are rounded, and some
count pixels from 1."""


@dataclass
class Picture:
    """An annotated image file.

    Attributes:
        id: The sample's id.
        file: The image.
        height: Height in pixels for which the picture was annotated; 0: unknown.
        width: Width in pixels, in the same way.
        truth: Class -> 1 if the picture shows it, 0 if not, or UNKNOWN.
        others: The truth of all other classes: 0, or UNKNOWN if an annotation was left out.
        boxes: Annotated boxes.
        masks: Class -> a file, an array H x W, or a function that returns one.
        ignored: The mask of the pixels that scores ignore, in one of these forms.
        metadata: Column -> value.
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
        """Set the truth of a class; UNKNOWN replaces no known truth."""
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
            reading: Handler of broken boxes.
            where: The place of the annotation, for errors.
            label: Its class; None if that was broken and left out.
            edges: Function that returns left, top, right and bottom of its box in pixels.
            truth: The truth of the class in this picture.
            boxed: Whether the picture keeps the box.

        Raises:
            InputError: The box is broken, and broken entries are refused.
        """
        if label is None:  # the picture shows an object of an unknown class
            self.others = UNKNOWN
            return None
        box = reading.attempt(lambda: within(Box(label, *edges()), self.height, self.width, where))
        self.show(label, truth if box else UNKNOWN)
        self.boxes += [box] if box and boxed else []
        return box


def readable(pictures: Sequence[Picture | None], reading: Reading) -> list[Picture]:
    """Return the pictures without those whose image or masks were left out as broken."""
    files = {
        id(picture): [picture.file, *(m for m in picture.masks.values() if isinstance(m, Path))]
        for picture in pictures
        if picture is not None
    }
    bad = reading.unreadable([file for own in files.values() for file in own])
    return [p for p in pictures if p is not None and bad.isdisjoint(files[id(p)])]


def shown(pictures: Sequence[Picture]) -> set[str]:
    """Return the classes whose truth is set in any picture."""
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
    """Return a dataset of pictures.

    Args:
        pictures: The pictures.
        concepts: The classes to ask about.
        where: The source, for errors.
        name: Name of the dataset.
        skipped: Names of files and entries that were left out.
        remarks: Notes on how the source was read; see ``DatasetDefaults``.

    Raises:
        InputError: There are no pictures or no concepts, or an id repeats.
    """
    if not pictures or not concepts:
        raise InputError(f"{where}: expected images with masks or boxes, got none that can be used")
    ids = [picture.id for picture in pictures]
    check_unique(ids, "sample id", where, "images")
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
    """Return a box clipped to an image.

    Args:
        box: The box.
        height: Height of the image in pixels.
        width: Width of the image in pixels.
        where: The place of the box, for errors.

    Raises:
        InputError: The box exceeds the image by more than ROUNDING, has no area, or is not finite.
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
