"""What every model under test promises, and how one that breaks its promise is caught."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
import torch
from batch_service import BatchService, MessageBatches
from loopback import Said, serving
from torch import nn

from adaptive_vtt.datasets import from_table, scenes
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import (
    Answer,
    AnthropicBatch,
    AnthropicMessages,
    HttpJson,
    InspectModel,
    ModelUnderTest,
    OnnxModel,
    OpenAIBatch,
    OpenAIChat,
    OpenInference,
    Polling,
    Prices,
    Prompt,
    PythonModel,
    Recorded,
    RecordedCaptions,
    Simulated,
    SubprocessModel,
    TemplateCaptioner,
    TorchModel,
    Unanswered,
)
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.demo.fashion_cnn import predict
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.testing.contracts import ModelContract
from adaptive_vtt.types import Ask, Image
from adaptive_vtt.utils.random_streams import generator

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
    onnx = pytest.importorskip("onnx")
    of = onnx.TensorProto.FLOAT
    step = onnx.helper.make_node("ReduceMean", ["image"], ["p"], axes=[2, 3], keepdims=0)
    image = onnx.helper.make_tensor_value_info("image", of, ("n", 3, "h", "w"))
    output = onnx.helper.make_tensor_value_info("p", of, None)
    graph = onnx.helper.make_graph([step], "means", [image], [output])
    opset = [onnx.helper.make_opsetid("", 13)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "m.onnx")
    return lambda: OnnxModel(folder / "m.onnx")


def classifier(folder: Path, serve: Any) -> Callable[[], ModelUnderTest]:
    """A ViT with random weights."""
    pytest.importorskip("transformers")
    from tiny_transformers import classifier

    from adaptive_vtt.models.local.hugging_face_tasks import transformers_model

    path = str(classifier(folder, CONCEPTS))
    return lambda: transformers_model(path, "image-classification", batch_size=3)


def torch_network(folder: Path, serve: Any) -> Callable[[], ModelUnderTest]:
    """A classifier of a folder with a hubconf.py."""
    from tiny_networks import hub, of_hub, saved

    from adaptive_vtt.models.local.torch_network import torch_network

    given = {"path": hub(folder), "options": {"classes": 3}, "preset": "imagenet"}
    weights = saved(of_hub(folder, "classifier", 3), folder / "weights.pt")
    return lambda: torch_network(
        "hub", architecture="classifier", weights=weights, classes=CONCEPTS, **given
    )


def chat_model(folder: Path, serve: Any) -> Callable[[], ModelUnderTest]:
    """A LLaVA with random weights."""
    pytest.importorskip("transformers")
    from tiny_transformers import chat

    from adaptive_vtt.models.local.hugging_face_tasks import transformers_model

    path = str(chat(folder))
    return lambda: transformers_model(path, "image-text-to-text", batch_size=3)


PROGRAM = """
import hashlib, json, sys
for line in sys.stdin:
    asked = json.loads(line)
    said = [hashlib.md5((asked["image"] + c).encode()).digest()[0] / 255 for c in asked["concepts"]]
    print(json.dumps({"values": said, "cost": 0.25}), flush=True)
