"""What every model under test promises."""

import json
from contextlib import ExitStack
from functools import partial
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
from adaptive_vtt.types import Ask
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.batch_service import BatchService
from tests.helpers.loopback import serving
from tests.helpers.onnx_graphs import channels

from .apis import chat_api, inference_api, json_api, share
from .registered import assert_covered

CONCEPTS = ("c0", "c1", "c2")


def brightness(images: list[Any]) -> np.ndarray:
    means = np.array([image.mean() / 255 for image in images])
    return means[:, None] ** np.arange(1, 4)


class Linear(nn.Module):
    """Logits from the mean of each image; dropout, to see that eval mode is on."""

    def __init__(self):
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
    versions = (("identity", 0), ("brightness_up", 2))
    rows = [(f"s{i}", *version, f"A cup, {i}.") for i in range(4) for version in versions]
    columns = ["sample", "relation", "severity", "caption"]
    return RecordedCaptions(pd.DataFrame(rows, columns=columns))


def onnx_file(folder, serve):
    """The mean of each channel."""
    pytest.importorskip("onnxruntime")
    return partial(OnnxModel, channels(folder / "m.onnx"))


def torch_network(folder, serve):
    """A classifier of a folder with a hubconf.py."""
    from adaptive_vtt.models.local.torch_network import torch_network
    from tests.helpers.tiny_networks import hub, of_hub, saved

    given = {"path": hub(folder), "options": {"classes": 3}, "preset": "imagenet"}
    weights = saved(of_hub(folder, "classifier", 3), folder / "weights.pt")
    return lambda: torch_network(function="classifier", weights=weights, classes=CONCEPTS, **given)


# -- servers on loopback, whose answers follow from the bytes they are sent ------------------

PRICES = Prices(input=1.0, output=2.0)


def http(folder, serve):
    request = {"image": "{image_base64}", "concepts": "{concepts}"}
    prices = Prices(per_call=0.5)
    return partial(HttpJson, serve(json_api), request=request, response="scores", prices=prices)


def chat(answers, folder, serve):
    url = serve(chat_api) + "/v1"
    return partial(OpenAIChat, "m", base_url=url, answers=answers, prices=PRICES)


def batches(folder, serve):
    url = serve(BatchService(chat_api)) + "/v1"
    return partial(OpenAIBatch, "m", base_url=url, prices=PRICES, poll_seconds=0.001)


def message_api(path, headers, body):
    """Gives the tool a probability that follows from what was asked."""
    params = json.loads(body)
    given = {"probability": share(params["messages"])}
    tool = {"type": "tool_use", "name": params["tools"][0]["name"], "input": given}
    usage = {"input_tokens": 300, "output_tokens": 20}
    reply = {"content": [tool], "stop_reason": "tool_use", "usage": usage}
    return 200, {}, json.dumps(reply).encode()


def with_key(variable, make):
    """What makes a model while a variable holds a key."""

    def made():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(variable, "sk-secret")
            return make()

    return made


def anthropic(folder, serve):
    url = serve(message_api)
    make = partial(AnthropicMessages, "m", base_url=url, prices=PRICES)
    return with_key("ANTHROPIC_API_KEY", make)


def inspect_model(folder, serve):
    """An OpenAI-compatible server, through Inspect."""
    pytest.importorskip("inspect_ai")
    url = serve(chat_api) + "/v1"
    make = partial(InspectModel, "openai-api/own/m", base_url=url, prices=PRICES)
    return with_key("OWN_API_KEY", make)


def inference(folder, serve):
    return partial(OpenInference, serve(inference_api), "means")


def plain(make):
    """A case of a model that needs neither files nor a server."""
    return lambda folder, serve: make


CASES = {
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
    "anthropic": anthropic,
    "inspect": inspect_model,
    "open-inference": inference,
    "scripted, all": plain(lambda: ScriptedModel(answers="all")),
    "scripted, one": plain(lambda: ScriptedModel(answers="one", refuse=0.3)),
}
SERVED = {"http", "openai, one", "openai, all", "openai-batch", "anthropic", "inspect"}
GREY_28 = {"python, bundled CNN"}
CAPTIONING = {"captioner", "recorded, captions"}
WORDS = "Describe the image in one sentence."


def test_every_registered_model_has_a_case():
    assert_covered("models", {**CASES})


class TestModels(ModelContract):
    @pytest.fixture(autouse=True, params=CASES, scope="class")
    @classmethod
    def chosen(cls, request, tmp_path_factory):
        """Serve each case once for all its tests."""
        case = request.param
        with ExitStack() as stack:
            serve = lambda answer: stack.enter_context(serving(answer))  # noqa: E731
            make = CASES[case](tmp_path_factory.mktemp("model"), serve)
            cls.case, cls.made = case, staticmethod(make)
            cls.concepts = tuple(f"c{i}" for i in range(14 if case in GREY_28 else 3))
            yield

    def make(self):
        return self.made()

    def image(self, number):
        if self.case == "captioner":
            return DRAWN.sample(number).image
        image = super().image(number)
        return np.tile(image, (2, 2, 1))[:28, :28, :1].copy() if self.case in GREY_28 else image

    def prompts(self, answers):
        prompts = super().prompts(answers)
        if self.case in SERVED:  # each takes a while
            prompts = [prompt for prompt in prompts if prompt.sample_id in ("s0", "s1")]
        if self.case not in CAPTIONING:
            return prompts
        by_image = {(p.sample_id, p.relation, p.severity): p for p in prompts}
        return [Prompt(p.image, ("caption",), *of, (Ask(WORDS),)) for of, p in by_image.items()]


DRAWN = scenes(4, seed=7)
