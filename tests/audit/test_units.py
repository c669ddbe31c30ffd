"""What a rate is of: where images have classes an image, and each rate has one target."""

import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import adaptive_vtt as avtt
from adaptive_vtt.certify import named_targets
from adaptive_vtt.oracles import TopClass
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.command_line import run

pytestmark = pytest.mark.usefixtures("undrawn")

CLASSES, SAMPLES, WRONG = ("cat", "dog", "emu", "fox"), 40, 6
RATE = WRONG / SAMPLES  # 15 %, of (image, class) pairs 7.5 %
MODEL = """
import numpy as np
CLASSES = {classes}
def predict(images):
    corners = np.stack([np.asarray(image)[0, 0] for image in images]).astype(int)
    said = (corners[:, 0] // 50 + (corners[:, 1] > 100)) % 4  # green ones are taken for the next
    return np.eye(4)[said]
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders, the same images beside a table, and a model that errs on 12 of the 80."""
    base = tmp_path_factory.mktemp("pictures")
    rows = []
    for k in range(SAMPLES):
        place, name = k % len(CLASSES), f"p{k:03}.png"
        image = np.full((8, 8, 3), (50 * place + 20, 200 * (k < WRONG), k), np.uint8)
        for folder in (base / "folders" / CLASSES[place], base / "table" / "images"):
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(folder / name)
        rows.append({"image": name, **{c: int(c == CLASSES[place]) for c in CLASSES}})
    pd.DataFrame(rows).to_csv(base / "table" / "labels.csv", index=False)
    (base / "model.py").write_text(MODEL.format(classes=CLASSES))
    return base


@pytest.fixture(scope="module")
def results(pictures: Path) -> dict[str, dict[str, Any]]:
    """What the ways in come to once they have asked about all images as they are."""
    model, found = f"{pictures / 'model.py'}:predict", {}
    narrow: dict[str, Any] = {"half_width": 0.001, "surrogate": False, "self_taught": False}
    changes = ("space.relations=['identity']", *(f"certify.{n}=false" for n in [*narrow][1:]))
    given = [word for change in changes for word in ("--set", change)]
    for data, options in (("folders", narrow), ("table", {"strategy": "everything"})):
        options |= {"relations": ["identity"], "on_progress": False}
        found[f"Python, {data}"] = avtt.audit(pictures / data, model, **options).to_dict()
        spec, out = pictures / f"spec {data}", pictures / f"run {data}"
        assert run("init", str(spec), "--data", str(pictures / data)) == 0
        copy(pictures / "model.py", spec)
        goals = ("--half-width", "0.001", "--budget", "999")
        assert run("audit", str(spec / "SPEC.toml"), *given, *goals, "--out", str(out)) == 0
        found[f"command, {data}"] = json.loads((out / "result.json").read_text())
    return found


def test_all_ways_in_come_to_the_share_of_images_that_is_counted_by_hand(results: Any):
    first = next(iter(results.values()))["targets"][0]
    assert first["target"] == "overall misclassification rate"
    assert {"misclassified", "relation:identity"} <= set(first["also"])
    for name, result in results.items():
        whole = result["targets"][0]
        assert whole["target"] == first["target"], name
        assert set(whole["also"]) >= set(first["also"]), name
        bounds = [whole[figure] for figure in ("lower", "estimate", "upper")]
        assert bounds == pytest.approx([RATE] * 3), name
        assert whole["size"] == SAMPLES, name
        if result["census"]:
            (variant,) = result["census"]["perturbations"]
            assert variant["error"] == pytest.approx(RATE) == 1 - variant["accuracy"], name
        else:
            assert len(result["targets"]) == 1, name


def test_a_gate_on_images_goes_by_images(results: Any, pictures: Path):
    rules = (("folders", "overall"), ("table", "misclassified"), ("folders", "relation:identity"))
    for data, about in rules:
        for limit, code in ((10, 1), (16, 0)):
            rule = f"{about} <= {limit} %"
            assert run("gate", str(pictures / f"run {data}"), "--rule", rule) == code


def asked(names: Sequence[str], **more: Any) -> list[tuple[str, tuple[str, ...]]]:
    space = avtt.QuestionSpace(tiny_dataset(9, 2), ("identity", "rotation"), **more)
    return [(target.name, target.id.also) for target in named_targets(space, names)]


def test_names_of_the_same_questions_are_one_target_in_any_order() -> None:
    assert asked(["overall", "overall"]) == [("overall label error", ())]
    for names in (["relations", "severities"], ["severities", "relations"]):
        found = dict(asked(names, severities=[2]))
        assert list(found) == ["relation identity: label error", "relation rotation: label error"]
        assert "severity:rotation:2" in found["relation rotation: label error"]


def test_one_target_has_one_share_of_what_may_go_wrong() -> None:
    space = avtt.QuestionSpace(tiny_dataset(30, 2), ["identity"])
    options: dict[str, Any] = {"half_width": 0.1, "surrogate": False, "budget": 2}
    for targets in (["overall"], ["overall", "relations", "severities", "overall"]):
        result = avtt.Audit(space, ScriptedModel(), targets=targets, **options).run()
        assert len(result.targets) == 1
        assert result.guarantee == "the interval holds with probability 0.95 at every moment"


def test_targets_of_classes_hold_true_classes_alone() -> None:
    data = avtt.datasets.from_table(None, np.eye(3, dtype=int)[[0, 1, 2, 2]])
    space = avtt.QuestionSpace(data, oracle=TopClass())
    for target in named_targets(space, ["overall", "relations", "severities"]):
        assert target.sides.tolist() == [False, True]
