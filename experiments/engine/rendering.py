"""Compare the time of follow-up images by torch on a device with OpenCV's, which the package uses.

Images get a Gaussian blur, Gaussian noise or a rotation, one by one as in the package, or as torch
operations on a whole batch. Transfers to the device and back are included. Both ways give the same
image to within one grey level, except for noise, which each draws by itself.
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
"""Sides of images in pixels, and numbers of images at a time."""
SIGMA, DEVIATION, DEGREES = 2.0, 0.1, 20.0
"""Standard deviation of blur in pixels, of noise (white is 1), and angle of rotation."""
DRAWN = 16
"""Number of images that are drawn; larger batches repeat them."""


def blurred(images: Tensor) -> Tensor:
    """Return ``gaussian_blur_sigma`` of a batch, first along rows and then along columns."""
    half = int(4 * SIGMA + 0.5)
    kernel = torch.from_numpy(cv2.getGaussianKernel(2 * half + 1, SIGMA, cv2.CV_32F))
    columns = kernel.to(images.device).expand(3, 1, -1, 1)
    wide = functional.pad(images, [half] * 4, mode="replicate")
    rows = functional.conv2d(wide, columns.mT, groups=3)
    return functional.conv2d(rows, columns, groups=3) + TINY


def noisy(images: Tensor) -> Tensor:
    """Return ``gaussian_noise`` of a batch."""
    return images + 255 * DEVIATION * torch.randn_like(images)


def rotated(images: Tensor) -> Tensor:
    """Return ``turned`` of a batch of square images."""
    cos, sin = np.cos(np.deg2rad(DEGREES)), np.sin(np.deg2rad(DEGREES))
    back = torch.tensor([[cos, -sin, 0], [sin, cos, 0]], dtype=images.dtype, device=images.device)
    shape = list(images.shape)
    grid = functional.affine_grid(back.expand(len(images), 2, 3), shape, align_corners=True)
    turned_ = functional.grid_sample(images, grid, padding_mode="border", align_corners=True)
    return turned_.round()


RANDOM = np.random.default_rng(0)
CHANGES: dict[str, tuple[Callable[[Image], Image], Callable[[Tensor], Tensor]]] = {
    "blur": (lambda image: gaussian_blur_sigma(image, RANDOM, SIGMA), blurred),
    "noise": (lambda image: gaussian_noise(image, RANDOM, DEVIATION), noisy),
    "rotation": (lambda image: turned(image, DEGREES), rotated),
}
"""Change -> the package's function of an image (H, W, 3) uint8, and torch's of (n, 3, H, W)."""


def by_package(change: str, images: Image) -> Image:
    """Return the images (n, H, W, 3), changed one by one."""
    return np.stack([CHANGES[change][0](image) for image in images])


def by_torch(change: str, images: Image, device: str) -> Image:
    """Return the images (n, H, W, 3), changed together on the device."""
    floats = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float()
    changed = CHANGES[change][1](floats).clamp(0, 255).to(torch.uint8)
    return np.asarray(changed.permute(0, 2, 3, 1).contiguous().cpu())


def drawn(side: int, count: int) -> Image:
    """Return endoscopy-like frames (count, side, side, 3)."""
    frames = phantoms.frames(DRAWN, size=max(side, 64), seed=0)
    images = [frames.sample(k).require_image() for k in range(min(count, DRAWN))]
    small = [cv2.resize(image, (side, side), interpolation=cv2.INTER_AREA) for image in images]
    return np.stack(small)[np.arange(count) % len(small)]


def table(
    sides: Sequence[int], batches: Sequence[int], devices: Sequence[str], repeats: int
) -> pd.DataFrame:
    """Return milliseconds per image, a row per change, size and batch."""
    rows: list[Row] = []
    for change in CHANGES:
        for side in sides:
            for count in batches:
                images = drawn(side, count)
                works = {"OpenCV": partial(by_package, change, images)}
                for device in devices:
                    works[f"torch, {device}"] = partial(by_torch, change, images, device)
                times = {way: milliseconds(work, repeats) / count for way, work in works.items()}
                rows.append({"change": change, "pixels": side, "images": count, **times})
    return pd.DataFrame(rows).round(4)


def faster(times: pd.DataFrame) -> str:
    """Return in how many rows torch was faster than OpenCV, in words."""
    devices = [name for name in times if str(name).startswith("torch, ")]
    wins = {device: int((times[device] < times["OpenCV"]).sum()) for device in devices}
    return "; ".join(
        f"{device} is faster than OpenCV in {count} of {len(times)} rows"
        for device, count in wins.items()
    )
