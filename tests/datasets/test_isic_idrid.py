"""ISIC 2018 and IDRiD: attributes and lesions are concepts, shown by their masks."""

import pytest

from adaptive_vtt import datasets
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import idrid as idrid
from tests.helpers.small_datasets import ids, mask, picture, truths
from tests.helpers.small_datasets import isic as isic


def test_isic_attributes_are_concepts_and_zero_masks_absent(isic):
    dataset = datasets.from_isic(isic)
    assert dataset.concepts == (
        "pigment network",
        "negative network",
        "streaks",
        "milia like cyst",
        "globules",
    )
    assert truths(dataset) == [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    assert ids(dataset) == ["ISIC_0000001", "ISIC_0000002"]
    masks = dataset.sample(0).masks
    assert list(masks) == ["globules"]
    assert masks["globules"].sum() == 12


def test_isic_attributes_may_all_be_absent(isic):
    for file in (isic / "ISIC2018_Task2_Validation_GroundTruth").iterdir():
        mask(file, inside=False)
    assert truths(datasets.from_isic(isic)) == [[0] * 5] * 2


def test_isic_mask_that_misses_and_folders_that_are_not_unique_are_named(isic):
    picture(isic / "ISIC2018_Task1-2_Validation_Input" / "ISIC_0000003.jpg")
    with pytest.raises(InputError, match=r"ISIC_0000003_attribute_pigment_network\.png' does not"):
        datasets.from_isic(isic)
    (isic / "ISIC2018_Task1-2_Test_Input").mkdir()
    with pytest.raises(InputError, match=r"got 'ISIC2018_.*Test_Input', .*; give images="):
        datasets.from_isic(isic)


def test_isic_image_with_a_broken_mask_is_skipped_by_name(isic):
    folder = isic / "ISIC2018_Task2_Validation_GroundTruth"
    (folder / "ISIC_0000001_attribute_streaks.png").write_bytes(b"")
    dataset = datasets.from_isic(isic, broken="skip")
    assert ids(dataset) == ["ISIC_0000002"]
    assert dataset.skipped == (str(folder / "ISIC_0000001_attribute_streaks.png"),)


def test_idrid_lesions_are_concepts_and_missing_masks_absent(idrid):
    dataset = datasets.from_idrid(idrid)
    assert dataset.concepts == (
        "microaneurysms",
        "haemorrhages",
        "hard exudates",
        "soft exudates",
        "optic disc",
    )
    assert truths(dataset) == [[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]
    assert dataset.metadata_values("split").tolist() == ["train", "test"]
    assert dataset.sample(1).masks["soft exudates"].sum() == 12
    only = datasets.from_idrid(idrid / "A. Segmentation", split="test")
    assert ids(only) == ["IDRiD_55"]


def test_idrid_without_its_folders_is_named(idrid, tmp_path):
    with pytest.raises(InputError, match=r"a\. Training Set' is no folder of images"):
        datasets.from_idrid(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"unknown split 'val': expected one of test, train"):
        datasets.from_idrid(idrid, split="val")
