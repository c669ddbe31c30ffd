"""From pixels to a network's input, and from files to its parameters."""

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import tests.helpers.tiny_networks as tiny
from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local.files import load_parameters
from adaptive_vtt.models.local.torch_network import IMAGENET, Preset
from tests.helpers.torch_networks import SHOWN

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
