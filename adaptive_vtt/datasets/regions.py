"""Rectangles within images as separate samples.

Source: Concept-centric VTT (Fountoukidou & Sznitman, MICCAI 2019), section 2, where a sample is
"an image or an arbitrary region within an image".

A region shows a concept if the concept's mask, or one of its boxes, overlaps the region. A concept
that is absent from the image is absent from all of its regions. A concept that is present, but has
neither mask nor box, is unknown in all regions, and never asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated

import cv2
import numpy as np
import numpy.typing as npt

from ..errors import InputError, check_known, unexpected
from ..types import UNKNOWN, Floats, Indices, Mask, Sample, Truths, mask_of
from ..utils.options import Option, check_options
from .base import Dataset, adapted_dataset
from .scanning import each
from .table import LazyMasks
from .view import Taken

IMAGE, PLACE = "image", "region"
"""Columns of metadata: the id of the image, and the place on the grid, or the concept inside."""
_Places = list[tuple[tuple[int, int, int, int], str]]
"""Rectangles within one image (left, top, right, bottom in pixels; the last two exclusive), and the
name of each."""
Least = Annotated[
    float, Option("what covers less of a region than this share is unknown there (0)", ge=0, le=1)
]


def grid_regions(
    dataset: Dataset, rows: int, columns: int | None = None, *, least: Least = 0.0
) -> "Regions":
    """Cut each image of a dataset into a grid of regions.

    All images and masks are decoded once.

    Args:
        dataset: Images with masks, boxes or labels.
        rows: Number of rows, at least 1; their heights differ by at most one pixel.
        columns: Number of columns. Default None: as many as rows.
        least: Share of a region, in [0, 1], that a concept must cover to be present. A concept that
            covers less, but not nothing, is unknown there.

    Returns:
        The regions, row by row.

    Raises:
        InputError: An image is smaller than the grid or missing, questions are in words, metadata
            is called IMAGE or PLACE, or no region is known to show a concept.
    """
    across = rows if columns is None else columns
    if min(rows, across) < 1:
        raise InputError(f"regions: expected a grid of 1 x 1 or more, got {rows} x {across}")

    def places(sample: Sample) -> _Places:
        height, width = sample.require_image().shape[:2]
        if height < rows or width < across:
            expected = f"an image of {rows} x {across} pixels or more (height x width)"
            raise unexpected(f"regions: sample {sample.id!r}", expected, f"{height} x {width}")
        y = [row * height // rows for row in range(rows + 1)]
        x = [column * width // across for column in range(across + 1)]
        return [
            ((x[c], y[r], x[c + 1], y[r + 1]), f"row {r + 1} column {c + 1}")
            for r in range(rows)
            for c in range(across)
        ]

    return _cut(dataset, places, least)


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
    """Cut a region around each annotated box of a dataset, and each connected part of a mask.

    Images without objects have no region. All images and masks are decoded once.

    Args:
        dataset: Images with boxes or masks.
        margin: Share of an object's size that is added on each side, at least 0.
        least_side: Minimum side of a region in pixels, unless the image is smaller.
        least: As in ``grid_regions``.

    Returns:
        The regions, image by image.

    Raises:
        InputError: As in ``grid_regions``, except for the size of images.
    """
    check_options(object_regions, {"margin": margin, "least_side": least_side}, "regions")

    def widened(first: float, last: float, limit: int) -> tuple[int, int]:
        """Return a span with its margin, at least ``least_side`` long, within 0..limit."""
        middle, length = (first + last) / 2, max((last - first) * (1 + 2 * margin), least_side)
        length = min(int(np.ceil(length)), limit)
        start = min(max(0, int(np.floor(middle - length / 2))), limit - length)
        return start, start + length

    def places(sample: Sample) -> _Places:
        height, width = sample.require_image().shape[:2]
        objects = [(box.label, box.edges) for box in sample.boxes]
        boxed = {box.label for box in sample.boxes}
        for concept in sample.masks:
            if concept not in boxed:
                bits = sample.masks[concept].astype(np.uint8)
                pieces = cv2.connectedComponentsWithStats(bits, connectivity=8)[2][1:].tolist()
                objects += [(concept, (x, y, x + wide, y + high)) for x, y, wide, high, _ in pieces]
        regions = []
        for name, (left, top, right, bottom) in objects:
            (x1, x2), (y1, y2) = widened(left, right, width), widened(top, bottom, height)
            regions.append(((x1, y1, x2, y2), name))
        return regions

    return _cut(dataset, places, least)


class Regions(Taken):
    """Regions of the images of a dataset.

    Attributes:
        sources: Index of the sample from which each region is cut, (n,).
        rectangles: Left, top, right and bottom in pixels, the last two exclusive, n x 4.
    """

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
        self.metadata_columns = (*self.metadata_columns, IMAGE, PLACE)
        self.rectangles, self._places = rectangles, np.array(places, dtype=object)
        self._last: tuple[int, Sample] | None = None

    def _hashed(self) -> tuple[npt.NDArray[np.generic], ...]:
        return self.sources, self.rectangles, self.truths

    def pixels(self, samples: Indices) -> Floats:
        left, top, right, bottom = self.rectangles[samples].T
        return ((right - left) * (bottom - top)).astype(float)

    def sample(self, index: int) -> Sample:
        left, top, right, bottom = self.rectangles[index].tolist()
        part, number = (slice(top, bottom), slice(left, right)), int(self.sources[index])
        if self._last is None or self._last[0] != number:  # regions of one image often follow
            self._last = number, self.dataset.sample(number)
        source = self._last[1]
        names = zip(self.concepts, self.truths[index].tolist(), strict=True)
        truth = {concept: side for concept, side in names if side != UNKNOWN}
        masks = {
            c: partial(_cropped, source.masks, c, part)  # decoded on access
            for c in source.masks
            if truth.get(c) == 1
        }
        ignored = None if source.ignored is None else source.ignored[part]
        boxes = []
        for box in source.boxes:
            x1, y1 = max(box.left, left) - left, max(box.top, top) - top
            x2, y2 = min(box.right, right) - left, min(box.bottom, bottom) - top
            if x2 > x1 and y2 > y1:
                boxes.append(replace(box, left=x1, top=y1, right=x2, bottom=y2))
        return replace(
            source,
            id=self.sample_id(index),
            image=np.ascontiguousarray(source.require_image()[part]),
            truth=truth,
            metadata={**source.metadata, IMAGE: source.id, PLACE: self._places[index]},
            masks=LazyMasks(masks, None, f"sample {source.id!r}", ignored),
            boxes=tuple(boxes),
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


def _cropped(masks: Mapping[str, Mask], concept: str, part: tuple[slice, slice]) -> Mask:
    return np.ascontiguousarray(masks[concept][part])


def _cut(dataset: Dataset, places: Callable[[Sample], _Places], least: float) -> Regions:
    """Return the regions of all images; ``places`` returns the rectangles of a sample."""
    check_options(grid_regions, {"least": least}, "regions")
    if not dataset.has_images:
        raise InputError(f"regions: dataset {dataset.name!r} has no images")
    if conflicts := {IMAGE, PLACE}.intersection(adapted_dataset(dataset).metadata_columns):
        expected = f"a dataset without metadata called {IMAGE!r} or {PLACE!r}"
        raise unexpected("regions", expected, f"{min(conflicts)!r} in {dataset.name!r}")
    cuts = each(partial(_regions, dataset, places, least), range(len(dataset)))
    truths = np.concatenate([truths for _, truths in cuts])
    if not (truths == 1).any():
        expected = "masks or boxes that show a concept in some region"
        raise unexpected("regions", expected, f"none in dataset {dataset.name!r}")
    regions = [region for regions, _ in cuts for region in regions]
    return Regions(
        dataset,
        np.repeat(np.arange(len(cuts)), [len(regions) for regions, _ in cuts]),
        np.array([rectangle for rectangle, _ in regions], np.int64),
        [name for _, name in regions],
        truths,
    )


def _regions(
    dataset: Dataset, places: Callable[[Sample], _Places], least: float, index: int
) -> tuple[_Places, Truths]:
    """Return the regions of one image, and their truths r x C."""
    sample = dataset.sample(index)
    if sample.asks:
        got = f"questions in words (sample {sample.id!r}), which are about the whole image"
        raise unexpected("regions", "concepts", got)
    regions = [*dict(places(sample)).items()]  # a rectangle that two objects share counts once
    truths = np.full((len(regions), len(dataset.concepts)), UNKNOWN, np.int8)
    for column, concept in enumerate(dataset.concepts):
        if sample.truth.get(concept) == 0:
            truths[:, column] = 0
        elif sample.truth.get(concept) == 1 and (mask := _mask(sample, concept)) is not None:
            for row, ((left, top, right, bottom), _) in enumerate(regions):
                share = float(mask[top:bottom, left:right].mean())
                truths[row, column] = 0 if share == 0 else 1 if share >= least else UNKNOWN
    return regions, truths


def _mask(sample: Sample, concept: str) -> Mask | None:
    """Return the pixels, H x W, of a concept's mask and boxes together; None if it has neither."""
    boxes = [box for box in sample.boxes if box.label == concept]
    inside = mask_of(boxes, *sample.require_image().shape[:2]) if boxes else None
    mask = sample.masks.get(concept, inside)
    return mask if mask is None or inside is None else mask | inside
