"""Where the objects of a caption are: by a detector's names, else by hiding what it found.

After REIC (Metamorphic Testing of Image Captioning Systems via Image-Level Reduction, TSE
2024, section IV-B3 and Algorithm 1). The paper gives neither the width of its blur nor the size
of what it inpaints; here they are `BLUR` and `MARGIN`.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError, check_known, one_line
from ...models.local.onnx import session
from ...models.local.tensors import InputShape, fitted
from ...types import Box, Filler, Image
from . import Same

# -- what a captioner no longer names when a box is covered ----------------------------------------


VERSIONS = ("blur", "black", "inpaint")
"""The three ways of covering a box, in REIC's order."""
HIDDEN = "hidden/"
"""Begins the names of versions of an image with a box covered, before the way."""
BLUR = 0.25
"""Standard deviation of the blur, as a share of the box's width and height. At this width a pattern
of two waves per side keeps less than 1 % of its contrast, so only blotches of colour remain."""
MARGIN = 3
"""Pixels around a box that are inpainted too: soft edges left standing would give the thing
away."""
_DETAIL = 64
"""Pixels per side to which a large box is shrunk before it is blurred: the blur leaves no finer
detail anyway."""
_RADIUS = 3
"""Radius in pixels of the neighbourhood that inpainting continues from."""
_CONTEXT = 2 * _RADIUS
"""Pixels around the inpainted area that are handed to the method, so that it sees enough of its
surroundings."""


def inpainted(image: Image, box: Box) -> Image:
    """A copy of H x W x C uint8 whose box, and MARGIN pixels around, continue what is outside.

    The method is Telea's (J. Graphics Tools 9, 2004). Where nothing is outside, the box gets
    the mean colour.
    """
    import cv2

    height, width = image.shape[:2]
    filled = image.copy()
    if _empty(pixels(box, height, width)):
        return filled
    left, top, right, bottom = pixels(grown(box, MARGIN), height, width)
    x1, y1, x2, y2 = pixels(grown(box, MARGIN + _CONTEXT), height, width)
    around = np.ascontiguousarray(image[y1:y2, x1:x2])
    hole = np.zeros(around.shape[:2], np.uint8)
    hole[top - y1 : bottom - y1, left - x1 : right - x1] = 1
    if hole.all():
        filled[:] = np.rint(image.mean(axis=(0, 1)))
        return filled
    drawn = cv2.inpaint(around, hole, _RADIUS, cv2.INPAINT_TELEA).reshape(around.shape)
    filled[y1:y2, x1:x2][hole > 0] = drawn[hole > 0]
    return filled


def occluded(
    image: Image, box: Box, version: str, *, blur: float = BLUR, fill: Filler = inpainted
) -> Image:
    """A copy of H x W x C uint8 in which what is in ``box`` cannot be made out.

    ``version``: "blur" (Gaussian, of ``blur`` times the box's sides, over the box alone),
    "black", or "inpaint" (by ``fill``). A box is widened to whole pixels and clipped; one that
    lies outside changes nothing. Raises InputError for another version or a blur not above 0.
    """
    check_known("version", version, VERSIONS, "occlusion")
    if not blur > 0:
        raise InputError(f"occlusion: expected a blur above 0, got {blur}")
    if version == "inpaint":
        return fill(image, box)
    left, top, right, bottom = pixels(box, *image.shape[:2])
    covered = image.copy()
    inside = covered[top:bottom, left:right]
    if version == "black":
        inside[:] = 0
    elif inside.size:
        inside[:] = _blurred(inside, blur)
    return covered


def pixels(box: Box, height: int, width: int) -> tuple[int, int, int, int]:
    """The whole pixels that ``box`` touches in an H x W image: left, top, right, bottom."""
    left, right = (min(max(side, 0), width) for side in (box.left, box.right))
    top, bottom = (min(max(side, 0), height) for side in (box.top, box.bottom))
    return math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)


def grown(box: Box, margin: float) -> Box:
    """``box`` with so many pixels more on every side."""
    return replace(
        box,
        left=box.left - margin,
        top=box.top - margin,
        right=box.right + margin,
        bottom=box.bottom + margin,
    )


