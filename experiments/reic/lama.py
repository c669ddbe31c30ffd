"""Inpainting by a network in an ONNX file, as REIC does (LaMa: Suvorov et al., WACV 2022).

To use it in an audit, write `fill = LaMa("lama.onnx")` into a file of your own and name it in
SPEC.toml: `inpainting = "file.py:fill"` in [oracle].
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from adaptive_vtt.errors import InputError, one_line
from adaptive_vtt.models.local.onnx import session
from adaptive_vtt.models.local.tensors import InputShape, fitted
from adaptive_vtt.oracles.captions.localising import MARGIN, grown, pixels
from adaptive_vtt.types import Box, Image

MULTIPLE = 8
"""Pixels: a side that the network's file leaves free is padded to a multiple of this, since the
network halves its input three times."""


class LaMa:
    """A ``Filler`` by a network that receives the image and a mask of what to paint.

    The inputs are the image, 1 x 3 x H x W in [0, 1], and the mask, 1 x 1 x H x W, 1 where to
    paint, both float32; they are recognised by their channels. The output is 1 x 3 x H x W in [0,
    1], or in [0, 255] if any value is above 2. For a fixed input size the image is resized there
    and back. Only the box and ``margin`` pixels around it are taken from the output. It needs
    onnxruntime (the extra ``onnx``).

    Raises:
        InputError: The file or the network does not fit.
    """

    def __init__(
        self, path: Path | str, *, margin: int = MARGIN, providers: Sequence[str] | None = None
    ) -> None:
        self._where = f"inpainting {str(path)!r}"
        self.margin = margin
        self._session = session(Path(path), providers or ("CPUExecutionProvider",))
        content = hashlib.blake2b(Path(path).read_bytes(), digest_size=12).hexdigest()
        self.fingerprint = f"ONNX inpainting {content}, margin {margin}"
        inputs = {_channels(one.shape): one for one in self._session.get_inputs()}
        if set(inputs) != {1, 3} or len(self._session.get_inputs()) != 2:
            shapes = ", ".join(str(one.shape) for one in self._session.get_inputs())
            raise InputError(
                f"{self._where}: expected inputs of shape (1, 3, H, W) and (1, 1, H, W), got "
                f"{shapes}"
            )
        self._image, self._mask = inputs[3].name, inputs[1].name
        self._shape = InputShape.of(inputs[3].shape, self._where)

    def __call__(self, image: Image, box: Box) -> Image:
        """Return a copy of H x W x C uint8 without the content of ``box``."""
        height, width = image.shape[:2]
        filled = image.copy()
        left, top, right, bottom = pixels(grown(box, self.margin), height, width)
        if 0 in filled[top:bottom, left:right].shape:
            return filled
        hole = np.zeros((height, width, 1), np.uint8)
        hole[top:bottom, left:right] = 255
        drawn = self._drawn(image, hole)
        filled[top:bottom, left:right] = drawn[top:bottom, left:right]
        return filled

    def _drawn(self, image: Image, hole: Image) -> Image:
        """Return the network's picture, H x W x C."""
        height, width, channels = image.shape
        tall = self._shape.height or _up(height)
        wide = self._shape.width or _up(width)
        colour = self._fitted(image, 3)
        mask = self._fitted(hole, 1) > 0
        tensors: dict[str, npt.NDArray[Any]] = {
            self._image: _planes(colour, tall, wide) / np.float32(255),
            self._mask: _planes(mask, tall, wide).astype(np.float32),
        }
        output = self._run(tensors)
        if output.shape != (1, 3, tall, wide):
            raise InputError(
                f"{self._where}: expected an output of shape (1, 3, {tall}, {wide}), got "
                f"{output.shape}"
            )
        scale = 1 if output.max() > 2 else 255
        levels = np.rint(np.nan_to_num(output[0]) * scale).clip(0, 255).astype(np.uint8)
        kept = levels.transpose(1, 2, 0)[: colour.shape[0], : colour.shape[1]]
        return fitted(np.ascontiguousarray(kept), height, width, channels)

    def _fitted(self, image: Image, channels: int) -> Image:
        return fitted(image, self._shape.height, self._shape.width, channels)

    def _run(self, tensors: dict[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
        try:
            return np.asarray(self._session.run(None, tensors)[0], float)
        except Exception as error:  # onnxruntime's errors have no base of their own
            shapes = ", ".join(str(tensor.shape) for tensor in tensors.values())
            raise InputError(
                f"{self._where}: cannot run on inputs of shape {shapes}: {one_line(error)[:200]}"
            ) from None


def _channels(shape: Sequence[Any]) -> int:
    return shape[1] if len(shape) == 4 and isinstance(shape[1], int) else 0


def _up(side: int) -> int:
    return -(-side // MULTIPLE) * MULTIPLE


def _planes(image: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[Any]:
    """Return H x W x C as 1 x C x height x width, with repeated edges."""
    down, across = height - image.shape[0], width - image.shape[1]
    padded = np.pad(image, ((0, down), (0, across), (0, 0)), mode="edge")
    return padded.transpose(2, 0, 1)[None]
