"""Cut-outs chosen by how like their pictures are to the one they go into (thesis, RQ4).

The thesis compares contrast, brightness and colour and gives no limit. Here those are the mean
and the deviation of brightness and the two mean colour axes of CIE Lab, over the visible field
and each in units of its spread in the folder, and one of the nearest pictures is drawn.
"""

from functools import cached_property

import cv2
import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...types import Image, Mask
from ...utils.image_files import read_image
from .cutouts import Cutout, Folder
from .scene import Scene, visible_field

Look = npt.NDArray[np.float64]
"""(4,): mean and deviation of lightness, and mean a and b, all on 0..255."""


class Similar:
    """One of the ``share`` (0..1) of a folder's cut-outs whose pictures are likest the target.

    All pictures of the folder are read once. Raises InputError for a share out of range.
    """

    def __init__(self, folder: Folder, share: float = 0.25) -> None:
        if not 0 < share <= 1:
            raise InputError(f"similar: expected a share above 0 and up to 1, got {share:g}")
        self._folder = folder
        self._share = share

    @property
    def describe(self) -> str:
        return f"{self._folder.describe}, the nearest {self._share:g}"

    def cutout(self, rng: np.random.Generator) -> Cutout:
        """Any of the folder's, where there is no picture to be like."""
        return self._folder.cutout(rng)

    def cutout_for(self, scene: Scene, rng: np.random.Generator) -> Cutout:
        """One of the nearest, all equally likely."""
        away = (self._looks - look(scene.image, scene.field)) / self._spread
        count = max(1, round(self._share * len(self._folder)))
        nearest = np.argsort((away**2).sum(axis=1), kind="stable")[:count]
        return self._folder.number(int(rng.choice(nearest)))

    @cached_property
    def _looks(self) -> Look:
        """n x 4."""
        return np.stack([_look_of(read_image(p, str(p))) for p in self._folder.pictures()])

    @cached_property
    def _spread(self) -> Look:
        """(4,): never 0, as all pictures may be alike in something."""
        return np.maximum(self._looks.std(axis=0), 1.0)


def look(image: Image, field: Mask) -> Look:
    """Contrast, brightness and colour of H x W x 3 RGB over the field."""
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    mean, deviation = cv2.meanStdDev(lab, mask=field.view(np.uint8))
    return np.array([mean[0, 0], deviation[0, 0], mean[1, 0], mean[2, 0]])


def _look_of(image: Image) -> Look:
    if image.shape[2] == 1:
        image = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    return look(image, visible_field(image))
