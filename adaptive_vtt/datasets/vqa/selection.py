"""k-centre selection: few of many that are far from each other.

Source: Gonzalez, Clustering to Minimize the Maximum Intercluster Distance (Theoretical
Computer Science 38, 1985): farthest first, from the one nearest to the mean.
"""

import cv2
import numpy as np
import numpy.typing as npt

from ...types import Image


def k_centre(points: npt.ArrayLike, count: int) -> list[int]:
    """Which ``count`` rows of n x d to take, in the order in which they are; all if n <= count."""
    rows = np.asarray(points, np.float64)
    chosen = [int(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).argmin())]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < min(count, len(rows)):
        nearest = np.minimum(nearest, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
        nearest[chosen] = -1
        chosen.append(int(nearest.argmax()))
    return chosen


def look(image: Image) -> npt.NDArray[np.float64]:
    """An image as 8 x 8 pixels of its colours in [0, 1], flat: an embedding that needs no model."""
    return cv2.resize(image, (8, 8), interpolation=cv2.INTER_AREA).ravel() / 255.0
