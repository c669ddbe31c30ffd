"""Models behind the Open Inference Protocol, version 2: Triton, KServe, MLflow and others.

Source: Open Inference Protocol, HTTP/REST. If the server supports the binary tensor data extension,
images are sent as bytes, else as JSON.
"""

import json
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError, check_known
from ...types import JsonObject, Prompt
from ...utils.options import Option
from ..checking import image_of
from ..local.tensors import InputShape, TensorModel
from .attempts import Reply, Trouble, reading
from .chat import ModelName
from .http import HttpEndpoint, parsed
from .keys import QUERY

TYPES: dict[str, npt.DTypeLike] = {"FP32": np.float32, "FP64": np.float64, "UINT8": np.uint8}


class OpenInference(TensorModel, HttpEndpoint):
    """A model on an inference server, which answers all concepts of one image per call.

    Before the first call the server is asked for the model's inputs and outputs. If they cannot be
    used, the audit ends with InputError.

    Args:
        url: The server's root, http:// or https://.
        model: The server's name of the model.
        version: The model's version on the server. Default None: the server's choice.
        **options: Options of `TensorModel` and `HttpEndpoint`.
    """

    def __init__(
        self,
        url: Annotated[str, Option(f"the server's root; {QUERY}")],
        model: ModelName,
        *,
        version: str | None = None,
        **options: Any,
    ) -> None:
        options.setdefault("name", model)
        super().__init__(url=url, answers="all", **options)
        self._path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")

    async def connect(self) -> None:
        """Ask for the model's tensors; raise InputError for a model that takes no images."""
        try:
            extensions = parsed(await self.exchange("/v2")).get("extensions", [])
        except Trouble as trouble:  # servers may lack this optional request
            if trouble.then == "again":
                raise
            extensions = []
        self._binary = "binary_tensor_data" in extensions
        metadata = parsed(await self.exchange(self._path))
        inputs, outputs = metadata.get("inputs") or [], metadata.get("outputs") or []
        if len(inputs) != 1:
            names = ", ".join(str(tensor.get("name")) for tensor in inputs) or "none"
            raise InputError(f"{self._who}: expected one input, an image, got {names}")
        self._input, self._datatype = str(inputs[0]["name"]), str(inputs[0]["datatype"])
        check_known("input datatype", self._datatype, TYPES, self._who)
        self._shape = InputShape.of(inputs[0]["shape"], self._who)
        self._output_name = self._output_among([tensor["name"] for tensor in outputs], self._who)

    def prepare(self, prompt: Prompt) -> tuple[bytes, dict[str, str]]:
        """Return the body, and the headers that describe it."""
        image, dtype = image_of(prompt, self._who), TYPES[self._datatype]
        array = self._preprocessing.apply(image, self._shape, dtype=dtype)
        output: JsonObject = {"name": self._output_name}
        tensor: JsonObject = {"name": self._input, "datatype": self._datatype}
        tensor["shape"] = [1, *array.shape]
        if not self._binary:
            body = {"outputs": [output], "inputs": [tensor | {"data": array.ravel().tolist()}]}
            return json.dumps(body).encode(), {"content_type": "application/json"}
        data = array.astype(np.dtype(dtype).newbyteorder("<"), copy=False).tobytes()
        tensor["parameters"] = {"binary_data_size": len(data)}
        output["parameters"] = {"binary_data": False}
        described = json.dumps({"inputs": [tensor], "outputs": [output]}).encode()
        kind = {"content_type": "application/octet-stream"}
        return described + data, kind | {"inference_header_content_length": str(len(described))}

    async def send(self, request: tuple[bytes, dict[str, str]], prompt: Prompt) -> Reply:
        content, headers = request
        body = await self.exchange(f"{self._path}/infer", content, **headers)
        with reading(raw=body):
            tensors = {tensor["name"]: tensor for tensor in parsed(body)["outputs"]}
            if (tensor := tensors.get(self._output_name)) is None:
                raise ValueError(f"the reply has no tensor {self._output_name!r}")
            output = np.asarray(tensor["data"], float).reshape(tensor["shape"])
            answers = self._answers(output, [prompt], self._shape, self._who)
            reply = Reply(answers[0].values)
            self._check(reply, prompt)
            return reply
