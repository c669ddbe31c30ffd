"""A small classifier of endoscopy frames (normal, polyp, blood), as a model to audit.

``train_phantom`` trained it on synthetic frames alone, and its weights come with the package. It
was never trained on a patient's frame and is of no use on one.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.table import TableDataset
from adaptive_vtt.experiments.medtest.phantom_unet import (
    FOLD,
    FOLDER,
    WIDTHS,
    block,
    load,
    logits,
    pixels,
)
from adaptive_vtt.types import Image

from . import phantoms

WEIGHTS_FILE = FOLDER / "phantom_classifier.npz"
CLASSES = ("normal", "polyp", "blood")


class Classifier(nn.Module):
    """The encoder of the U-Net, the maximum of each channel, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        inputs = (3 * FOLD**2, *WIDTHS)
        self.blocks = nn.ModuleList(block(a, b) for a, b in zip(inputs, WIDTHS, strict=False))
        self.head = nn.Linear(WIDTHS[-1], len(CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, 3) of images (n, 3, H, W), float in [0, 1], sides divisible by 16."""
        features = nn.functional.pixel_unshuffle(images, FOLD)
        for place, each in enumerate(self.blocks):
            features = each(nn.functional.max_pool2d(features, 2) if place else features)
        return self.head(features.amax(dim=(2, 3)))


def frames(count: int, *, size: int = 128, seed: int = 0) -> TableDataset:
    """Return ``count`` phantom frames, whose classes alternate; polyps and blood have masks.

    A frame of class "polyp" has at least one polyp and no blood, one of "blood" has blood and no
    polyp, and one of "normal" neither. Stool, instruments and text occur in all classes.
    """
    scenes = phantoms.frames(2 * count + 60, size=size, seed=seed, polyps=0.5, blood=0.5)
    rows, columns = np.arange(len(scenes)), [scenes.concepts.index(c) for c in CLASSES[1:]]
    polyp, blood = scenes.truth(rows[:, None], np.array(columns)).T == 1
    of_class = [np.flatnonzero(~polyp & ~blood), np.flatnonzero(polyp & ~blood)]
    of_class.append(np.flatnonzero(blood & ~polyp))
    turn = np.arange(count) % len(CLASSES)
    samples = [
        scenes.sample(int(of_class[c][k // len(CLASSES)])) for k, c in enumerate(turn.tolist())
    ]
    labels = pd.DataFrame(
        np.eye(len(CLASSES), dtype=int)[turn], columns=list(CLASSES), index=[s.id for s in samples]
    )
    masks = {c: [s.masks[c] if s.masks[c].any() else None for s in samples] for c in CLASSES[1:]}
    images = [sample.image for sample in samples]
    return from_table(images, labels, masks=masks, name="phantom classes (synthetic)")


def predict_with(module: Classifier, images: Sequence[Image]) -> npt.NDArray[np.float64]:
    """Return the probability of each class by ``module``, n x 3."""
    if not images:
        return np.zeros((0, len(CLASSES)))
    return torch.softmax(logits(module, pixels(images)).double(), dim=1).numpy()


def predict(images: Sequence[Image]) -> npt.NDArray[np.float64]:
    """Return the probability of each of CLASSES by the trained model, n x 3.

    Images are H x W x 1 or 3 uint8, of any size.
    """
    return predict_with(shipped(), images)


@cache
def shipped() -> Classifier:
    """Return the trained model on the CPU, in eval mode. Load a copy to train it further."""
    return load(Classifier(), WEIGHTS_FILE)
