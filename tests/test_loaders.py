"""Medical data formats: what is read from each, and how what does not fit is named."""

import json
import pickle
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import datasets
from adaptive_vtt.building import build_space
from adaptive_vtt.datasets import UNKNOWN, TableDataset, from_table, medmnist_sets
from adaptive_vtt.datasets.npz import MAX_BYTES, NpzArray
from adaptive_vtt.errors import InputError
from adaptive_vtt.spec import parse_spec

RNG = np.random.default_rng(0)


def picture(path: Path, height: int = 8, width: int = 10) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), RNG.integers(0, 256, (height, width, 3), dtype=np.uint8))


def mask(path: Path, height: int = 8, width: int = 10, inside: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    grey = np.zeros((height, width), np.uint8)
    grey[1:4, 2:6] = 255 * inside
    assert cv2.imwrite(str(path), grey)


def truths(dataset: TableDataset) -> list[list[int]]:
    rows, columns = np.arange(len(dataset)), np.arange(len(dataset.concepts))
    return dataset.truth(rows[:, None], columns[None, :]).tolist()


def ids(dataset: TableDataset) -> list[str]:
    return [dataset.sample_id(i) for i in range(len(dataset))]


# -- masks in tables -----------------------------------------------------------------------


def test_masks_are_decoded_only_when_asked_for(tmp_path: Path) -> None:
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


def test_masks_change_the_fingerprint_and_their_absence_does_not() -> None:
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
def test_masks_that_do_not_fit_are_named(masks: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_table(None, pd.DataFrame({"polyp": [1]}, index=["a"]), masks=masks)


def test_mask_of_another_size_than_its_image_is_named() -> None:
    labels = pd.DataFrame({"polyp": [1]}, index=["a"])
    image, small = np.zeros((8, 10), np.uint8), np.ones((4, 5), bool)
    sample = from_table([image], labels, masks={"polyp": [small]}).sample(0)
    with pytest.raises(InputError, match=r"sample 'a', mask of 'polyp': .* 8 x 10 .*got 4 x 5"):
        sample.masks["polyp"]


# -- MedMNIST ------------------------------------------------------------------------------


def medmnist(
    folder: Path, flag: str, *, count: int = 6, side: int = 28, compress: bool = True
) -> Path:
    """A small file in the layout of the set; labels run through all classes."""
    facts = medmnist_sets()[flag]
    rng, arrays = np.random.default_rng(1), {}
    for split in ("train", "val", "test"):
        colours = (3,) if facts.channels == 3 else ()
        images = rng.integers(0, 256, (count, side, side, *colours), dtype=np.uint8)
        numbers = np.arange(count) % len(facts.classes)
        labels = numbers[:, None]
        if facts.task == "multi-label":
            labels = (rng.random((count, len(facts.classes))) < 0.3).astype(int)
        arrays |= {f"{split}_images": images, f"{split}_labels": labels.astype(np.uint8)}
    path = folder / (f"{flag}.npz" if side == 28 else f"{flag}_{side}.npz")
    (np.savez_compressed if compress else np.savez)(path, **arrays)  # type: ignore[operator]
    return path


@pytest.mark.parametrize("flag", medmnist_sets())
def test_every_medmnist_set_is_read(tmp_path: Path, flag: str) -> None:
    path, facts = medmnist(tmp_path, flag, count=16), medmnist_sets()[flag]
    dataset = datasets.from_medmnist(path)
    stored = np.load(path)
    assert ids(dataset)[:2] == ["test-000000", "test-000001"]
    assert dataset.name == f"{flag}-test"
    sample = dataset.sample(3)
    assert sample.image is not None
    assert sample.image.shape == (28, 28, facts.channels)
    assert np.array_equal(sample.image.squeeze(), stored["test_images"][3])
    labels = stored["test_labels"].astype(int)
    if facts.task == "multi-label":
        assert dataset.concepts == facts.classes
        assert truths(dataset) == labels.tolist()
        assert sample.metadata == {"split": "test"}
    elif facts.task == "binary":
        assert dataset.concepts == (facts.classes[1],)
        assert truths(dataset) == labels.tolist()
    else:
        assert dataset.concepts == facts.classes
        assert truths(dataset) == np.eye(len(facts.classes), dtype=int)[labels[:, 0]].tolist()
        assert sample.metadata == {"split": "test", "label": labels[3, 0]}


def test_medmnist_facts_are_those_of_the_twelve_sets() -> None:
    sets = medmnist_sets()
    assert len(sets) == 12
    classes = {flag: len(facts.classes) for flag, facts in sets.items()}
    assert (classes["pathmnist"], classes["chestmnist"], classes["organsmnist"]) == (9, 14, 11)
    assert sum(classes.values()) == 92
    assert sum(facts.channels == 3 for facts in sets.values()) == 4


def test_own_class_alone_makes_overall_the_share_of_missed_classes(tmp_path: Path) -> None:
    medmnist(tmp_path, "octmnist")
    dataset = datasets.from_medmnist(tmp_path, "octmnist", classes="own")
    assert dataset.counts.sum() == len(dataset)  # one question per image
    assert dataset.counts[:, 0].tolist() == [0, 0, 0, 0]
    assert truths(dataset)[1] == [UNKNOWN, 1, UNKNOWN, UNKNOWN]
    medmnist(tmp_path, "breastmnist")
    one = datasets.from_medmnist(tmp_path, "breastmnist", classes="own")
    assert one.counts.tolist() == [[3, 3]]


def test_medmnist_is_found_by_flag_size_and_split(tmp_path: Path) -> None:
    medmnist(tmp_path, "bloodmnist", count=4, side=64)
    dataset = datasets.from_medmnist(tmp_path, "bloodmnist", size=64, split="val")
    assert dataset.sample_id(0) == "val-000000"
    assert dataset.sample(0).image.shape == (64, 64, 3)  # type: ignore[union-attr]
    renamed = (tmp_path / "bloodmnist_64.npz").rename(tmp_path / "cells.npz")
    assert len(datasets.from_medmnist(renamed, "bloodmnist")) == 4


@pytest.mark.parametrize("compress", [False, True])
def test_medmnist_images_are_fetched_one_by_one(tmp_path: Path, compress: bool) -> None:
    path = medmnist(tmp_path, "pathmnist", compress=compress)
    images = NpzArray(path, "test_images")
    assert isinstance(images.array, np.memmap) != compress
    expected = np.load(path)["test_images"]
    assert np.array_equal(np.stack([images[i] for i in range(len(images))]), expected)
    images[0][:] = 0  # a copy: what is read next is what is stored
    assert np.array_equal(images[0], expected[0])
    assert len(pickle.dumps(images)) < 500  # a worker process opens the file, it gets no pixels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flag": "pathmist"}, r"unknown dataset flag 'pathmist'.*did you mean 'pathmnist'"),
        ({"split": "tests"}, r"unknown split 'tests': expected one of test, train, val"),
        ({"size": 32}, r"expected a size of 28, 64, 128 or 224, got 32"),
        ({"size": 64}, r"'.*octmnist_64\.npz' does not exist"),
        ({"classes": "mine"}, r"unknown value of classes 'mine': expected one of all, own"),
        ({"flag": "breastmnist"}, r"'.*breastmnist\.npz' does not exist"),
    ],
)
def test_medmnist_option_that_is_none_is_named(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    medmnist(tmp_path, "octmnist")
    with pytest.raises(InputError, match=message):
        datasets.from_medmnist(tmp_path, **{"flag": "octmnist", **options})


def test_medmnist_file_of_unknown_name_needs_a_flag(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"cells\.npz \(give flag=\): unknown dataset flag 'cells'"
    ):
        datasets.from_medmnist(tmp_path / "cells.npz")


GREY, LABELS = np.zeros((3, 28, 28), np.uint8), np.zeros((3, 1), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"x": GREY, "y": LABELS},
            r"expected the arrays test_images, test_labels, found x, y",
        ),
        (
            {"test_images": GREY},
            r"expected the arrays test_images, test_labels, found test_images",
        ),
        (
            {"test_images": GREY[0], "test_labels": LABELS},
            r"expected test_images of shape \(N, S, S\) and uint8 for octmnist, got \(28, 28\)",
        ),
        (
            {"test_images": np.zeros((3, 28, 28, 3), np.uint8), "test_labels": LABELS},
            r"\(N, S, S\) and uint8 for octmnist, got \(3, 28, 28, 3\) of uint8",
        ),
        ({"test_images": GREY.astype(float), "test_labels": LABELS}, r"got .* of float64"),
        (
            {"test_images": GREY, "test_labels": LABELS[:2]},
            r"expected test_labels of shape \(3, 1\) .*, got \(2, 1\)",
        ),
        ({"test_images": GREY, "test_labels": LABELS * 0.5}, r"whole numbers .*of float64"),
        (
            {"test_images": GREY, "test_labels": LABELS + np.uint8([[0], [4], [0]])},
            r"test_labels: expected labels 0 to 3 for octmnist, got 4 in row 1",
        ),
        (
            {"test_images": GREY.astype(object), "test_labels": LABELS},
            r"cannot read array 'test_images': it holds Python objects",
        ),
    ],
)
def test_npz_that_is_not_the_set_is_named(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "octmnist.npz", **arrays)
    with pytest.raises(InputError, match=rf"octmnist\.npz: .*{message}"):
        datasets.from_medmnist(tmp_path / "octmnist.npz")


