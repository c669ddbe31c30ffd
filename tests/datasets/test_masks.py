"""Masks, beside a table or in a folder: found, and named where one does not fit its image."""

import json

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import datasets
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import ids, mask, picture, truths

# -- masks in tables -----------------------------------------------------------------------


def test_masks_are_decoded_only_when_asked_for(tmp_path):
    mask(tmp_path / "m.png")
    images = [np.zeros((8, 10), np.uint8)] * 2
    labels = pd.DataFrame({"polyp": [1, 0], "stool": [1, 1]}, index=["a", "b"])
    stool = [np.ones((8, 10), bool), None]
    dataset = from_table(
        images, labels, masks={"polyp": [tmp_path / "m.png", None], "stool": stool}
    )
    first, second = dataset.sample(0), dataset.sample(1)
    assert set(first.masks) == {"polyp", "stool"}
    assert len(second.masks) == 0
    (tmp_path / "m.png").write_bytes(b"no longer")
    assert first.masks["stool"].all()
    with pytest.raises(InputError, match=r"sample 'a', mask of 'polyp': '.*m\.png' is not an im"):
        first.masks["polyp"]


def test_masks_change_the_fingerprint_and_their_absence_does_not():
    labels = pd.DataFrame({"polyp": [1]}, index=["a"])
    bare = from_table(None, labels)
    assert bare.fingerprint == "5407f149b99d943b9d0de2fc"  # audits begun before masks go on
    assert from_table(None, labels, masks={"polyp": [np.ones((2, 2), bool)]}).fingerprint != (
        bare.fingerprint
    )


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"polyps": [None]}, r"masks: unknown concept 'polyps'.*did you mean 'polyp'"),
        ({"polyp": [None, None]}, r"masks of 'polyp': expected 1 \(one per row.*got 2"),
        ({"polyp": ["gone.png"]}, r"sample 'a': mask file 'gone\.png' does not exist"),
    ],
)
def test_masks_that_do_not_fit_are_named(masks, message):
    with pytest.raises(InputError, match=message):
        from_table(None, pd.DataFrame({"polyp": [1]}, index=["a"]), masks=masks)


# -- image and mask folders ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("images", "masks", "endings"),
    [
        ("image", "masks", (".png", ".png")),  # PraNet's training set
        ("Original", "Ground Truth", (".tif", ".tif")),  # CVC-ClinicDB
        ("images", "masks", (".jpg", ".png")),
    ],
)
def test_layout_of_a_mask_folder_is_recognised(tmp_path, images, masks, endings):
    for name in ("1", "2", "10"):
        picture(tmp_path / images / f"{name}{endings[0]}")
        mask(tmp_path / masks / f"{name}{endings[1]}")
    (tmp_path / "kavsir_bboxes.json").write_text(json.dumps({}))
    dataset = datasets.from_masks(tmp_path)
    assert ids(dataset) == ["1", "2", "10"]
    assert dataset.concepts == ("polyp",)
    assert truths(dataset) == [[1], [1], [1]]
    sample = dataset.sample(2)
    assert sample.image is not None
    shown = sample.masks["polyp"]
    assert shown.shape == sample.image.shape[:2]
    assert shown[2, 3]
    assert not shown[7, 9]


def test_mask_and_image_of_different_size_are_named(tmp_path):
    picture(tmp_path / "images" / "a.png", 8, 10)
    mask(tmp_path / "masks" / "a.png", 8, 9)
    message = r"masks.a\.png': expected a mask as large as its image, 8 x 10 .*, got 8 x 9$"
    with pytest.raises(InputError, match=message):
        datasets.from_masks(tmp_path)


def test_an_empty_mask_is_refused_skipped_by_name_or_means_absent(tmp_path):
    for name in ("a", "b", "c"):
        picture(tmp_path / "images" / f"{name}.png")
        mask(tmp_path / "masks" / f"{name}.png", inside=name != "b")
    message = r"masks.b\.png': expected a mask with something inside.*empty one; 1 of 3 are"
    with pytest.raises(InputError, match=message):
        datasets.from_masks(tmp_path)
    left = datasets.from_masks(tmp_path, empty="skip")
    assert ids(left) == ["a", "c"]
    assert left.skipped == (str(tmp_path / "masks" / "b.png"),)
    absent = datasets.from_masks(tmp_path, empty="absent")
    assert truths(absent) == [[1], [0], [1]]
    assert len(absent.sample(1).masks) == 0
    assert absent.skipped == ()


def test_image_without_mask_and_mask_without_image_are_named(tmp_path):
    picture(tmp_path / "images" / "a.png")
    picture(tmp_path / "images" / "b.png")
    mask(tmp_path / "masks" / "a.png")
    with pytest.raises(InputError, match=r"b\.png' has no mask of that name in '.*masks'.* 1 of 2"):
        datasets.from_masks(tmp_path)
    mask(tmp_path / "masks" / "b.png")
    mask(tmp_path / "masks" / "c.png")
    with pytest.raises(InputError, match=r"c\.png' has no image of that name in '.*images'"):
        datasets.from_masks(tmp_path)


def test_folder_without_a_known_layout_is_named(tmp_path):
    with pytest.raises(InputError, match=r"got none of 'images' and 'masks', "):
        datasets.from_masks(tmp_path)
    with pytest.raises(InputError, match=r"both images= and masks= or neither, got images= alone"):
        datasets.from_masks(tmp_path, images="frames")
    with pytest.raises(InputError, match=r"frames' is no folder of images"):
        datasets.from_masks(tmp_path, images="frames", masks="tools")