"""


def program(folder: Path, serve: Any) -> Callable[[], ModelUnderTest]:
    (folder / "model.py").write_text(PROGRAM)
    return lambda: SubprocessModel([sys.executable, "-S", "model.py"], directory=folder)


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
    return partial(OpenAIBatch, "m", base_url=url, prices=prices, polling=Polling(0.001))


def messages(params: dict[str, Any]) -> dict[str, Any]:
    """Gives the tool a probability that follows from what was asked."""
    given = {"probability": share(params["messages"])}
    usage = {"input_tokens": 300, "output_tokens": 20}
    tool = {"type": "tool_use", "name": params["tools"][0]["name"], "input": given}
    message = {"content": [tool], "stop_reason": "tool_use"}
    return {"type": "succeeded", "message": {**message, "usage": usage}}


def message_batches(folder: Path, serve: Callable[[Any], str]) -> Callable[[], ModelUnderTest]:
    def make() -> ModelUnderTest:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
            return AnthropicBatch("m", base_url=url, prices=prices, polling=Polling(0.001))

    url, prices = serve(MessageBatches(messages)), Prices(input=1.0, output=2.0)
    return make


def message_api(path: str, headers: Mapping[str, str], body: bytes) -> Said:
    return 200, {}, json.dumps(messages(json.loads(body))["message"]).encode()


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
    "subprocess": program,
    "torch": torch_network,
    "transformers": classifier,
    "transformers, chat": chat_model,
    "http": http,
    "openai, one": partial(chat, "one"),
    "openai, all": partial(chat, "all"),
    "openai-batch": batches,
    "anthropic": one_by_one,
    "anthropic-batch": message_batches,
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


# -- models that break their promise -------------------------------------------------------


class Saying:
    """Answers whatever it was told to, whatever it is asked."""

    answers: Literal["one", "all"] = "all"
    name = "broken"

    def __init__(self, answers: Any) -> None:
        self._answers = answers

    def ask(self, prompts: Sequence[Prompt]) -> Any:
        if isinstance(self._answers, Exception):
            raise self._answers
        return self._answers


PROMPT = Prompt(None, ("drusen", "cyst"), "eye-7", "rotation", 3)
WHERE = r"sample 'eye-7', rotation severity 3"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            RuntimeError("out\nof  memory"),
            rf"'broken' raised RuntimeError: out of memory .*{WHERE}",
        ),
        (KeyError(), r"'broken' raised KeyError: KeyError "),
        ([], r"expected 1 answers \(one per prompt\), got 0"),
        ([Answer((0.1, 0.2))] * 2, r"expected 1 answers \(one per prompt\), got 2"),
        (None, r"expected 1 answers \(one per prompt\), got NoneType"),
        ([0.5], rf"expected Answer or Unanswered, got float for {WHERE}"),
        ([Answer((0.1,))], rf"expected 2 values \(one per concept\), got 1 for {WHERE}"),
        ([Answer((0.1, 0.2, 0.3))], rf"expected 2 values \(one per concept\), got 3 for {WHERE}"),
        ([Answer((0.1, float("nan")))], rf"between 0 and 1, got nan for {WHERE}, concept 'cyst'"),
        ([Answer((1.5, 0.2))], rf"between 0 and 1, got 1.5 for {WHERE}, concept 'drusen'"),
        ([Answer((0.1, -0.01))], r"between 0 and 1, got -0.01 .* concept 'cyst'"),
        ([Answer((0.1, float("inf")))], r"between 0 and 1, got inf .* concept 'cyst'"),
        ([Answer((0.1, "yes"))], r"between 0 and 1, got yes for .* concept 'cyst'"),  # type: ignore[arg-type]
        ([Answer((None, 0.1))], r"between 0 and 1, got None .* concept 'drusen'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_answer_raises_model_error(answers: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        checked(Saying(answers), [PROMPT])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((1, 3)), r"'told': expected an array of shape \(1, 2\) .* got shape \(1, 3\)"),
        (np.zeros((2, 2)), r"expected an array of shape \(1, 2\) .* got shape \(2, 2\)"),
        (np.zeros(2), r"expected an array of shape \(1, 2\) .* got shape \(2,\)"),
        (0.5, r"expected an array of shape \(1, 2\) .* got shape \(\)"),
        ([["yes", "no"]], r"'told': expected an array of numbers, got list"),
        (np.array([[0.1, np.nan]]), r"between 0 and 1, got nan .* concept 'cyst'"),
        (np.array([[2.0, 0.1]]), r"between 0 and 1, got 2.0 .* concept 'drusen'"),
    ],
)
def test_a_callable_with_a_wrong_array_raises_model_error(table: Any, message: str) -> None:
    prompt = Prompt(np.zeros((4, 4, 1), np.uint8), *list(vars(PROMPT).values())[1:])
    with pytest.raises(ModelError, match=message):
        checked(PythonModel(lambda images: table, name="told"), [prompt])


def test_a_concept_left_unanswered_is_an_answer() -> None:
    answer = Answer((0.5, Unanswered("refused")))
    assert checked(Saying([answer]), [PROMPT]) == [answer]
    assert checked(Saying([Unanswered("timeout")]), [PROMPT]) == [Unanswered("timeout")]


def test_cause_of_a_model_error_is_kept() -> None:
    with pytest.raises(ModelError) as caught:
        checked(Saying(ZeroDivisionError("by zero")), [PROMPT])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_prompts_hold_no_truth() -> None:
    assert set(vars(PROMPT)) == {
        "image",
        "concepts",
        "sample_id",
        "relation",
        "severity",
        "asks",
        "words",
    }


# -- recorded and simulated ----------------------------------------------------------------


def test_recorded_answers_are_replayed_and_gaps_are_unanswered() -> None:
    model = Recorded(pd.DataFrame({"drusen": [0.2, np.nan], "cyst": [0.4, 1.0]}, index=["a", "b"]))
    ask = [Prompt(None, ("cyst", "drusen"), s, "identity", 0) for s in ("a", "b", "z")]
    gap = Unanswered("not recorded")
    assert checked(model, ask) == [Answer((0.4, 0.2)), Answer((1.0, gap)), gap]


def test_recorded_answers_of_follow_ups_stand_under_relation_and_severity() -> None:
    rows = {"sample": ["a", "a"], "relation": ["identity", "rotation"], "severity": [0, 3]}
    model = Recorded(pd.DataFrame({**rows, "drusen": [0.2, 0.9]}))
    ask = [Prompt(None, ("drusen",), "a", *of) for of in (("rotation", 3), ("rotation", 2))]
    assert checked(model, ask) == [Answer((0.9,)), Unanswered("not recorded")]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sample": ["a"], "drusen": [1.2]}, r"between 0 and 1, got 1.2 in row 0, column 'drusen'"),
        ({"sample": ["a", "a"], "drusen": [0, 1]}, r"\('a', 'identity', 0\) stands twice.* row 1"),
        ({"sample": ["a"], "drusen": ["yes"]}, r"recorded answers: expected numbers"),
    ],
)
def test_recorded_answers_that_cannot_be_are_refused(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Recorded(pd.DataFrame(table))


def test_recorded_answers_without_the_concept_are_refused() -> None:
    model = Recorded(pd.DataFrame({"sample": ["a"], "drusen": [0.5]}))
    with pytest.raises(InputError, match=r"no column for concept 'cyst'; there are drusen"):
        checked(model, [Prompt(None, ("cyst",), "a", "identity", 0)])


@pytest.mark.parametrize(
    ("kind", "common", "others"),
    [("unbiased", 0.7, 0.7), ("biased", 0.9, 0.5), ("negatively-biased", 0.5, 0.9)],
)
def test_simulated_models_are_right_as_often_as_the_paper_says(
    kind: str, common: float, others: float
) -> None:
    # 3,000 answers per concept: a share strays more than 4 standard deviations (< 0.037) once
    # in 16,000 seeds; 3 kinds x 2 concepts make that once in 2,600.
    labels = pd.DataFrame(generator(0, "labels").random((3000, 2)) < (0.6, 0.3)).astype(int)
    dataset = from_table(None, labels.set_axis(["often", "rare"], axis=1))
    model = Simulated.paper(kind, dataset, seed=3, answers="all")
    prompts = [Prompt(None, dataset.concepts, str(i), "identity", 0) for i in range(3000)]
    answers = np.array([a.values for a in checked(model, prompts) if isinstance(a, Answer)])
    right = ((answers >= 0.5) == (labels.to_numpy() == 1)).mean(axis=0)
    assert right == pytest.approx([common, others], abs=0.037)


def test_unknown_simulated_kind_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown simulated model 'biassed'.*did you mean 'bias"):
        Simulated.paper("biassed", tiny_dataset(4))


def test_words_answer_questions_in_words_alone() -> None:
    asked = Prompt(
        None, ("organ",), "s", "identity", 0, (Ask("Which organ?", ("colon", "stomach")),)
    )
    assert checked(Saying([Answer(("A",))]), [asked]) == [Answer(("A",))]
