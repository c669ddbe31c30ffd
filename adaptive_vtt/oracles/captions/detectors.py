"""Object detectors in ONNX files, and datasets with the boxes of a detector.

Two layouts of a network's output are supported; other networks need a custom detector.

"yolo": one output in pixels of the network's input, which is a letterbox: the image with its
proportions on a grey canvas. With C labels it has one of two shapes:

- 1 x (4 + C) x N, from YOLOv8 on: centre x, centre y, width, height, and C class scores.
- 1 x N x (5 + C), in YOLOv5: the same with an objectness score before the class scores.

"fastestdet": one output 1 x (5 + C) x H x W for a grid of H x W cells on the image
(github.com/dog-qiuqiu/FastestDet). It has an objectness score, the centre, width and height, and C
class scores. The tanh of the centre is the offset from the cell's top left corner, in cells; the
sigmoid of width and height is the share of the image. Images have BGR order.

Sizes are (height, width).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from ...datasets.base import Dataset
from ...datasets.view import View
from ...errors import AvttError, InputError, listed, one_line, unexpected
from ...models.local.onnx import image_input, session
from ...models.local.tensors import InputShape, Preprocessing, fitted
from ...types import Box, Floats, Image, Indices, Sample
from ...utils.files import contents, text_in, why_unread
from ...utils.options import Option, at_base, check_options
from ...utils.other_code import place_of
from . import Detector

# -- datasets with the boxes of a detector instead of annotated ones -------------------------------


class Detected(View):
    """A dataset whose boxes are those of a detector, which processes each image once.

    ``sample`` raises InputError for a sample without an image, or if the detector returns something
    else than boxes within the image.

    Args:
        dataset: The dataset, whose own boxes are ignored.
        detector: The detector.
    """

    def __init__(self, dataset: Dataset, detector: Detector) -> None:
        super().__init__(dataset, dataset.concepts, range(len(dataset.concepts)))
        self.detector, self.most_boxes = detector, None
        self._boxes_of: dict[int, tuple[Box, ...]] = {}

    @cached_property
    def fingerprint(self) -> str:
        content = repr((self.dataset.fingerprint, self.detector.fingerprint))
        return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()

    def sample(self, index: int) -> Sample:
        sample = super().sample(index)
        if index not in self._boxes_of:
            if sample.image is None:
                raise unexpected(f"sample {sample.id!r}", "an image to find things in", "none")
            self._boxes_of[index] = self._boxes(sample.image, f"detector: sample {sample.id!r}")
        return replace(sample, boxes=self._boxes_of[index])

    def _boxes(self, image: Image, where: str) -> tuple[Box, ...]:
        """Return the detector's checked boxes in an image."""
        try:
            boxes = tuple(self.detector.detect(image))
        except AvttError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)[:200]}"
            raise InputError(f"{where}: cannot be looked at: {reason}{place_of(error)}") from error
        labels = getattr(self.detector, "labels", None)
        for box in boxes:
            _check(box, image.shape, labels if isinstance(labels, list | tuple) else None, where)
        if boxes and min(image.shape[:2]) > 1 and max(max(box.edges) for box in boxes) <= 1:
            raise unexpected(where, "edges in pixels", f"shares of the image: {boxes[0]}")
        return boxes

    def try_out(self) -> None:
        """Run the detector on the first, middle and last image, to fail before an audit."""
        for index in sorted({0, len(self) // 2, len(self) - 1}):
            self.sample(index)


def _check(box: object, shape: Sequence[int], labels: Sequence[str] | None, where: str) -> None:
    """Raise InputError unless ``box`` is a box within an image, up to one pixel.

    Args:
        box: The object that a detector returned.
        shape: Shape of the image.
        labels: Labels of the detector; None: it has no list.
        where: The detector and sample, for errors.
    """
    if not isinstance(box, Box):
        got = f"an array of shape {box.shape}" if isinstance(box, np.ndarray) else repr(box)[:80]
        raise unexpected(where, "boxes (adaptive_vtt.types.Box)", f"{got} among them")
    if not np.isfinite(box.edges).all():
        raise unexpected(where, "finite edges of boxes", box)
    height, width = shape[:2]
    inside = -1 <= box.left < box.right <= width + 1 and -1 <= box.top < box.bottom <= height + 1
    if not inside:
        expected = f"left < right within {width} pixels and top < bottom within {height}"
        raise unexpected(where, expected, box)
    if not isinstance(box.label, str) or (labels is not None and box.label not in ("", *labels)):
        known = "a text" if labels is None else f"one of {listed(labels)}"
        raise unexpected(where, f"{known} as the label of a box", repr(box.label))


# -- outputs of networks ---------------------------------------------------------------------------

Array = npt.NDArray[Any]
Size = tuple[int, int]

GREY = 114
"""Grey level (0..255) of a letterbox's canvas with which YOLO networks were trained."""


class Candidates(NamedTuple):
    """N candidate boxes."""

    edges: Floats
    """N x 4: left, top, right, bottom in pixels of the image."""
    classes: Indices
    """(N,): numbers of classes."""
    scores: Floats
    """(N,): scores in [0, 1]."""


def letterbox(image: Image, size: Size, channels: int | None) -> Image:
    """Return an image H x W x C that is scaled to fit into a grey canvas, and centred in it."""
    scale, top, left = _placed(image.shape[:2], size)
    tall, wide = (max(1, round(side * scale)) for side in image.shape[:2])
    small = fitted(image, tall, wide, channels)
    canvas = np.full((*size, small.shape[2]), GREY, np.uint8)
    canvas[top : top + tall, left : left + wide] = small
    return canvas


def yolo(
    outputs: Sequence[Array], labels: int, size: Size, picture: Size, where: str
) -> Candidates:
    """Return the candidates in the output of a YOLO network.

    Args:
        outputs: The outputs; the first is read.
        labels: Number of labels, C.
        size: Size of the letterbox.
        picture: Size of the image.
        where: The detector, for errors.

    Raises:
        InputError: The output has another shape.
    """
    output = np.asarray(outputs[0], float)
    if output.ndim == 3 and output.shape[:2] == (1, 4 + labels):
        rows = output[0].T
    elif output.ndim == 3 and output.shape[::2] == (1, 5 + labels):
        rows = np.hstack([output[0, :, :4], output[0, :, 4:5] * output[0, :, 5:]])
    else:
        expected = f"an output of shape (1, {4 + labels}, N) or (1, N, {5 + labels})"
        raise unexpected(where, f"{expected} for {labels} labels", output.shape)
    scale, top, left = _placed(picture, size)
    return _candidates((rows[:, :2] - [left, top]) / scale, rows[:, 2:4] / scale, rows[:, 4:])


def fastestdet(
    outputs: Sequence[Array], labels: int, size: Size, picture: Size, where: str
) -> Candidates:
    """Return the candidates in the output of a FastestDet network, one per cell.

    The image was stretched to the size of the input. Arguments are those of ``yolo``.

    Raises:
        InputError: The output has another shape.
    """
    from scipy.special import expit

    output = np.asarray(outputs[0], float)
    if output.ndim != 4 or output.shape[:2] != (1, 5 + labels):
        classes = output.shape[1] - 5 if output.ndim == 4 else 0
        remedy = f", which is for {classes}; name a file with so many lines" if classes > 0 else ""
        expected = f"an output of shape (1, {5 + labels}, H, W) for {labels} labels"
        raise unexpected(where, expected, f"{output.shape}{remedy}")
    down, across = output.shape[2:]
    cells = output[0].reshape(5 + labels, -1).T
    corners = np.indices((down, across))[::-1].reshape(2, -1).T
    sides = np.array(picture[::-1])
    middle = (corners + np.tanh(cells[:, 1:3])) / (across, down) * sides
    return _candidates(middle, expit(cells[:, 3:5]) * sides, cells[:, :1] * cells[:, 5:])


def _candidates(middle: Floats, sides: Floats, scores: Floats) -> Candidates:
    """Return candidates from centres N x 2, sides N x 2, and class scores N x C."""
    classes = scores.argmax(axis=1)
    edges = np.hstack([middle - sides / 2, middle + sides / 2])
    return Candidates(edges, classes, scores[np.arange(len(classes)), classes])


READERS = {"yolo": yolo, "fastestdet": fastestdet}
"""Layout -> function that reads outputs."""


def _placed(picture: Sequence[int], size: Size) -> tuple[float, int, int]:
    """Return the scale, top and left of an image within a letterbox."""
    scale = min(size[0] / picture[0], size[1] / picture[1])
    top, left = ((s - max(1, round(p * scale))) // 2 for s, p in zip(size, picture, strict=True))
    return scale, top, left


# -- detectors -------------------------------------------------------------------------------------


Layout = Literal["auto", "yolo", "fastestdet"]

SIDES = {"yolo": 640, "fastestdet": 352}
"""Layout -> default side in pixels of a network's input whose size is not fixed."""


class OnnxDetector:
    """A ``Detector`` from an ONNX file with one image input. Needs the extra ``onnx``.

    Args:
        path: The file.
        labels: Names of classes 0, 1 ... of the network, as a list, or a text file with one per
            line.
        layout: "yolo", "fastestdet", or "auto": FastestDet's if the output has four axes, else
            YOLO's.
        threshold: Minimum score of a box, in (0, 1]. REIC's paper specifies none.
        overlap: Maximum intersection over union of two boxes with the same label, in (0, 1], above
            which the one with the lower score is dropped. REIC's paper specifies none.
        size: Height and width of the input, or one number for both. Default None: the file's, else
            640 (YOLO) or 352 (FastestDet).
        mean: As in `Preprocessing`.
        std: As in `Preprocessing`.
        providers: ONNX Runtime's execution providers, in order of preference. Default None: CPU.

    Raises:
        InputError: The file cannot be loaded, or an option does not fit it.
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
        threshold: Annotated[float, Option("least score of a box", gt=0, le=1)] = 0.5,
        overlap: Annotated[float, Option("boxes that overlap more are one", gt=0, le=1)] = 0.45,
        size: Annotated[
            int | tuple[int, int] | None,
            Option("side of the input (default: the file's)", type=int),
        ] = None,
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
        providers: Sequence[str] | None = None,
    ) -> None:
        self._where = f"detector {str(path)!r}"
        checked = {"layout": layout, "threshold": threshold, "overlap": overlap}
        check_options(OnnxDetector, checked, self._where)
        self.labels = _labels(labels)
        self.threshold, self.overlap = threshold, overlap
        self._session = session(Path(path), providers or ("CPUExecutionProvider",), "detector")
        output = self._session.get_outputs()[0]
        guessed = "fastestdet" if len(output.shape) == 4 else "yolo"
        self.layout = guessed if layout == "auto" else layout
        self._outputs = [output.name]
        self._preprocessing = Preprocessing(tuple(mean), tuple(std))
        self._take_input((size, size) if isinstance(size, int) else size)
        height, width = self._shape.height, self._shape.width
        # run on a black image, so that errors come before an audit
        self.detect(np.zeros((height or 32, width or 32, 3), np.uint8))
        options = (self.labels, self.layout, threshold, overlap, self._shape, self._preprocessing)
        content = hashlib.blake2b(contents(Path(path)), digest_size=12).hexdigest()
        self.fingerprint = f"ONNX detector {content} {options!r}"

    def detect(self, image: Image) -> tuple[Box, ...]:
        """Return the boxes in an image, H x W x C of uint8, clipped to it, by decreasing score."""
        height, width = image.shape[:2]
        side = SIDES[self.layout]
        size = self._shape.height or side, self._shape.width or side
        if self.layout == "yolo":
            canvas = letterbox(image, size, self._shape.channels)
        else:
            canvas = fitted(image, *size, self._shape.channels)[:, :, ::-1]
        outputs, read = self._run(canvas), READERS[self.layout]
        candidates = read(outputs, len(self.labels), size, (height, width), self._where)
        return self._kept(candidates._replace(edges=candidates.edges.clip(0, [width, height] * 2)))

    def _take_input(self, size: tuple[int, int] | None) -> None:
        self._input, self._dtype, sides = image_input(self._session, self._where)
        shape = InputShape.of(sides, self._where)
        if shape.batch not in (None, 1):
            raise unexpected(self._where, "an input of one image", shape.batch)
        height, width = size or (shape.height, shape.width)
        for wanted, fixed in ((height, shape.height), (width, shape.width)):
            if (wanted is not None and wanted < 1) or fixed not in (None, wanted):
                expected = f"a size of {shape.height or 'any'} x {shape.width or 'any'}"
                got = f"{height} x {width}"
                raise unexpected(self._where, f"{expected} (height x width)", got)
        self._shape = InputShape(1, shape.channels, height, width, shape.channels_first)

    def _run(self, canvas: Image) -> list[npt.NDArray[Any]]:
        shape = replace(self._shape, height=None, width=None)
        tensor = self._preprocessing.apply(canvas, shape, dtype=self._dtype)
        try:
            return self._session.run(self._outputs, {self._input: tensor[None]})
        except Exception as error:  # onnxruntime's errors have no common base
            what = f"cannot run on an input of shape {(1, *tensor.shape)}"
            raise InputError(f"{self._where}: {what}: {one_line(error)[:200]}") from None

    def _kept(self, candidates: Candidates) -> tuple[Box, ...]:
        """Return boxes with enough score, and without those that overlap others of their label."""
        sides = candidates.edges[:, 2:] - candidates.edges[:, :2]
        if np.isnan(candidates.scores).any():
            raise unexpected(self._where, "scores from 0 to 1", "NaN", "export it with 32 bits")
        sure = (candidates.scores >= self.threshold) & (sides > 0).all(axis=1)
        if not sure.any():
            return ()
        edges, classes, scores = (part[sure] for part in candidates)
        if classes.min() < 0 or classes.max() >= len(self.labels):
            wrong = classes[(classes < 0) | (classes >= len(self.labels))][0]
            expected = f"classes 0 to {len(self.labels) - 1}, one per label"
            raise unexpected(self._where, expected, wrong)
        rectangles = np.hstack([edges[:, :2], sides[sure]]).tolist()
        rated = scores.tolist(), classes.tolist()
        chosen = cv2.dnn.NMSBoxesBatched(rectangles, *rated, 0.0, self.overlap)
        order: list[int] = np.sort(np.asarray(chosen, np.int64)).tolist()
        order.sort(key=lambda place: float(-scores[place]))
        rows = np.column_stack([edges, scores.clip(max=1)]).tolist()
        return tuple(Box(self.labels[classes[k]], *rows[k]) for k in order)


def _labels(labels: Sequence[str] | Path | str) -> tuple[str, ...]:
    if isinstance(labels, str | Path):
        try:
            text = text_in(Path(labels))
        except (OSError, UnicodeDecodeError) as error:
            expected, why = "a text file of labels, one per line", why_unread(Path(labels), error)
            raise InputError(f"{labels}: expected {expected}, and cannot read it: {why}") from None
        labels = [line.strip() for line in text.rstrip().splitlines()]
    if not labels:
        raise unexpected("detector", "labels, one per class", "none")
    return tuple(labels)
