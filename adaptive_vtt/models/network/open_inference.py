"""Models behind the Open Inference Protocol, version 2: Triton, KServe, MLflow and others.

Source: Open Inference Protocol, HTTP/REST; where the server offers it, the binary tensor data
extension, which spares writing tensors as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError, check_known
from ...types import JsonObject, Prompt
from ...utils.options import Option
from ..checking import image_of
from ..local.tensors import (
    Activating,
    Columns,
    InputShape,
    OutputName,
    Outputs,
    Pixels,
    Preprocessing,
)
from .attempts import MALFORMED, Reply, Trouble
from .chat import ModelName
from .http import HttpEndpoint
from .keys import QUERY

TYPES: dict[str, npt.DTypeLike] = {"FP32": np.float32, "FP64": np.float64, "UINT8": np.uint8}


@dataclass(frozen=True)
class _Tensors:
    """What the server says of the model."""

    name: str
    datatype: str
    shape: InputShape
    output: str
    binary: bool


class OpenInference(HttpEndpoint):
    """The model called ``model`` on the server at ``url``, asked one image per call.

    What the model takes and gives is read from the server before the first call, and errors
    there end the audit. ``output``: needed where the model has several. ``concepts``,
    ``activation``: see `Outputs`; ``mean``, ``std``: see `Preprocessing`.
    """

    def __init__(
        self,
        url: Annotated[str, Option(f"the server's root; {QUERY}")],
        model: ModelName,
        *,
        version: str | None = None,
        output: OutputName = None,
        concepts: Columns = None,
        activation: Activating = "none",
        mean: Pixels = (0.0,),
        std: Pixels = (1.0,),
        **options: Any,
    ) -> None:
        options.setdefault("name", model)
        super().__init__(url, answers="all", **options)
        self._path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")
        self._output = output
        self._outputs = Outputs(None if concepts is None else tuple(concepts), activation)
        self._preprocessing = Preprocessing(tuple(mean), tuple(std))

    async def connect(self) -> None:
        try:
            extensions = (await self.exchange("/v2")).get("extensions", [])
        except Trouble as trouble:  # a server need not describe itself
            if trouble.then == "again":
                raise
            extensions = []
        said = await self.exchange(self._path)
        self._tensors = _read(said, self._output, "binary_tensor_data" in extensions, self._who)

    def prepare(self, prompt: Prompt) -> tuple[bytes, dict[str, str]]:
        """The body, and the headers that describe it."""
        image = image_of(prompt, self._who)
        tensors, dtype = self._tensors, TYPES[self._tensors.datatype]
        outputs: list[JsonObject] = [{"name": tensors.output}]
        tensor: JsonObject = {"name": tensors.name, "datatype": tensors.datatype}
        array = self._preprocessing.apply(image, tensors.shape, dtype=dtype)
        tensor["shape"] = [1, *array.shape]
        if not tensors.binary:
            body = {"outputs": outputs, "inputs": [tensor | {"data": array.ravel().tolist()}]}
            return json.dumps(body).encode(), {"content_type": "application/json"}
        data = array.astype(np.dtype(dtype).newbyteorder("<"), copy=False).tobytes()
        tensor["parameters"] = {"binary_data_size": len(data)}
        outputs[0]["parameters"] = {"binary_data": False}
        described = json.dumps({"inputs": [tensor], "outputs": outputs}).encode()
        kind = {"content_type": "application/octet-stream"}
        return described + data, kind | {"inference_header_content_length": str(len(described))}

    async def send(self, request: tuple[bytes, dict[str, str]], prompt: Prompt) -> Reply:
        content, headers = request
        said = await self.exchange(f"{self._path}/infer", content, **headers)
        try:
            found = {one["name"]: one for one in said["outputs"]}[self._tensors.output]
        except LookupError:
            detail = f"the reply has no tensor {self._tensors.output!r}"
            raise Trouble(MALFORMED, detail, billed=True) from None
        output = np.asarray(found["data"], float).reshape(found["shape"])
        answers = self._outputs.answers(output, [prompt], self._tensors.shape, self._who)
        return Reply(answers[0].values)


def _read(said: Mapping[str, Any], output: str | None, binary: bool, who: str) -> _Tensors:
    """The model's metadata; raises InputError for a model that cannot be asked about images."""
    inputs, outputs = said.get("inputs") or [], said.get("outputs") or []
    if len(inputs) != 1:
        given = ", ".join(str(one.get("name")) for one in inputs) or "none"
        raise InputError(f"{who}: expected a model with one input, an image, got {given}")
    datatype = str(inputs[0]["datatype"])
    check_known("input datatype", datatype, TYPES, who)
    shape = InputShape.of(inputs[0]["shape"], who)
    names: list[str] = [one["name"] for one in outputs]
    if output is None and len(names) == 1:
        output = names[0]
    if output is None:
        raise InputError(f"{who}: expected model.output, one of {', '.join(names) or 'none'}")
    check_known("output", output, names, who)
    return _Tensors(str(inputs[0]["name"]), datatype, shape, output, binary)
