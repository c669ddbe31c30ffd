"""Train the segmenter and the classifier of the phantom, and write their model cards.

    python -m adaptive_vtt.experiments.medtest.train_phantom

Everything is drawn from seeds, and nothing is downloaded. The frames on which the cards' figures
are measured (seed HELD_OUT) differ from those for training. The number of epochs is fixed
beforehand, and the weights are those of the last epoch. Without ``--out``, the files of the package
are replaced.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar, get_args

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.experiments.medtest import phantom_classifier, phantom_unet
from adaptive_vtt.experiments.medtest.phantom_classifier import CLASSES, Classifier, frames
from adaptive_vtt.experiments.medtest.phantom_unet import (
    FOLDER,
    SIDE,
    WIDTHS,
    UNet,
    load,
    pixels,
    predict_with,
    save,
)
from adaptive_vtt.experiments.program import options
from adaptive_vtt.oracles import overlap
from adaptive_vtt.oracles.masks import Metric
from adaptive_vtt.types import Image, Mask
from adaptive_vtt.utils.files import write_text

from . import phantoms

BATCH = 16
DRAWN = 128
"""Side of the training frames in pixels; models receive them shrunk to SIDE."""
TRAINED, HELD_OUT = 1, 500
"""Seeds of frames for training and for the cards; audits and tests have other frames."""
TESTED = 300
"""Number of frames on which the cards' figures are measured."""
RATE = 3e-3
_WHOLE, _QUICK = ((2400, 20), (1500, 14)), ((32, 1), (32, 1))
"""Frames and epochs of the segmenter and of the classifier."""
SIZE_LIMIT = 500_000  # bytes: the weights travel inside the package

M = TypeVar("M", bound=nn.Module)
Loss = Callable[[Tensor, Tensor], Tensor]


def fit(
    module: nn.Module,
    images: Tensor,
    targets: Tensor,
    loss_of: Loss,
    *,
    epochs: int,
    rate: float,
    seed: int = 0,
) -> None:
    """Train ``module`` further by Adam.

    Images are mirrored and transposed at random, with their masks. There is no other augmentation,
    so an audit has failures to find.

    Args:
        module: The network, which is changed.
        images: (n, 3, SIDE, SIDE) uint8.
        targets: Masks (n, SIDE, SIDE) of bool, classes (n,), or labels (n, C).
        loss_of: Function of outputs and targets -> the loss.
        epochs: Number of epochs.
        rate: Learning rate at first, which falls to 0.
        seed: Seed of the order and the augmentation.
    """
    rng = torch.Generator().manual_seed(seed)
    module.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(module.parameters(), lr=rate)
    batches = len(images) // BATCH
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
    for epoch in range(epochs):
        started, total = time.process_time(), 0.0
        # The last, incomplete batch is dropped; the order changes with each epoch.
        order = torch.randperm(len(images), generator=rng)[: batches * BATCH]
        for rows in order.reshape(batches, BATCH):
            batch, wanted = _turned(images[rows], targets[rows], rng)
            loss = loss_of(module(batch.float() / 255), wanted)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            total += loss.item()
        seconds = time.process_time() - started
        print(f"epoch {epoch + 1}: loss {total / batches:.4f}, {seconds:.0f} CPU s", flush=True)
    module.eval()


