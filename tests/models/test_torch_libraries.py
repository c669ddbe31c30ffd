"""Networks of torch's libraries, with random weights, read and audited. What needs a library that
is not installed is skipped."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import tests.helpers.tiny_networks as tiny
from adaptive_vtt.demo import phantom
from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local.torch_network import torch_network
from tests.config.test_specs import copied, kvasir, targets
from tests.helpers.command_line import run
from tests.helpers.torch_networks import HALVES, QUICK, SHOWN, needs, prompts, said, verified

# -- the libraries -------------------------------------------------------------------------


def test_timm_gives_its_own_preprocessing_and_names(tmp_path: Path) -> None:
    needs("torchvision")
    timm = needs("timm")
    made = timm.create_model("test_resnet.r160_in1k", pretrained=False)
    weights = tiny.saved(made, tmp_path / "w.pt")
    model = torch_network("timm", architecture="test_resnet.r160_in1k", weights=weights)
    config = timm.data.resolve_model_data_config(made)
    for image in (SHOWN[0], SHOWN[2]):
        theirs = timm.data.create_transform(**config)(Pillow.fromarray(image))
        assert (model._prepare(image) - theirs).abs().max() < 2.5 / 255 / min(config["std"])
    concepts = ("goldfish, Carassius auratus",)
    with torch.no_grad():
        likely = made.eval()(model._prepare(SHOWN[0])[None]).softmax(1)[0, 1].item()
    assert said(model, prompts(*concepts))[0] == pytest.approx(likely, rel=1e-4)
    with pytest.raises(InputError, match=r"timm: unknown architecture 'resnet18x'; did you mean"):
        torch_network("timm", architecture="resnet18x", weights=weights)
    with pytest.raises(InputError, match=r"expected weights, the file .*nothing is fetched"):
        torch_network("timm", architecture="test_resnet")
    with pytest.raises(InputError, match=r"cannot be made: TypeError: .*nonsense"):
        torch_network("timm", architecture="test_resnet", options={"nonsense": 1})


def test_timm_reads_the_folder_that_it_wrote(tmp_path: Path) -> None:
    needs("torchvision")
    timm = needs("timm")
    made = timm.create_model("test_vit", num_classes=2)
    told = {"label_names": ["polyp", "normal"]}
    timm.models.save_for_hf(
        made, tmp_path / "vit", model_args={"num_classes": 2}, model_config=told
    )
    model = torch_network("timm", path=tmp_path / "vit")
    found = np.array(said(model, prompts("normal", "polyp")))
    assert found.sum(1) == pytest.approx([1, 1, 1])
    grey = torch_network(
        "timm",
        architecture="test_resnet",
        options={"in_chans": 1},
        classes=["a", "b"],
        weights=tiny.saved(
            timm.create_model("test_resnet", in_chans=1, num_classes=2), tmp_path / "grey.pt"
        ),
        preprocessing={"mean": [0.5], "std": [0.5], "size": [32, 32]},
    )
    assert grey._prepare(SHOWN[0]).shape == (1, 32, 32)
    assert len(said(grey, prompts("a"))) == 3


def test_torchvision_gives_the_preprocessing_and_classes_of_its_weights(tmp_path: Path) -> None:
    models = needs("torchvision").models
    made = models.mobilenet_v3_small()
    path = tiny.saved(made, tmp_path / "w.pt")
    model = torch_network("torchvision", architecture="mobilenet_v3_small", weights=path)
    transform = models.MobileNet_V3_Small_Weights.DEFAULT.transforms()
    theirs = transform(torch.from_numpy(SHOWN[0]).permute(2, 0, 1))
    assert (model._prepare(SHOWN[0]) - theirs).abs().max() < 2.5 / 255 / 0.225
    assert 0 < said(model, prompts("goldfish"))[0] < 1
    weights = {"architecture": "resnet50", "weights": path}
    with pytest.raises(InputError, match=r"torchvision resnet50: unknown preset 'IMAGENET1K_V3'"):
        torch_network("torchvision", **weights, preset="IMAGENET1K_V3")
    with pytest.raises(InputError, match=r"unknown architecture 'resnet5'; did you mean"):
        torch_network("torchvision", architecture="resnet5", weights=path)
    with pytest.raises(InputError, match=r"expected a classifier or a semantic segmenter"):
        torch_network("torchvision", architecture="ssdlite320_mobilenet_v3_large", weights=path)


def test_torchvisions_segmenters_are_read_at_out(tmp_path: Path) -> None:
    models = needs("torchvision").models
    name = "lraspp_mobilenet_v3_large"
    made = models.get_model(name, weights=None, weights_backbone=None, num_classes=3)
    path = tiny.saved(made, tmp_path / "w.pt")
    model = torch_network(
        "torchvision",
        architecture=name,
        weights=path,
        classes=["other", "polyp", "tool"],
        preprocessing={"size": 64},
    )
    found = model.ask(prompts("polyp", "tool", "other"))
    covered = sum(np.stack(answer.values).sum(0) for answer in found[:1])
    assert covered.shape == (40, 48)
    assert (covered == 1).all()  # each pixel is one class


def test_segmentation_models_keep_sides_that_the_encoder_takes(tmp_path: Path) -> None:
    needs("torchvision")
    smp = needs("segmentation_models_pytorch")
    options = {"encoder_name": "tu-test_resnet", "encoder_depth": 3, "decoder_channels": [8, 8, 4]}
    torch.manual_seed(0)
    made = smp.create_model("unet", encoder_weights=None, classes=1, **options)
    made.save_pretrained(tmp_path / "unet")
    given = {"classes": ["polyp"], "preset": "imagenet"}
    model = torch_network("segmentation-models", path=tmp_path / "unet", **given)
    assert model._prepare(SHOWN[1]).shape == (3, 32, 40)
    masks = said(model, prompts("polyp"))
    assert [mask.shape for mask in masks] == [(40, 48), (30, 36), (64, 64)]
    again = torch_network(
        "segmentation-models",
        architecture="unet",
        weights=tiny.saved(made, tmp_path / "w.pt"),
        options=options,
        **given,
    )
    assert again.content() == model.content()
    assert all(map(np.array_equal, said(again, prompts("polyp")), masks))
    with pytest.raises(InputError, match=r"expected mean and std"):
        torch_network("segmentation-models", path=tmp_path / "unet", classes=["polyp"])
    with pytest.raises(InputError, match=r"cannot be made: KeyError: .*unett"):
        torch_network("segmentation-models", architecture="unett", **given)


@pytest.mark.parametrize("loader", [{}, {"reader": "PILReader", "reverse_indexing": False}])
def test_a_bundle_sees_images_by_its_own_preprocessing(tmp_path: Path, loader: Any) -> None:
    needs("monai")
    folder = tiny.bundle(tmp_path / "bundle", maps=True, loader=loader)
    model = torch_network("monai", path=folder)
    (mask,) = said(model, prompts("bright-tool", shown=[HALVES]))
    truth = HALVES[:, :, 0] > 0
    assert mask.shape == truth.shape
    assert (mask & truth).sum() / (mask | truth).sum() > 0.8  # it lies as the image does
    with pytest.raises(InputError, match=r"model.size: expected none, as a bundle has"):
        torch_network("monai", path=folder, preprocessing={"size": 32})
    with pytest.raises(InputError, match=r"it lacks.*|has in another shape 2"):
        torch_network("monai", path=folder, options={"network_def#out_channels": 3})
    with pytest.raises(InputError, match=r"expected a MONAI bundle, a folder with configs"):
        torch_network("monai", path=tmp_path)


def test_a_bundle_that_classifies(tmp_path: Path) -> None:
    needs("monai")
    model = torch_network("monai", path=tiny.bundle(tmp_path / "b", maps=False))
    found = np.array(said(model, prompts("bright tool", "background", shown=SHOWN[::2])))
    assert found.sum(1) == pytest.approx([1, 1])


# -- whole audits, of the specs that come with the package ---------------------------------


def test_a_classifier_of_timm_is_audited(tmp_path: Path) -> None:
    needs("torchvision")
    timm = needs("timm")
    for kind in ("polyp", "normal"):
        (tmp_path / "images" / kind).mkdir(parents=True)
        frames = phantom(4, size=64, polyps="always" if kind == "polyp" else 0.0, seed=1)
        for place in range(4):
            image = frames.sample(place).require_image()
            cv2.imwrite(str(tmp_path / "images" / kind / f"{place}.png"), image[:, :, ::-1])
    tiny.saved(timm.create_model("test_resnet", num_classes=2), tmp_path / "weights.pt")
    spec = copied(
        "timm_classifier.toml",
        tmp_path,
        of=('architecture = "resnet50"', 'architecture = "test_resnet"'),
    )
    out = verified(spec)
    assert {"polyp: miss rate", "relation gaussian_noise: error"} <= targets(out)
    changed = spec.read_text().replace('classes = ["normal", "polyp"]', 'classes = ["normal"]')
    spec.write_text(changed)
    assert run("audit", str(spec), "--out", str(tmp_path / "other")) == 2


def test_a_bundle_of_monai_is_audited(tmp_path: Path) -> None:
    needs("monai")
    kvasir(tmp_path)
    tiny.bundle(tmp_path / "bundle", maps=True)
    spec = copied(
        "monai_bundle.toml", tmp_path, of=QUICK, named=('= "polyp" }', '= "bright tool" }')
    )
    assert "relation gaussian_noise, polyp drop > 0.25: EFR" in targets(verified(spec))


def test_a_segmenter_of_segmentation_models_is_audited(tmp_path: Path) -> None:
    needs("torchvision")
    smp = needs("segmentation_models_pytorch")
    kvasir(tmp_path)
    torch.manual_seed(0)
    smp.create_model("unet", "tu-test_resnet", encoder_weights=None).save_pretrained(
        tmp_path / "unet"
    )
    out = verified(copied("smp_segmenter.toml", tmp_path, of=QUICK))
    assert "relation gaussian_noise, polyp drop > 0.25: EFR" in targets(out)
