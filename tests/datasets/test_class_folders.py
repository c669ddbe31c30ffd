"""Folders of images, one per class: what the levels above mean, and what is out of place."""

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace, datasets
from adaptive_vtt.audit.overview import overview
from adaptive_vtt.datasets import UNKNOWN, as_dataset
from adaptive_vtt.datasets.columns import one_per_class
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
    with pytest.raises(InputError, match=r"gone: expected a folder of images, got nothing"):
        datasets.from_class_folders(tmp_path / "gone")


@pytest.mark.parametrize(
    ("cells", "names"),
    [
        ([10, 2, 0, 1], ["0", "1", "2", "10"]),
        (["10.0", "2.0", "0.0"], ["0", "2", "10"]),
        ([10.0, 2.0, np.nan, 0.0], ["0", "2", "10"]),
        (["3.0", "3", "12", " 3"], ["3", "12"]),
        (np.array([11, 3, -1], np.int16), ["-1", "3", "11"]),
        (["grade 10", "grade 2", "grade 1"], ["grade 1", "grade 2", "grade 10"]),
        (["polyp", "3", "20"], ["3", "20", "polyp"]),
    ],
)
def test_classes_are_in_the_order_of_their_numbers(cells, names):
    assert [*one_per_class(pd.Series(cells))] == names


@pytest.mark.parametrize("form", ["{}", "{}.0"])
def test_numbers_of_a_table_are_ordered_and_the_order_is_said(tmp_path, form):
    for k in range(24):
        picture(tmp_path / "images" / f"p{k:02}.png")
    rows = "".join(f"p{k:02}.png,{form.format(k % 12)}\n" for k in range(24))
    (tmp_path / "labels.csv").write_text("file,label\n" + rows)
    dataset = as_dataset(tmp_path)
    assert dataset.concepts == tuple(map(str, range(12)))
    order = dict(overview(QuestionSpace(dataset), [], "all"))["order"]
    assert order == "0, 1, 2 and 9 more: as numbers; text would give 0, 1, 10 and 9 more"
