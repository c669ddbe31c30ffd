"""BCCD, 364 photographs of stained blood with boxes, and two small networks to train on half of it.

The data are by Shenggan Cheng, BCCD dataset, MIT licence, https://github.com/Shenggan/BCCD_Dataset.
The folder ``BCCD`` there has the layout of PASCAL VOC. It is not downloaded automatically.

Nearly every photograph shows a white cell, so a network that always answers yes would be right
about nearly all of them. Each photograph is therefore cut into four tiles, and a third of all tiles
show a white cell. A cell is in a tile that shows at least half of its box. If a tile shows a
smaller part, its truth is unknown. Masks are ellipses in the boxes, since the data have no
outlines.

Photographs of one slide may be in both halves, as the data do not state which belong together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.formats.voc import from_voc
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.types import Box, Floats, Image, Indices, Mask, Sample, common
from adaptive_vtt.utils.random_streams import generator

from ..medtest.phantom_classifier import Classifier
from ..medtest.phantom_unet import FOLD, WIDTHS, UNet, logits, pixels
from ..medtest.train_phantom import dice_loss, fit, mask_targets

WHERE = (
    "BCCD: skipped; --data FOLDER reads it, the folder BCCD of "
    "https://github.com/Shenggan/BCCD_Dataset (364 photographs, MIT licence)"
)
CONCEPTS = {"white cells": "WBC", "platelets": "Platelets"}
"""Concept -> its class in the annotations."""
RED = "RBC"
GRADES = ("few red cells", "some red cells", "many red cells")
HEIGHT, WIDTH = 96, 128
"""Height and width of a tile in pixels; networks receive it at 96 x 96."""
ACROSS = 2
"""Tiles along each side of a photograph."""
PRESENT, UNKNOWN = 0.5, 0.1
"""Least share of a cell's box that is in a tile if the cell is present, and if it is unknown."""
RATE = 3e-3
"""Learning rate."""


@dataclass(frozen=True)
class Tiles:
    """n tiles of photographs.

    Attributes:
        images: The tiles.
        present: (n, 2) truths of the concepts: 0, 1, or NaN if unknown.
        red: (n,) numbers of red cells.
        masks: Mask of each concept, None without one.
        photograph: (n,) numbers of the photographs that the tiles were cut from.
    """

    images: list[Image]
    present: Floats
    red: Indices
    masks: list[list[Mask | None]]
    photograph: Indices

    def __len__(self) -> int:
        return len(self.images)

    def of(self, photographs: npt.ArrayLike) -> "Tiles":
        """Return the tiles of some photographs."""
        rows = np.flatnonzero(np.isin(self.photograph, photographs))
        images, masks = ([part[r] for r in rows] for part in (self.images, self.masks))
        return Tiles(images, self.present[rows], self.red[rows], masks, self.photograph[rows])  # type: ignore[arg-type]

    def presence(self) -> TableDataset:
        """Return a dataset with the concepts white cells and platelets."""
        masks = {name: [tile[k] for tile in self.masks] for k, name in enumerate(CONCEPTS)}
        labels = pd.DataFrame(self.present, columns=list(CONCEPTS), index=self._ids())
        return from_table(self.images, labels, masks=masks, name="BCCD tiles")

    def graded(self, limits: Sequence[float]) -> TableDataset:
        """Return a dataset with the classes GRADES of the number of red cells; see ``grade``."""
        labels = np.eye(len(GRADES), dtype=int)[grade(self.red, limits)]
        table = pd.DataFrame(labels, columns=list(GRADES), index=self._ids())
        return from_table(self.images, table, name="BCCD tiles, red cells")

    def white(self) -> TableDataset:
        """Return a dataset of the tiles with a white cell, with its mask."""
        rows = np.flatnonzero(self.present[:, 0] == 1)
        ids = self._ids()
        labels = pd.DataFrame({"white cells": 1}, index=[ids[r] for r in rows])
        masks = {"white cells": [self.masks[r][0] for r in rows]}
        return from_table(
            [self.images[r] for r in rows], labels, masks=masks, name="BCCD tiles, white cells"
        )

    def _ids(self) -> list[str]:
        return [f"{p:03d}-{k % ACROSS**2}" for k, p in enumerate(self.photograph.tolist())]


def read(folder: Path) -> Tiles:
    """Return all tiles of a folder in VOC's layout, photographs in the order of their names.

    Annotations that cannot be used, such as boxes without an area, are left out.
    """
    dataset = from_voc(folder, broken="skip")
    parts = [_tile(dataset.sample(k), r, c) for k in range(len(dataset)) for r, c in _places()]
    images, present, red, masks = zip(*parts, strict=True)
    return Tiles(
        list(images),
        np.array(present, float),
        np.array(red, np.int64),
        list(masks),
        np.repeat(np.arange(len(dataset)), ACROSS**2),
    )


def halves(tiles: Tiles, seed: int) -> tuple[Indices, Indices]:
    """Return the photographs to train on, and those to audit."""
    photographs = generator(seed, "bccd halves").permutation(np.unique(tiles.photograph))
    middle = len(photographs) // 2
    return photographs[:middle], photographs[middle:]


def _places() -> list[tuple[int, int]]:
    return [(row, column) for row in range(ACROSS) for column in range(ACROSS)]


