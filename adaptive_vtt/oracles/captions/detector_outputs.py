"""What the outputs of an object detector say, in three layouts.

"yolo": one output of numbers in pixels of the network's input, which holds the picture with its
proportions kept, on grey (a letterbox). 1 x (4 + C) x N (centre x, centre y, width, height, and C
class scores, as of YOLOv8), or 1 x N x (5 + C) (the score that there is anything comes before the
class scores, as of YOLOv5). The number of labels C tells them apart.

"ssd": outputs of boxes, class numbers and scores. Boxes 1 x N x 4 are top, left, bottom, right as
shares of the picture (TensorFlow's object detection exports); boxes N x 4 are left, top, right,
bottom in pixels of the network's input (torchvision's).

"fastestdet": one output 1 x (5 + C) x H x W about a grid of H x W cells laid over the picture: the
score that there is anything, where the middle is (by tanh, cells to the right of the cell's
own left edge and below its top one), width and height (by sigmoid, shares of the picture),
and C class scores (github.com/dog-qiuqiu/FastestDet). Its networks are trained on pictures
with blue first.

Sizes are (height, width).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...models.local.tensors import InputShape, fitted
from ...types import Floats, Image

Array = npt.NDArray[Any]
Size = tuple[int, int]

GREY = 114
"""Grey level (0..255) of the border around the picture in a letterbox, as YOLO networks were
trained with."""
ROLES = {"boxes": ("box",), "classes": ("class", "label"), "scores": ("score",)}
"""The outputs of the SSD layout, and what their names hold."""


class Found(NamedTuple):
    """N candidates: edges N x 4 (left, top, right, bottom) in pixels, class numbers, scores."""

    edges: Floats
    classes: npt.NDArray[np.int64]
    scores: Floats


def letterbox(image: Image, size: Size, channels: int | None) -> Image:
    """The image H x W x C as large as it fits into the middle of a grey canvas."""
    scale, top, left = _placed(image.shape[:2], size)
    tall, wide = (max(1, round(side * scale)) for side in image.shape[:2])
    small = fitted(image, InputShape(1, channels, tall, wide, True))
    canvas = np.full((*size, small.shape[2]), GREY, np.uint8)
    canvas[top : top + tall, left : left + wide] = small
    return canvas


def yolo(outputs: Sequence[Array], labels: int, size: Size, picture: Size, where: str) -> Found:
    """The candidates of a picture that stood in a letterbox of ``size``.

    Raises InputError for an output of the wrong shape.
    """
    rows = _yolo_rows(np.asarray(outputs[0], float), labels, where)
    scale, top, left = _placed(picture, size)
    middle, half = rows[:, :2] - [left, top], rows[:, 2:4] / 2
    scores = rows[:, 4:]
    classes = scores.argmax(axis=1)
    edges = np.hstack([middle - half, middle + half]) / scale
    return Found(edges, classes, scores[np.arange(len(rows)), classes])


def _yolo_rows(output: Floats, labels: int, where: str) -> Floats:
    """N x (4 + C), the class scores last."""
    if output.ndim == 3 and output.shape[:2] == (1, 4 + labels):
        return output[0].T
    if output.ndim == 3 and output.shape[::2] == (1, 5 + labels):
        return np.hstack([output[0, :, :4], output[0, :, 4:5] * output[0, :, 5:]])
    raise InputError(
        f"{where}: expected an output of shape (1, {4 + labels}, N) or (1, N, {5 + labels}) "
        f"for {labels} labels, got {output.shape}"
    )


def fastestdet(outputs: Sequence[Array], labels: int, picture: Size, where: str) -> Found:
    """The candidates of a picture that was drawn out to the input, one per cell.

    Raises InputError for an output of the wrong shape.
    """
    from scipy.special import expit

    output = np.asarray(outputs[0], float)
    if output.ndim != 4 or output.shape[:2] != (1, 5 + labels):
        raise InputError(
            f"{where}: expected an output of shape (1, {5 + labels}, H, W) for {labels} labels, "
            f"got {output.shape}{_labels_of(output)}"
        )
    down, across = output.shape[2:]
    cells = output[0].reshape(5 + labels, -1).T
    corners = np.indices((down, across))[::-1].reshape(2, -1).T
    sides = np.array(picture[::-1])
    middle = (corners + np.tanh(cells[:, 1:3])) / (across, down) * sides
    half = expit(cells[:, 3:5]) / 2 * sides
    scores = cells[:, :1] * cells[:, 5:]
    classes = scores.argmax(axis=1)
    return Found(
        np.hstack([middle - half, middle + half]), classes, scores[np.arange(len(cells)), classes]
    )


def _labels_of(output: Floats) -> str:
    """How many labels a FastestDet's output is for, "" where it is none."""
    classes = output.shape[1] - 5 if output.ndim == 4 else 0
    return f", which is for {classes}; name a file with so many lines" if classes > 0 else ""


def ssd(outputs: Sequence[Array], size: Size, picture: Size, where: str) -> Found:
    """The candidates of a picture that was drawn out to ``size``.

    Raises InputError for outputs of the wrong shape.
    """
    boxes, classes, scores = (np.asarray(output, float) for output in outputs)
    fits = boxes.ndim in (2, 3) and boxes.shape[-1] == 4 and boxes.shape[:-2] in ((), (1,))
    if not fits or not classes.shape == scores.shape == boxes.shape[:-1]:
        raise InputError(
            f"{where}: expected boxes, classes and scores of shape (1, N, 4), (1, N), (1, N) or "
            f"(N, 4), (N,), (N,), got {boxes.shape}, {classes.shape}, {scores.shape}"
        )
    height, width = picture
    if boxes.ndim == 3:  # shares, from the top
        edges = boxes[0][:, [1, 0, 3, 2]] * [width, height, width, height]
    else:
        across, down = width / size[1], height / size[0]
        edges = boxes * [across, down, across, down]
    return Found(edges, classes.ravel().astype(np.int64), scores.ravel())


def roles(outputs: Sequence[str], where: str) -> list[str]:
    """Which outputs hold boxes, classes and scores: by name, else the first three in order."""
    if len(outputs) < len(ROLES):
        raise InputError(f"{where}: expected outputs {', '.join(ROLES)}, got {', '.join(outputs)}")
    # TensorFlow's exports also give raw boxes, and scores of all classes
    plain = [name for name in outputs if "raw" not in name and "multi" not in name]
    named = [[n for n in plain if any(w in n.lower() for w in words)] for words in ROLES.values()]
    if all(len(names) == 1 for names in named):
        return [names[0] for names in named]
    return list(outputs[: len(ROLES)])


def _placed(picture: Sequence[int], size: Size) -> tuple[float, int, int]:
    """The scale of a picture in a letterbox, and where its top and left are."""
    scale = min(size[0] / picture[0], size[1] / picture[1])
    top, left = ((s - max(1, round(p * scale))) // 2 for s, p in zip(size, picture, strict=True))
    return scale, top, left
