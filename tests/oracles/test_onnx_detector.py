"""Detectors in ONNX files: small networks that always find the same, or find what is red."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.captions.detectors import OnnxDetector
from adaptive_vtt.types import Box
from tests.helpers.onnx_graphs import saved

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

IMAGE = np.zeros((60, 90, 3), np.uint8)
LABELS = ("dog", "cat", "kite")


def constant(path: Path, shape: Any = (1, 3, 64, 64), kind: str = "FLOAT", **outputs: Any) -> Path:
    """A network that gives these arrays whatever it sees."""
    from onnx import TensorProto, helper, numpy_helper

    arrays = {name: np.asarray(value) for name, value in outputs.items()}
    arrays = {n: a.astype(np.float32) if a.dtype == float else a for n, a in arrays.items()}
    steps = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        for name, array in arrays.items()
    ]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in arrays.items()
    ]
    image = helper.make_tensor_value_info("image", getattr(TensorProto, kind), shape)
    return saved(path, steps, [image], given)


def red(path: Path, side: int = 64) -> Path:
    """YOLOv8's layout with one label: a box of 8 x 4 about the middle of what is pure red."""
    from onnx import TensorProto, helper, numpy_helper

    centres = np.mgrid[:side, :side][::-1].astype(np.float32) + 0.5
    constants = {
        "grid": centres[None],  # 1 x 2 x H x W: across, down
        "level": np.array([0.8, -0.2, -0.2], np.float32).reshape(1, 3, 1, 1),
        "rest": np.array([8, 4, 0.9], np.float32).reshape(1, 3, 1),
        "axes": np.array([2, 3]),
        "channel": np.array([1]),
        "last": np.array([3]),
    }
    node = helper.make_node
    steps = [
        node("Mul", ["image", "level"], ["weighed"]),
        node("ReduceSum", ["weighed", "channel"], ["redness"], keepdims=1),
        node("Constant", [], ["half"], value_float=0.5),
        node("Greater", ["redness", "half"], ["is_red"]),
        node("Cast", ["is_red"], ["there"], to=TensorProto.FLOAT),
        node("Mul", ["grid", "there"], ["where"]),
        node("ReduceSum", ["where", "axes"], ["sums"], keepdims=1),
        node("ReduceSum", ["there", "axes"], ["count"], keepdims=1),
        node("Div", ["sums", "count"], ["middle"]),
        node("Squeeze", ["middle", "last"], ["centre"]),
        node("Concat", ["centre", "rest"], ["found"], axis=1),
    ]
    given = [helper.make_tensor_value_info("found", TensorProto.FLOAT, (1, 5, 1))]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, side, side))
    return saved(path, steps, [image], given, tensors)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (32, 128)])
def test_yolo_sees_the_picture_in_a_letterbox(tmp_path: Path, height: int, width: int) -> None:
    image = np.zeros((height, width, 3), np.uint8)
    image[8:16, 32:48, 0] = 255
    box = OnnxDetector(red(tmp_path / "red.onnx"), labels=["red"]).detect(image)[0]
    scale = max(height, width) / 64
    assert (box.left + box.right, box.top + box.bottom) == pytest.approx((80, 24), abs=2 * scale)
    expected = np.clip([40 - 4 * scale, 40 + 4 * scale], 0, width)
    assert (box.left, box.right) == pytest.approx(tuple(expected), abs=scale)
    assert (box.label, box.score) == ("red", pytest.approx(0.9))


V8 = np.array(
    [
        [
            # middle and size in a letterbox of 64 x 64, which holds 90 x 60 as 64 x 43 from 10 down
            [32, 31.5, 32, 20, 0.1, 0.8, 0.2],
            [33, 31.5, 32, 20, 0.1, 0.9, 0.2],  # the same cat, surer
            [33, 31.5, 32, 20, 0.7, 0.1, 0.2],  # a dog in its place
            [10, 31.5, 8, 8, 0.4, 0.2, 0.3],  # not sure enough
            [4, 31.5, 16, 8, 0.0, 0.1, 0.6],  # juts out on the left
            [80, 31.5, 8, 8, 0.0, 0.1, 0.9],  # outside
        ]
    ]
).transpose(0, 2, 1)
V5 = np.concatenate([V8[:, :4] / 1, np.full((1, 1, 6), 0.5), V8[:, 4:] * 2], 1).transpose(0, 2, 1)


