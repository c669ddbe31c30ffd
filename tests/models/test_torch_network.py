"""Networks of torch: folders with a hubconf.py, what they are given, their parameters, memory."""

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow
from torch import nn

import tests.helpers.tiny_networks as tiny
from adaptive_vtt.config import parse_spec
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models import Answer, Prompt, TorchModel
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.local.files import hash_of, load_parameters
from adaptive_vtt.models.local.torch_network import IMAGENET, Preset, torch_network
from adaptive_vtt.utils.random_streams import generator
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


def sized(**preset):
    return {"preprocessing": {**PLAIN, **preset}}


@pytest.mark.parametrize(
    ("name", "given", "match"),
    [
        ("segmenter", {"output": 0, **sized(crop=[32, 32])}, r"expected a segmenter without crop"),
        ("segmenter", sized(size=[32, 32]), r"as it gives 4 outputs, of"),
        ("classifier", {"classes": ["a"], **sized(size=[8, 8])}, r"shape \(1, 1\).*got \(1, 2\)"),
        ("segmenter", {"output": 0, **sized(size=[2, 3])}, r"inputs of \(2, 3\).*got RuntimeError"),
        ("segmenter", {"output": 0, "activation": "softmax"}, r"'sigmoid' or 'none' for a single"),
    ],
)
def test_what_cannot_answer_is_refused_when_it_is_built(tmp_path, name, given, match):
    with pytest.raises(InputError, match=match):
        network(tmp_path, name, **{"classes": ["polyp"], **given})


def test_images_too_large_for_memory_are_refused_when_it_is_built(tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 40.2 GiB")

    monkeypatch.setattr(Preset, "__call__", full)
    with pytest.raises(InputError, match=r"takes inputs of \(8, 9\), as size .*allocate 40\.2 GiB"):
        network(tmp_path, "classifier", classes=["a", "b"], **sized(size=[8, 9]))


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


# -- from pixels to a network's input ------------------------------------------------------


@pytest.mark.parametrize("size", [20, 57, (33, 70)])
@pytest.mark.parametrize(("word", "method"), [("bilinear", 2), ("bicubic", 3), ("nearest", 0)])
def test_images_are_resized_as_pillow_does(size, word, method):
    image = SHOWN[2][:50]
    made = Preset([0.0], [1.0], size=size, interpolation=word)(image)
    height, width = size if isinstance(size, tuple) else (size, size * 64 // 50)
    expected = Pillow.fromarray(image).resize((width, height), Pillow.Resampling(method))
    apart = np.abs(made.permute(1, 2, 0).numpy() * 255 - np.asarray(expected))
    assert (apart > 2).mean() < (0.05 if word == "nearest" else 1e-9)  # nearest: half-way points


def test_an_image_is_cut_and_scaled():
    image = SHOWN[0]
    cut = Preset([0.5], [0.25], crop=[20, 60])(image)
    assert cut.shape == (3, 20, 60)
    assert torch.equal(cut[:, :, :6], torch.full((3, 20, 6), -2.0))  # black beyond the image
    assert cut[0, 0, 6].item() == pytest.approx((image[10, 0, 0] / 255 - 0.5) / 0.25)
    caffe = Preset([104 / 255, 117 / 255, 123 / 255], [1 / 255])(image)
    assert caffe[1, 3, 2].item() == pytest.approx(image[3, 2, 1] - 117.0, abs=1e-4)
    assert Preset([0.0], [1.0], channels=1)(image).shape == (1, 40, 48)
    grey = Preset(*IMAGENET)(SHOWN[1])
    assert grey[:, 0, 0].tolist() == pytest.approx(
        [(90 / 255 - m) / s for m, s in zip(*IMAGENET, strict=True)]
    )


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"mean": [0.1, 0.2]}, r"model.mean: expected one number, or 3 .*got 2"),
        ({"std": [0.0]}, r"model.std: expected numbers above 0, got \[0.0\]"),
        ({"size": [3, 4, 5]}, r"model.size: expected \[height, width\] in pixels, got \[3, 4, 5\]"),
        ({"crop": [20]}, r"model.crop: expected \[height, width\] in pixels, got \[20\]"),
        ({"size": 0}, r"model.size: expected"),
    ],
)
def test_presets_that_cannot_be_are_refused(given, match):
    with pytest.raises(InputError, match=match):
        Preset(**given)


