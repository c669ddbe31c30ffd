"""The files of docs/how-to/own-model.md answer, each with a tiny model of random weights."""

import sys

import numpy as np
import pytest
import torch

import tests.helpers.tiny_networks as tiny
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.local.python import load
from adaptive_vtt.types import Answer, Ask, Prompt, Unanswered
from adaptive_vtt.utils.other_code import load_object
from tests.helpers.snippets import ROOT, blocks
from tests.helpers.torch_networks import SHOWN, needs

CONCEPTS = ("disc", "square")
PAGE = (ROOT / "docs" / "how-to" / "own-model.md").read_text(encoding="utf-8")
RECIPES = {block.file: block.text for block in blocks(PAGE) if block.file is not None}


def asked(*concepts, ask=None):
    asks = () if ask is None else (ask,)
    return [Prompt(im, concepts, f"s{k}", "identity", 0, asks) for k, im in enumerate(SHOWN)]


def answers(folder, file, prompts, name="predict"):
    (folder / file).write_text(RECIPES[file], encoding="utf-8")
    replies = checked(load(f"{file}:{name}", base=folder), prompts)
    return [reply for reply in replies if isinstance(reply, Answer)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Recipes name files of the current folder."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)


def test_a_classifier_of_transformers(tmp_path):
    pytest.importorskip("transformers")
    from tests.helpers.tiny_transformers import classifier

    classifier(tmp_path / "classifier", ("square", "other", "disc"))
    rows = np.array(
        [a.values for a in answers(tmp_path, "transformers_classifier.py", asked(*CONCEPTS))]
    )
    assert rows.shape == (3, 2)
    assert (rows.sum(1) < 1).all()  # the third label has a share
    assert len(np.unique(rows)) > 2


def test_a_chat_model_of_transformers(tmp_path):
    pytest.importorskip("transformers")
    from tests.helpers.tiny_transformers import chat

    chat(tmp_path / "chat")
    question = asked("question", ask=Ask("Which?", ("red", "polyp")))
    replies = answers(tmp_path, "transformers_chat.py", question, "model")
    assert all(isinstance(reply.values[0], str) and reply.values[0] for reply in replies)
    model = load("transformers_chat.py:model", base=tmp_path)
    for reply in checked(model, asked("polyp")):
        assert isinstance(reply, Unanswered) or reply.values[0] in (0.0, 1.0)


def test_a_classifier_of_timm(tmp_path):
    timm = needs("timm")
    tiny.saved(timm.create_model("resnet18", num_classes=2), tmp_path / "weights.pth")
    rows = np.array([a.values for a in answers(tmp_path, "timm_classifier.py", asked(*CONCEPTS))])
    assert rows.shape == (3, 2)
    assert rows.sum(1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert len(np.unique(rows)) > 2


def test_a_segmenter_of_segmentation_models(tmp_path):
    smp = needs("segmentation_models_pytorch")
    network = smp.create_model("unet", "resnet18", encoder_weights=None, classes=1)
    tiny.saved(network, tmp_path / "weights.pth")
    replies = answers(tmp_path, "segmentation_models.py", asked("polyp"))
    assert [np.shape(reply.values[0]) for reply in replies] == [(40, 48), (30, 36), (64, 64)]


def test_a_bundle_of_monai_gives_masks_that_lie_as_the_image_does(tmp_path):
    needs("monai")
    tiny.bundle(tmp_path / "bundle")
    image = np.zeros((40, 60, 3), np.uint8)
    image[:10, 15:, 0] = 255
    (reply,) = answers(tmp_path, "monai_bundle.py", [Prompt(image, ("tool",), "s", "identity", 0)])
    (mask,) = reply.values
    assert np.mean(np.asarray(mask) == (image[..., 0] > 0)) > 0.95


def test_a_program_that_speaks_lines(tmp_path):
    for file in ("program.py", "model.py"):
        (tmp_path / file).write_text(RECIPES[file], encoding="utf-8")
    program = load_object("model.py:Program", tmp_path)([sys.executable, "program.py"])
    replies = checked(program, asked(*CONCEPTS))
    rows = np.array([reply.values for reply in replies if isinstance(reply, Answer)])
    assert rows[:, 1].tolist() == [0.4, 0.4, 0.4]
    assert len(np.unique(rows[:, 0])) == 3
