"""A picture with boxes, and cut-outs to paste into it."""

import numpy as np

from adaptive_vtt.experiments.reic.metaic_rome import CutOut, MetaIC
from adaptive_vtt.types import Box, Image, Mask, Sample

HEIGHT, WIDTH = 60, 80
DISC = np.hypot(*np.mgrid[-9.5:10, -9.5:10]) < 9.8
KITE = CutOut("kite", np.full((20, 20, 3), 250, np.uint8), DISC.astype(np.float32))
BALL = CutOut("sports ball", np.full((12, 30, 3), 5, np.uint8), np.ones((12, 30), np.float32))
METAIC = MetaIC((KITE, BALL))
DOG, CAT = Box("dog", 5, 30, 25, 50), Box("cat", 45.5, 20.2, 69.5, 52)


def noise(shape: tuple[int, ...] = (HEIGHT, WIDTH, 3), seed: int = 0) -> Image:
    return np.random.default_rng(seed).integers(60, 196, shape, dtype=np.uint8)


def sample(*boxes: Box, image: Image | None = None, **masks: Mask) -> Sample:
    return Sample("s", noise() if image is None else image, {}, boxes=boxes, masks=masks)


def inside(box: Box, shape: tuple[int, ...] = (HEIGHT, WIDTH)) -> Mask:
    mask = np.zeros(shape[:2], bool)
    mask[int(box.top) : int(box.bottom), int(box.left) : int(box.right)] = True
    return mask
