"""Datasets of Hugging Face's package: in memory, and as save_to_disk wrote them."""

import sys

import numpy as np
import pytest

from adaptive_vtt.datasets import from_hugging_face
from adaptive_vtt.datasets.formats.hugging_face import class_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import UNKNOWN
from adaptive_vtt.utils.image_codec import png

SEEN = [np.full((6, 8, 3), 40 * k, np.uint8) for k in range(4)]


def animals(**columns):
    """Four rows: cat, dog, a class that is not known, cat."""
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("tqdm").tqdm.monitor_interval = 0  # else its thread stays
    rows = {
        "image": [{"bytes": png(image), "path": None} for image in SEEN],
        "label": [0, 1, None, 0],
        **columns,
    }
    made = datasets.Dataset.from_dict(rows)
    made = made.cast_column("label", datasets.ClassLabel(names=["cat", "dog"]))
    return made.cast_column("image", datasets.Image())


def test_a_class_per_row_becomes_a_column_per_class():
    table = class_table([0, 1, None, -1], ["cat", "dog"])
    assert table.columns.tolist() == ["cat", "dog"]
    assert table.fillna(9).to_numpy().tolist() == [[1, 0], [0, 1], [9, 9], [9, 9]]
    words = class_table(["dog", None, "cat"], None)
    assert words.fillna(9).to_numpy().tolist() == [[0, 1], [9, 9], [1, 0]]


@pytest.mark.parametrize("on_disk", [False, True])
def test_images_and_classes_are_read(on_disk, tmp_path):
    made = animals()
    if on_disk:
        made.save_to_disk(tmp_path / "pets")
    read = from_hugging_face(tmp_path / "pets" if on_disk else made)
    assert read.concepts == ("cat", "dog")
    truths = read.truth(np.arange(4)[:, None], np.arange(2)[None]).tolist()
    assert truths == [[1, 0], [0, 1], [UNKNOWN, UNKNOWN], [1, 0]]
    for place, image in enumerate(SEEN):
        assert np.array_equal(read.sample(place).require_image(), image)
    assert read.pixels(np.array([0, 3])).tolist() == [48, 48]
    assert [read.sample_id(place) for place in range(4)] == ["0", "1", "2", "3"]


def test_columns_may_be_concepts_ids_and_metadata():
    made = animals(ill=[True, False, None, True], name=list("abcd"), site=[1, 1, 2, 2])
    read = from_hugging_face(made, concepts=["ill"], id_column="name", metadata=["site"])
    assert read.truth(np.arange(4), np.zeros(4, int)).tolist() == [1, 0, UNKNOWN, 1]
    assert read.sample_id(2) == "c"
    assert read.metadata_values("site").tolist() == [1, 1, 2, 2]
    with pytest.raises(InputError, match="unknown column 'nme'; did you mean 'name'"):
        from_hugging_face(made, metadata=["nme"])
    with pytest.raises(InputError, match=r"dataset\.class_column: expected its name, as no"):
        from_hugging_face(made.remove_columns("label"))


def test_a_file_that_a_folder_names_is_not_opened(tmp_path):
    made = animals()
    (tmp_path / "a.png").write_bytes(png(SEEN[1]))
    linked = made.select_columns(["label"]).add_column("image", [str(tmp_path / "a.png")] * 4)
    import datasets

    linked = linked.cast_column("image", datasets.Image())
    assert np.array_equal(from_hugging_face(linked).sample(0).require_image(), SEEN[1])
    linked = linked.cast_column("image", datasets.Image(decode=False))
    linked = linked.cast_column(
        "image", {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    )
    linked.save_to_disk(tmp_path / "links")
    with pytest.raises(InputError, match=r"expected the image itself in .*, got '.*a\.png'"):
        from_hugging_face(tmp_path / "links", image_column="image")


def test_what_is_no_dataset_is_refused(tmp_path):
    datasets = pytest.importorskip("datasets")
    with pytest.raises(InputError, match=r"expected a folder that Dataset\.save_to_disk wrote"):
        from_hugging_face(tmp_path)
    with pytest.raises(InputError, match=r"expected a datasets\.Dataset, got list"):
        from_hugging_face([1])
    both = datasets.DatasetDict({"train": animals(), "test": animals()})
    with pytest.raises(InputError, match=r"got DatasetDict of the splits train, test; name one"):
        from_hugging_face(both)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"need the package datasets: pip install "):
        from_hugging_face("pets")
