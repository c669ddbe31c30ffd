"""Networks of torch's libraries, with random weights: how images reach them, what is read of their
outputs, and whole audits. What needs a library that is not installed is skipped."""

import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import tiny_networks as tiny
import torch
from command_line import run
from PIL import Image as Pillow
from test_specs import copied, kvasir, targets

from adaptive_vtt.datasets import phantom
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.models.local.parameters import load_parameters
from adaptive_vtt.models.local.presets import IMAGENET, Preset
from adaptive_vtt.models.local.torch_network import torch_network
from adaptive_vtt.types import Answer, Prompt

DRAWS = np.random.default_rng(0)
SHOWN = [
    DRAWS.integers(0, 256, (40, 48, 3)).astype(np.uint8),
    np.full((30, 36, 1), 90, np.uint8),
    cv2.resize(DRAWS.integers(0, 256, (9, 9, 3)).astype(np.uint8), (64, 64)),
]
PLAIN = {"mean": [0.0], "std": [1.0]}
HALVES = np.zeros((40, 60, 3), np.uint8)
HALVES[:10, 15:, 0] = 255

QUICK = ('relations = ["medtest"]', 'relations = ["gaussian_noise"]')


def prompts(*concepts: str, shown: list[Any] = SHOWN) -> list[Prompt]:
    return [Prompt(im, concepts, f"s{k}", "identity", 0) for k, im in enumerate(shown)]


def said(model: Any, asked: list[Prompt]) -> list[Any]:
    found = [answer.values for answer in model.ask(asked) if isinstance(answer, Answer)]
    return [values[0] if len(values) == 1 else values for values in found]


def needs(library: str) -> Any:
    """Skips where a library is missing, or built for another torch."""
    try:
        return pytest.importorskip(library)
    except RuntimeError as error:
        pytest.skip(f"{library}: {error}")


def verified(spec: Path) -> Path:
    """The folder of a short audit; random networks may have no failures to export."""
    out = spec.parent / "run"
    assert run("audit", str(spec), "--budget", "18", "--out", str(out)) == 0
    assert run("verify", str(out)) == 0
    return out


# -- from pixels to a network's input ------------------------------------------------------


