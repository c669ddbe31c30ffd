"""Makes medmnistc.npz from the PyPI package medmnistc 0.1.0; see README.md beside this file.

What depends on no chance is stored as two windows of the corrupted image; what does, as
statistics over many draws.
"""

import argparse
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from adaptive_vtt.experiments.medmnistc import medmnistc_reference as reference
from adaptive_vtt.types import Image

SEVERITIES = (1, 2, 3, 4, 5)
WINDOWS = ((0, 0), (98, 152))
SIDE = 24
ANGLES = (-31.0, 12.0)
EXACT = {
    "pixelate": "pathmnist",
    "jpeg_compression": "pathmnist",
    "defocus_blur": "dermamnist",
    "motion_blur": "dermamnist",
    "zoom_blur": "dermamnist",
    "gaussian_blur": "tissuemnist",
    "brightness_up": "pathmnist",
    "brightness_down": "pathmnist",
    "contrast_up": "pathmnist",
    "contrast_down": "pathmnist",
    "saturate": "pathmnist",
    "black_corner": "dermamnist",
    "gamma_corr_up": "chestmnist",
    "gamma_corr_down": "chestmnist",
}
DRAWN = {
    "gaussian_noise": ("dermamnist", 4),
    "speckle_noise": ("dermamnist", 4),
    "impulse_noise": ("dermamnist", 4),
    "shot_noise": ("dermamnist", 4),
    "stain_deposit": ("pathmnist", 2000),
    "bubble": ("pathmnist", 2000),
    "characters": ("dermamnist", 2000),
}
GREY = ("pixelate", "jpeg_compression", "gaussian_blur", "contrast_up", "gamma_corr_up")


def picture() -> Image:
    """A 224 x 224 colour image: blobs, a ramp, fine texture, and flat, black and white parts."""
    rng = np.random.default_rng(0)
    blobs = cv2.GaussianBlur(rng.random((224, 224, 3)), (0, 0), 7)
    blobs = 255 * (blobs - blobs.min()) / (blobs.max() - blobs.min())
    blobs[:, 120:] += 24 * np.sin(np.arange(224) / 2)[:, None, None]
    blobs[150:, :] += np.linspace(-60, 60, 224)[:, None]
    image = np.clip(np.rint(blobs), 0, 255).astype(np.uint8)
    image[4:20, 4:20] = (200, 200, 40)
    image[100:110, 155:165], image[112:122, 155:165] = 0, 255
    image[104:120, 168:176] = 90
    return image


def windows(image: Image) -> Image:
    """The two 24 x 24 windows that are kept of an image."""
    return np.stack([image[y : y + SIDE, x : x + SIDE] for y, x in WINDOWS])


def statistics(image: Image, after: Image) -> list[float]:
    """Mean and deviation of the change in grey levels, and the share of pixels changed."""
    change = after.astype(float) - image
    return [change.mean(), change.std(), float((change != 0).any(axis=-1).mean())]


def grey(image: Image) -> Image:
    """Pillow's mode L of an RGB image, H x W x 1."""
    from importlib import import_module

    return np.asarray(import_module("PIL.Image").fromarray(image).convert("L"))[..., None]


def exact(table: dict[str, dict[str, Any]], image: Image) -> dict[str, Image]:
    """Name -> severities x windows x 24 x 24 x channels."""
    kept = {}
    one = np.repeat(image[..., 1:2], 3, axis=2)
    for name, flag in EXACT.items():
        corruption = table[flag][name]
        if name == "motion_blur":
            for angle in ANGLES:
                made = [reference.motion_at(corruption, image, s, angle) for s in SEVERITIES]
                kept[f"{flag}/{name}/{angle:g}"] = np.stack([windows(m) for m in made])
            continue
        made = [reference.apply(corruption, image, s) for s in SEVERITIES]
        kept[f"{flag}/{name}"] = np.stack([windows(m) for m in made])
        if name in GREY:
            made = [grey(reference.apply(corruption, one, s)) for s in SEVERITIES]
            kept[f"{flag}/{name}/grey"] = np.stack([windows(m) for m in made])
    return kept


def drawn(table: dict[str, dict[str, Any]], image: Image) -> dict[str, Any]:
    """Name -> severities x (mean, deviation, share changed), averaged over draws."""
    kept = {}
    one = np.repeat(image[..., 1:2], 3, axis=2)
    for name, (flag, draws) in DRAWN.items():
        reference.seed(1)
        corruption = table[flag][name]

        def average(
            source: Image,
            severity: int,
            to_grey: bool = False,
            corruption: Any = corruption,
            draws: int = draws,
        ) -> Any:
            rows = []
            for _ in range(draws):
                after = reference.apply(corruption, source, severity)
                pair = (grey(source), grey(after)) if to_grey else (source, after)
                rows.append(statistics(*pair))
            return np.mean(rows, axis=0)

        kept[f"{flag}/{name}"] = np.stack([average(image, s) for s in SEVERITIES])
        if name.endswith("noise"):
            kept[f"{flag}/{name}/grey"] = np.stack([average(one, s, True) for s in SEVERITIES])
    return kept


def marks(table: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Per bank of ink marks: its side, mean coverage, and least share of the largest piece."""
    bank = table["pathmnist"]["stain_deposit"].inks
    rows = []
    for key in ("3", "4"):
        coverage, largest = [], []
        for mark in bank[key]:
            stats = cv2.connectedComponentsWithStats(np.asarray(mark, np.uint8), connectivity=8)[2]
            coverage.append(float(np.mean(mark)))
            largest.append(stats[1:, cv2.CC_STAT_AREA].max() / stats[1:, cv2.CC_STAT_AREA].sum())
        rows.append([len(bank[key][0]), np.mean(coverage), np.min(largest)])
    return {"marks": np.array(rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("medmnistc.npz"))
    options = parser.parse_args()
    table, image = reference.registry(), picture()
    arrays: dict[str, Any] = {"image": image}
    arrays |= {f"exact/{name}": made for name, made in exact(table, image).items()}
    arrays |= {f"drawn/{name}": made for name, made in drawn(table, image).items()}
    np.savez_compressed(options.out, **arrays, **marks(table))
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
