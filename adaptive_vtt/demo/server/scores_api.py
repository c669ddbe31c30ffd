"""Endpoints that take images and give scores, for which there are two protocols.

The Open Inference Protocol, version 2, over HTTP with JSON tensors (github.com/kserve), and the
plain kind that people write themselves.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...types import Image, JsonObject
from ...utils.http_server import Rejected, Request
from .conversation import MAX_PIXELS, decoded
from .fake_models import FakeModel
from .http import Response, Route, Usage

INPUT, OUTPUT = "image", "probabilities"


class OpenInference:
    """Server and model metadata, health, and POST /v2/models/NAME/infer.

    In: one UINT8 tensor "image" of shape [H, W, 3] or [N, H, W, 3] (RGB), its data flat or
    nested. Out: one FP32 tensor "probabilities" of shape [N, C]: P(yes) per concept, in the
    order that the model's metadata lists under its output's parameters.
    """

    def __init__(self, fake: FakeModel, model: str, most_pixels: int = MAX_PIXELS) -> None:
        self._fake, self._model, self._most_pixels = fake, model, most_pixels
        self.routes = (
            Route("GET", r"/v2/?", self._server),
            Route("GET", r"/v2/health/(live|ready)", self._fine),
            Route("GET", r"/v2/models/(?P<name>[^/]+)", self._about),
            Route("GET", r"/v2/models/(?P<name>[^/]+)/ready", self._ready),
            Route("POST", r"/v2/models/(?P<name>[^/]+)/infer", self._infer, paid=True),
        )

    def error(self, rejected: Rejected) -> Response:
        """The protocol's error: one sentence."""
        return Response(rejected.status, {"error": rejected.message})

    def _server(self, request: Request) -> Response:
        from ...utils.importing import own_version

        return Response(200, {"name": "adaptive-vtt", "version": own_version(), "extensions": []})

    def _fine(self, request: Request) -> Response:
        return Response(200, {"live": True, "ready": True})

    def _ready(self, request: Request, name: str) -> Response:
        self._check_model(name)
        return Response(200, {"name": name, "ready": True})

    def _about(self, request: Request, name: str) -> Response:
        self._check_model(name)
        concepts = [*self._fake.concepts]
        output = {
            "name": OUTPUT,
            "datatype": "FP32",
            "shape": [-1, len(concepts)],
            "parameters": {"concepts": concepts},
        }
        return Response(
            200,
            {
                "name": name,
                "versions": ["1"],
                "platform": "adaptive-vtt-demo",
                "inputs": [{"name": INPUT, "datatype": "UINT8", "shape": [-1, -1, -1, 3]}],
                "outputs": [output],
            },
        )

    def _check_model(self, name: str) -> None:
        if name != self._model:
            raise Rejected(404, f"unknown model {name!r}: this server has {self._model!r}")

    def _infer(self, request: Request, name: str) -> Response:
        self._check_model(name)
        asked = request.json()
        images = _images(asked.get("inputs"), self._most_pixels)
        scores = [self._fake.probabilities(image, self._fake.concepts) for image in images]
        output = {
            "name": OUTPUT,
            "datatype": "FP32",
            "shape": [len(scores), len(self._fake.concepts)],
            "data": [score for row in scores for score in row],
        }
        content: JsonObject = {"model_name": name, "model_version": "1", "outputs": [output]}
        if "id" in asked:
            content["id"] = asked["id"]
        return Response(200, content, usage=Usage())


def _images(inputs: Any, most_pixels: int) -> npt.NDArray[np.uint8]:
    """The one input tensor as N x H x W x 3; raises Rejected for anything else."""
    if not isinstance(inputs, list) or len(inputs) != 1 or not isinstance(inputs[0], dict):
        raise Rejected(400, f"expected one input tensor, {INPUT!r}")
    tensor = inputs[0]
    if tensor.get("name") != INPUT or tensor.get("datatype") != "UINT8":
        raise Rejected(
            400,
            f"expected the input {INPUT!r} of UINT8, "
            f"got {tensor.get('name')!r} of {tensor.get('datatype')}",
        )
    shape = _shape(tensor.get("shape"))
    if math.prod(shape[-3:-1]) > most_pixels:
        raise Rejected(413, f"{INPUT}: expected at most {most_pixels} pixels, got shape {shape}")
    return _pixels(tensor.get("data"), shape).reshape(-1, *shape[-3:])


def _shape(given: Any) -> list[int]:
    if (
        isinstance(given, list)
        and len(given) in (3, 4)
        and all(isinstance(side, int) and side > 0 for side in given)
        and given[-1] == 3
    ):
        return given
    raise Rejected(400, f"{INPUT}: expected a shape [N, H, W, 3] or [H, W, 3], got {given}")


def _pixels(data: Any, shape: list[int]) -> Image:
    try:
        values = np.asarray(data, np.float64).ravel()
    except (TypeError, ValueError):
        raise Rejected(400, f"{INPUT}: expected numbers as data") from None
    if len(values) != math.prod(shape):
        raise Rejected(
            400, f"{INPUT}: expected {math.prod(shape)} values for shape {shape}, got {len(values)}"
        )
    if not np.all((values >= 0) & (values <= 255) & (values == np.floor(values))):
        raise Rejected(400, f"{INPUT}: expected whole numbers of 0 to 255")
    return values.astype(np.uint8)


class Plain:
    """POST /predict: {"image": base64 of a file, "concepts": [...]} -> {"scores": [...]}.

    Scores are P(yes), one per concept asked about (all of them where none are named).
    """

    def __init__(self, fake: FakeModel, most_pixels: int = MAX_PIXELS) -> None:
        self._fake, self._most_pixels = fake, most_pixels
        self.routes = (Route("POST", r"/predict", self._predict, paid=True),)

    def error(self, rejected: Rejected) -> Response:
        """A body with the message, as such endpoints mostly have it."""
        return Response(rejected.status, {"error": rejected.message})

    def _predict(self, request: Request) -> Response:
        asked = request.json()
        source, concepts = asked.get("image"), asked.get("concepts", [*self._fake.concepts])
        if not isinstance(source, str):
            raise Rejected(400, "expected image, a file in base64")
        if not isinstance(concepts, list) or not all(isinstance(c, str) for c in concepts):
            raise Rejected(400, "expected concepts, a list of names")
        image = decoded(source, self._most_pixels)
        try:
            scores = self._fake.probabilities(image, concepts)
        except InputError as error:
            raise Rejected(400, str(error)) from None
        return Response(200, {"scores": scores}, usage=Usage())
