"""Noise, drawn for each value of the image on its own (Hendrycks & Dietterich, 2019).

All functions here take stacks of images of any number of channels.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from ...types import Image
from . import truncated

CELLS = 1024


def gaussian_noise(images: Image, rng: np.random.Generator, deviation: float) -> Image:
    """Adds normal noise; ``deviation`` on the 0..1 scale."""
    noise = rng.standard_normal(images.shape, np.float32)
    noise *= np.float32(255 * deviation)
    noise += images
    return truncated(noise)


def speckle_noise(images: Image, rng: np.random.Generator, deviation: float) -> Image:
    """Adds normal noise in proportion to each value."""
    noise = rng.standard_normal(images.shape, np.float32)
    noise *= np.float32(deviation)
    noise += 1
    noise *= images
    return truncated(noise)


def impulse_noise(images: Image, rng: np.random.Generator, amount: float) -> Image:
    """Replaces the share ``amount`` (0..1) of all values, half by 255 and half by 0."""
    chance = rng.random(images.shape, np.float32)
    changed = images.copy()
    changed[chance < amount] = 0
    changed[chance < amount / 2] = 255
    return changed


def shot_noise(images: Image, rng: np.random.Generator, photons: float) -> Image:
    """Poisson counts, ``photons`` of them at white; fewer photons are stronger noise.

    The counts come from exact inversion of their distribution. A table tells the count
    from a value and a cell of the unit interval; only where a step of the distribution
    falls into the cell is it looked at closely.
    """
    chance = rng.random(images.shape)
    fewest, most, steps = _counts(photons)
    at = images.astype(np.intp)
    at *= CELLS
    at += (chance * CELLS).astype(np.intp)
    counts = fewest.take(at)
    close = counts != most.take(at)
    counts[close] = (chance[close][:, None] >= steps[images[close]]).sum(axis=1)
    levels = np.arange(steps.shape[1] + 1) * (255 / photons)
    return truncated(levels + 1e-9).take(counts)


Counts = npt.NDArray[np.int16]


@lru_cache(maxsize=64)
def _counts(photons: float) -> tuple[Counts, Counts, npt.NDArray[np.float64]]:
    """Lowest and highest count per value and cell, and the distribution's steps per value.

    Counts above ``photons`` are all white, so that the last one stands for them.
    """
    mean = np.arange(256)[:, None] / 255 * photons
    steps = np.asarray(pdtr(np.arange(int(np.ceil(photons))), mean))
    edges = np.arange(CELLS + 1) / CELLS
    counts = np.stack([np.searchsorted(row, edges, side="right") for row in steps])
    fewest, most = counts[:, :-1].astype(np.int16), counts[:, 1:].astype(np.int16)
    return fewest.ravel(), most.ravel(), steps