@pytest.mark.parametrize("size", [20, 57, (33, 70)])
@pytest.mark.parametrize(("word", "method"), [("bilinear", 2), ("bicubic", 3), ("nearest", 0)])
def test_images_are_resized_as_pillow_does(size: Any, word: Any, method: int) -> None:
    image = SHOWN[2][:50]
    made = Preset([0.0], [1.0], size=size, interpolation=word)(image)
    height, width = size if isinstance(size, tuple) else (size, size * 64 // 50)
    expected = Pillow.fromarray(image).resize((width, height), Pillow.Resampling(method))
    apart = np.abs(made.permute(1, 2, 0).numpy() * 255 - np.asarray(expected))
    assert (apart > 2).mean() < (0.05 if word == "nearest" else 1e-9)  # nearest: half-way points


def test_an_image_is_cut_and_scaled() -> None:
    image = SHOWN[0]
    cut = Preset([0.5], [0.25], crop=[20, 60])(image)
    assert cut.shape == (3, 20, 60)
    assert torch.equal(cut[:, :, :6], torch.full((3, 20, 6), -2.0))  # black beyond the image
    assert cut[0, 0, 6].item() == pytest.approx((image[10, 0, 0] / 255 - 0.5) / 0.25)
    caffe = Preset([104.0, 117.0, 123.0], [1.0], white=255)(image)
    assert caffe[1, 3, 2].item() == pytest.approx(image[3, 2, 1] - 117.0, abs=1e-4)
    assert Preset(multiple=32)(image).shape == (3, 64, 64)
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
def test_presets_that_cannot_be_are_refused(given: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        Preset(**given)


# -- parameters ----------------------------------------------------------------------------


def test_parameters_are_read_from_what_training_programs_write(tmp_path: Path) -> None:
    trained, fresh = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    load_parameters(fresh, tiny.saved(trained, tmp_path / "plain.pt"))
    assert torch.equal(fresh.weight, trained.weight)
    parallel = torch.nn.Sequential()
    parallel.add_module("module", trained)
    fresh = torch.nn.Linear(3, 2)
    load_parameters(fresh, tiny.saved(parallel, tmp_path / "checkpoint.pt", epoch=3))
    assert torch.equal(fresh.weight, trained.weight)


def test_parameters_of_another_network_are_refused(tmp_path: Path) -> None:
    path = tiny.saved(torch.nn.Linear(3, 4, bias=False), tmp_path / "other.pt")
    match = r"it lacks 1 \('bias'\), has in another shape 1 \('weight'\); architecture, options"
    with pytest.raises(InputError, match=match):
        load_parameters(torch.nn.Linear(3, 2), path)
    with pytest.raises(InputError, match=r"has besides 1 \('bias'\)"):
        load_parameters(torch.nn.Linear(3, 2, bias=False), tiny.saved(torch.nn.Linear(3, 2), path))
    with pytest.raises(InputError, match=r"file '.*none.pt' does not exist"):
        load_parameters(torch.nn.Linear(3, 2), tmp_path / "none.pt")


def test_files_that_hold_programs_are_not_run(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(3, 2), tmp_path / "whole.pt")  # pickles the class, and would run it
    with pytest.raises(
        InputError, match=r"expected parameters alone.*other objects are not loaded"
    ):
        load_parameters(torch.nn.Linear(3, 2), tmp_path / "whole.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(InputError, match=r"expected parameters by name.*got list"):
        load_parameters(torch.nn.Linear(3, 2), tmp_path / "list.pt")


# -- a folder with a hubconf.py ------------------------------------------------------------


def network(folder: Path, name: str, **given: Any) -> Any:
    given = {"preprocessing": PLAIN, **given}
    return torch_network("hub", architecture=name, path=tiny.hub(folder), **given)


def test_a_polyp_segmenter_gives_the_mask_of_the_output_that_is_named(tmp_path: Path) -> None:
    model = network(
        tmp_path,
        "segmenter",
        classes=["polyp"],
        output=-1,
        preset="imagenet",
        preprocessing={"size": [64, 64]},
    )
    masks = said(model, prompts("polyp"))
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
    assert said(first, prompts("polyp"))[2].shape == (64, 64)
    with pytest.raises(InputError, match=r"expected a segmenter without crop"):
        network(
            tmp_path,
            "segmenter",
            classes=["polyp"],
            output=0,
            preprocessing={**PLAIN, "crop": [32, 32]},
        ).ask(prompts("polyp"))


def test_a_classifier_gives_probabilities_of_the_classes_that_concepts_are(tmp_path: Path) -> None:
    torch.manual_seed(1)
    weights = tiny.saved(tiny.of_hub(tmp_path, "classifier", 3), tmp_path / "w.pt")
    given = {"weights": weights, "options": {"classes": 3}, "classes": ["a", "B_c", "d"]}
    model = network(tmp_path, "classifier", **given)
    found = np.array(said(model, prompts("a", "b c", "d")))
    assert found.sum(1) == pytest.approx([1, 1, 1])
    named = network(tmp_path, "classifier", **given, class_names={"ill": ["a", "d"]})
    assert said(named, prompts("ill")) == pytest.approx((found[:, 0] + found[:, 2]).tolist())
    sure = network(tmp_path, "classifier", **given, activation="sigmoid")
    likely = np.array(said(sure, prompts("a", "b c", "d")))
    assert np.log(likely / (1 - likely))[:, 0] - np.log(likely / (1 - likely))[:, 1] == (
        pytest.approx(np.log(found[:, 0] / found[:, 1]), abs=1e-5)
    )
    given["options"] = {"classes": 3, "kind": "named"}
    by_name = network(tmp_path, "classifier", **given, output="logits")
    assert said(by_name, prompts("a")) == pytest.approx(found[:, 0].tolist())
    assert (
        by_name.content()
        == model.content()
        != network(
            tmp_path, "classifier", options={"classes": 3}, classes=["a", "b", "c"]
        ).content()
    )
    with pytest.raises(InputError, match=r"gives outputs by name, 'features', 'logits'; 'x' is no"):
        network(tmp_path, "classifier", **given, output="x").ask(prompts("a"))


def test_what_the_hub_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"expected an output of shape \(1, 3\).*got \(1, 2\)"):
        network(tmp_path, "classifier", classes=["a", "b", "c"]).ask(prompts("a"))
    with pytest.raises(InputError, match=r"expected classes, the names of its outputs"):
        network(tmp_path, "classifier")
    with pytest.raises(InputError, match=r"expected mean and std.*preset = 'imagenet'"):
        network(tmp_path, "classifier", classes=["a", "b"], preprocessing={"size": 32})
    with pytest.raises(InputError, match=r"unknown preset 'imagnet'; did you mean 'imagenet'"):
        network(tmp_path, "classifier", classes=["a", "b"], preset="imagnet")
    with pytest.raises(InputError, match=r"expected a torch module, got builtin_function"):
        network(tmp_path, "nothing", classes=["a"])
    with pytest.raises(InputError, match=r"cannot be made: OSError: no such part at .*hubconf.py"):
        network(tmp_path, "broken", classes=["a"])
    with pytest.raises(InputError, match=r"expected a folder with a hubconf.py"):
        torch_network("hub", architecture="x", path=tmp_path.parent, classes=["a"])
    with pytest.raises(InputError, match=r"model.path: expected a folder.*got no path"):
        torch_network("hub", architecture="x", classes=["a"])
    with pytest.raises(InputError, match=r"model.architecture: expected a name"):
        torch_network("hub", path=tmp_path, classes=["a"])
    pictureless = [Prompt(None, ("a",), "s9", "identity", 0)]
    with pytest.raises(InputError, match=r"expected an image, sample 's9' has none"):
        network(tmp_path, "classifier", classes=["a", "b"]).ask(pictureless)


@pytest.mark.parametrize(
    ("source", "given", "match"),
    [
        ("torchhub", {}, r"unknown source 'torchhub'; did you mean"),
        ("torchvision", {"path": Path("x")}, r"model.path: expected none for source = 'torchvi"),
        ("monai", {"architecture": "x"}, r"model.architecture: expected none for source = 'monai'"),
        ("timm", {"preset": "imagenet"}, r"model.preset: expected none for source = 'timm'"),
        (
            "timm",
            {"path": Path("x"), "weights": Path("w.pt")},
            r"model.path: expected a folder alone.*beside 'w.pt'",
        ),
    ],
)
def test_fields_without_effect_are_refused(source: Any, given: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        torch_network(source, **given)


@pytest.mark.parametrize(
    ("source", "library"),
    [
        ("timm", "timm"),
        ("torchvision", "torchvision"),
        ("segmentation-models", "segmentation_models_pytorch"),
        ("monai", "monai"),
    ],
)
def test_libraries_that_are_not_there_are_named(
    source: Any, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, f"{library}.models", None)
    path = {"path": Path()} if source == "monai" else {"architecture": "resnet18"}
    with pytest.raises(InputError, match=rf"needs {library}.*: pip install .*{source}"):
        torch_network(source, **path)


def test_a_hub_folder_is_audited(tmp_path: Path) -> None:
    kvasir(tmp_path)
    torch.manual_seed(1)
    tiny.saved(tiny.of_hub(tmp_path / "PraNet", "segmenter"), tmp_path / "PraNet.pth", epoch=1)
    out = verified(copied("polyp_segmenter.toml", tmp_path, of=QUICK))
    assert "relation gaussian_noise, polyp drop > 0.25: EFR" in targets(out)


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
