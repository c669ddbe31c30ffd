"""An annotation that is left out leaves its class present or unknown, never absent."""

import pytest

from adaptive_vtt.datasets import UNKNOWN
from adaptive_vtt.datasets.formats.coco import from_coco
from adaptive_vtt.datasets.formats.voc import from_voc
from tests.helpers.annotated import coco, voc
from tests.helpers.small_datasets import truths


@pytest.mark.parametrize(
    ("change", "dog", "person"),
    [
        ({"bbox": [5, 5, 8, 0.0]}, UNKNOWN, 0),
        ({"bbox": None}, UNKNOWN, 0),
        ({"bbox": [500, 5, 8, 8]}, UNKNOWN, 0),
        ({"category_id": 99}, UNKNOWN, UNKNOWN),
        ({"category_id": None}, UNKNOWN, UNKNOWN),
    ],
)
def test_coco(tmp_path, change, dog, person):
    def more(content):
        broken = {"id": 72, "image_id": 9, "category_id": 3, "bbox": [1, 1, 5, 5], **change}
        content["annotations"].append(broken)

    dataset = from_coco(*coco(tmp_path, more), broken="skip")
    assert dataset.concepts == ("dog", "person")
    assert truths(dataset) == [[1, 1], [dog, person]]


def test_a_class_that_loses_all_its_boxes_stays_a_concept(tmp_path):
    def flatten(content):
        content["annotations"][0]["bbox"][3] = 0

    dataset = from_coco(*coco(tmp_path, flatten), broken="skip")
    assert dataset.concepts == ("dog", "person")
    assert truths(dataset) == [[UNKNOWN, 1], [0, 0]]


@pytest.mark.parametrize(
    ("thing", "dog", "cat"),
    [
        (("cat", 0, 5, 5, 5, 4), 0, UNKNOWN),
        (("cat", 0, 5, 5, "x", 9), 0, UNKNOWN),
        (("", 0, 5, 5, 9, 9), UNKNOWN, UNKNOWN),
    ],
)
def test_voc(tmp_path, thing, dog, cat):
    voc(tmp_path, "a", ("dog", 0, 1, 1, 9, 9), ("cat", 0, 1, 1, 9, 9))
    voc(tmp_path, "b", thing)
    dataset = from_voc(tmp_path, broken="skip")
    assert dataset.concepts == ("cat", "dog")
    assert truths(dataset) == [[1, 1], [cat, dog]]
