"""Object detectors in ONNX files."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...datasets.scanning import choose
from ...errors import InputError, one_line, unknown
from ...models.local.onnx import TYPES, session
from ...models.local.tensors import InputShape, Preprocessing, fitted
from ...types import Box, Image
from ...utils.files import why_unread
from ...utils.options import Option, at_base
from .detector_outputs import Found, fastestdet, letterbox, roles, ssd, yolo

Layout = Literal["auto", "yolo", "ssd", "fastestdet"]

SIDES = {"yolo": 640, "fastestdet": 352}
"""The side of a network's input where its file leaves it free, by layout; for the third
layout that of the picture."""


class OnnxDetector:
    """A ``Detector`` from an ONNX file with one image input.

    ``labels``: what class 0, 1 ... of the network is, as a list or as a text file with one per
    line; where class numbers start at 1 (most SSD networks), the first is the background.
    ``layout``: see `detector_outputs`; "auto" takes a single output for FastestDet's where it has
    four axes, else for YOLO's. Boxes with a score below ``threshold`` are dropped, and of two
    boxes with the same label whose intersection over union is above ``overlap`` the less sure one
    (both in (0, 1]; REIC names neither). ``size``: height and width of the input, or one number
    for both; default the file's, and where it has none, 640 (YOLO), 352 (FastestDet) or the
    picture's own. ``mean``, ``std``: see `Preprocessing`; ``providers``: where it runs, in order
    of preference (default: the CPU). Needs onnxruntime (the extra ``onnx``). Raises InputError
    for what does not fit.
    """

    def __init__(
        self,
        path: Annotated[Path | str, Option("the file", reads=at_base)],
        *,
        labels: Annotated[
            Sequence[str] | Path | str,
            Option("text file of class names, one per line", reads=at_base, type=str),
        ],
        layout: Annotated[Layout, Option("how the outputs are laid out")] = "auto",
        threshold: Annotated[
            float, Option("boxes less sure than this are left out", gt=0, le=1)
        ] = 0.5,
        overlap: Annotated[
            float, Option("of boxes that overlap more one is kept", gt=0, le=1)
        ] = 0.45,
        size: Annotated[
            int | tuple[int, int] | None,
            Option("side of the input (default: the file's)", type=int),
        ] = None,
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
        providers: Sequence[str] | None = None,
    ) -> None:
        self._where = f"detector {str(path)!r}"
        choose("layout", layout, get_args(Layout), self._where)
        for name, value in (("threshold", threshold), ("overlap", overlap)):
            if not 0 < value <= 1:
                raise InputError(f"{self._where}: expected {name} in (0, 1], got {value}")
        self.labels = _labels(labels)
        self.threshold, self.overlap = threshold, overlap
        self._session = session(Path(path), providers or ("CPUExecutionProvider",), "detector")
        given = self._session.get_outputs()
        outputs = [output.name for output in given]
        self.layout = (
            _layout([len(output.shape) for output in given]) if layout == "auto" else layout
        )
        self._outputs = roles(outputs, self._where) if self.layout == "ssd" else outputs[:1]
        self._preprocessing = Preprocessing(tuple(mean), tuple(std))
        self._take_input((size, size) if isinstance(size, int) else size)
        self._try()
        options = (self.labels, self.layout, threshold, overlap, self._shape, self._preprocessing)
        content = hashlib.blake2b(Path(path).read_bytes(), digest_size=12).hexdigest()
        self.describe = f"ONNX detector {content} {options!r}"
        """What the boxes depend on: the file's content and all options."""

    def detect(self, image: Image) -> tuple[Box, ...]:
        """The boxes in H x W x C uint8, surest first, clipped to the picture."""
        height, width = image.shape[:2]
        canvas = self._canvas(image)
        size, outputs = (canvas.shape[0], canvas.shape[1]), self._run(canvas)
        if self.layout == "yolo":
            found = yolo(outputs, len(self.labels), size, (height, width), self._where)
        elif self.layout == "fastestdet":
            found = fastestdet(outputs, len(self.labels), (height, width), self._where)
        else:
            found = ssd(outputs, size, (height, width), self._where)
        return self._kept(found._replace(edges=found.edges.clip(0, [width, height] * 2)))

    def _try(self) -> None:
        """Looks at a black picture, so that what does not fit is said before an audit begins."""
        height, width = self._shape.height, self._shape.width
        if self.layout != "ssd" or (height and width):
            self.detect(np.zeros((height or 32, width or 32, 3), np.uint8))

    def _canvas(self, image: Image) -> Image:
        """The image as the network takes it, H x W x C."""
        if self.layout == "ssd":
            return fitted(image, self._shape)
        side = SIDES[self.layout]
        size = self._shape.height or side, self._shape.width or side
        if self.layout == "yolo":
            return letterbox(image, size, self._shape.channels)
        shape = replace(self._shape, height=size[0], width=size[1])
        return fitted(image, shape)[:, :, ::-1]

    def _take_input(self, size: tuple[int, int] | None) -> None:
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(one.name for one in inputs)
            raise InputError(f"{self._where}: expected one input, an image, got {names}")
        if inputs[0].type not in TYPES:
            raise unknown("input type", inputs[0].type, TYPES, self._where)
        self._input, self._dtype = inputs[0].name, TYPES[inputs[0].type]
        self._bare = len(inputs[0].shape) == 3  # torchvision's take an image, not a batch
        shape = InputShape.of([1] * self._bare + list(inputs[0].shape), self._where)
        if shape.batch not in (None, 1):
            raise InputError(f"{self._where}: expected an input of one image, got {shape.batch}")
        height, width = size or (shape.height, shape.width)
        for wanted, fixed in ((height, shape.height), (width, shape.width)):
            if (wanted is not None and wanted < 1) or fixed not in (None, wanted):
                raise InputError(
                    f"{self._where}: expected a size of {shape.height or 'any'} x "
                    f"{shape.width or 'any'} (height x width), got {height} x {width}"
                )
        self._shape = InputShape(1, shape.channels, height, width, shape.channels_first)

    def _run(self, canvas: Image) -> list[npt.NDArray[Any]]:
        tensor = self._preprocessing.apply(
            canvas,
            InputShape(1, self._shape.channels, None, None, self._shape.channels_first),
            dtype=self._dtype,
        )
        tensor = tensor if self._bare else tensor[None]
        try:
            return self._session.run(self._outputs, {self._input: tensor})
        except Exception as error:  # onnxruntime's errors have no base of their own
            raise InputError(
                f"{self._where}: cannot run on an input of shape {tensor.shape}: "
                f"{one_line(error)[:200]}"
            ) from None

    def _kept(self, found: Found) -> tuple[Box, ...]:
        """Sure enough, on the picture, and each thing once per label."""
        import cv2

        sides = found.edges[:, 2:] - found.edges[:, :2]
        sure = (found.scores >= self.threshold) & (sides > 0).all(axis=1)
        if not sure.any():
            return ()
        edges, classes, scores = (part[sure] for part in found)
        if classes.min() < 0 or classes.max() >= len(self.labels):
            wrong = classes[(classes < 0) | (classes >= len(self.labels))][0]
            raise InputError(
                f"{self._where}: expected classes 0 to {len(self.labels) - 1}, one per label, "
                f"got {wrong}"
            )
        rectangles = np.hstack([edges[:, :2], sides[sure]]).tolist()
        chosen = cv2.dnn.NMSBoxesBatched(
            rectangles, scores.tolist(), classes.tolist(), 0.0, self.overlap
        )
        order = sorted(np.asarray(chosen).tolist(), key=lambda k: (-scores[k], k))
        return tuple(self._box(edges[k].tolist(), classes[k], scores[k]) for k in order)

    def _box(self, edges: Sequence[float], label: int, score: float) -> Box:
        left, top, right, bottom = edges
        return Box(self.labels[label], left, top, right, bottom, min(1.0, float(score)))


def _layout(axes: Sequence[int]) -> Layout:
    """That of outputs with so many axes each."""
    if len(axes) > 1:
        return "ssd"
    return "fastestdet" if axes[0] == 4 else "yolo"


def _labels(given: Sequence[str] | Path | str) -> tuple[str, ...]:
    if isinstance(given, str | Path):
        try:
            text = Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{given}: expected a text file of labels, one per line, and cannot read it: "
                f"{why_unread(Path(given), error)}"
            ) from None
        given = [line.strip() for line in text.rstrip().splitlines()]
    if not given:
        raise InputError("detector: expected labels, one per class, got none")
    return tuple(given)
