"""A small U-Net that segments polyps in endoscopy frames, as a model to audit.

It follows Ronneberger, Fischer and Brox, "U-Net: convolutional networks for biomedical image
segmentation" (MICCAI 2015), at a smaller size: its input is 96 x 96 pixels, as 48 x 48 of twelve
channels. ``train_phantom`` trained it on synthetic frames alone, and its weights come with the
package. It was never trained on a patient's frame and is of no use on one.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from adaptive_vtt.datasets.base import Dataset
from adaptive_vtt.datasets.view import View
from adaptive_vtt.types import Image, Mask

from . import phantoms

M = TypeVar("M", bound=nn.Module)

FOLDER = Path(__file__).parent / "data"
WEIGHTS_FILE = FOLDER / "phantom_unet.npz"
SIDE = 96
WIDTHS = (12, 24, 40, 48)
FOLD = 2
"""Side of squares of pixels that become the channels of one pixel, for a quarter of the work."""
BATCH = 64  # bounds the memory that predictions need, whatever the number of images


def block(channels_in: int, channels_out: int) -> nn.Sequential:
    """Return two 3 x 3 convolutions, each with batch norm and ReLU."""
    layers: list[nn.Module] = []
    for channels in (channels_in, channels_out):
        # Batch norm adds its own offset, so the convolution needs none.
        layers.append(nn.Conv2d(channels, channels_out, 3, padding=1, bias=False))
        layers += [nn.BatchNorm2d(channels_out), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Network with four levels down and up again, and one logit per pixel."""

    def __init__(self) -> None:
        super().__init__()
        inputs = (3 * FOLD**2, *WIDTHS)
        self.down = nn.ModuleList(block(a, b) for a, b in zip(inputs, WIDTHS, strict=False))
        pairs = zip(WIDTHS[-2::-1], WIDTHS[:0:-1], strict=True)
        self.up = nn.ModuleList(block(here + below, here) for here, below in pairs)
        self.head = nn.Conv2d(WIDTHS[0], FOLD**2, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, 1, H, W) of images (n, 3, H, W), in [0, 1], sides divisible by 16."""
        features = nn.functional.pixel_unshuffle(images, FOLD)
        passed: list[Tensor] = []
        for down in self.down:
            features = down(nn.functional.max_pool2d(features, 2) if passed else features)
            passed.append(features)
        for up, skipped in zip(self.up, passed[-2::-1], strict=True):
            larger = nn.functional.interpolate(features, scale_factor=2, mode="bilinear")
            features = up(torch.cat([larger, skipped], dim=1))
        return nn.functional.pixel_shuffle(self.head(features), FOLD)


def frames(count: int, *, size: int = 128, seed: int = 0) -> Dataset:
    """Return ``count`` phantom frames with one to five polyps each, asked about polyps alone."""
    everything = phantoms.frames(count, size=size, seed=seed, polyps="always")
    return View(everything, ["polyp"], [everything.concepts.index("polyp")])


def pixels(images: Sequence[Image]) -> Tensor:
    """Return images, H x W x 1 or 3 uint8 of any sizes, as one tensor (n, 3, SIDE, SIDE)."""
    batch = torch.empty((len(images), 3, SIDE, SIDE), dtype=torch.uint8)
    for k, image in enumerate(images):
        small = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        # grey becomes three equal channels
        batch[k] = torch.from_numpy(small.reshape(SIDE, SIDE, -1)).permute(2, 0, 1)
    return batch


def logits(module: nn.Module, batch: Tensor) -> Tensor:
    """Return the logits of ``module``, in eval mode, for ``pixels``, in batches of bounded size."""
    module.eval()
    with torch.inference_mode():
        parts = [module(part.float() / 255) for part in torch.split(batch, BATCH)]
    return torch.cat(parts)


def predict_with(module: UNet, images: Sequence[Image]) -> list[Mask]:
    """Return the masks of ``module``, 1 x H x W each, as large as the image."""
    if not images:
        return []
    small = logits(module, pixels(images)).sigmoid()[:, 0].numpy()
    return [_resized(p, image.shape[:2])[None] for p, image in zip(small, images, strict=True)]


def predict(images: Sequence[Image]) -> list[Mask]:
    """Return the polyp mask of the trained model for every image, 1 x H x W of bool.

    Images are H x W x 1 or 3 uint8, of any size, and resized to SIDE x SIDE for the model.
    """
    return predict_with(shipped(), images)


@cache
def shipped() -> UNet:
    """Return the trained model on the CPU, in eval mode. Load a copy to train it further."""
    return load(UNet(), WEIGHTS_FILE)


def save(module: nn.Module, path: Path) -> None:
    """Write the weights as plain arrays, with kernels and matrices as float16."""
    arrays = {}
    for name, tensor in module.state_dict().items():
        array = tensor.numpy()
        arrays[name] = array.astype(np.float16) if array.ndim > 1 else array
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)


def load(module: M, path: Path) -> M:
    """Return ``module`` with the weights that ``save`` wrote, as float32, in eval mode."""
    with np.load(path, allow_pickle=False) as stored:
        module.load_state_dict({name: torch.from_numpy(stored[name]) for name in stored.files})
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # nearly twice as fast
    module.eval()
    return module


def _resized(p: npt.NDArray[np.float32], size: tuple[int, ...]) -> Mask:
    """Return P(polyp) of SIDE x SIDE as a mask of ``size``, (H, W)."""
    return cv2.resize(p, (size[1], size[0]), interpolation=cv2.INTER_LINEAR) >= 0.5