@pytest.mark.parametrize("output", [V8, V5], ids=["v8", "v5"])
def test_yolo_boxes_are_in_pixels_sure_and_once_per_label(tmp_path: Path, output: Any) -> None:
    path = constant(tmp_path / "d.onnx", output0=output)
    result = OnnxDetector(path, labels=LABELS).detect(IMAGE)
    scale = 90 / 64
    expected = [("cat", 17, 49, 0.9), ("dog", 17, 49, 0.7), ("kite", 0, 12, 0.6)]
    assert [box.label for box in result] == [row[0] for row in expected]
    for box, (_, left, right, score) in zip(result, expected, strict=True):
        assert (box.left, box.right) == pytest.approx((left * scale, right * scale), abs=1e-4)
        half = 10 if box.label != "kite" else 4
        sides = (21.5 - half) * scale, (21.5 + half) * scale
        assert (box.top, box.bottom) == pytest.approx(sides, abs=1e-4)
        assert box.score == pytest.approx(score, abs=1e-6)
    sure = OnnxDetector(path, labels=LABELS, threshold=0.75).detect(IMAGE)
    assert [box.label for box in sure] == ["cat"]
    both = OnnxDetector(path, labels=LABELS, overlap=1.0).detect(IMAGE)
    assert [box.label for box in both] == ["cat", "cat", "dog", "kite"]


def grid(rows: int, columns: int, *cells: Any) -> Any:
    """FastestDet's output with three labels: nothing, but in cells (row, column, numbers)."""
    output = np.zeros((1, 8, rows, columns))
    for row, column, numbers in cells:
        output[0, :, row, column] = numbers
    return output


def logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


CELLS = grid(
    4,
    6,
    # anything, middle by tanh, sides by sigmoid, class scores; cells are 15 x 15 of 60 x 90
    (1, 2, [0.9, 0, 0, 0, 0, 0.2, 0.8, 0]),  # a cat of 45 x 30 about (30, 15)
    (3, 5, [0.8, np.arctanh(-0.5), np.arctanh(1 / 3), logit(0.2), logit(0.4), 1, 0, 0]),
    (0, 0, [0.9, 0, 0, logit(0.2), logit(0.2), 0.4, 0.3, 0.3]),  # not sure enough
)


@pytest.mark.parametrize("layout", ["auto", "fastestdet"])
def test_fastestdet_has_a_box_per_cell(tmp_path: Path, layout: Any) -> None:
    path = constant(tmp_path / "d.onnx", (1, 3, 64, 96), found=CELLS)
    result = OnnxDetector(path, labels=LABELS, layout=layout).detect(IMAGE)
    same(result, (Box("dog", 58.5, 38, 76.5, 60, 0.8), Box("cat", 7.5, 0, 52.5, 30, 0.72)))


def same(result: tuple[Box, ...], expected: tuple[Box, ...]) -> None:
    assert [box.label for box in result] == [box.label for box in expected]
    for one, other in zip(result, expected, strict=True):
        sides = [(b.left, b.top, b.right, b.bottom, b.score) for b in (one, other)]
        assert sides[0] == pytest.approx(sides[1], abs=1e-4)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            {"found": np.zeros((1, 84, 10))},
            r"d\.onnx': expected an output of shape \(1, 7, N\) or \(1, N, 8\) for 3 labels, "
            r"got \(1, 84, 10\)",
        ),
        (
            {"found": np.zeros((1, 85, 2, 2))},
            r"expected an output of shape \(1, 8, H, W\) for 3 labels, got \(1, 85, 2, 2\)",
        ),
        (
            {"found": np.zeros((1, 9, 4, 6))},
            r"\(1, 8, H, W\) for 3 labels, got \(1, 9, 4, 6\), which is for 4; name a file",
        ),
    ],
)
def test_outputs_of_the_wrong_shape_are_named(tmp_path: Path, outputs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        OnnxDetector(constant(tmp_path / "d.onnx", **outputs), labels=LABELS).detect(IMAGE)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 3, 64, 64), {"labels": ()}, "expected labels, one per class, got none"),
        (
            (1, 3, 64, 64),
            {"labels": "no.txt"},
            r"no\.txt: expected a text file of labels, .*: it does not exist",
        ),
        ((1, 3, 64, 64), {"layout": "detr"}, r"d\.onnx': unknown layout 'detr'"),
        ((1, 3, 64, 64), {"size": 32}, r"expected a size of 64 x 64 .*, got 32 x 32"),
        ((4, 3, 64, 64), {}, r"expected an input of one image, got 4"),
        ((1, 7), {}, r"expected an input of images"),
    ],
)
def test_networks_and_options_that_do_not_fit_are_named(
    tmp_path: Path, shape: Any, options: Any, message: str
) -> None:
    path = constant(tmp_path / "d.onnx", shape, output0=V8)
    with pytest.raises(InputError, match=message):
        OnnxDetector(path, **{"labels": LABELS, **options})