def test_file_that_is_no_npz_is_named(tmp_path: Path) -> None:
    (tmp_path / "octmnist.npz").write_bytes(b"PK no")
    with pytest.raises(InputError, match=r"octmnist\.npz: cannot read an \.npz file: .*not a zip"):
        datasets.from_medmnist(tmp_path / "octmnist.npz")


def test_damaged_npz_is_named_when_its_images_are_read(tmp_path: Path) -> None:
    path = medmnist(tmp_path, "octmnist")
    data, at = bytearray(path.read_bytes()), path.read_bytes().index(b"test_images.npy")
    data[at + 200 : at + 900] = bytes(700)
    path.write_bytes(data)
    dataset = datasets.from_medmnist(path)
    with pytest.raises(InputError, match=r"octmnist\.npz: cannot read array 'test_images'"):
        dataset.sample(0)


def test_array_that_declares_too_much_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = medmnist(tmp_path, "octmnist")
    monkeypatch.setattr("adaptive_vtt.datasets.npz.MAX_BYTES", 1000)
    with pytest.raises(InputError, match=r"array 'test_images' has 4704 bytes, over the limit of"):
        datasets.from_medmnist(path)
    assert MAX_BYTES > 89_996 * 224 * 224 * 3  # the largest official array is let in


# -- image and mask folders ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("images", "masks", "endings"),
    [
        ("images", "masks", (".jpg", ".jpg")),  # Kvasir-SEG
        ("image", "masks", (".png", ".png")),  # PraNet's training set
        ("Original", "Ground Truth", (".tif", ".tif")),  # CVC-ClinicDB
        ("PNG/Original", "PNG/Ground Truth", (".png", ".png")),
        ("images", "masks", (".jpg", ".png")),
    ],
)
def test_layout_of_a_mask_folder_is_recognised(
    tmp_path: Path, images: str, masks: str, endings: tuple[str, str]
) -> None:
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


