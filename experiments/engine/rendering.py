"""Whether torch on a device makes follow-up images faster than OpenCV, with which they are made.

A Gaussian blur, Gaussian noise and a rotation, each as the package makes it, image by image, and as
torch operations on a whole batch. Images come from and go back to this computer's memory as bytes,
and both transfers count. Both ways give the same image to within one grey level, but for noise,
which each draws by itself.
"""

from collections.abc import Callable, Sequence
from functools import partial

import cv2
import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from adaptive_vtt.relations.corruptions import TINY, gaussian_blur_sigma, gaussian_noise
from adaptive_vtt.relations.graded import turned
from adaptive_vtt.types import Image

from ..medtest import phantoms
from ..program import Row, milliseconds

SIDES, BATCHES = (28, 224, 512), (1, 16, 256)
"""Pixels of an image's side; images at a time."""
SIGMA, DEVIATION, DEGREES = 2.0, 0.1, 20.0
"""Of the blur in pixels, of the noise where white is 1, and of the rotation."""
DRAWN = 16
"""Images that are drawn; larger batches repeat them."""


def blurred(images: Tensor) -> Tensor:
    """``gaussian_blur_sigma``, first along rows and then along columns."""
    half = int(4 * SIGMA + 0.5)
    kernel = torch.from_numpy(cv2.getGaussianKernel(2 * half + 1, SIGMA, cv2.CV_32F))
    columns = kernel.to(images.device).expand(3, 1, -1, 1)
    wide = functional.pad(images, [half] * 4, mode="replicate")
    rows = functional.conv2d(wide, columns.mT, groups=3)
    return functional.conv2d(rows, columns, groups=3) + TINY


def noisy(images: Tensor) -> Tensor:
    """``gaussian_noise``."""
    return images + 255 * DEVIATION * torch.randn_like(images)


def rotated(images: Tensor) -> Tensor:
    """``turned``, of square images."""
    cos, sin = np.cos(np.deg2rad(DEGREES)), np.sin(np.deg2rad(DEGREES))
    back = torch.tensor([[cos, -sin, 0], [sin, cos, 0]], dtype=images.dtype, device=images.device)
    shape = list(images.shape)
    grid = functional.affine_grid(back.expand(len(images), 2, 3), shape, align_corners=True)
    found = functional.grid_sample(images, grid, padding_mode="border", align_corners=True)
    return found.round()


RANDOM = np.random.default_rng(0)
CHANGES: dict[str, tuple[Callable[[Image], Image], Callable[[Tensor], Tensor]]] = {
    "blur": (lambda image: gaussian_blur_sigma(image, RANDOM, SIGMA), blurred),
    "noise": (lambda image: gaussian_noise(image, RANDOM, DEVIATION), noisy),
    "rotation": (lambda image: turned(image, DEGREES), rotated),
}
"""The package's way with an image H x W x 3 of bytes, and torch's with (n, 3, H, W) of floats."""


def by_package(change: str, images: Image) -> Image:
    """Images (n, H, W, 3), changed one after the other."""
    return np.stack([CHANGES[change][0](image) for image in images])


def by_torch(change: str, images: Image, device: str) -> Image:
    """Images (n, H, W, 3), changed together on the device."""
    floats = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float()
    found = CHANGES[change][1](floats).clamp(0, 255).to(torch.uint8)
    return np.asarray(found.permute(0, 2, 3, 1).contiguous().cpu())


def drawn(side: int, count: int) -> Image:
    """Endoscopy-like frames (count, side, side, 3)."""
    frames = phantoms.frames(DRAWN, size=max(side, 64), seed=0)
    images = [frames.sample(k).require_image() for k in range(min(count, DRAWN))]
    small = [cv2.resize(image, (side, side), interpolation=cv2.INTER_AREA) for image in images]
    return np.stack(small)[np.arange(count) % len(small)]


def table(
    sides: Sequence[int], batches: Sequence[int], devices: Sequence[str], repeats: int
) -> pd.DataFrame:
    """Milliseconds per image, one row per change, size and batch."""
    rows: list[Row] = []
    for change in CHANGES:
        for side in sides:
            for count in batches:
                images = drawn(side, count)
                works = {"OpenCV": partial(by_package, change, images)}
                for device in devices:
                    works[f"torch, {device}"] = partial(by_torch, change, images, device)
                taken = {way: milliseconds(work, repeats) / count for way, work in works.items()}
                rows.append({"change": change, "pixels": side, "images": count, **taken})
    return pd.DataFrame(rows).round(4)


def faster(found: pd.DataFrame) -> str:
    """Where torch was faster than OpenCV, in words."""
    devices = [name for name in found if str(name).startswith("torch, ")]
    won = {device: int((found[device] < found["OpenCV"]).sum()) for device in devices}
    return "; ".join(
        f"{device} is faster than OpenCV in {count} of {len(found)} rows"
        for device, count in won.items()
    )
