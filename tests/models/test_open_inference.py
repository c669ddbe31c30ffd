"""The Open Inference Protocol: what a server says of its model, and what is sent to it."""

import json
from contextlib import contextmanager

import numpy as np
import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import Answer, OpenInference, Prices, Prompt, Retries, Unanswered
from adaptive_vtt.models.checking import checked
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.loopback import serving

CONCEPTS = ("dark", "bright")
IMAGES = generator(0, "inference").integers(0, 256, (3, 5, 4, 3), dtype=np.uint8)
PROMPTS = [Prompt(image, CONCEPTS, f"s{i}", "identity", 0) for i, image in enumerate(IMAGES)]
TYPES = {"FP32": np.dtype("<f4"), "FP64": np.dtype("<f8"), "UINT8": np.dtype("u1")}


class Model:
    """Returns the mean of each image and half of it, by the protocol."""

    def __init__(self, shape=(-1, 3, -1, -1), datatype="FP32", *, binary=False, outputs=("p",)):
        self.about = {
            "inputs": [{"name": "image", "datatype": datatype, "shape": list(shape)}],
            "outputs": [{"name": name, "datatype": "FP32", "shape": [-1, 2]} for name in outputs],
        }
        self.server = {"extensions": ["binary_tensor_data"] if binary else []}
        self.tensors = []

    def __call__(self, path, headers, body):
        if path == "/v2":
            return self._reply(self.server)
        if path == "/v2/models/bright":
            return self._reply(self.about)
        if path != "/v2/models/bright/infer":
            return 404, {}, b'{"error": "no such model"}'
        self.tensors.append(self._tensor(headers, body))
        tensor = self.tensors[-1] / (255 if self.tensors[-1].dtype == np.uint8 else 1)
        output = np.stack([tensor.mean((1, 2, 3))] * 2, 1) * [1.0, 0.5]
        data = output.astype(float).ravel().tolist()
        return self._reply({"outputs": [{"name": "p", "shape": output.shape, "data": data}]})

    def _tensor(self, headers, body):
        length = int(headers.get("inference-header-content-length", len(body)))
        tensor = json.loads(body[:length])["inputs"][0]
        kind = TYPES[tensor["datatype"]]
        if "data" in tensor:
            assert not self.server["extensions"]
            return np.array(tensor["data"], kind).reshape(tensor["shape"])
        assert tensor["parameters"]["binary_data_size"] == len(body) - length
        return np.frombuffer(body[length:], kind).reshape(tensor["shape"])

    @staticmethod
    def _reply(value):
        return 200, {}, json.dumps(value).encode()


@contextmanager
def served(model, name="bright", **options):
    with serving(model) as url, OpenInference(f"{url}/", name, **options) as endpoint:
        yield endpoint


def ask(model, prompts=PROMPTS, **options):
    with served(model, **options) as endpoint:
        return checked(endpoint, prompts)


@pytest.mark.parametrize(
    ("shape", "datatype", "binary"),
    [
        ((-1, 3, -1, -1), "FP32", False),
        ((-1, 3, -1, -1), "UINT8", True),
        ((1, 5, 4, 3), "FP64", True),
        ((1, 5, 4, 3), "UINT8", False),
    ],
)
def test_tensors_arrive_as_the_model_takes_them(shape, datatype, binary):
    model = Model(shape, datatype, binary=binary)
    answers = ask(model, PROMPTS[:1], prices=Prices(per_call=0.5))
    pixels = IMAGES[0] if shape[-1] == 3 else IMAGES[0].transpose(2, 0, 1)
    sent = pixels if datatype == "UINT8" else (pixels / 255.0).astype(TYPES[datatype])
    assert len(model.tensors) == 1
    assert np.array_equal(model.tensors[0], sent[None])
    assert isinstance(answers[0], Answer)
    assert answers[0].values == pytest.approx([IMAGES[0].mean() / 255, IMAGES[0].mean() / 510])
    assert answers[0].cost == 0.5


def test_images_are_normalised_and_given_size_and_channels():
    grey = generator(0, "grey").integers(0, 256, (10, 8, 1), dtype=np.uint8)
    model = Model((-1, 3, 5, 4))
    prompt = Prompt(grey, CONCEPTS, "g", "identity", 0)
    ask(model, [prompt], mean=[0.5], std=[0.25, 0.5, 1.0], activation="sigmoid")
    shrunk = grey.reshape(5, 2, 4, 2).mean((1, 3)) / 255  # by area
    assert model.tensors[0].shape == (1, 3, 5, 4)
    for channel, std in enumerate((0.25, 0.5, 1.0)):
        expected = (shrunk - 0.5) / std
        assert np.allclose(model.tensors[0][0, channel], expected, atol=0.51 / 255 / std)


def test_concepts_may_be_named_and_logits_turned_into_probabilities():
    prompts = [Prompt(IMAGES[0], ("bright",), "s", "identity", 0)]
    (answer,) = ask(Model(), prompts, concepts=("other", "bright"), activation="softmax")
    assert isinstance(answer, Answer)
    assert answer.values == pytest.approx([1 / (1 + np.exp(IMAGES[0].mean() / 510))])
    with pytest.raises(InputError, match=r"unknown concept 'bright'.*Expected one of blight, oth"):
        ask(Model(), prompts, concepts=("other", "blight"))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (Model(), {"name": "blight"}, r"'blight' at 127.*http 404: no such model .*no such model"),
        (Model(), {"version": "9"}, r"http 404: no such model"),
        (Model(outputs=("p", "q")), {}, r"expected model.output, one of p, q"),
        (Model(outputs=("p", "q")), {"output": "r"}, r"unknown output 'r': expected one of p, q"),
        (Model(datatype="BYTES"), {}, r"unknown input datatype 'BYTES'"),
        (Model((-1, 7)), {}, r"expected an input of images, .*got shape \[-1, 7\]"),
        (Model(), {"mean": [0, 0]}, r"mean: expected one number, or 3 \(one per channel\), got 2"),
        (Model(), {"std": [0]}, r"std: expected numbers above 0, got \[0\]"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
def test_models_that_cannot_be_asked_are_refused(model, options, message):
    with pytest.raises((InputError, ModelError), match=message):
        ask(model, **options)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (Model(outputs=("p", "q")), {"output": "q"}, "the reply has no tensor 'q'"),
        (Model(), {"concepts": ("a",)}, "expected 1 outputs (its concepts), got 2"),
    ],
)
def test_replies_without_the_answers_asked_for_are_malformed(model, options, message):
    retries = Retries(times=1, first_wait=0.001)
    with serving(model) as url, OpenInference(url, "bright", retries=retries, **options) as server:
        assert server.ask(PROMPTS[:1]) == [Unanswered("malformed reply")]
        assert message in server.statistics()["first_malformed"]
