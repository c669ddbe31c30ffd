"""Small files in the layouts of medical datasets, and readers of their content."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from adaptive_vtt.datasets import TableDataset, medmnist_sets
from adaptive_vtt.datasets.formats.isic_idrid import ATTRIBUTES

RNG = np.random.default_rng(0)


def picture(path: Path, height: int = 8, width: int = 10) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), RNG.integers(0, 256, (height, width, 3), dtype=np.uint8))


def mask(path: Path, height: int = 8, width: int = 10, inside: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    grey = np.zeros((height, width), np.uint8)
    grey[1:4, 2:6] = 255 * inside
    assert cv2.imwrite(str(path), grey)


def truths(dataset: TableDataset) -> list[list[int]]:
    rows, columns = np.arange(len(dataset)), np.arange(len(dataset.concepts))
    return dataset.truth(rows[:, None], columns[None, :]).tolist()


def ids(dataset: TableDataset) -> list[str]:
    return [dataset.sample_id(i) for i in range(len(dataset))]


def medmnist(
    folder: Path, flag: str, *, count: int = 6, side: int = 28, compress: bool = True
) -> Path:
    """Write a small file of a MedMNIST set, with all classes in turn."""
    facts = medmnist_sets()[flag]
    rng, arrays = np.random.default_rng(1), {}
    for split in ("train", "val", "test"):
        colours = (3,) if facts.channels == 3 else ()
        images = rng.integers(0, 256, (count, side, side, *colours), dtype=np.uint8)
        numbers = np.arange(count) % len(facts.classes)
        labels = numbers[:, None]
        if facts.task == "multi-label":
            labels = (rng.random((count, len(facts.classes))) < 0.3).astype(int)
        arrays |= {f"{split}_images": images, f"{split}_labels": labels.astype(np.uint8)}
    path = folder / (f"{flag}.npz" if side == 28 else f"{flag}_{side}.npz")
    (np.savez_compressed if compress else np.savez)(path, **arrays)  # type: ignore[operator]
    return path


@pytest.fixture
def isic(tmp_path: Path) -> Path:
    return isic_files(tmp_path)


def isic_files(folder: Path) -> Path:
    """Write two pictures with one attribute each."""
    for number in (1, 2):
        name = f"ISIC_000000{number}"
        picture(folder / "ISIC2018_Task1-2_Validation_Input" / f"{name}.jpg")
        for attribute in ATTRIBUTES:
            file = f"{name}_attribute_{attribute}.png"
            mask(
                folder / "ISIC2018_Task2_Validation_GroundTruth" / file,
                inside=(number, attribute) in {(1, "globules"), (2, "pigment_network")},
            )
    return folder


@pytest.fixture
def idrid(tmp_path: Path) -> Path:
    return idrid_files(tmp_path)


def idrid_files(folder: Path) -> Path:
    """Write a picture of each split, with the optic disc in both and soft exudates in one."""
    root = folder / "A. Segmentation"
    for number, split in ((1, "a. Training Set"), (55, "b. Testing Set")):
        picture(root / "1. Original Images" / split / f"IDRiD_{number:02}.jpg")
        truth = root / "2. All Segmentation Groundtruths" / split
        mask(truth / "5. Optic Disc" / f"IDRiD_{number:02}_OD.tif")
    mask(truth / "4. Soft Exudates" / "IDRiD_55_SE.tif")
    return folder
