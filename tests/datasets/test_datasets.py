"""Tables of labels and images: what is taken, and how what cannot be is named."""

import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import datasets
from adaptive_vtt.datasets import UNKNOWN, from_table, read_table
from adaptive_vtt.errors import InputError
from tests.helpers.small_datasets import truths

RED_GREEN = np.array([[[255, 0, 0], [0, 255, 0]]], np.uint8)  # 1 x 2 RGB


def write_png(path, image):
    bgr = image[:, :, ::-1] if image.shape[2] == 3 else image
    assert cv2.imwrite(str(path), bgr)


# -- tables --------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", ["my-audit/labels.csv", Path("my-audit/labels.csv")])
def test_a_path_is_no_table_of_labels_and_what_reads_one_is_named(labels):
    sentence = r"got the path 'my-audit/labels\.csv'; read_table\('my-audit/l.* as_dataset\(FOLDER"
    with pytest.raises(InputError, match=sentence):
        from_table(None, labels)


def test_truths_are_those_of_the_table(labels):
    dataset = from_table(None, labels, name="eyes")
    assert (len(dataset), dataset.name) == (4, "eyes")
    assert dataset.concepts == ("drusen", "cyst", "fluid")
    assert not dataset.has_images
    everything = dataset.truth(np.arange(4)[:, None], np.arange(3)[None, :])
    assert everything.tolist() == [[0, 1, 0], [1, 0, UNKNOWN], [1, 1, 0], [0, 0, 1]]
    assert dataset.counts.tolist() == [[2, 2], [2, 2], [2, 1]]
    assert dataset.sample(1).truth == {"drusen": 1, "cyst": 0}  # the unknown is left out
    assert dataset.sample(1).image is None
    assert [dataset.sample_id(i) for i in range(4)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("value", [2, 0.5, "maybe", "1?", np.inf])
def test_label_that_is_neither_0_nor_1_nor_empty_is_named(value):
    cells = {"drusen": [0, 1, 1], "cyst": [1, value, 0]}
    labels = pd.DataFrame(cells, index=["a", "b", "c"], dtype=object)
    message = rf"expected 0, 1 or empty .*, got .*{str(value).replace('?', '.')}.* 'b', .*'cyst'"
    with pytest.raises(InputError, match=rf"{message}; correct that cell; or name the column in m"):
        from_table(None, labels)
    dataset = from_table(None, labels, metadata=["cyst"])
    assert (dataset.concepts, dataset.metadata_columns) == (("drusen",), ("cyst",))
    assert dataset.remarks["cyst"].startswith("metadata: row 2 holds ")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"images": [np.zeros((2, 2), np.uint8)] * 3}, r"images: expected 4 .*, got 3"),
        ({"features": np.zeros((5, 2))}, "features: expected 4 rows of d numbers, got shape 5 x 2"),
        ({"metadata": pd.DataFrame({"age": [1]})}, r"metadata: expected 4 .*, got 1"),
        ({"features": np.zeros(4)}, "features: expected 4 rows of d numbers, got shape 4"),
        ({"features": [[0], [1], [np.nan], [3]]}, r"features: .* NaN or infinity in row 2"),
    ],
)
def test_parts_that_do_not_fit_are_named(labels, parts, message):
    with pytest.raises(InputError, match=message):
        from_table(parts.pop("images", None), labels, **parts)


def test_ids_and_concepts_that_stand_twice_are_named(labels):
    with pytest.raises(InputError, match=r"sample id 'b' stands twice, in rows 2, 4; leave one"):
        from_table(None, labels.set_axis(["a", "b", "c", "b"]))
    with pytest.raises(InputError, match=r"sample id '1' stands twice"):
        from_table(None, labels.set_axis([1, 2, 3, "1"]))
    with pytest.raises(InputError, match=r"concept 'cyst' stands twice, in columns 2, 3"):
        from_table(None, labels.set_axis(["drusen", "cyst", "cyst"], axis=1))


# -- images --------------------------------------------------------------------------------


def test_images_may_be_arrays_or_files_grey_or_colour(tmp_path):
    write_png(tmp_path / "colour.png", RED_GREEN)
    write_png(tmp_path / "grey.png", RED_GREEN[:, :, :1])
    sources = [RED_GREEN, RED_GREEN[:, :, 0], tmp_path / "colour.png", str(tmp_path / "grey.png")]
    expected = [RED_GREEN, RED_GREEN[:, :, :1], RED_GREEN, RED_GREEN[:, :, :1]]
    for source, image in zip(sources, expected, strict=True):
        dataset = from_table([source], pd.DataFrame({"drusen": [1]}))
        assert np.array_equal(dataset.sample(0).image, image)