# -- parameters ----------------------------------------------------------------------------


def test_parameters_are_read_from_what_training_programs_write(tmp_path):
    trained, fresh = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    load_parameters(fresh, tiny.saved(trained, tmp_path / "plain.pt"))
    assert torch.equal(fresh.weight, trained.weight)
    parallel = torch.nn.Sequential()
    parallel.add_module("module", trained)
    fresh = torch.nn.Linear(3, 2)
    load_parameters(fresh, tiny.saved(parallel, tmp_path / "checkpoint.pt", epoch=3))
    assert torch.equal(fresh.weight, trained.weight)


def test_parameters_of_another_network_are_refused(tmp_path):
    path = tiny.saved(torch.nn.Linear(3, 4, bias=False), tmp_path / "other.pt")
    match = r"it lacks 1 \('bias'\), has in another shape 1 \('weight'\); function and options"
    with pytest.raises(InputError, match=match):
        load_parameters(torch.nn.Linear(3, 2), path)
    with pytest.raises(InputError, match=r"has additional 1 \('bias'\)"):
        load_parameters(torch.nn.Linear(3, 2, bias=False), tiny.saved(torch.nn.Linear(3, 2), path))
    with pytest.raises(InputError, match=r"file '.*none.pt' does not exist"):
        load_parameters(torch.nn.Linear(3, 2), tmp_path / "none.pt")


def test_files_that_hold_programs_are_not_run(tmp_path):
    torch.save(torch.nn.Linear(3, 2), tmp_path / "whole.pt")  # pickles the class, and would run it
    with pytest.raises(InputError, match=r"parameters alone.*got other objects, which are not loa"):
        load_parameters(torch.nn.Linear(3, 2), tmp_path / "whole.pt")
    torch.jit.trace(torch.nn.Linear(3, 2), torch.ones(1, 3)).save(tmp_path / "script.pt")
    with pytest.raises(InputError, match=r"got TorchScript; a hubconf\.py whose function returns"):
        load_parameters(torch.nn.Linear(3, 2), tmp_path / "script.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(InputError, match=r"expected parameters by name.*got list"):
        load_parameters(torch.nn.Linear(3, 2), tmp_path / "list.pt")


IMAGES = generator(0, "lines").integers(0, 256, (3, 5, 4, 3), dtype=np.uint8)
PROMPTS = [Prompt(image, ("a", "b"), f"s{i}", "identity", 0) for i, image in enumerate(IMAGES)]


class Hungry(nn.Module):
    """Means of images; out of memory for more than ``fits`` of them."""

    def __init__(self, fits):
        super().__init__()
        self.fits = fits
        self.batches: list[int] = []

    def forward(self, images):
        self.batches.append(len(images))
        if len(images) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return images.mean(dim=(2, 3))[:, :2]


def test_batches_that_do_not_fit_are_halved_for_good():
    hungry = Hungry(fits=3)
    model = TorchModel(hungry, device="cpu", batch_size=16)
    prompts = [PROMPTS[i % 3] for i in range(10)]
    answers = [a.values for a in checked(model, prompts) if isinstance(a, Answer)]
    means = IMAGES.mean((1, 2))[[i % 3 for i in range(10)], :2] / 255
    assert np.allclose(np.array(answers, float), 1 / (1 + np.exp(-means)), atol=1e-6)
    assert hungry.batches == [10, 5, 2, 2, 2, 2, 2]
    assert model.batch_size == 2


def test_one_image_that_does_not_fit_ends_the_audit():
    with pytest.raises(ModelError, match="raised OutOfMemoryError: CUDA out of memory"):
        checked(TorchModel(Hungry(fits=0), device="cpu"), PROMPTS)
