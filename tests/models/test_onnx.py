"""ONNX files as models under test."""

import numpy as np
import pytest

from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import Answer, OnnxModel, Prompt
from adaptive_vtt.models.checking import checked
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.onnx_graphs import channels

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

CONCEPTS = ("red", "green", "blue")
IMAGES = generator(0, "onnx").integers(0, 256, (5, 6, 4, 3), dtype=np.uint8)
PROMPTS = [Prompt(image, CONCEPTS, f"s{i}", "identity", 0) for i, image in enumerate(IMAGES)]


def values(model, prompts=PROMPTS):
    return np.array([a.values for a in checked(model, prompts) if isinstance(a, Answer)], float)


@pytest.mark.parametrize(
    ("shape", "batch_size"),
    [(("n", 3, "h", "w"), 2), (("n", 3, 6, 4), 64), ((1, 3, 6, 4), 64), ((3, 3, 6, 4), 64)],
    ids=["free", "fixed size", "one at a time", "fixed batch"],
)
def test_a_classifier_answers_in_whatever_batches(tmp_path, shape, batch_size):
    model = OnnxModel(channels(tmp_path / "means.onnx", shape), batch_size=batch_size)
    assert model.name == "means"
    assert np.allclose(values(model), IMAGES.mean((1, 2)) / 255, atol=1e-6)


@pytest.mark.parametrize("kind", ["FLOAT16", "DOUBLE"])
def test_the_input_has_the_type_that_the_network_takes(tmp_path, kind):
    model = OnnxModel(channels(tmp_path / "means.onnx", kind=kind))
    assert np.allclose(values(model), IMAGES.mean((1, 2)) / 255, atol=2e-3)


def test_concepts_and_activation_read_the_output(tmp_path):
    path = channels(tmp_path / "means.onnx")
    prompts = [Prompt(p.image, ("blue", "red"), p.sample_id, "identity", 0) for p in PROMPTS]
    options = {"activation": "softmax", "mean": [0.5], "std": [0.1]}
    model = OnnxModel(path, name="m", concepts=CONCEPTS, **options)
    assert model.name == "m"  # and not that of its last option
    logits = (IMAGES.mean((1, 2)) / 255 - 0.5) / 0.1
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert np.allclose(values(model, prompts), shares[:, [2, 0]], atol=1e-5)


def test_a_segmenter_gives_masks_of_the_image_size(tmp_path):
    model = OnnxModel(channels(tmp_path / "maps.onnx", maps=True))
    answer = checked(model, PROMPTS[:1])[0]
    assert isinstance(answer, Answer)
    for channel, mask in enumerate(answer.values):
        assert isinstance(mask, np.ndarray)
        assert np.array_equal(mask, IMAGES[0][:, :, channel] >= 127.5)


def test_outputs_that_do_not_fit_the_concepts_are_refused(tmp_path):
    model = OnnxModel(channels(tmp_path / "means.onnx"), name="m")
    with pytest.raises(ModelError, match=r"'m': expected an array of shape \(1, 2\) .*got .*1, 3"):
        model.ask([Prompt(IMAGES[0], ("a", "b"), "s", "identity", 0)])
    with pytest.raises(InputError, match="'m': expected an image, sample 's' has none"):
        model.ask([Prompt(None, CONCEPTS, "s", "identity", 0)])


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        (("n", 5, 2, 2), {}, r"means.onnx': expected an input of images, .* \['n', 5, 2, 2\]"),
        (("n", 3), {}, r"expected an input of images"),
        (("n", 3, "h", "w"), {"output": "q"}, r"unknown output 'q': expected one of p"),
        (("n", 3, "h", "w"), {"activaton": "sigmoid"}, "OnnxModel: unknown option 'activaton'"),
        (("n", 3, "h", "w"), {"providers": ["GPU"]}, r"unknown ONNX Runtime provider 'GPU'"),
    ],
)
def test_networks_that_cannot_be_used_are_refused(tmp_path, shape, options, message):
    maps = len(shape) == 2
    with pytest.raises(InputError, match=message):
        OnnxModel(channels(tmp_path / "means.onnx", shape, maps=maps), **options)
