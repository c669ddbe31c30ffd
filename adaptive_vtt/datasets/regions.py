"""Rectangles within images as samples of their own.

Source: Concept-centric VTT (Fountoukidou & Sznitman, MICCAI 2019), section 2, where a sample is
"an image or an arbitrary region within an image".

A region shows a concept where its mask, or one of its boxes, reaches into it. A concept that the
whole image lacks is absent from its regions. A concept that the image shows without mask or box
may be in any of them: that is unknown, and never asked.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated

import cv2
import numpy as np
import numpy.typing as npt

from ..errors import InputError, check_known, unexpected
from ..types import UNKNOWN, Box, Floats, Indices, Mask, Sample, Truths, mask_of
from ..utils.options import Option, check_options
from .base import Dataset, adapted_dataset
from .scanning import each
from .table import LazyMasks
from .view import Taken

IMAGE, PLACE = "image", "region"
"""Metadata of a region: the id of its image, and its place on the grid or what it is cut around."""

Rectangle = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels of the image; the last two exclusive."""


_Places = list[tuple[Rectangle, str]]
"""Rectangles of one image, and the place of each."""


Least = Annotated[
    float,
    Option("what covers less of a region than this share is unknown there (0)", ge=0, le=1),
]


def grid_regions(
    dataset: Dataset, rows: int, columns: int | None = None, *, least: Least = 0.0
) -> "Regions":
    """Return ``dataset`` with each image cut into ``rows`` x ``columns`` (default: rows) parts.

    Heights differ by a pixel at most, widths too. ``least``: a concept that covers less than this
    share (0..1) of a region, but some of it, is unknown there. All images and masks are decoded
    once.

    Raises:
        InputError: for images smaller than the grid, samples without images, questions in words,
            metadata called IMAGE or PLACE, and where no concept is known to be in any region.
    """
    across = rows if columns is None else columns
    if min(rows, across) < 1:
        raise InputError(f"regions: expected a grid of 1 x 1 or more, got {rows} x {across}")
    return _cut(dataset, partial(_on_grid, rows=rows, columns=across), least)


def object_regions(
    dataset: Dataset,
    *,
    margin: Annotated[
        float, Option("with around: share of its size added on each side (0.25)", ge=0)
    ] = 0.25,
    least_side: Annotated[
        int, Option("with around: regions are no smaller, in pixels (32)", ge=1)
    ] = 32,
    least: Least = 0.0,
) -> "Regions":
    """Return ``dataset`` with a region around every annotated box, and every piece of a mask.

    Where an image is smaller than ``least_side``, so are its regions. Images without objects have
    no region. ``least``, errors and decoding: as in ``grid_regions``.
    """
    check_options(object_regions, {"margin": margin, "least_side": least_side}, "regions")
    return _cut(dataset, partial(_around, margin=margin, least_side=least_side), least)


class Regions(Taken):
    """Regions of the images of ``dataset``; ``sources`` (n,) says of which sample each one is, and
    ``rectangles`` n x 4 where: left, top, right, bottom in pixels, the last two exclusive."""

    def __init__(
        self,
        dataset: Dataset,
        sources: Indices,
        rectangles: Indices,
        places: list[str],
        truths: Truths,
    ) -> None:
        super().__init__(dataset, sources, truths)
        self.name = f"{dataset.name}, regions"
        self.rectangles = rectangles
        self._places = np.array(places, dtype=object)
        self._last: tuple[int, Sample] | None = None

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        return (*super().metadata_columns, IMAGE, PLACE)

    def _hashed(self) -> tuple[npt.NDArray[np.generic], ...]:
        return self.sources, self.rectangles, self._truths

    def pixels(self, samples: Indices) -> Floats:
        left, top, right, bottom = self.rectangles[samples].T
        return ((right - left) * (bottom - top)).astype(float)

    def sample(self, index: int) -> Sample:
        left, top, right, bottom = self.rectangles[index].tolist()
        part = slice(top, bottom), slice(left, right)
        source = self._source(int(self.sources[index]))
        names = zip(self.concepts, self._truths[index].tolist(), strict=True)
        truth = {concept: side for concept, side in names if side != UNKNOWN}
        ignored: Mask | None = getattr(source.masks, "ignored", None)
        # masks are decoded when they are asked for
        masks = {
            concept: partial(_cropped, source.masks, concept, part)
            for concept in source.masks
            if truth.get(concept) == 1
        }
        return replace(
            source,
            id=self.sample_id(index),
            image=np.ascontiguousarray(source.require_image()[part]),
            truth=truth,
            metadata={**source.metadata, IMAGE: source.id, PLACE: self._places[index]},
            masks=LazyMasks(
                masks,
                None,
                f"sample {source.id!r}",
                None if ignored is None else ignored[part],
            ),
            boxes=tuple(_clipped(source.boxes, left, top, right, bottom)),
        )

    def sample_id(self, index: int) -> str:
        left, top, right, bottom = self.rectangles[index].tolist()
        source = self.dataset.sample_id(int(self.sources[index]))
        return f"{source} [{left}:{right}, {top}:{bottom}] {self._places[index]}"

    def metadata_values(self, column: str) -> npt.NDArray[np.object_]:
        if column == PLACE:
            return self._places
        if column == IMAGE:
            return np.array([*map(self.dataset.sample_id, self.sources.tolist())], dtype=object)
        check_known("metadata column", column, self.metadata_columns, f"{self.name!r}")
        return super().metadata_values(column)

    def _source(self, index: int) -> Sample:
        """Return the whole image; the last one is kept, as regions often come in their order."""
        if self._last is None or self._last[0] != index:
            self._last = index, self.dataset.sample(index)
        return self._last[1]


