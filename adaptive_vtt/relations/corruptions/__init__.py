"""Image corruptions as relations: one function, one ladder of parameters.

The functions of this package take ``change(images, rng, *parameters)``: uint8 images
H x W x 3 (RGB), or any stack of them where a function is marked as stacking, and return a
new uint8 array of the same shape. Parameters keep the units in which they were published:
noise on the 0..1 scale, lengths of blurs in pixels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ...types import FollowUp, Image, Sample
from ..base import LabelPreserving, between

LUMA = np.array([[19595, 38470, 7471, 32768]]) / 65536
"""Weights of red, green and blue in a grey level (ITU-R BT.601, times 2 ** 16), and one half, which
makes cutting to whole numbers round."""


@dataclass(frozen=True)
class Corruption(LabelPreserving):
    """A corruption with one tuple of parameters per severity.

    A grey image (H x W x 1) is repeated to three channels, corrupted and turned back by
    ``grey``. Noise is therefore drawn per channel and mixed, which is how MedMNIST-C treats
    its grey data sets; ``plain_grey`` corrupts the one channel instead.
    """

    name: str
    ladder: tuple[tuple[float, ...], ...]
    change: Callable[..., Image]
    about: str = ""
    stacks: bool = False
    in_order: bool = True  # whether the mean change grows with every severity
    plain_grey: bool = False
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        """The corrupted H x W x C image; raises InputError for a severity that is none."""
        return self._changed(image, self._parameters(severity), rng)

    def apply_between(self, sample: Sample, rng: np.random.Generator) -> FollowUp:
        """Each parameter is drawn on its own, between its first and its last value.

        Source: MedMNIST-C, section 2.3. Where a parameter counts things, what is drawn is cut
        down to a whole number, as there.
        """
        ends = zip(self.ladder[0], self.ladder[-1], strict=True)
        drawn = tuple(between(first, last, rng) for first, last in ends)
        return replace(self, ladder=(drawn,), severities=(1,)).apply(sample, 1, rng)

    def apply_batch(self, images: Image, severity: int, rng: np.random.Generator) -> Image:
        """The corrupted B x H x W x C images.

        The same bytes as ``transform`` on one image after the other with the same ``rng``.
        Noise and point-wise colour take the stack at once; the others go image by image.
        Raises InputError for a severity that is none.
        """
        parameters = self._parameters(severity)
        if not len(images):
            return images.copy()
        if self.stacks:
            return self._changed(images, parameters, rng)
        return np.stack([self._changed(image, parameters, rng) for image in images])

    def _parameters(self, severity: int) -> tuple[float, ...]:
        self.check(severity)
        return self.ladder[self.severities.index(severity)]

    def _changed(self, images: Image, parameters: tuple[Any, ...], rng: Any) -> Image:
        images = np.ascontiguousarray(images)
        if images.shape[-1] == 3 or self.plain_grey:
            return np.ascontiguousarray(self.change(images, rng, *parameters))
        return grey(self.change(np.repeat(images, 3, axis=-1), rng, *parameters))


def grey(images: Image) -> Image:
    """Grey levels (... x 1, uint8) of RGB images (... x 3), rounded as Pillow's mode L is."""
    flat = images.reshape(-1, images.shape[-2], 3)  # OpenCV knows no stacks
    # multiples of 2**-16 below 256, which 32-bit floats hold exactly
    levels = cv2.transform(flat.astype(np.float32), LUMA)
    return levels.astype(np.uint8).reshape(*images.shape[:-1], 1)


def truncated(values: npt.NDArray[Any]) -> Image:
    """Values on the 0..255 scale, clipped and cut down to uint8, as MedMNIST-C cuts them."""
    return np.clip(values, 0, 255).astype(np.uint8)
