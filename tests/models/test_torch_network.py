"""Networks of a folder with a hubconf.py."""

from typing import Any

import numpy as np
import pytest
import torch

import tests.helpers.tiny_networks as tiny
from adaptive_vtt.config import parse_spec
from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local import torch_network as module
from adaptive_vtt.models.local.files import hash_of
from adaptive_vtt.models.local.torch_network import IMAGENET, Preset, TorchNetwork, torch_network
from tests.config.test_specs import copied, kvasir
from tests.helpers.command_line import run
from tests.helpers.torch_networks import PLAIN, SHOWN, answered, prompts


def network(folder, name, **given):
    prepare = Preset(**given.pop("preprocessing", PLAIN))
    return torch_network(tiny.hub(folder), function=name, preprocessing=prepare, **given)


def test_a_polyp_segmenter_gives_the_mask_of_the_output_that_is_named(tmp_path):
    options = {"preset": "imagenet", "preprocessing": {"size": [64, 64]}}
    model = network(tmp_path, "segmenter", classes=["polyp"], output=-1, **options)
    masks = answered(model, prompts("polyp"))
    assert [mask.shape for mask in masks] == [(40, 48), (30, 36), (64, 64)]
    image = Preset(*IMAGENET, size=(64, 64))(SHOWN[2])[None]
    with torch.no_grad():
        logits = model._module(image)[3]
        sized = torch.nn.functional.interpolate(logits, (64, 64), mode="bilinear")
    assert np.array_equal(masks[2], (torch.sigmoid(sized) >= 0.5)[0, 0].numpy())
    assert masks[2].any()
    assert not masks[2].all()
    first = network(tmp_path, "segmenter", classes=["polyp"], output=0)
    with pytest.raises(InputError, match=r"of its outputs to read, as it gives 4 outputs, of shap"):
        network(tmp_path, "segmenter", classes=["polyp"]).ask(prompts("polyp"))
    assert answered(first, prompts("polyp"))[2].shape == (64, 64)


def test_a_classifier_gives_probabilities_of_the_classes_that_concepts_are(tmp_path):
    torch.manual_seed(1)
    weights = tiny.saved(tiny.of_hub(tmp_path, "classifier", 3), tmp_path / "w.pt")
    given = {"weights": weights, "options": {"classes": 3}, "classes": ["a", "B_c", "d"]}
    model = network(tmp_path, "classifier", **given)
    rows = np.array(answered(model, prompts("a", "b c", "d")))
    assert rows.sum(1) == pytest.approx([1, 1, 1])
    named = network(tmp_path, "classifier", **given, class_names={"ill": ["a", "d"]})
    assert answered(named, prompts("ill")) == pytest.approx((rows[:, 0] + rows[:, 2]).tolist())
    sure = network(tmp_path, "classifier", **given, activation="sigmoid")
    likely = np.array(answered(sure, prompts("a", "b c", "d")))
    assert np.log(likely / (1 - likely))[:, 0] - np.log(likely / (1 - likely))[:, 1] == (
        pytest.approx(np.log(rows[:, 0] / rows[:, 1]), abs=1e-5)
    )
    given["options"] = {"classes": 3, "kind": "named"}
    by_name = network(tmp_path, "classifier", **given, output="logits")
    assert answered(by_name, prompts("a")) == pytest.approx(rows[:, 0].tolist())
    with pytest.raises(InputError, match=r"gives outputs by name, 'features', 'logits'; 'x' is no"):
        network(tmp_path, "classifier", **given, output="x").ask(prompts("a"))


@pytest.mark.parametrize(
    ("name", "given", "match"),
    [
        (
            "segmenter",
            {"output": 0, "preprocessing": {**PLAIN, "crop": [32, 32]}},
            r"expected a segmenter without crop, as its maps must cover the image; say size = ",
        ),
        ("segmenter", {"preprocessing": {**PLAIN, "size": [32, 32]}}, r"as it gives 4 outputs, of"),
        (
            "classifier",
            {"classes": ["a", "b", "c"], "preprocessing": {**PLAIN, "size": [8, 8]}},
            r"expected an output of shape \(1, 3\).*got \(1, 2\)",
        ),
        (
            "segmenter",
            {"output": 0, "preprocessing": {**PLAIN, "size": [2, 3]}},
            r"takes inputs of \(2, 3\), as size and crop in \[model\] make them, got RuntimeError",
        ),
        ("segmenter", {"output": 0, "activation": "softmax"}, r"'sigmoid' or 'none' for a single"),
    ],
)
def test_what_cannot_answer_is_refused_when_it_is_built(tmp_path, name, given, match):
    with pytest.raises(InputError, match=match):
        network(tmp_path, name, **{"classes": ["polyp"], **given})


