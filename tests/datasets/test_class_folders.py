"""Folders of images, one per class: what the levels above mean, and what is out of place."""

import pytest

from adaptive_vtt import datasets
from adaptive_vtt.datasets import UNKNOWN
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import ids, picture, truths


def test_hyper_kvasir_folders_give_classes_tracts_and_groups(tmp_path):
    for path in (
        "upper-gi-tract/anatomical-landmarks/z-line/1.jpg",
        "lower-gi-tract/pathological-findings/polyps/2.jpg",
        "lower-gi-tract/anatomical-landmarks/cecum/3.jpg",
    ):
        picture(tmp_path / "labeled-images" / path)
    (tmp_path / "labeled-images" / "image-labels.csv").write_text("Video file,Organ\n")
    picture(tmp_path / "segmented-images" / "images" / "4.jpg")  # not a class
    for root in (tmp_path, tmp_path / "labeled-images"):
        dataset = datasets.from_class_folders(root)
        assert dataset.concepts == ("cecum", "polyps", "z-line")
        assert truths(dataset) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        assert ids(dataset)[1] == "lower-gi-tract/pathological-findings/polyps/2.jpg"
        assert dataset.sample(1).metadata == {
            "tract": "lower-gi-tract",
            "group": "pathological-findings",
            "class": "polyps",
        }


def test_class_in_several_splits_is_one_class(tmp_path):
    for path in (
        "train/normal/1.png",
        "train/ulcer/2.png",
        "test/normal/1.png",
        "test/ulcer/._x.png",
    ):
        picture(tmp_path / path)
    dataset = datasets.from_class_folders(tmp_path, classes="own")
    assert dataset.concepts == ("normal", "ulcer")
    assert truths(dataset) == [[1, UNKNOWN], [1, UNKNOWN], [UNKNOWN, 1]]
    assert dataset.metadata_values("split").tolist() == ["test", "train", "train"]


def test_flat_and_uneven_class_folders(tmp_path):
    picture(tmp_path / "polyps" / "a.jpg")
    picture(tmp_path / "ulcers" / "b.jpg")
    flat = datasets.from_class_folders(tmp_path)
    assert flat.sample(0).metadata == {"class": "polyps"}
    picture(tmp_path / "site" / "ward" / "esophagitis" / "c.jpg")
    uneven = datasets.from_class_folders(tmp_path)
    assert uneven.metadata_values("level 1").tolist() == [None, "site", None]
    assert uneven.metadata_values("level 2").tolist() == [None, "ward", None]


def test_image_beside_the_class_folders_is_named(tmp_path):
    picture(tmp_path / "polyps" / "a.jpg")
    picture(tmp_path / "stray.jpg")
    with pytest.raises(InputError, match=r"stray\.jpg': expected every image in the folder of its"):
        datasets.from_class_folders(tmp_path)
    with pytest.raises(InputError, match=r"gone' is no folder of images"):
        datasets.from_class_folders(tmp_path / "gone")
