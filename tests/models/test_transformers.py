"""Models of Hugging Face's transformers, with random weights: audited, and what they are asked and
say. Skipped where transformers is not installed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local.hugging_face import Classes, tokens_of, transformers_model
from adaptive_vtt.models.network.prompt_templates import Template
from adaptive_vtt.types import Answer, Ask
from tests.config.test_specs import audited, copied, targets
from tests.datasets.test_hugging_face_data import in_parquet, pyarrow, stored
from tests.helpers.command_line import run
from tests.helpers.torch_networks import DRAWS, SHOWN, prompts, said

tiny = pytest.importorskip("tests.helpers.tiny_transformers", exc_type=ImportError)


# -- classes -------------------------------------------------------------------------------


def test_a_classifier_gives_a_softmax_over_its_classes(tmp_path: Path) -> None:
    folder = str(tiny.classifier(tmp_path, ("red_polyp", "blood", "normal mucosa")))
    model = transformers_model(folder, "image-classification", batch_size=2)
    found = np.array(said(model, prompts("Red polyp", "blood", "normal-mucosa")))
    assert found.sum(1) == pytest.approx([1, 1, 1])
    assert np.ptp(found, axis=0).min() > 0.01  # it looks at the image
    names = {"ill": ["red_polyp", "blood"], "well": "normal mucosa"}
    named = transformers_model(folder, "image-classification", class_names=names)
    assert said(named, prompts("ill")) == pytest.approx((found[:, 0] + found[:, 1]).tolist())
    logits = transformers_model(folder, "image-classification", activation="sigmoid")
    assert np.array(said(logits, prompts("blood", "Red polyp"))).sum(1) != pytest.approx(1)
    with pytest.raises(
        InputError, match=r"unknown class 'bloood'; did you mean 'blood'.*class_names"
    ):
        model.ask(prompts("bloood"))


def test_several_labels_are_sigmoids_of_which_the_largest_counts(tmp_path: Path) -> None:
    kind = {"problem_type": "multi_label_classification"}
    folder = str(tiny.classifier(tmp_path, ("a", "b"), **kind))
    names = {"either": ["a", "b"]}
    model = transformers_model(folder, "image-classification", class_names=names)
    for one, other, either in said(model, prompts("a", "b", "either")):
        assert either == max(one, other)


@pytest.mark.parametrize("labels", [("polyp", "tool", "wall"), ("polyp",)])
def test_a_segmenter_gives_masks_of_each_images_size(
    labels: tuple[str, ...], tmp_path: Path
) -> None:
    model = transformers_model(str(tiny.segmenter(tmp_path, labels)), "image-segmentation")
    found = [answer.values for answer in model.ask(prompts(*labels)) if isinstance(answer, Answer)]
    assert [masks[0].shape for masks in found] == [(40, 48), (30, 36), (64, 64)]
    if len(labels) > 1:  # every pixel is of one class
        assert all((np.sum(masks, axis=0) == 1).all() for masks in found)
    assert 0 < found[0][0].mean() < 1


def test_concepts_are_classes_of_their_name() -> None:
    classes = Classes(("LABEL_0", "Big dog"), {"cat": "LABEL_0"}, "m")
    assert classes.of("cat") == [0]
    assert classes.of("big_dog") == [1]


# -- words ---------------------------------------------------------------------------------


def test_tokens_of_yes_are_those_that_say_nothing_else() -> None:
    vocabulary = {"Ġyes": 3, "▁Yes": 1, "YES</w>": 7, "yesterday": 2, "eyes": 4, "yes.": 9, "no": 5}
    assert tokens_of("yes", vocabulary) == [1, 3, 7, 9]


@pytest.mark.parametrize("kind", ["vilt", "blip", "chat"])
def test_p_yes_is_the_share_of_yes_in_logits(kind: str, tmp_path: Path) -> None:
    make = {
        "vilt": lambda: tiny.vilt(tmp_path, ("no", "red", "yes")),
        "blip": lambda: tiny.blip(tmp_path, questions=True),
        "chat": lambda: tiny.chat(tmp_path),
    }[kind]
    task = "image-text-to-text" if kind == "chat" else "visual-question-answering"
    model = transformers_model(str(make()), task, batch_size=2)
    found = said(model, prompts("polyp"))
    assert len({round(p, 4) for p in found}) > 1
    assert all(0 < p < 1 for p in found)
    assert said(model, prompts("polyp")[::-1])[::-1] == pytest.approx(found, abs=1e-5)
    asked = said(model, prompts("polyp", ask=Ask("show this red thing")))
    assert all(isinstance(text, str) and text for text in asked)


def test_p_yes_is_what_the_model_gives_its_answers(tmp_path: Path) -> None:
    model = transformers_model(
        str(tiny.vilt(tmp_path, ("no", "red", "yes"))), "visual-question-answering"
    )
    loaded = model._loaded
    inputs = loaded.processor(
        images=[tiny_picture(SHOWN[0])],
        text=["Does the image show this: polyp?"],
        return_tensors="pt",
    )
    with torch.inference_mode():
        logits = loaded.model(**inputs).logits[0].double()
    expected = torch.softmax(logits[[2, 0]], 0)[0].item()
    assert said(model, prompts("polyp")[:1]) == pytest.approx([expected], abs=1e-6)


def tiny_picture(image: np.ndarray) -> Any:
    from PIL import Image

    return Image.fromarray(image)


def test_questions_with_options_are_for_chat_models(tmp_path: Path) -> None:
    asked = prompts("polyp", ask=Ask("the red thing", ("a", "no")))
    model = transformers_model(
        str(tiny.vilt(tmp_path / "v", ("yes", "no"))), "visual-question-answering"
    )
    with pytest.raises(InputError, match=r"expected questions without options.*image-text-to-text"):
        model.ask(asked)
    chat = transformers_model(str(tiny.chat(tmp_path / "c")), "image-text-to-text", max_tokens=4)
    assert all(isinstance(text, str) for text in said(chat, asked))


def test_a_chat_model_is_asked_by_template_and_may_be_read_by_words(tmp_path: Path) -> None:
    folder = str(tiny.chat(tmp_path))
    plain = transformers_model(folder, "image-text-to-text")
    other = Template("mine", system="red", ask_concept="a {concept}")
    mine = transformers_model(folder, "image-text-to-text", template=other)
    assert said(mine, prompts("polyp")) != said(plain, prompts("polyp"))
    assert mine.template_hash == other.hash != plain.template_hash
    words = transformers_model(folder, "image-text-to-text", yes_from="words", max_tokens=3)
    assert all(p in (0.0, 1.0) or hasattr(p, "reason") for p in said(words, prompts("polyp")))


def test_a_model_that_cannot_say_yes_is_refused(tmp_path: Path) -> None:
    model = transformers_model(
        str(tiny.vilt(tmp_path, ("red", "blue"))), "visual-question-answering"
    )
    with pytest.raises(InputError, match=r"expected yes and no among its answers.*got 2 others"):
        model.ask(prompts("polyp"))
    assert said(model, prompts("polyp", ask=Ask("red"))) != []


# -- where models come from ----------------------------------------------------------------


def test_nothing_is_fetched_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def resolved(*where: Any, **_: Any) -> Any:
        asked.append(where)
        raise OSError("no network")

    monkeypatch.setattr("socket.getaddrinfo", resolved)
    with pytest.raises(
        InputError, match=r"'nobody/nothing': is no folder, and .*local_files_only = false"
    ):
        transformers_model("nobody/nothing", "image-classification")
    assert asked == []


def test_folders_tasks_and_options_that_do_not_fit_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a folder that save_pretrained wrote"):
        transformers_model(str(tmp_path), "image-classification")
    folder = str(tiny.classifier(tmp_path / "c", ("a", "b")))
    with pytest.raises(InputError, match=r"of the type 'vit', which .* the task 'image-to-text'"):
        transformers_model(folder, "image-to-text")
    with pytest.raises(InputError, match=r"unknown option 'max_tokens'.*other tasks have it"):
        transformers_model(folder, "image-classification", max_tokens=3)
    chat = str(tiny.chat(tmp_path / "l", template=None))
    with pytest.raises(InputError, match="expected a processor with a chat template"):
        transformers_model(chat, "image-text-to-text")


def test_a_trained_model_is_another_one_and_precision_is_its_own(tmp_path: Path) -> None:
    folder = str(tiny.classifier(tmp_path, ("a", "b")))
    model = transformers_model(folder, "image-classification")
    half = transformers_model(folder, "image-classification", precision="bfloat16")
    assert model.content() == transformers_model(folder, "image-classification").content()
    assert half.content() != model.content()
    assert said(half, prompts("a")) == pytest.approx(said(model, prompts("a")), abs=0.1)
    assert said(half, prompts("a")) != said(model, prompts("a"))
    with torch.no_grad():
        next(iter(model._loaded.model.parameters())).add_(1.0)
    assert model.content() != transformers_model(folder, "image-classification").content()


# -- whole audits, of the specs that come with the package ---------------------------------


def pets(folder: Path, **columns: Any) -> None:
    """Six pictures, the names of their classes being told by the dataset."""
    pictures = [DRAWS.integers(0, 256, (40, 40, 3)).astype(np.uint8) for _ in range(6)]
    told = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}
    rows = {"image": [stored(p) for p in pictures], "label": [0, 1] * 3, **columns}
    about = {"huggingface": json.dumps({"info": {"features": told}})}
    in_parquet(folder / "dataset", pyarrow.table(rows).replace_schema_metadata(about))


def test_a_classifier_is_audited(tmp_path: Path) -> None:
    pets(tmp_path)
    tiny.classifier(tmp_path / "classifier", ("dog", "cat"))
    out = audited(copied("hf_classifier.toml", tmp_path))
    assert {"cat: miss rate", "relation gaussian_noise: error"} <= targets(out)


def test_a_segmenter_is_audited(tmp_path: Path) -> None:
    half = np.zeros((40, 40), np.uint8)
    half[:20] = 1
    pets(tmp_path, annotation=[stored(half)] * 6)
    tiny.segmenter(tmp_path / "segmenter", ("wall", "polyp"))
    out = audited(copied("hf_segmenter.toml", tmp_path))
    assert "relation gaussian_noise, polyp drop > 0.25: EFR" in targets(out)


@pytest.mark.parametrize("kind", ["blip", "chat"])
def test_questions_are_audited(kind: str, tmp_path: Path) -> None:
    pets(tmp_path, question=["a red thing"] * 6, answer=["no", "yes", "red"] * 2)
    changes = {"tokens": ('path = "model"', 'path = "model"\nmax_tokens = 4')}
    if kind == "blip":
        tiny.blip(tmp_path / "model", questions=True)
    else:
        tiny.chat(tmp_path / "model")
        changes["task"] = ('task = "visual-question-answering"', 'task = "image-text-to-text"')
    out = audited(copied("hf_questions.toml", tmp_path, **changes))
    result = json.loads((out / "result.json").read_text())
    assert result["calls"] == 18
    assert "relation brightness_down: error" in targets(out)


def test_a_captioner_is_audited(tmp_path: Path) -> None:
    tiny.blip(tmp_path / "captioner", questions=False)
    changes = {
        "count": ("count = 300", "count = 6"),
        "tokens": ("max_tokens = 64", "max_tokens = 3"),
    }
    spec, out = copied("hf_captioner.toml", tmp_path, **changes), tmp_path / "run"
    assert run("audit", str(spec), "--budget", "30", "--out", str(out)) == 0
    assert run("verify", str(out)) == 0
    assert "relation reic/crop: error" in targets(out)


def test_a_spec_whose_model_is_not_there_gets_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pets(tmp_path)
    spec = copied("hf_classifier.toml", tmp_path)
    assert run("audit", str(spec), "--out", str(tmp_path / "run")) == 2
    assert "model 'classifier': is no folder" in capsys.readouterr().err