def innermost(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """The boxes that contain no other one, in their order (REIC, Algorithm 1, line 10).

    Of two regions one of which includes the other, the smaller is more likely the object's
    place. Of equal boxes the first is kept.
    """

    # how far each box reaches in each direction; one contains another where it reaches as far
    reach = np.array([box.edges for box in boxes]).reshape(-1, 4) * [-1, -1, 1, 1]
    contains = (reach[:, None] >= reach).all(axis=2)
    earlier = np.tri(len(boxes), k=-1, dtype=bool)
    outer = (contains & (~contains.T | earlier)).any(axis=1)
    return tuple(boxes[k] for k in np.flatnonzero(~outer).tolist())


def _empty(sides: tuple[int, int, int, int]) -> bool:
    left, top, right, bottom = sides
    return right <= left or bottom <= top


def _blurred(image: Image, blur: float) -> Image:
    """Blurred over its own sides; those above _DETAIL are drawn smaller while that is done."""
    import cv2

    height, width = image.shape[:2]
    tall, wide = min(height, _DETAIL), min(width, _DETAIL)
    small = cv2.resize(np.ascontiguousarray(image), (wide, tall), interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(
        small, (0, 0), sigmaX=blur * wide, sigmaY=blur * tall, borderType=cv2.BORDER_REPLICATE
    )
    drawn = cv2.resize(soft, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(drawn, np.uint8).reshape(image.shape)


# -- inpainting by a network in an ONNX file, as REIC does -----------------------------------------


MULTIPLE = 8
"""Pixels: a side that the network's file leaves free is padded to a multiple of this, since the
network halves its input three times."""


class LaMa:
    """A ``Filler`` by a network that is given the image and a mask of what to paint.

    Inputs: image 1 x 3 x H x W in [0, 1] and mask 1 x 1 x H x W, 1 where to paint, of float32,
    told apart by their channels; output: 1 x 3 x H x W in [0, 1] or, where any value is above
    2, [0, 255]. For a fixed input size the image is resized there and back. Only the box and
    ``margin`` pixels around it are taken from the output. Needs onnxruntime (the extra
    ``onnx``). Raises InputError for files and networks that do not fit.
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
        """A copy of H x W x C uint8 without what was in ``box``."""
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
        """The network's picture of H x W x C."""
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
        return fitted(np.ascontiguousarray(kept), InputShape(1, channels, height, width, True))

    def _fitted(self, image: Image, channels: int) -> Image:
        return fitted(image, InputShape(1, channels, self._shape.height, self._shape.width, True))

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
    """H x W x C as 1 x C x height x width, its edges repeated."""
    down, across = height - image.shape[0], width - image.shape[1]
    padded = np.pad(image, ((0, down), (0, across), (0, 0)), mode="edge")
    return padded.transpose(2, 0, 1)[None]


# -- the boxes of each name ------------------------------------------------------------------------


@dataclass(frozen=True)
class Located:
    """An object by its name in the caption, and the boxes it is seen in; none: unlocated."""

    name: str
    boxes: tuple[Box, ...]


def by_detection(names: Sequence[str], boxes: Sequence[Box], same: Same) -> list[Located]:
    """Each name with every box whose label means the same."""
    return [
        Located(name, tuple(b for b in boxes if b.label and same(name, b.label))) for name in names
    ]


def completed(
    detected: Sequence[Located],
    boxes: Sequence[Box],
    hidden: Mapping[int, Sequence[str]],
    same: Same,
) -> tuple[Located, ...]:
    """What was detected, and by occlusion what no box bears the name of."""
    return tuple(
        one if one.boxes or not hidden else by_occlusion(one.name, boxes, hidden, same)
        for one in detected
    )


def by_occlusion(
    name: str, boxes: Sequence[Box], hidden: Mapping[int, Sequence[str]], same: Same
) -> Located:
    """The boxes without which the object is not named any more.

    ``hidden``: what was named when a box was hidden, by box * 3 + version (blur, black,
    inpaint). A box belongs to the object if that is absent from all three (REIC, Algorithm 1, line
    6); one that was not answered proves nothing. Of boxes within each other the inner ones count.
    """
    absent = np.zeros((len(boxes), len(VERSIONS)), dtype=bool)
    for place, names in hidden.items():
        absent[divmod(place, len(VERSIONS))] = not any(same(name, n) for n in names)
    accepted = np.flatnonzero(absent.all(axis=1)).tolist()
    return Located(name, innermost([boxes[k] for k in accepted]))


def rounded(box: Box) -> list[float]:
    """The box's edges to a tenth of a pixel, as JSON has them."""
    return [round(float(edge), 1) for edge in box.edges]
