"""MedMNIST: all twelve sets are read image by image, and a file that is none is named."""

import pickle

import numpy as np
import pytest

from adaptive_vtt import datasets
from adaptive_vtt.datasets import UNKNOWN, medmnist_sets
from adaptive_vtt.datasets.formats.medmnist import NpzArray
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import ids, medmnist, truths


@pytest.mark.parametrize("flag", ["pathmnist", "chestmnist", "pneumoniamnist", "retinamnist"])
def test_every_medmnist_set_is_read(tmp_path, flag):
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


def test_medmnist_facts_are_those_of_the_twelve_sets():
    sets = medmnist_sets()
    assert len(sets) == 12
    classes = {flag: len(facts.classes) for flag, facts in sets.items()}
    assert (classes["pathmnist"], classes["chestmnist"], classes["organsmnist"]) == (9, 14, 11)
    assert sum(classes.values()) == 92
    assert sum(facts.channels == 3 for facts in sets.values()) == 4


def test_own_class_alone_makes_overall_the_share_of_missed_classes(tmp_path):
    medmnist(tmp_path, "octmnist")
    dataset = datasets.from_medmnist(tmp_path, "octmnist", classes="own")
    assert dataset.counts.sum() == len(dataset)  # one question per image
    assert dataset.counts[:, 0].tolist() == [0, 0, 0, 0]
    assert truths(dataset)[1] == [UNKNOWN, 1, UNKNOWN, UNKNOWN]
    medmnist(tmp_path, "breastmnist")
    one = datasets.from_medmnist(tmp_path, "breastmnist", classes="own")
    assert one.counts.tolist() == [[3, 3]]


def test_medmnist_is_found_by_flag_size_and_split(tmp_path):
    medmnist(tmp_path, "bloodmnist", count=4, side=64)
    dataset = datasets.from_medmnist(tmp_path, "bloodmnist", size=64, split="val")
    assert dataset.sample_id(0) == "val-000000"
    assert dataset.sample(0).image.shape == (64, 64, 3)
    renamed = (tmp_path / "bloodmnist_64.npz").rename(tmp_path / "cells.npz")
    assert len(datasets.from_medmnist(renamed, "bloodmnist")) == 4


@pytest.mark.parametrize("compress", [False, True])
def test_medmnist_images_are_fetched_one_by_one(tmp_path, compress):
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
        ({"size": 32}, r"expected a size of 28, 64, 128 or 224, got 32"),
        ({"size": 64}, r"'.*octmnist_64\.npz' does not exist"),
        ({"classes": "mine"}, r"unknown value of classes 'mine': expected one of all, own"),
    ],
)
def test_medmnist_option_that_is_none_is_named(tmp_path, options, message):
    medmnist(tmp_path, "octmnist")
    with pytest.raises(InputError, match=message):
        datasets.from_medmnist(tmp_path, **{"flag": "octmnist", **options})


GREY, LABELS = np.zeros((3, 28, 28), np.uint8), np.zeros((3, 1), np.uint8)
FOUR = np.uint8([[0], [4], [0]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": GREY, "y": LABELS}, r"expected the array test_images, got x, y"),
        ({"test_images": GREY}, r"expected the array test_labels, got test_images"),
        ({"test_images": GREY[0], "test_labels": LABELS}, r"shape \(N, S, S\) .*got \(28, 28\)"),
        ({"test_images": GREY.astype(float), "test_labels": LABELS}, r"got .* of float64"),
        ({"test_images": GREY, "test_labels": LABELS[:2]}, r"shape \(3, 1\) .*, got \(2, 1\)"),
        ({"test_images": GREY, "test_labels": LABELS + FOUR}, r"labels 0 to 3 .*, got 4 in row 1"),
        ({"test_images": GREY.astype(object), "test_labels": LABELS}, r"it holds Python objects"),
    ],
)
def test_npz_that_is_not_the_set_is_named(tmp_path, arrays, message):
    np.savez(tmp_path / "octmnist.npz", **arrays)
    with pytest.raises(InputError, match=rf"octmnist\.npz: .*{message}"):
        datasets.from_medmnist(tmp_path / "octmnist.npz")


def test_damaged_npz_is_named_when_its_images_are_read(tmp_path):
    path = medmnist(tmp_path, "octmnist")
    data, at = bytearray(path.read_bytes()), path.read_bytes().index(b"test_images.npy")
    data[at + 200 : at + 900] = bytes(700)
    path.write_bytes(data)
    dataset = datasets.from_medmnist(path)
    with pytest.raises(InputError, match=r"octmnist\.npz: cannot read array 'test_images'"):
        dataset.sample(0)