@pytest.mark.parametrize(
    ("image", "got"),
    [
        (np.zeros((2, 2, 3)), r"\(2, 2, 3\) of float64"),
        (np.zeros((2, 2, 4), np.uint8), r"\(2, 2, 4\) of uint8"),
        (np.zeros((2, 2, 3, 1), np.uint8), r"\(2, 2, 3, 1\)"),
        (np.zeros((0, 2), np.uint8), r"with pixels, got shape \(0, 2, 1\)"),
        ("not an image", r"image file 'not an image' does not exist"),
    ],
)
def test_array_that_is_no_image_is_named(image, got):
    with pytest.raises(InputError, match=rf"sample 'eye': .*{got}"):
        from_file(image)


def from_file(path):
    table = pd.DataFrame({"file": str(path), "drusen": [1]}, index=["eye"])
    labels = table if isinstance(path, str | Path) else table[["drusen"]]
    return from_table([path], labels).sample(0).image


NOISE = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
CUT = cv2.imencode(".png", NOISE)[1].tobytes()[:240]


@pytest.mark.parametrize(
    "data", [b"", b"no picture", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", CUT]
)
def test_file_that_is_no_image_or_half_of_one_is_named(tmp_path, data):
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(InputError, match=r"sample 'eye': '.*a\.png' is not an image"):
        from_file(tmp_path / "a.png")


# -- tables in files -----------------------------------------------------------------------


def write(tmp_path, text):
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_table_is_read_with_its_ids_as_they_stand(tmp_path):
    path = write(tmp_path, "\ufeffid, drusen, cyst\n007, 1, 0\n 08, , 1\n1e3,0,1\nNA,0,NaN\n")
    dataset = read_table(path)
    assert [dataset.sample_id(i) for i in range(4)] == ["007", "08", "1e3", "NA"]
    assert dataset.concepts == ("drusen", "cyst")
    truths = dataset.truth(np.arange(4)[:, None], np.arange(2)[None, :])
    assert truths.tolist() == [[1, 0], [UNKNOWN, 1], [0, 1], [0, UNKNOWN]]
    assert dataset.name == "labels"


def test_columns_can_be_chosen_and_images_found_by_id_or_by_file(tmp_path):
    path = write(tmp_path, "eye,file,age,drusen,cyst\n007,x/one.png,70,1,0\n008,two.png,80,0,1\n")
    (tmp_path / "x").mkdir()
    for name in ("x/one.png", "two.png", "007.png"):
        write_png(tmp_path / name, RED_GREEN)
    (tmp_path / "008.jpg").write_bytes((tmp_path / "two.png").read_bytes())
    options: dict[str, Any] = {"id_column": "eye", "metadata": ["age"]}
    by_file = read_table(path, tmp_path, file_column="file", **options)
    assert by_file.concepts == ("drusen", "cyst")
    by_id = read_table(path, tmp_path, concepts=["cyst"], **options)
    assert by_id.concepts == ("cyst",)
    for dataset in (by_file, by_id):
        assert np.array_equal(dataset.sample(0).image, RED_GREEN)
        assert dataset.sample(1).metadata == {"age": "80"}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, r"labels\.csv: cannot read a table of labels: No columns"),
        ("id,drusen\n", {}, r"labels\.csv: labels: expected at least one sample.*0 x 1"),
        ("name,drusen\n1,1\n", {}, r"labels\.csv: unknown column 'id': expected one of drusen, n"),
        ("id,c,file\n1,1,a\n", {"file_column": "fil"}, r"unknown column 'fil'.* mean 'file'"),
        ("id,c,b\n1,1,0\n", {"concepts": ["d"]}, r"unknown concept 'd'.* [Ee]xpected one of b, c"),
        ("id,drusen\n1,1\n2,0\n3,x\n", {}, r"labels: expected 0, 1 .*got 'x' at sample '3'"),
        ("id,drusen\n1,1\n1,0\n", {}, r"labels\.csv: labels: sample id '1' stands twice"),
        ("id,drusen\n1,1,0,0\n2,0\n", {}, r"labels\.csv: line 2 has 4 cells, the header 2; put"),
        ("id,drusen,drusen\n1,1,0\n", {}, r"labels\.csv: column 'drusen' stands twice"),
        ("id,drusen\n1,1\n", {"images": "."}, r"sample '1': image file '.*1' does not exist"),
    ],
)
def test_table_that_cannot_be_used_is_named(tmp_path, text, options, message):
    if "images" in options:
        options = {"images": tmp_path}
    with pytest.raises(InputError, match=message):
        read_table(write(tmp_path, text), **options)


def test_parquet_table_means_the_same_as_csv(tmp_path):
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
    with pytest.raises(InputError, match=r"bad\.parquet: cannot read a table: .*Parquet"):
        datasets.read_table(tmp_path / "bad.parquet")


def test_missing_parquet_reader_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"needs pyarrow: pip install 'pyarrow>="):
        datasets.read_table(tmp_path / "t.parquet")
