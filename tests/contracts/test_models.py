"""What every model under test promises."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from adaptive_vtt.demo.fashion_cnn import predict
from adaptive_vtt.experiments.reic.drawn_scenes import scenes
from adaptive_vtt.experiments.reic.template_captioner import TemplateCaptioner
from adaptive_vtt.models import (
    AnthropicMessages,
    HttpJson,
    InspectModel,
    ModelUnderTest,
    OnnxModel,
    OpenAIBatch,
    OpenAIChat,
    OpenInference,
    Prices,
    Prompt,
    PythonModel,
    Recorded,
    RecordedCaptions,
    Simulated,
    TorchModel,
)
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.testing.contracts import ModelContract
from adaptive_vtt.types import Ask, Image
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.batch_service import BatchService
from tests.helpers.loopback import Said, serving
from tests.helpers.onnx_graphs import channels

from .apis import chat_api, inference_api, json_api, share
from .registered import assert_covered

CONCEPTS = ("c0", "c1", "c2")
Making = Callable[[Path, Callable[[Any], str]], Callable[[], ModelUnderTest]]
"""From an empty folder, and a function that serves answers on loopback and gives the URL."""


def brightness(images: list[Any]) -> np.ndarray:
    means = np.array([image.mean() / 255 for image in images])
    return means[:, None] ** np.arange(1, 4)


class Linear(nn.Module):
    """Logits from the mean of each image; dropout, to see that eval mode is on."""

    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.linspace(-3, 3, 3))
        self.dropout = nn.Dropout(0.5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.dropout(images.mean(dim=(1, 2, 3))[:, None] * self.slopes)


def recorded(per_call: Literal["one", "all"]) -> Recorded:
    """Half of the images recorded, one value missing."""
    values = generator(0, "recorded").random((4, 3))
    values[1, 1] = np.nan
    table = pd.DataFrame(values, columns=list(CONCEPTS), index=[f"s{i}" for i in range(4)])
    return Recorded(table, per_call=per_call)


def recorded_captions() -> RecordedCaptions:
    rows = [
        (f"s{i}", *of, f"A cup, {i}.")
        for i in range(4)
        for of in (("identity", 0), ("brightness_up", 2))
    ]
    return RecordedCaptions(
        pd.DataFrame(rows, columns=["sample", "relation", "severity", "caption"])
    )


def onnx_file(folder: Path, serve: Any) -> Callable[[], ModelUnderTest]:
    """The mean of each channel."""
    pytest.importorskip("onnxruntime")
    return partial(OnnxModel, channels(folder / "m.onnx"))


def torch_network(folder: Path, serve: Any) -> Callable[[], ModelUnderTest]:
    """A classifier of a folder with a hubconf.py."""
    from adaptive_vtt.models.local.torch_network import torch_network
    from tests.helpers.tiny_networks import hub, of_hub, saved

    given = {"path": hub(folder), "options": {"classes": 3}, "preset": "imagenet"}
    weights = saved(of_hub(folder, "classifier", 3), folder / "weights.pt")
    return lambda: torch_network(function="classifier", weights=weights, classes=CONCEPTS, **given)


# -- servers on loopback, whose answers follow from the bytes they are sent ------------------


def http(folder: Path, serve: Callable[[Any], str]) -> Callable[[], ModelUnderTest]:
    request = {"image": "{image_base64}", "concepts": "{concepts}"}
    prices = Prices(per_call=0.5)
    return partial(HttpJson, serve(json_api), request=request, response="scores", prices=prices)


def chat(
    answers: Literal["one", "all"], folder: Path, serve: Callable[[Any], str]
) -> Callable[[], ModelUnderTest]:
    prices = Prices(input=1.0, output=2.0)
    url = serve(chat_api) + "/v1"
    return partial(OpenAIChat, "m", base_url=url, answers=answers, prices=prices)


def batches(folder: Path, serve: Callable[[Any], str]) -> Callable[[], ModelUnderTest]:
    prices = Prices(input=1.0, output=2.0)
    url = serve(BatchService(chat_api)) + "/v1"
    return partial(OpenAIBatch, "m", base_url=url, prices=prices, poll_seconds=0.001)


def messages(params: dict[str, Any]) -> dict[str, Any]:
    """Gives the tool a probability that follows from what was asked."""
    given = {"probability": share(params["messages"])}
    usage = {"input_tokens": 300, "output_tokens": 20}
    tool = {"type": "tool_use", "name": params["tools"][0]["name"], "input": given}
    return {"content": [tool], "stop_reason": "tool_use", "usage": usage}


def message_api(path: str, headers: Mapping[str, str], body: bytes) -> Said:
    return 200, {}, json.dumps(messages(json.loads(body))).encode()


def one_by_one(folder: Path, serve: Callable[[Any], str]) -> Callable[[], ModelUnderTest]:
    def make() -> ModelUnderTest:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
            return AnthropicMessages("m", base_url=url, prices=Prices(input=1.0, output=2.0))

    url = serve(message_api)
    return make


def inspect_model(folder: Path, serve: Callable[[Any], str]) -> Callable[[], ModelUnderTest]:
    """An OpenAI-compatible server, through Inspect."""
    pytest.importorskip("inspect_ai")

    def make() -> ModelUnderTest:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OWN_API_KEY", "sk-own-secret")
            return InspectModel("openai-api/own/m", base_url=url, prices=prices)

    url, prices = serve(chat_api) + "/v1", Prices(input=1.0, output=2.0)
    return make


def inference(folder: Path, serve: Callable[[Any], str]) -> Callable[[], ModelUnderTest]:
    return partial(OpenInference, serve(inference_api), "means")


def plain(make: Callable[[], ModelUnderTest]) -> Making:
    """Of a model that needs neither files nor a server."""
    return lambda folder, serve: make


CASES: dict[str, Making] = {
    "python": plain(lambda: PythonModel(brightness)),
    "python, torch module": plain(lambda: TorchModel(Linear(), device="cpu", batch_size=3)),
    "python, bundled CNN": plain(lambda: PythonModel(predict)),
    "recorded, all": plain(lambda: recorded("all")),
    "recorded, one": plain(lambda: recorded("one")),
    "recorded, captions": plain(recorded_captions),
    "simulated, all": plain(lambda: Simulated.paper("biased", tiny_dataset(4), answers="all")),
    "simulated, one": plain(lambda: Simulated.paper("biased", tiny_dataset(4), answers="one")),
    "captioner": plain(TemplateCaptioner),
    "onnx": onnx_file,
    "torch": torch_network,
    "http": http,
    "openai, one": partial(chat, "one"),
    "openai, all": partial(chat, "all"),
    "openai-batch": batches,
    "anthropic": one_by_one,
    "inspect": inspect_model,
    "open-inference": inference,
    "scripted, all": plain(lambda: ScriptedModel(answers="all")),
    "scripted, one": plain(lambda: ScriptedModel(answers="one", refuse=0.3)),
}
GREY_28 = {"python, bundled CNN"}
CAPTIONING = {"captioner", "recorded, captions"}
WORDS = "Describe the image in one sentence."


def test_every_registered_model_has_a_case() -> None:
    assert_covered("models", {**CASES})


class TestModels(ModelContract):
    @pytest.fixture(autouse=True, params=CASES)
    def chosen(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
        self._case = request.param
        with ExitStack() as stack:
            serve = lambda answer: stack.enter_context(serving(answer))  # noqa: E731
            self._make = CASES[self._case](tmp_path, serve)
            if self._case in GREY_28:
                self.concepts = tuple(f"c{i}" for i in range(14))
            yield

    def make(self) -> ModelUnderTest:
        return self._make()

    def image(self, number: int) -> Image:
        if self._case == "captioner":
            image = DRAWN.sample(number).image
            assert image is not None
            return image
        image = super().image(number)
        return np.tile(image, (2, 2, 1))[:28, :28, :1].copy() if self._case in GREY_28 else image

    def prompts(self, answers: str) -> list[Prompt]:
        found = super().prompts(answers)
        if self._case not in CAPTIONING:
            return found
        where = [(p.sample_id, p.relation, p.severity) for p in found]
        pairs = dict(zip(where, found, strict=True))  # one prompt an image
        return [Prompt(p.image, ("caption",), *of, (Ask(WORDS),)) for of, p in pairs.items()]


DRAWN = scenes(4, seed=7)
