"""Failures for other tools: COCO's JSON, read back by ourselves and pycocotools, and FiftyOne's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.datasets import from_table
from adaptive_vtt.datasets.formats import coco as coco_masks
from adaptive_vtt.datasets.formats.coco import from_coco
from adaptive_vtt.models.local.python import PythonModel
from adaptive_vtt.relations import FollowUp, LabelPreserving
from adaptive_vtt.results.export.failures import export_failures, run_lengths
from adaptive_vtt.types import Image, Mask

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(0, 256, (12, 10, 3), dtype=np.uint8) for _ in range(3)]
MASK = np.zeros((12, 10), np.bool_)
MASK[2:6, 3:7] = True
MASK[2, 3] = False


class Sinking(LabelPreserving):
    """Moves everything one row down."""

    name, severities = "sinking", (1,)

    def transform(self, image: Image, severity: int, rng: np.random.Generator) -> Image:
        return np.roll(image, 1, axis=0)

    def expect_mask(self, mask: Mask, follow_up: FollowUp) -> Mask:
        return np.roll(mask, 1, axis=0)


def exported(out: Path) -> Path:
    """The audit of a model that sees no polyp and text everywhere."""
    table = pd.DataFrame({"polyp": [1, 1, 0], "text": [1, 0, 1]}, index=["a", "b", "c"])
    masks = {"polyp": [MASK, None, None]}
    space = QuestionSpace(from_table(IMAGES, table, masks=masks), [Sinking()])
    audit = Audit(space, PythonModel(lambda images: [[0.25, 0.75]] * len(images)), seed=5)
    audit.run()
    export_failures(audit.journal, space, out, formats=["coco", "fiftyone"])
    return out


@given(arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_run_lengths_are_read_back(mask: Mask) -> None:
    runs = {"size": list(mask.shape), "counts": run_lengths(mask)}
    assert np.array_equal(coco_masks.mask(runs, *mask.shape), mask)


def test_coco_has_what_is_expected_where_and_what_failed(tmp_path: Path) -> None:
    out = exported(tmp_path / "out")
    result = json.loads((out / "coco.json").read_text())
    assert result["categories"] == [{"id": 1, "name": "polyp"}]
    by_file = {each["file_name"]: each for each in result["images"]}
    assert set(by_file) == {"a--sinking-1.png", "b--sinking-1.png"}  # of c nothing failed
    a, b = by_file["a--sinking-1.png"], by_file["b--sinking-1.png"]
    assert (a["height"], a["width"], a["truth"]) == (12, 10, {"polyp": 1, "text": 1})
    assert {(f["concept"], f["truth"], f["answer"], f["loss"]) for f in b["failures"]} == {
        ("polyp", 1, 0.25, 1.0),
        ("text", 0, 0.75, 1.0),
    }
    (only,) = result["annotations"]
    assert only["image_id"] == a["id"]
    assert (only["bbox"], only["area"], only["iscrowd"]) == ([3, 3, 4, 4], 15, 0)
    dataset = from_coco(out / "coco.json", out / "images", outlines=True)
    sample = next(dataset.sample(i) for i in range(2) if dataset.sample_id(i) == str(a["id"]))
    assert np.array_equal(np.asarray(sample.masks["polyp"]), np.roll(MASK, 1, axis=0))
    assert np.array_equal(sample.require_image(), np.roll(IMAGES[0], 1, axis=0))
    tools: Any = pytest.importorskip("pycocotools.coco")
    theirs = tools.COCO(str(out / "coco.json"))
    assert np.array_equal(theirs.annToMask(theirs.loadAnns([only["id"]])[0]), sample.masks["polyp"])


def test_boxes_are_where_the_relation_moved_them(tmp_path: Path) -> None:
    first = exported(tmp_path / "first")
    boxed = from_coco(first / "coco.json", first / "images")
    space = QuestionSpace(boxed, [Sinking()])
    audit = Audit(space, PythonModel(lambda images: [[0.0]] * len(images)), seed=5)
    audit.run()
    export_failures(audit.journal, space, tmp_path / "second", formats=["coco"])
    result = json.loads((tmp_path / "second/coco.json").read_text())
    (only,) = result["annotations"]
    assert (only["bbox"], only["area"], only["segmentation"]) == ([3, 4, 4, 4], 16, [])
    assert not (tmp_path / "second/fiftyone.json").exists()


def test_fiftyone_has_the_concepts_that_failed_of_each_image(tmp_path: Path) -> None:
    out = exported(tmp_path / "out")
    result = json.loads((out / "fiftyone.json").read_text())["labels"]
    assert {(out / "images" / f"{name}.png").is_file() for name in result} == {True}
    failed = {name: sorted(each["label"] for each in rows) for name, rows in result.items()}
    assert failed == {"a--sinking-1": ["polyp"], "b--sinking-1": ["polyp", "text"]}
    (only,) = result["a--sinking-1"]
    assert only["attributes"]["answer"] == 0.25
    assert (only["attributes"]["relation"], only["attributes"]["severity"]) == ("sinking", 1)