def _cropped(masks: Mapping[str, Mask], concept: str, part: tuple[slice, slice]) -> Mask:
    return np.ascontiguousarray(masks[concept][part])


def _cut(dataset: Dataset, place: Callable[[Sample], _Places], least: float) -> Regions:
    check_options(grid_regions, {"least": least}, "regions")
    if not dataset.has_images:
        raise InputError(f"regions: dataset {dataset.name!r} has no images")
    taken = {IMAGE, PLACE}.intersection(adapted_dataset(dataset).metadata_columns)
    if taken:
        raise InputError(
            f"regions: {IMAGE!r} and {PLACE!r} are columns of where a region is from: expected a "
            f"dataset without metadata of these names, {dataset.name!r} has {min(taken)!r}"
        )
    cuts = each(partial(_regions, dataset, place, least), range(len(dataset)))
    truths = np.concatenate([truths for _, truths in cuts])
    if not (truths == 1).any():
        raise InputError(
            "regions: expected masks or boxes that show a concept in some region, dataset "
            f"{dataset.name!r} has none"
        )
    regions = [region for regions, _ in cuts for region in regions]
    return Regions(
        dataset,
        np.repeat(np.arange(len(cuts)), [len(regions) for regions, _ in cuts]),
        np.array([rectangle for rectangle, _ in regions], np.int64),
        [name for _, name in regions],
        truths,
    )


def _regions(
    dataset: Dataset, place: Callable[[Sample], _Places], least: float, index: int
) -> tuple[_Places, Truths]:
    """Return the regions of one image, and their truths r x C."""
    sample = dataset.sample(index)
    if sample.asks:
        got = f"questions in words (sample {sample.id!r}), which are about the whole image"
        raise unexpected("regions", "concepts", got)
    regions = [*dict(place(sample)).items()]  # a rectangle once, though two things may share it
    truths = np.full((len(regions), len(dataset.concepts)), UNKNOWN, np.int8)
    for column, concept in enumerate(dataset.concepts):
        if sample.truth.get(concept) == 0:
            truths[:, column] = 0
        elif sample.truth.get(concept) == 1 and (mask := _where(sample, concept)) is not None:
            for row, ((left, top, right, bottom), _) in enumerate(regions):
                share = float(mask[top:bottom, left:right].mean())
                truths[row, column] = 0 if share == 0 else 1 if share >= least else UNKNOWN
    return regions, truths


def _where(sample: Sample, concept: str) -> Mask | None:
    """Return where a concept is (H x W), by its mask and its boxes; None where nobody says."""
    boxes = [box for box in sample.boxes if box.label == concept]
    inside = mask_of(boxes, *sample.require_image().shape[:2]) if boxes else None
    mask = sample.masks.get(concept, inside)
    return mask if mask is None or inside is None else mask | inside


def _on_grid(sample: Sample, rows: int, columns: int) -> _Places:
    height, width = sample.require_image().shape[:2]
    if height < rows or width < columns:
        expected = f"an image of {rows} x {columns} pixels or more (height x width)"
        raise unexpected(f"regions: sample {sample.id!r}", expected, f"{height} x {width}")
    y = [row * height // rows for row in range(rows + 1)]
    x = [column * width // columns for column in range(columns + 1)]
    return [
        ((x[c], y[r], x[c + 1], y[r + 1]), f"row {r + 1} column {c + 1}")
        for r in range(rows)
        for c in range(columns)
    ]


def _around(sample: Sample, margin: float, least_side: int) -> _Places:
    """Return the surroundings of all boxes, and of the pieces of masks of things without boxes."""
    height, width = sample.require_image().shape[:2]
    objects = [(box.label, box.edges) for box in sample.boxes]
    boxed = {box.label for box in sample.boxes}
    for concept in sample.masks:
        if concept not in boxed:
            bits = sample.masks[concept].astype(np.uint8)
            pieces = cv2.connectedComponentsWithStats(bits, connectivity=8)[2][1:].tolist()
            objects += [(concept, (x, y, x + wide, y + high)) for x, y, wide, high, _ in pieces]
    places = []
    for name, (left, top, right, bottom) in objects:
        x1, x2 = _widened(left, right, width, margin, least_side)
        y1, y2 = _widened(top, bottom, height, margin, least_side)
        places.append(((x1, y1, x2, y2), name))
    return places


def _widened(first: float, last: float, limit: int, margin: float, least: int) -> tuple[int, int]:
    """Return the span with its margin, no shorter than ``least``, within 0..limit."""
    middle, length = (first + last) / 2, max((last - first) * (1 + 2 * margin), least)
    length = min(int(np.ceil(length)), limit)
    start = min(max(0, int(np.floor(middle - length / 2))), limit - length)
    return start, start + length


def _clipped(boxes: tuple[Box, ...], left: int, top: int, right: int, bottom: int) -> Iterator[Box]:
    """Yield the parts of the boxes within the rectangle, as seen from its corner."""
    for box in boxes:
        x1, y1 = max(box.left, left) - left, max(box.top, top) - top
        x2, y2 = min(box.right, right) - left, min(box.bottom, bottom) - top
        if x2 > x1 and y2 > y1:
            yield replace(box, left=x1, top=y1, right=x2, bottom=y2)
