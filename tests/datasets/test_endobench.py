"""EndoBench's files: what is read of them."""

import base64
import csv

import cv2
import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.taxonomy import TASKS, named
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import Ask
from tests.helpers.endobench_rows import COLUMNS, picture, row, write


def test_rows_become_samples(tmp_path):
    rows = [row(k) for k in range(6)]
    dataset = from_endobench(write(tmp_path / "e.tsv", rows))
    assert dataset.concepts == tuple(task.name for task in TASKS[:3])
    assert dataset.counts.tolist() == [[0, 2]] * 3
    sample = dataset.sample(4)
    assert sample.id == "4"
    assert sample.asks == {TASKS[1].name: Ask("What is this (4)?", ("one", "two", "three", "four"))}
    assert sample.answers == {TASKS[1].name: ("B",)}
    assert sample.metadata["scene"] == "Gastroscopy"
    assert sample.metadata["options"] == 4
    data = np.frombuffer(base64.b64decode(picture(4)), np.uint8)
    decoded = cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    np.testing.assert_array_equal(sample.image, decoded)


def test_words_are_kept_as_they_stand(tmp_path):
    words = {"A": "NA", "B": "None", "C": "null", "D": "007", "E": "nan", "F": "n/a"}
    question = 'Which "sign"\tis seen,\nif any?'
    tail = [row(1), row(2, question='An open " quote')]
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(0, question=question, **words), *tail]))
    (ask,) = dataset.sample(0).asks.values()
    assert ask == Ask(question, ("NA", "None", "null", "007", "nan", "n/a"))
    assert next(iter(dataset.sample(2).asks.values())).text == 'An open " quote'
    assert dataset.sample(1).image is not None  # found behind quotes and line breaks


def test_unquoted_files_are_read(tmp_path):
    path = tmp_path / "e.tsv"
    rows = [row(0, question='Is this 5" long?'), row(1)]
    lines = ["\t".join(COLUMNS), *("\t".join(r[c] for c in COLUMNS) for r in rows)]
    path.write_text("\r\n".join(lines) + "\r\n")
    dataset = from_endobench(path)
    assert next(iter(dataset.sample(0).asks.values())).text == 'Is this 5" long?'
    assert dataset.sample(1).image is not None


def test_large_images_are_decoded_in_a_process_that_read_no_table(tmp_path):
    dataset = from_endobench(write(tmp_path / "e.tsv", [row(0, image=picture(0, side=400))]))
    csv.field_size_limit(131_072)  # as in such a process
    assert dataset.sample(0).require_image().shape == (400, 400, 3)


def test_parquet_holds_the_same(tmp_path):
    pytest.importorskip("pyarrow")
    rows = [row(k) for k in range(5)]
    plain = from_endobench(write(tmp_path / "e.tsv", rows))
    coded = pd.DataFrame(rows, columns=COLUMNS)
    raw = coded.assign(image=[{"bytes": base64.b64decode(r["image"]), "path": ""} for r in rows])
    for name, table in (("coded", coded), ("raw", raw.assign(E=None, F=None))):
        shards = [tmp_path / f"{name}{k}.parquet" for k in range(2)]
        table[:3].to_parquet(shards[0], row_group_size=2)
        table[3:].to_parquet(shards[1])
        result = from_endobench(shards)
        assert result.fingerprint == plain.fingerprint
        for k in range(5):
            np.testing.assert_array_equal(result.sample(k).image, plain.sample(k).image)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"answer": "E"}, "row 2: expected an answer from A to D, got 'E'"),
        ({"answer": ""}, "row 2: expected something in column 'answer', got nothing"),
        ({"image": "no base64!"}, "row 2: expected an image in base64"),
        ({"image": base64.b64encode(b"text").decode()}, r"row 2: 'image' is not an image that can"),
        ({"index": "0"}, "row 2: the index '0' stands twice"),
        ({"C": ""}, r"row 2: expected the options A, B and so on, got \['A', 'B', 'D'\]"),
    ],
)
def test_malformed_rows_are_named(tmp_path, cells, message):
    path = write(tmp_path / "e.tsv", [row(0), row(1, **cells), row(2)])
    with pytest.raises(InputError, match=message):
        from_endobench(path)
    kept = from_endobench(path, broken="skip")
    assert [kept.sample_id(k) for k in range(len(kept))] == ["0", "2"]
    assert len(kept.skipped) == 1
    assert "row 2" in kept.skipped[0]
    assert kept.sample(1).image is not None


def test_a_row_with_too_few_columns_is_named(tmp_path):
    path = write(tmp_path / "e.tsv", [row(k) for k in range(3)])
    lines = path.read_text().splitlines()
    lines[2] = lines[2].rpartition("\t")[0]
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="row 2: expected 17 columns, got 16"):
        from_endobench(path)


def test_an_image_over_the_limit_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("adaptive_vtt.utils.image_files.MAX_PIXELS", 2000)
    path = write(tmp_path / "e.tsv", [row(0), row(1, image=picture(1, 50))])
    sentence = "row 2: image 'image' is 50 x 50 pixels, over the limit of 2000 pixels"
    with pytest.raises(InputError, match=sentence):
        from_endobench(path)


def test_files_that_are_no_tables_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read a table"):
        from_endobench(tmp_path / "none.tsv")
    other = tmp_path / "other.tsv"
    other.write_text("index\tpicture\n1\tx\n")
    with pytest.raises(InputError, match="unknown column 'image'"):
        from_endobench(other)
    with pytest.raises(InputError, match="unknown value of broken 'drop'"):
        from_endobench(other, broken="drop")


def test_only_the_place_of_an_image_is_kept(tmp_path):
    """Memory does not follow the images: none is held after reading."""
    import tracemalloc

    big = [row(k, image=picture(k, 400)) for k in range(20)]
    path = write(tmp_path / "e.tsv", big)
    size = path.stat().st_size
    del big
    tracemalloc.start()
    dataset = from_endobench(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(dataset) == 20
    assert held < size / 10
    assert peak < size / 2


def test_names_are_found_however_they_are_spelt(tmp_path):
    assert named("lesion QUANTIFICATION") == named("LQ") == named("polyp counting")
    assert named("capsule endoscopy") == named("CE") == "Capsule Endoscopy"
    assert named("Something else ") == "Something else"
    rows = [row(0, task="organ identification"), row(1, task="my own task")]
    path = write(tmp_path / "e.tsv", rows)
    assert from_endobench(path).concepts == ("Organ Identification", "my own task")
    assert from_endobench(path, tasks=["oi"]).concepts == ("Organ Identification",)
    with pytest.raises(InputError, match="unknown task 'OJ'"):
        from_endobench(path, tasks=["OJ"])
    with pytest.raises(InputError, match="no question of the task 'Visual Grounding'"):
        from_endobench(path, tasks=["VG"])
