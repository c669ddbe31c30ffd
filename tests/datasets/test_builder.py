"""Questions made from masks and labels, tried on the phantom, whose truth is known."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.question_making import MAKERS, MANY, OVERLAP, choose, shared
from adaptive_vtt.datasets.vqa.question_table import OPTIONS, write_questions
from adaptive_vtt.datasets.vqa.taxonomy import GRANULARITIES
from adaptive_vtt.experiments.medtest import phantoms
from adaptive_vtt.experiments.medtest.phantoms import Phantom
from adaptive_vtt.relations.visual_prompts import regions
from tests.helpers.built_questions import build

CONCEPTS = ["polyp", "instrument", "stool", "blood"]


@pytest.fixture(scope="module")
def scenes():
    return phantoms.frames(24, size=128, seed=3, instrument=0.4, blood=0.3)


@pytest.fixture(scope="module")
def built(scenes):
    return build(scenes, concepts=CONCEPTS, seed=1)


def test_choosing_and_making_look_at_each_image_once(scenes, monkeypatch):
    looked: Counter[int] = Counter()
    sample = Phantom.sample

    def counted(self, index):
        looked[index] += 1
        return sample(self, index)

    monkeypatch.setattr(Phantom, "sample", counted)
    chosen = choose(scenes, concepts=CONCEPTS, per_class=3)
    assert set(looked.values()) == {1}
    assert any(kind == "counting" for _, kind, _ in chosen.places)
    assert len(list(chosen)) == len(chosen.places)
    assert max(looked.values()) == 2


def test_every_kind_is_made(built):
    assert {one.kind for one in built} == {*MAKERS}
    for one in built:
        assert len(set(one.made.options)) == len(one.made.options) >= 2
        assert "{" not in one.made.question


def test_answers_are_those_of_the_scene(scenes, built):
    for one in built:
        index = int(one.sample_id.rpartition("-")[2])
        truth = scenes.sample(index).truth
        right = one.made.options[one.made.right]
        subject = next(c for c in CONCEPTS if c in one.made.question or c == right)
        if one.kind == "presence":
            assert right == ("Yes" if truth[subject] else "No")
        elif one.kind == "type":
            assert truth[right] == 1
            assert not any(truth[o] for o in one.made.options if o != right)
        elif one.kind == "counting":
            masks = scenes.sample(index).masks
            assert right == MANY[min(len(regions({subject: masks[subject]})), 5)]
        else:
            assert truth[subject] == 1 or right == "0"


def test_wrong_boxes_are_of_similar_size_and_elsewhere(scenes, built):
    grounding = [one for one in built if one.kind == "grounding"]
    assert grounding
    for one in grounding:
        boxes = [tuple(json.loads(text)) for text in one.made.options]
        right = boxes.pop(one.made.right)
        sample = scenes.sample(int(one.sample_id.rpartition("-")[2]))
        subject = next(c for c in CONCEPTS if c in one.made.question)
        assert right == regions({subject: sample.masks[subject]})[0].box
        for k, box in enumerate(boxes):
            assert all(shared(box, other) <= OVERLAP for other in (right, *boxes[:k]))
            for side in (0, 1):
                ratio = (box[side + 2] - box[side]) / (right[side + 2] - right[side])
                assert 0.7 < ratio < 1.4  # .8 to 1.25, rounded to pixels


def test_what_is_written_can_be_read(built, tmp_path):
    lines = (replace(one.made, scene="Colonoscopy", dataset="phantom") for one in built)
    write_questions(tmp_path / "mine.tsv", lines)
    dataset = from_endobench(tmp_path / "mine.tsv")
    assert len(dataset) == len(built)
    prompts = dict.fromkeys(dataset.metadata_values("prompt").tolist())
    assert set(prompts) == {"image-level", "box", "contour", "multi", "coordinate"}
    levels = dataset.metadata_values("granularity")
    assert set(levels.tolist()) == set(GRANULARITIES)  # our words of several regions are told apart
    selected = dataset.metadata_values("task") == "Region Selection"
    assert set(levels[selected].tolist()) == {"multi-box"}
    for k in (0, len(built) // 2, len(built) - 1):
        sample, one = dataset.sample(k), built[k]
        (task,) = sample.truth
        assert sample.asks[task].text == one.made.question
        assert sample.asks[task].options == one.made.options
        assert sample.answers[task] == (OPTIONS[one.made.right],)
        assert sample.image is not None
        away = np.abs(sample.image.astype(int) - one.made.image).mean()
        assert away < 6  # a JPEG of it
