"""What every dataset promises; `CASES` has small files of each registered kind."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.datasets import (
    Dataset,
    fashion,
    from_hugging_face,
    from_idrid,
    from_isic,
    from_medmnist,
)
from adaptive_vtt.datasets.regions import grid_regions, object_regions
from adaptive_vtt.datasets.view import Subset
from adaptive_vtt.experiments.engine.tiled import TiledDataset
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.oracles.captioned import Captioned
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.testing.contracts import DatasetContract
from tests.helpers.small_datasets import idrid_files, isic_files, medmnist

from . import small_files as files
from .registered import assert_covered


def hugging_face(folder: Path) -> Callable[[], Dataset]:
    from tests.datasets.test_hugging_face_data import animals

    animals().save_to_disk(folder / "pets")
    return partial(from_hugging_face, folder / "pets")


def _cut(cut: Callable[..., Dataset], make: Callable[[], Dataset], *sizes: int) -> Dataset:
    return cut(make(), *sizes)


CASES: dict[str, Callable[[Path], Callable[[], Dataset]]] = {
    "table": files.table,
    "fashion": lambda folder: fashion,
    "medmnist": lambda folder: partial(from_medmnist, medmnist(folder, "chestmnist")),
    "masks": files.masks,
    "classes": files.classes,
    "isic": lambda folder: partial(from_isic, isic_files(folder)),
    "idrid": lambda folder: partial(from_idrid, idrid_files(folder)),
    "phantom": lambda folder: lambda: phantoms.frames(3, size=64),
    "endobench": files.endobench,
    "medvqa": files.medvqa,
    "coco": files.coco,
    "voc": files.voc,
    "yolo": files.yolo,
    "scenes": lambda folder: cache(partial(scenes, 3)),  # it takes a while
    "hugging-face": hugging_face,
    "images": files.images,
    "a captioner's view": lambda folder: lambda: Captioned(tiny_dataset(4)),
    "some of one": lambda folder: lambda: Subset(tiny_dataset(6), np.array([1, 2, 5])),
    "on a grid": lambda folder: partial(_cut, grid_regions, files.masks(folder), 2),
    "around objects": lambda folder: partial(_cut, object_regions, files.coco(folder)),
    "tiled": lambda folder: lambda: TiledDataset([[0, 1], [1, 1], [1, -1]], 7),
}


def test_every_registered_dataset_has_a_case() -> None:
    assert_covered("datasets", {**CASES})


class TestDatasets(DatasetContract):
    @pytest.fixture(autouse=True, params=CASES, scope="class")
    @classmethod
    def chosen(cls, request: pytest.FixtureRequest, tmp_path_factory: Any) -> None:
        """Write the files of each case once for all its tests."""
        make = CASES[request.param](tmp_path_factory.mktemp("dataset"))
        cls.made = staticmethod(make)  # type: ignore[attr-defined]

    def make(self) -> Dataset:
        return self.made()  # type: ignore[attr-defined, no-any-return]