def test_names_of_all_classes_are_not_read_again_for_every_question(tmp_path, monkeypatch):
    classes = [f"class {number}" for number in range(50)]
    model = network(tmp_path, "classifier", options={"classes": 50}, classes=classes)
    plain, read = module._plain, []
    monkeypatch.setattr(module, "_plain", lambda name: read.append(name) or plain(name))
    model.ask(prompts("class 3", "class 7"))
    assert set(read) == {"class 3", "class 7"}


class Chance(torch.nn.Module):
    """Returns random numbers."""

    def forward(self, images):
        assert images.shape[2:] == (32, 64)
        return torch.rand(len(images), 2)


def test_images_too_large_for_memory_are_refused_when_it_is_built(monkeypatch):
    def full(preset, image):
        raise MemoryError("Unable to allocate 40.2 GiB")

    monkeypatch.setattr(Preset, "__call__", full)
    with pytest.raises(InputError, match=r"takes inputs of \(8, 9\), as size .*allocate 40\.2 GiB"):
        TorchNetwork(Chance(), Preset(size=[8, 9]), "m", classes=["a", "b"], device="cpu")


def test_a_concept_without_a_class_is_refused_before_the_audit_begins(tmp_path, capsys):
    kvasir(tmp_path)
    tiny.saved(tiny.of_hub(tmp_path / "PraNet", "segmenter"), tmp_path / "PraNet.pth")
    named = ('classes = ["polyp"]', 'classes = ["lesion"]')
    spec = copied("polyp_segmenter.toml", tmp_path, of=named)
    assert run("audit", str(spec), "--out", str(tmp_path / "run")) == 2
    assert "unknown class 'polyp'" in capsys.readouterr().err
    assert not (tmp_path / "run" / "journal.db").exists()


def test_a_worker_makes_one_without_knowing_what_is_asked_about(tmp_path):
    """It asked for the concepts of a dataset that workers do not have."""
    tiny.saved(tiny.of_hub(tmp_path, "classifier", 2), tmp_path / "w.pt")
    given = {"path": ".", "function": "classifier", "weights": "w.pt"}
    preset = {"classes": ["a", "b"], "options": {"classes": 2}, "preset": "imagenet"}
    table = {"kind": "torch", "workers": 2, **given, **preset}
    spec = parse_spec({"dataset": {"kind": "fashion"}, "model": table}, "SPEC.toml")
    assert len(answered(spec.model.unworked().made(tmp_path), prompts("a", "b"))[0]) == 2
    assert spec.model.file() == "w.pt"


def test_other_parameters_buffers_preprocessing_or_names_are_another_model(tmp_path):
    given: dict[str, Any] = {"classes": ["a", "b"], "options": {"classes": 2}}
    torch.manual_seed(1)
    given["weights"] = tiny.saved(tiny.of_hub(tmp_path, "classifier", 2), tmp_path / "w.pt")
    same, again = (network(tmp_path, "classifier", **given) for _ in range(2))
    assert same.content() == again.content()
    same.ask(prompts("a"))
    others: list[dict[str, Any]] = [
        {"weights": tiny.saved(tiny.of_hub(tmp_path, "classifier", 2), tmp_path / "v.pt")},
        {"preprocessing": {"mean": [0.5], "std": [1.0]}},
        {"preprocessing": {**PLAIN, "size": 32}},
        {"classes": ["b", "a"]},
        {"class_names": {"a": "b"}},
        {"activation": "sigmoid"},
    ]
    rows = [network(tmp_path, "classifier", **{**given, **other}).content() for other in others]
    assert len({same.content(), *rows}) == 1 + len(others)
    normed = torch.nn.BatchNorm2d(3)
    before = hash_of(normed)
    normed.running_mean += 0.5  # no parameter
    assert hash_of(normed) != before
