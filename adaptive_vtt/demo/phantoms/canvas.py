"""What a phantom frame is painted on, and the noise it is made of."""

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass
class Canvas:
    """A frame in the making, S x S: colour x light + reflections gives the picture."""

    albedo: Floats  # S x S x 3, 0..1
    light: Floats
    shine: Floats

    @property
    def size(self) -> int:
        return len(self.light)


def noise(rng: np.random.Generator, cells: int, shape: tuple[int, ...]) -> Floats:
    """Smooth noise (H x W) of about unit variance, with ``cells`` bumps along either side.

    Its grid does not depend on the shape, so it looks the same at every size.
    """
    grid = rng.standard_normal((cells, cells), dtype=np.float32)
    return cv2.resize(grid, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
