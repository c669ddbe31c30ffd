"""Hugging Face's datasets: as ``save_to_disk`` lays them out, and Parquet, read by pyarrow."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt.datasets import from_hugging_face
from adaptive_vtt.datasets.formats import image_rows
from adaptive_vtt.datasets.formats.image_rows import opened_parquet
from adaptive_vtt.errors import InputError
from adaptive_vtt.types import UNKNOWN
from adaptive_vtt.utils.image_codec import png

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

CLASSES = {"names": ["cat", "dog"], "_type": "ClassLabel"}
IMAGE = {"_type": "Image"}
SEEN = [np.full((6, 8, 3), 40 * k, np.uint8) for k in range(4)]


def stored(image: np.ndarray) -> dict[str, Any]:
    return {"bytes": png(image), "path": None}


def animals(**columns: Any) -> Any:
    """Four rows: cat, dog, a class that is not told, cat."""
    told = {"image": IMAGE, "label": CLASSES}
    rows = {"image": [stored(image) for image in SEEN], "label": [0, 1, -1, 0], **columns}
    about = {"huggingface": json.dumps({"info": {"features": told}})}
    return pyarrow.table(rows).replace_schema_metadata(about)


def saved(folder: Path, *shards: Any) -> Path:
    """As ``Dataset.save_to_disk`` lays it out."""
    folder.mkdir(parents=True)
    names = [f"data-{k:05}-of-{len(shards):05}.arrow" for k in range(len(shards))]
    for name, shard in zip(names, shards, strict=True):
        sink = pyarrow.OSFile(str(folder / name), "wb")
        with sink, pyarrow.ipc.new_stream(sink, shard.schema) as writer:
            writer.write_table(shard)
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def in_parquet(folder: Path, *shards: Any, split: str = "test") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for k, shard in enumerate(shards):
        name = f"{split}-{k:05}-of-{len(shards):05}.parquet"
        parquet.write_table(shard, folder / name, row_group_size=2)
    return folder


@pytest.mark.parametrize("write", [saved, in_parquet])
def test_shards_of_both_kinds_hold_the_same_rows(tmp_path: Path, write: Any) -> None:
    found = from_hugging_face(write(tmp_path / "pets", animals()[:3], animals()[3:]))
    assert found.concepts == ("cat", "dog")
    assert found.truth(np.arange(4)[:, None], np.arange(2)[None]).tolist() == [
        [1, 0],
        [0, 1],
        [UNKNOWN, UNKNOWN],
        [1, 0],
    ]
    for k, image in enumerate(SEEN):
        assert np.array_equal(found.sample(k).require_image(), image)
    assert [found.sample_id(k) for k in range(4)] == ["0", "1", "2", "3"]


def test_rows_far_into_a_group_are_found(tmp_path: Path) -> None:
    shown = [np.full((4, 4, 3), 5 * k, np.uint8) for k in range(40)]
    rows = pyarrow.table({"image": [stored(image) for image in shown], "ill": [0, 1] * 20})
    parquet.write_table(rows, tmp_path / "p.parquet", row_group_size=38)
    found = from_hugging_face(tmp_path / "p.parquet", concepts=["ill"])
    for k in (15, 16, 37, 38):
        assert np.array_equal(found.sample(k).require_image(), shown[k])


def test_what_the_library_itself_writes_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    rows = {"image": [stored(image) for image in SEEN], "label": [0, 1, 0, 1]}
    made = datasets.Dataset.from_dict(rows, features=features)
    both = datasets.DatasetDict({"train": made, "test": made.select([3, 1])})
    both.save_to_disk(tmp_path / "both")
    found = from_hugging_face(tmp_path / "both", split="test")
    assert len(found) == 2
    assert np.array_equal(found.sample(0).require_image(), SEEN[3])
    made.to_parquet(tmp_path / "pets.parquet")
    assert from_hugging_face(tmp_path / "pets.parquet").concepts == ("cat", "dog")


def test_one_of_several_splits_is_to_be_named(tmp_path: Path) -> None:
    in_parquet(tmp_path, animals()[:1], split="train")
    in_parquet(tmp_path, animals(), split="test")
    with pytest.raises(InputError, match=r"expected dataset.split, one of test, train"):
        from_hugging_face(tmp_path)
    assert len(from_hugging_face(tmp_path, split="train")) == 1
    with pytest.raises(InputError, match="unknown split 'tset'; did you mean 'test'"):
        from_hugging_face(tmp_path, split="tset")


def test_columns_may_be_concepts_classes_ids_and_metadata(tmp_path: Path) -> None:
    more = {
        "ill": [True, False, None, True],
        "name": list("abcd"),
        "tags": [["x"], ["x", "y"], [], ["y"]],
    }
    path = in_parquet(tmp_path, animals(**more, site=[1, 1, 2, 2])) / "test-00000-of-00001.parquet"
    found = from_hugging_face(path, concepts=["ill"], id_column="name", metadata=["site"])
    assert found.truth(np.arange(4), np.zeros(4, int)).tolist() == [1, 0, UNKNOWN, 1]
    assert found.sample_id(2) == "c"
    assert found.metadata_values("site").tolist() == [1, 1, 2, 2]
    several = from_hugging_face(path, class_column="tags")
    assert several.concepts == ("x", "y")
    assert several.truth(np.arange(4), np.ones(4, int)).tolist() == [0, 1, 0, 1]
    with pytest.raises(
        InputError, match="expected another id in every row, got some of column 'site'"
    ):
        from_hugging_face(path, id_column="site")
    with pytest.raises(InputError, match="unknown column 'nme'; did you mean 'name'"):
        from_hugging_face(path, metadata=["nme"])


def test_masks_are_of_pixel_values_or_of_what_is_bright(tmp_path: Path) -> None:
    numbers = [np.zeros((6, 8), np.uint8) for _ in range(4)]
    numbers[0][:2], numbers[1][3, 3] = 1, 2
    path = in_parquet(tmp_path, animals(parts=[stored(n) for n in numbers]))
    found = from_hugging_face(
        path, image_column="image", mask_column="parts", mask_values={"polyp": 1, "tool": 2}
    )
    assert found.counts.tolist() == [[3, 1], [3, 1]]
    assert np.array_equal(found.sample(0).masks["polyp"], numbers[0] == 1)
    assert set(found.sample(1).masks) == {"tool"}
    bright = from_hugging_face(path, mask_column="parts", image_column="image")
    assert bright.concepts == ("parts",)
    assert bright.counts.tolist() == [[4, 0]]  # 1 and 2 are dark


def test_masks_are_found_in_one_pass_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To fetch them one by one reads each group again up to every row."""
    masks = [np.full((6, 8), 255 * (k % 3 == 0), np.uint8) for k in range(40)]
    rows = {"image": [stored(SEEN[0])] * 40, "part": [stored(mask) for mask in masks]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "p.parquet", row_group_size=25)
    read: list[str] = []
    cells = image_rows._cells

    def counted(file: Path, group: int, column: str) -> Iterator[Any]:
        for cell in cells(file, group, column):
            read.append(column)
            yield cell

    monkeypatch.setattr(image_rows, "_cells", counted)
    found = from_hugging_face(tmp_path / "p.parquet", image_column="image", mask_column="part")
    assert read.count("part") == 40
    assert found.counts.tolist() == [[26, 14]]
    assert found.sample(39).masks["part"].all()


