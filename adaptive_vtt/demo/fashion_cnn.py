"""A small multi-label CNN for the Fashion-MNIST concepts: a real model to audit.

Its weights come with the package; `experiments/engine/train_fashion_cnn.py` made them.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..datasets.formats.fashion_mnist import CONCEPTS
from ..errors import InputError
from ..utils.threads import one_thread

WEIGHTS_FILE = Path(__file__).parent / "data" / "fashion_cnn.npz"
SIDE = 28
BATCH = 256  # bounds the memory predict needs, whatever the number of images


def _block(channels_in: int, channels_out: int) -> nn.Sequential:
    """Return 3 x 3 convolution, batch norm, ReLU, and a pooling that halves each side."""
    return nn.Sequential(
        # Batch norm adds its own offset, so the convolution needs none.
        nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


class FashionCNN(nn.Module):
    """Three convolution blocks and two dense layers; one logit for each entry of `CONCEPTS`."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(_block(1, 32), _block(32, 64), _block(64, 128))
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(128 * 3 * 3, 128),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(128, len(CONCEPTS)),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, 14) of images (n, 1, 28, 28), float in [0, 1]."""
        logits: Tensor = self.head(self.features(images))
        return logits


@cache
def load_fashion_cnn(path: Path = WEIGHTS_FILE) -> FashionCNN:
    """Return the trained model in eval mode, on the CPU, float32."""
    model = FashionCNN()
    with np.load(path, allow_pickle=False) as stored:
        # load_state_dict copies into the model's own float32 tensors.
        model.load_state_dict({name: torch.from_numpy(stored[name]) for name in stored.files})
    return model.eval()


def _grey(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return an image as (28, 28) float32 in [0, 1]; colour channels are averaged."""
    shape = image.shape
    if image.dtype != np.uint8:
        raise InputError(f"FashionCNN: expected uint8 images in [0, 255], got {image.dtype}")
    if shape[:2] != (SIDE, SIDE) or shape[2:] not in ((), (1,), (3,)):
        raise InputError(f"FashionCNN: expected 28 x 28 with 1 or 3 channels, got shape {shape}")
    # Averaged before scaling: three equal channels then give exactly the grey image.
    channels = image.reshape(SIDE, SIDE, -1)
    grey: NDArray[np.float32] = channels.mean(axis=2, dtype=np.float32) / np.float32(255)
    return grey


@one_thread()
def predict_with(model: FashionCNN, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """Return P(yes) in [0, 1], (n, 14), columns as in `CONCEPTS`, from a model in eval mode."""
    parts = [np.zeros((0, len(CONCEPTS)))]
    for start in range(0, len(images), BATCH):
        batch = np.stack([_grey(image) for image in images[start : start + BATCH]])
        with torch.inference_mode():
            logits = model(torch.from_numpy(batch)[:, None])
        # In float32 the sigmoid would round sure answers to exactly 1.
        parts.append(torch.sigmoid(logits.double()).numpy())
    return np.concatenate(parts)


def predict(images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    """Return P(yes) of the bundled model for each image and concept.

    Args:
        images: Arrays of uint8 in [0, 255], shaped (28, 28), (28, 28, 1) or (28, 28, 3).

    Returns:
        (n, 14), in [0, 1]; columns in the order of `CONCEPTS`.

    Raises:
        InputError: An image has another type or shape.
    """
    return predict_with(load_fashion_cnn(), images)