def _tile(
    sample: Sample, row: int, column: int
) -> tuple[Image, list[float], int, list[Mask | None]]:
    """Return a tile's image, truths, number of red cells, and masks."""
    image = sample.require_image()
    height, width = image.shape[0] // ACROSS, image.shape[1] // ACROSS
    top, left = row * height, column * width
    cut = image[top : top + height, left : left + width]
    small = cv2.resize(cut, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
    frame = Box("tile", left, top, left + width, top + height)
    shares = [(box, common(box, frame) / box.area) for box in sample.boxes]
    present, masks = [], []
    for label in CONCEPTS.values():
        own = [(box, share) for box, share in shares if box.label == label]
        most = max((share for _, share in own), default=0.0)
        present.append(1.0 if most >= PRESENT else np.nan if most > UNKNOWN else 0.0)
        boxes = [box for box, share in own if share > 0]
        masks.append(_ellipses(boxes, frame) if most >= PRESENT else None)
    red = sum(share >= PRESENT for box, share in shares if box.label == RED)
    return small, present, red, masks


def _ellipses(boxes: Sequence[Box], frame: Box) -> Mask:
    """Return the parts of the boxes' ellipses that are in the frame, HEIGHT x WIDTH."""
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    x, y = WIDTH / (frame.right - frame.left), HEIGHT / (frame.bottom - frame.top)
    for box in boxes:
        middle = (
            (box.left + box.right - 2 * frame.left) / 2,
            (box.top + box.bottom - 2 * frame.top) / 2,
        )
        size = (box.right - box.left) * x, (box.bottom - box.top) * y
        cv2.ellipse(mask, ((middle[0] * x, middle[1] * y), size, 0), 1, -1)
    return mask > 0


def grade(red: Indices, limits: Sequence[float]) -> Indices:
    """Return the grade 0, 1 or 2 of every number of red cells: the number of limits below it."""
    return (red[:, None] > np.asarray(limits)).sum(axis=1)


def limits_of(tiles: Tiles) -> tuple[float, float]:
    """Return the two numbers of red cells that divide the tiles into about equal thirds."""
    low, high = np.quantile(tiles.red, [1 / 3, 2 / 3], method="lower")
    return float(low), float(high)


class CellNet(nn.Module):
    """The encoder of the phantom's U-Net, maximum and mean of each channel, and a linear layer.

    The maximum shows presence, and the mean shows amounts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blocks = Classifier().blocks
        self.head = nn.Linear(2 * WIDTHS[-1], len(CONCEPTS) + len(GRADES))

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, 5) of each concept and then of each grade.

        Images are (n, 3, H, W), float in [0, 1], with sides divisible by 16.
        """
        features = nn.functional.pixel_unshuffle(images, FOLD)
        for place, each in enumerate(self.blocks):
            features = each(nn.functional.max_pool2d(features, 2) if place else features)
        logit: Tensor = self.head(
            torch.cat([features.amax(dim=(2, 3)), features.mean(dim=(2, 3))], dim=1)
        )
        return logit


def cell_loss(logit: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of known targets.

    Args:
        logit: (n, 5) outputs of the network.
        targets: (n, 3): 0, 1 or NaN (unknown) for each concept, and the grade.
    """
    wanted = targets[:, : len(CONCEPTS)]
    known = ~wanted.isnan()
    presence = nn.functional.binary_cross_entropy_with_logits(
        logit[:, : len(CONCEPTS)][known], wanted[known]
    )
    return presence + nn.functional.cross_entropy(logit[:, len(CONCEPTS) :], targets[:, -1].long())


def cell_targets(tiles: Tiles, limits: Sequence[float]) -> Tensor:
    """Return the targets of ``cell_loss``, (n, 3)."""
    grades = grade(tiles.red, limits)[:, None]
    return torch.from_numpy(np.hstack([tiles.present, grades]).astype(np.float32))


def train_cells(tiles: Tiles, limits: Sequence[float], epochs: int, seed: int) -> CellNet:
    """Return a classifier that is trained on the presence and the grades of cells."""
    torch.manual_seed(seed)
    module, wanted = CellNet(), cell_targets(tiles, limits)
    fit(module, pixels(tiles.images), wanted, cell_loss, epochs=epochs, rate=RATE, seed=seed)
    return module


def train_segmenter(tiles: Tiles, epochs: int, seed: int) -> UNet:
    """Return a segmenter that is trained on the masks of white cells."""
    torch.manual_seed(seed)
    empty = np.zeros((HEIGHT, WIDTH), bool)
    known = [r for r in range(len(tiles)) if not np.isnan(tiles.present[r, 0])]
    masks = mask_targets([empty if (m := tiles.masks[r][0]) is None else m for r in known])
    module = UNet()
    images = pixels([tiles.images[r] for r in known])
    fit(module, images, masks, dice_loss, epochs=epochs, rate=RATE, seed=seed)
    return module


def presence_of(module: CellNet, images: Sequence[Image]) -> Floats:
    """Return the probability of each concept, n x 2."""
    p: Tensor = logits(module, pixels(images))[:, : len(CONCEPTS)].double().sigmoid()
    return np.asarray(p.numpy())


def grades_of(module: CellNet, images: Sequence[Image]) -> Floats:
    """Return the probability of each grade, n x 3."""
    of_grades = logits(module, pixels(images))[:, len(CONCEPTS) :].double()
    return np.asarray(torch.softmax(of_grades, dim=1).numpy())
