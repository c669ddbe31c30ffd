"""ONNX files of a few steps."""

from pathlib import Path
from typing import Any

import pytest


def saved(path: Path, steps: Any, inputs: Any, outputs: Any, constants: Any = ()) -> Path:
    """Write a network of these steps, with descriptions of its inputs and outputs."""
    onnx = pytest.importorskip("onnx")
    graph = onnx.helper.make_graph(steps, "graph", inputs, outputs, initializer=constants)
    opset = [onnx.helper.make_opsetid("", 13)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def channels(
    path: Path, shape: Any = ("n", 3, "h", "w"), *, maps: bool = False, kind: str = "FLOAT"
) -> Path:
    """Write a network that returns channels, n x 3 x H x W (``maps``), or their means, n x 3."""
    onnx = pytest.importorskip("onnx")
    node, of = onnx.helper.make_node, getattr(onnx.TensorProto, kind)
    mean = node("ReduceMean", ["image"], ["p"], axes=[2, 3], keepdims=0)
    step = node("Identity", ["image"], ["p"]) if maps else mean
    image = onnx.helper.make_tensor_value_info("image", of, shape)
    return saved(path, [step], [image], [onnx.helper.make_tensor_value_info("p", of, None)])
