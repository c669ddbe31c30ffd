"""LaMa paints over a box, and networks that do not inpaint are named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.errors import InputError
from adaptive_vtt.experiments.reic.lama import LaMa
from adaptive_vtt.oracles.captions.localising import occluded
from adaptive_vtt.types import Box
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.onnx_graphs import saved


def painter(path: Path, shape: Any = ("h", "w"), scale: float = 1.0, crop: int = 0) -> Path:
    """An inpainting network: 1 - image where the mask is, times ``scale``."""
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    node = helper.make_node
    steps = [
        node("Constant", [], ["one"], value_float=1.0),
        node("Constant", [], ["scale"], value_float=scale),
        node("Sub", ["one", "picture"], ["turned"]),
        node("Mul", ["turned", "hole"], ["inside"]),
        node("Sub", ["one", "hole"], ["rest"]),
        node("Mul", ["picture", "rest"], ["outside"]),
        node("Add", ["inside", "outside"], ["sum"]),
        node("Mul", ["sum", "scale"], ["whole"]),
        node("Constant", [], ["starts"], value_ints=[crop]),
        node("Constant", [], ["ends"], value_ints=[1 << 30]),
        node("Constant", [], ["axes"], value_ints=[2]),
        node("Slice", ["whole", "starts", "ends", "axes"], ["painted"]),
    ]
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, channels, *shape))
        for name, channels in (("hole", 1), ("picture", 3))
    ]
    output = helper.make_tensor_value_info("painted", TensorProto.FLOAT, None)
    return saved(path, steps, given, [output])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("scale", [1.0, 255.0])
def test_lama_paints_the_box_and_nothing_else(tmp_path: Path, scale: float, channels: int) -> None:
    pytest.importorskip("onnxruntime")
    image = generator(0, "lama").integers(0, 256, (21, 34, channels), dtype=np.uint8)
    fill = LaMa(painter(tmp_path / "p.onnx", scale=scale), margin=1)
    expected = image.copy()
    expected[4:13, 2:10] = 255 - image[4:13, 2:10]
    filled = occluded(image, Box("", 3, 5, 9, 12), "inpaint", fill=fill)
    assert np.abs(filled.astype(int) - expected).max() <= 1
    assert np.array_equal(fill(image, Box("", 40, 0, 50, 9)), image)


def test_networks_that_do_not_inpaint_are_named(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    box, image = Box("", 1, 1, 5, 5), np.zeros((16, 24, 3), np.uint8)
    with pytest.raises(InputError, match=r"p\.onnx': .* of shape \(1, 3, 16, 24\), got \(1, 3, 11"):
        LaMa(painter(tmp_path / "p.onnx", crop=5))(image, box)
    onnx = pytest.importorskip("onnx")
    model = onnx.load(painter(tmp_path / "p.onnx"))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    onnx.save(model, tmp_path / "q.onnx")
    with pytest.raises(InputError, match=r"q\.onnx': expected inputs of shape .* \(1, 1, H, W\)"):
        LaMa(tmp_path / "q.onnx")