def test_mask_folder_may_be_named_and_show_anything(tmp_path: Path) -> None:
    picture(tmp_path / "frames" / "a.png")
    mask(tmp_path / "tools" / "a.png")
    dataset = datasets.from_masks(tmp_path, "instrument", images="frames", masks="tools")
    assert dataset.concepts == ("instrument",)
    assert list(dataset.sample(0).masks) == ["instrument"]


def test_mask_and_image_of_different_size_are_named(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "a.png", 8, 10)
    mask(tmp_path / "masks" / "a.png", 8, 9)
    message = r"masks.a\.png': expected a mask as large as its image, 8 x 10 .*, got 8 x 9$"
    with pytest.raises(InputError, match=message):
        datasets.from_masks(tmp_path)


@pytest.fixture
def with_empty_mask(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        picture(tmp_path / "images" / f"{name}.png")
        mask(tmp_path / "masks" / f"{name}.png", inside=name != "b")
    return tmp_path


def test_empty_mask_is_refused(with_empty_mask: Path) -> None:
    message = r"masks.b\.png': expected a mask with something inside .*empty one; 1 of 3 are"
    with pytest.raises(InputError, match=message):
        datasets.from_masks(with_empty_mask)


def test_empty_mask_is_skipped_by_name(with_empty_mask: Path) -> None:
    dataset = datasets.from_masks(with_empty_mask, empty="skip")
    assert ids(dataset) == ["a", "c"]
    assert dataset.skipped == (str(with_empty_mask / "masks" / "b.png"),)


def test_empty_mask_may_mean_absent(with_empty_mask: Path) -> None:
    dataset = datasets.from_masks(with_empty_mask, empty="absent")
    assert truths(dataset) == [[1], [0], [1]]
    assert len(dataset.sample(1).masks) == 0
    assert dataset.skipped == ()


def test_image_without_mask_and_mask_without_image_are_named(tmp_path: Path) -> None:
    picture(tmp_path / "images" / "a.png")
    picture(tmp_path / "images" / "b.png")
    mask(tmp_path / "masks" / "a.png")
    with pytest.raises(InputError, match=r"b\.png' has no mask of that name in '.*masks'.* 1 of 2"):
        datasets.from_masks(tmp_path)
    mask(tmp_path / "masks" / "b.png")
    mask(tmp_path / "masks" / "c.png")
    with pytest.raises(InputError, match=r"c\.png' has no image of that name in '.*images'"):
        datasets.from_masks(tmp_path)


def test_folder_without_a_known_layout_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one of 'images' and 'masks', .*; found none"):
        datasets.from_masks(tmp_path)
    with pytest.raises(InputError, match=r"both images= and masks= or neither, got images= alone"):
        datasets.from_masks(tmp_path, images="frames")
    with pytest.raises(InputError, match=r"frames' is no folder of images"):
        datasets.from_masks(tmp_path, images="frames", masks="tools")


# -- broken files --------------------------------------------------------------------------


@pytest.fixture
def with_broken_image(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        picture(tmp_path / "images" / f"{name}.png")
        mask(tmp_path / "masks" / f"{name}.png")
    whole = (tmp_path / "images" / "b.png").read_bytes()
    (tmp_path / "images" / "b.png").write_bytes(whole[:40])  # its header is fine
    return tmp_path


def test_broken_image_is_refused_when_it_is_met(with_broken_image: Path) -> None:
    dataset = datasets.from_masks(with_broken_image)
    assert dataset.sample(0).image is not None
    with pytest.raises(InputError, match=r"sample 'b': '.*b\.png' is not an image that can be re"):
        dataset.sample(1)


def test_broken_image_is_skipped_by_name(with_broken_image: Path) -> None:
    dataset = datasets.from_masks(with_broken_image, broken="skip")
    assert ids(dataset) == ["a", "c"]
    assert dataset.skipped == (str(with_broken_image / "images" / "b.png"),)


def test_broken_images_of_a_table_are_skipped_by_name(with_broken_image: Path) -> None:
    table = with_broken_image / "labels.csv"
    table.write_text("id,polyp,age\na,1,50\nb,1,60\nc,0,70\n")
    folder = with_broken_image / "images"
    dataset = datasets.read_table(table, folder, metadata=["age"], broken="skip")
    assert ids(dataset) == ["a", "c"]
    assert truths(dataset) == [[1], [0]]
    assert dataset.sample(1).metadata == {"age": "70"}
    assert dataset.skipped == (str(folder / "b.png"),)


def test_nothing_but_broken_files_is_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "polyps").mkdir()
    (tmp_path / "polyps" / "a.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"expected folders of images, .*, found no image"):
        datasets.from_class_folders(tmp_path, broken="skip")
    with pytest.raises(InputError, match=r"unknown value of broken 'ignore'"):
        datasets.from_class_folders(tmp_path, broken="ignore")  # type: ignore[arg-type]


# -- class folders -------------------------------------------------------------------------


def test_hyper_kvasir_folders_give_classes_tracts_and_groups(tmp_path: Path) -> None:
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
            "tract": "lower-gi-tract", "group": "pathological-findings", "class": "polyps",
        }  # fmt: skip


def test_class_in_several_splits_is_one_class(tmp_path: Path) -> None:
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


def test_flat_and_uneven_class_folders(tmp_path: Path) -> None:
    picture(tmp_path / "polyps" / "a.jpg")
    picture(tmp_path / "polyps" / "b.jpg")
    flat = datasets.from_class_folders(tmp_path)
    assert flat.sample(0).metadata == {"class": "polyps"}
    picture(tmp_path / "site" / "ward" / "esophagitis" / "c.jpg")
    uneven = datasets.from_class_folders(tmp_path)
    assert uneven.metadata_values("level 1").tolist() == [None, None, "site"]
    assert uneven.metadata_values("level 2").tolist() == [None, None, "ward"]


def test_image_beside_the_class_folders_is_named(tmp_path: Path) -> None:
    picture(tmp_path / "polyps" / "a.jpg")
    picture(tmp_path / "stray.jpg")
    with pytest.raises(InputError, match=r"stray\.jpg': expected every image in the folder of its"):
        datasets.from_class_folders(tmp_path)
    with pytest.raises(InputError, match=r"gone' is no folder of images"):
        datasets.from_class_folders(tmp_path / "gone")


# -- ISIC and IDRiD ------------------------------------------------------------------------


@pytest.fixture
def isic(tmp_path: Path) -> Path:
    for number in (1, 2):
        name = f"ISIC_000000{number}"
        picture(tmp_path / "ISIC2018_Task1-2_Validation_Input" / f"{name}.jpg")
        for attribute in datasets.isic.ATTRIBUTES:
            file = f"{name}_attribute_{attribute}.png"
            mask(
                tmp_path / "ISIC2018_Task2_Validation_GroundTruth" / file,
                inside=(number, attribute) in {(1, "globules"), (2, "pigment_network")},
            )
    return tmp_path


def test_isic_attributes_are_concepts_and_zero_masks_absent(isic: Path) -> None:
    dataset = datasets.from_isic(isic)
    assert dataset.concepts == (
        "pigment network", "negative network", "streaks", "milia like cyst", "globules",
    )  # fmt: skip
    assert truths(dataset) == [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    assert ids(dataset) == ["ISIC_0000001", "ISIC_0000002"]
    masks = dataset.sample(0).masks
    assert list(masks) == ["globules"]
    assert masks["globules"].sum() == 12


def test_isic_mask_that_misses_and_folders_that_are_not_unique_are_named(isic: Path) -> None:
    picture(isic / "ISIC2018_Task1-2_Validation_Input" / "ISIC_0000003.jpg")
    with pytest.raises(InputError, match=r"ISIC_0000003_attribute_pigment_network\.png' does not"):
        datasets.from_isic(isic)
    (isic / "ISIC2018_Task1-2_Test_Input").mkdir()
    with pytest.raises(InputError, match=r"found 'ISIC2018_.*Test_Input', .*; give images="):
        datasets.from_isic(isic)


def test_isic_image_with_a_broken_mask_is_skipped_by_name(isic: Path) -> None:
    folder = isic / "ISIC2018_Task2_Validation_GroundTruth"
    (folder / "ISIC_0000001_attribute_streaks.png").write_bytes(b"")
    dataset = datasets.from_isic(isic, broken="skip")
    assert ids(dataset) == ["ISIC_0000002"]
    assert dataset.skipped == (str(folder / "ISIC_0000001_attribute_streaks.png"),)


@pytest.fixture
def idrid(tmp_path: Path) -> Path:
    root = tmp_path / "A. Segmentation"
    for number, folder in ((1, "a. Training Set"), (55, "b. Testing Set")):
        picture(root / "1. Original Images" / folder / f"IDRiD_{number:02}.jpg")
        truth = root / "2. All Segmentation Groundtruths" / folder
        mask(truth / "5. Optic Disc" / f"IDRiD_{number:02}_OD.tif")
    mask(truth / "4. Soft Exudates" / "IDRiD_55_SE.tif")
    return tmp_path


def test_idrid_lesions_are_concepts_and_missing_masks_absent(idrid: Path) -> None:
    dataset = datasets.from_idrid(idrid)
    assert dataset.concepts == (
        "microaneurysms", "haemorrhages", "hard exudates", "soft exudates", "optic disc",
    )  # fmt: skip
    assert truths(dataset) == [[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]
    assert dataset.metadata_values("split").tolist() == ["train", "test"]
    assert dataset.sample(1).masks["soft exudates"].sum() == 12
    only = datasets.from_idrid(idrid / "A. Segmentation", split="test")
    assert ids(only) == ["IDRiD_55"]


def test_idrid_without_its_folders_is_named(idrid: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\. Training Set' is no folder of images"):
        datasets.from_idrid(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"unknown split 'val': expected one of test, train"):
        datasets.from_idrid(idrid, split="val")


# -- Parquet -------------------------------------------------------------------------------


def test_parquet_table_means_the_same_as_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    columns = {"drusen": [True, False, None], "cyst": [1.0, np.nan, 0.0], "eye": list("lrl")}
    table = pd.DataFrame({"id": [7, 8, 9], **columns})
    table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id,drusen,cyst,eye\n7,1,1,l\n8,0,,r\n9,,0,l\n")
    read = [datasets.read_table(tmp_path / f"t.{e}", metadata=["eye"]) for e in ("csv", "parquet")]
    assert read[0].fingerprint == read[1].fingerprint
    assert truths(read[0]) == truths(read[1])
    assert [d.sample(1).metadata for d in read] == [{"eye": "r"}] * 2
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match=r"bad\.parquet: cannot read a table of labels: .*Parquet"):
        datasets.read_table(tmp_path / "bad.parquet")


def test_missing_parquet_reader_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise ImportError

    monkeypatch.setattr(pd, "read_parquet", missing)
    with pytest.raises(InputError, match=r"needs pyarrow: pip install 'adaptive-vtt\[parquet\]'"):
        datasets.read_table(tmp_path / "t.parquet")


# -- in a spec -----------------------------------------------------------------------------


def from_spec(base: Path, **dataset: Any) -> Any:
    table = {"dataset": dataset, "model": {"kind": "simulated", "target": "unbiased"}}
    return build_space(parse_spec(table, "SPEC.toml"), base).dataset


def test_every_kind_of_dataset_is_reached_from_a_spec(isic: Path, idrid: Path) -> None:
    base = isic  # both fixtures share one folder
    medmnist(base, "octmnist")
    picture(base / "polyps" / "images" / "a.png")
    mask(base / "polyps" / "masks" / "a.png")
    picture(base / "classes" / "ulcer" / "a.png")
    assert from_spec(base, kind="medmnist", path="octmnist.npz", classes="own").counts.sum() == 6
    assert len(from_spec(base, kind="medmnist", path=".", flag="octmnist", split="val")) == 6
    assert from_spec(base, kind="masks", path="polyps", concept="lesion").concepts == ("lesion",)
    assert len(from_spec(base, kind="classes", path="classes", broken="skip")) == 1
    assert len(from_spec(base, kind="isic", path=".")) == 2
    assert len(from_spec(base, kind="idrid", path=".", split="train")) == 1
    frames = from_spec(base, kind="phantom", count=3, size=64, seed=5, polyps=1.0)
    assert frames.sample(2).image.shape == (64, 64, 3)
    assert frames.counts[0].tolist() == [0, 3]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"kind": "masks"}, r"dataset\.path: expected a value for this kind, got nothing"),
        ({"kind": "phantom"}, r"dataset\.count: expected a value"),
        ({"kind": "masks", "path": ".", "flag": "x"}, r"dataset\.flag: is no field of kind 'm"),
        ({"kind": "medmist"}, r"dataset\.kind: unknown value 'medmist'.*did you mean 'medmnist'"),
        ({"kind": "masks", "empty": "no"}, r"dataset\.empty: unknown value 'no'"),
        ({"kind": "medmnist", "path": "gone.npz"}, r"unknown dataset flag 'gone'"),
    ],
)  # fmt: skip
def test_dataset_section_that_cannot_be_used_is_named(
    tmp_path: Path, dataset: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        from_spec(tmp_path, **dataset)