@pytest.mark.parametrize("write", [saved, in_parquet])
def test_images_tell_their_size_without_being_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    found = from_hugging_face(write(tmp_path / "pets", animals()))

    def refused(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(image_rows, "image_of", refused)
    assert found.pixels(np.array([0, 3, 3])).tolist() == [48, 48, 48]


def test_questions_and_all_their_right_answers(tmp_path: Path) -> None:
    asked = {
        "q": ["Is it dark?", "What?", "Who?", "?"],
        "a": [["yes"], ["cat", "a cat", "cat"], [], ["x"]],
    }
    found = from_hugging_face(
        in_parquet(tmp_path, animals(**asked)), question_column="q", answer_column="a"
    )
    assert found.sample(1).asks["question"].text == "What?"
    assert found.sample(1).answers["question"] == ("cat", "a cat")
    assert found.counts.tolist() == [[0, 3]]  # who is not known
    with pytest.raises(InputError, match="expected answer_column beside question_column"):
        from_hugging_face(tmp_path, question_column="q")


def test_a_missing_reader_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = in_parquet(tmp_path, animals())
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    opened_parquet.cache_clear()
    with pytest.raises(InputError, match=r"needs pyarrow: pip install 'pyarrow>="):
        from_hugging_face(folder)


def test_what_cannot_be_read_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected what save_to_disk wrote .* or \.parquet files"):
        from_hugging_face(tmp_path)
    linked = animals().set_column(0, "image", [[{"bytes": None, "path": "/etc/passwd"}] * 4])
    path = in_parquet(tmp_path / "links", linked)
    with pytest.raises(InputError, match="expected the image itself, got '/etc/passwd'"):
        from_hugging_face(path).sample(0)
    folder = saved(tmp_path / "out", animals())
    (folder / "state.json").write_text('{"_data_files": [{"filename": "../x.arrow"}]}')
    with pytest.raises(InputError, match=r"expected names right in that folder, got '../x.arrow'"):
        from_hugging_face(folder)
    (folder / "state.json").write_text("[]")
    with pytest.raises(InputError, match="expected JSON with '_data_files'"):
        from_hugging_face(folder)
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(InputError, match=r"bad.parquet: cannot read a table"):
        from_hugging_face(tmp_path / "bad.parquet")
    plain = pyarrow.table({"image": [stored(SEEN[0])], "label": ["cat"]})
    with pytest.raises(
        InputError, match="expected class_column, concepts, mask_column or question"
    ):
        from_hugging_face(in_parquet(tmp_path / "plain", plain))
    assert from_hugging_face(tmp_path / "plain", class_column="label").concepts == ("cat",)