def _turned(images: Tensor, targets: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return one of the eight mirrorings and transpositions of a batch and of its masks."""
    mirror, upside_down, transpose = (torch.rand(3, generator=rng) < 0.5).tolist()
    turned = []
    for part in (images, targets):
        if part.ndim > 2:  # images and masks, but neither classes nor labels
            sides = [axis for axis, yes in ((-1, mirror), (-2, upside_down)) if yes]
            part = part.flip(sides)
            part = part.transpose(-1, -2) if transpose else part
        turned.append(part)
    return turned[0], turned[1]


def dice_loss(logits: Tensor, masks: Tensor) -> Tensor:
    """Return cross-entropy per pixel plus 1 - Dice per image; (n, 1, H, W) and (n, H, W) bool."""
    wanted = masks[:, None].float()
    entropy = nn.functional.binary_cross_entropy_with_logits(logits, wanted)
    p = logits.sigmoid()
    both, each = (p * wanted).sum(dim=(1, 2, 3)), (p + wanted).sum(dim=(1, 2, 3))
    return entropy + 1 - ((2 * both + 1) / (each + 1)).mean()


def class_loss(logits: Tensor, classes: Tensor) -> Tensor:
    """Return the cross-entropy of logits (n, 3) and classes (n,) of int64."""
    return nn.functional.cross_entropy(logits, classes)


def pictures(dataset: Dataset) -> list[Image]:
    """Return all images of ``dataset``."""
    samples = (dataset.sample(k) for k in range(len(dataset)))
    return [sample.image for sample in samples if sample.image is not None]


def pairs(dataset: Dataset) -> tuple[list[Image], list[Mask]]:
    """Return all images of ``dataset`` and the masks of their polyps. Each frame is drawn once."""
    images, masks = [], []
    for k in range(len(dataset)):
        sample = dataset.sample(k)
        images.append(sample.require_image())
        masks.append(sample.masks["polyp"])
    return images, masks


def mask_targets(masks: Sequence[Mask]) -> Tensor:
    """Return masks of any size as (n, SIDE, SIDE) of bool."""
    small = [
        cv2.resize(mask.astype(np.float32), (SIDE, SIDE), interpolation=cv2.INTER_AREA) >= 0.5
        for mask in masks
    ]
    return torch.from_numpy(np.stack(small))


def classes_of(dataset: Dataset) -> NDArray[np.int64]:
    """Return the position of each sample's class, (n,)."""
    rows = np.arange(len(dataset))[:, None]
    return dataset.truth(rows, np.arange(len(CLASSES))).argmax(axis=1)


def train_unet(count: int, epochs: int, seed: int) -> UNet:
    """Return a U-Net trained on ``count`` frames, each with a polyp."""
    images, masks = pairs(phantoms.frames(count, size=DRAWN, seed=TRAINED, polyps="always"))
    torch.manual_seed(seed)
    module = UNet()
    fit(
        module,
        pixels(images),
        mask_targets(masks),
        dice_loss,
        epochs=epochs,
        rate=RATE,
        seed=seed,
    )
    return module


def train_classifier(unet: UNet, count: int, epochs: int, seed: int) -> Classifier:
    """Return a classifier trained on ``count`` frames, a third of each class.

    Training starts with the encoder of ``unet``.
    """
    dataset = frames(count, size=DRAWN, seed=TRAINED)
    targets = torch.from_numpy(classes_of(dataset))
    torch.manual_seed(seed)
    module = Classifier()
    module.blocks.load_state_dict(unet.down.state_dict())
    fit(module, pixels(pictures(dataset)), targets, class_loss, epochs=epochs, rate=RATE, seed=seed)
    return module


def unet_card(module: UNet, count: int, epochs: int, seed: int) -> str:
    """Return the segmenter's card, with figures that are measured here."""
    dataset = phantoms.frames(TESTED, size=DRAWN, seed=HELD_OUT, polyps="always")
    images, masks = pairs(dataset)
    predicted = predict_with(module, images)
    dice, iou = (
        np.array([overlap(p[0], m, metric) for p, m in zip(predicted, masks, strict=True)])
        for metric in get_args(Metric)
    )
    largest = dataset.metadata_values("polyp_size")
    rows = [
        f"| {size} | {dice[largest == size].mean():.3f} | {(largest == size).sum()} |"
        for size in ("< 5mm", "5-10mm", "11-20mm", ">20mm")
    ]
    listed = "\n".join(rows)
    return f"""# Phantom U-Net

{_ABOUT}
**What it is.** A U-Net that segments the polyps in an endoscopy frame: four levels of \
{", ".join(map(str, WIDTHS))}
channels, {_parameters(module):,} parameters. Frames of any size are shrunk to {SIDE} x {SIDE}
pixels, and its masks enlarged.

{_training("each with one to five polyps", count, epochs, seed)}
Loss: cross-entropy per pixel plus 1 - Dice per frame.

**Performance** on {TESTED} frames of {DRAWN} x {DRAWN} pixels with polyps that it was not trained \
on (seed {HELD_OUT}):
mean Dice {dice.mean():.3f}, median {np.median(dice):.3f}, mean IoU {iou.mean():.3f}; \
{(dice == 0).mean():.1%} of the frames score 0. By the size of the largest polyp:

| largest polyp | mean Dice | frames |
| --- | ---: | ---: |
{listed}
"""


def classifier_card(module: Classifier, count: int, epochs: int, seed: int) -> str:
    """Return the classifier's card, with figures that are measured here."""
    dataset = frames(TESTED, size=DRAWN, seed=HELD_OUT)
    predicted = phantom_classifier.predict_with(module, pictures(dataset)).argmax(axis=1)
    true, places = classes_of(dataset), range(len(CLASSES))
    table = np.array([[((true == t) & (predicted == p)).sum() for p in places] for t in places])
    rows = [f"| {name} | {' | '.join(map(str, table[t]))} |" for t, name in enumerate(CLASSES)]
    listed = "\n".join(rows)
    return f"""# Phantom classifier

{_ABOUT}
**What it is.** A convolutional network that classifies endoscopy frames: {", ".join(CLASSES)}.
It has the encoder of the phantom U-Net, with whose weights its training began, and one layer:
{_parameters(module):,} parameters. Frames of any size are shrunk to {SIDE} x {SIDE} pixels.

{_training("a third of each class", count, epochs, seed)}
Loss: cross-entropy.

**Performance** on {TESTED} frames of {DRAWN} x {DRAWN} pixels that it was not trained on (seed \
{HELD_OUT}):
accuracy {(predicted == true).mean():.3f}. Frames by true class (rows) and predicted class \
(columns):

| | {" | ".join(CLASSES)} |
| --- | {" | ".join(["---:"] * len(CLASSES))} |
{listed}
"""


_ABOUT = """Written by `experiments/medtest/train_phantom.py`; do not edit by hand.

**Intended use.** A model to audit, nothing else. It was trained on synthetic frames alone and is of
no use on a patient's.
"""


def _training(frames: str, count: int, epochs: int, seed: int) -> str:
    return f"""**Training.** {count:,} synthetic frames of the endoscopy phantom (seed {TRAINED}), \
{frames};
mirrored and transposed, with no other augmentation. Adam, {epochs} epochs, batches of {BATCH},
rate falling from {RATE} to 0, seed {seed}.
Kernels and matrices are stored as float16."""


def _parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, arguments, quick={}, out=FOLDER, seed=0)
    seed, (unet, classifier) = chosen.seed, _QUICK if chosen.quick else _WHOLE
    segmenter = chosen.out / phantom_unet.WEIGHTS_FILE.name
    _ship(train_unet(*unet, seed), segmenter, lambda module: unet_card(module, *unet, seed))
    start = load(UNet(), segmenter)
    _ship(
        train_classifier(start, *classifier, seed),
        chosen.out / phantom_classifier.WEIGHTS_FILE.name,
        lambda module: classifier_card(module, *classifier, seed),
    )


def _ship(module: M, path: Path, card: Callable[[M], str]) -> None:
    """Write the weights, and the card next to them. Raise SystemExit if the file is too large."""
    save(module, path)
    if path.stat().st_size >= SIZE_LIMIT:
        raise SystemExit(f"{path}: {path.stat().st_size} bytes, over the limit of {SIZE_LIMIT}")
    # Score what is shipped, rounded to float16, not the model in memory.
    text = card(load(module, path))
    write_text(path.with_suffix(".md"), text)
    print(text, flush=True)


if __name__ == "__main__":
    main()
