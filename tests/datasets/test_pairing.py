"""Labels belong to images by name where files have names; a shuffled table is never read in its
own order."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.audit.overview import overview
from adaptive_vtt.datasets import as_dataset, from_table
from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.files import write_bytes
from adaptive_vtt.utils.image_codec import png

NAMES = [f"im{k:02}.png" for k in range(12)]
BRIGHT = [0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0]
TABLE = pd.DataFrame({"file": NAMES, "bright": BRIGHT})
SHUFFLED = TABLE.sample(frac=1, random_state=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of images that are white where the label is 1, else black."""
    for name, label in zip(NAMES, BRIGHT, strict=True):
        write_bytes(tmp_path / "images" / name, png(np.full((4, 4, 1), 255 * label, np.uint8)))
    return tmp_path / "images"


def agree(dataset: Any) -> bool:
    """Whether every label is that of its image."""
    samples = [dataset.sample(k) for k in range(len(dataset))]
    return [s.truth["bright"] for s in samples] == [s.image.max() // 255 for s in samples]


@pytest.mark.parametrize("make", [as_dataset, from_table])
@pytest.mark.parametrize("kind", ["folder", "paths", "texts"])
def test_rows_in_any_order_are_joined_by_name(folder: Path, make: Any, kind: str) -> None:
    paths = [folder / name for name in reversed(NAMES)]
    images = {"folder": folder, "paths": paths, "texts": np.array([*map(str, paths)])}[kind]
    stems = SHUFFLED["file"].str.removesuffix(".png")
    numbers = pd.Series(SHUFFLED["file"].map(lambda name: f"patient {name[2:4]}"))
    for labels in (
        SHUFFLED,
        SHUFFLED.set_index("file"),
        SHUFFLED.set_index("file")["bright"],
        SHUFFLED[["bright"]].set_axis(stems),
        SHUFFLED[["bright"]].set_axis(str(folder) + "/" + SHUFFLED["file"]),
        SHUFFLED[["bright"]].set_axis("other\\" + SHUFFLED["file"]),
        SHUFFLED.assign(file=SHUFFLED["file"].str.upper()),
        SHUFFLED.set_axis(numbers),
        SHUFFLED.reset_index(drop=True),
    ):
        dataset = make(images, labels)
        assert agree(dataset)
        assert dataset.concepts == ("bright",)
        assert dataset.remarks["labels"].startswith("joined with files by ")


def test_classes_and_numbers_are_joined_by_name(tmp_path: Path) -> None:
    for number in range(1, 4):
        write_bytes(tmp_path / f"{number:03}.png", png(np.zeros((4, 4, 1), np.uint8)))
    dataset = as_dataset(tmp_path, pd.Series(["dog", "cat", "cat"], index=[3, 1, 2]))
    assert dataset.concepts == ("cat", "dog")
    assert [dataset.sample_id(k) for k in range(3)] == ["001.png", "002.png", "003.png"]
    assert dataset.truth(np.arange(3), np.array(1)).tolist() == [0, 0, 1]


def test_equal_names_in_two_folders_are_told_apart_by_folder(tmp_path: Path) -> None:
    paths = [tmp_path / place / "a.png" for place in ("north", "south")]
    for path, grey in zip(paths, (0, 255), strict=True):
        write_bytes(path, png(np.full((4, 4, 1), grey, np.uint8)))
    labels = pd.DataFrame({"bright": [1, 0]}, index=["data/south/a.png", "data/north/a.png"])
    assert agree(from_table(paths, labels))


def test_other_parts_follow_their_index(folder: Path) -> None:
    rows = SHUFFLED.assign(site=SHUFFLED["file"].str[2:4]).set_index("file")
    masks = {"bright": rows["site"].map(lambda k: np.full((4, 4), k == "03"))}
    for described in (rows[["site"]], rows[["site"]].sample(frac=1, random_state=2)):
        dataset = from_table(folder, rows[["bright"]], metadata=described, masks=masks)
        assert dataset.metadata_values("site").tolist() == [name[2:4] for name in NAMES]
        assert [dataset.sample(k).masks["bright"].all() for k in (2, 3)] == [False, True]


@pytest.mark.parametrize("labels", [BRIGHT, TABLE[["bright"]], np.array(BRIGHT), TABLE["bright"]])
def test_rows_without_names_are_in_the_order_of_files_and_the_summary_says_so(
    folder: Path, labels: Any
) -> None:
    dataset = as_dataset(folder, labels)
    remark = "in the order of the files: im00.png is row 1, im01.png is row 2 ..."
    rows = dict(overview(QuestionSpace(dataset), ["overall"], "all"))
    assert rows["labels"] == remark
    assert dataset.sample_id(3) == "im03.png"


def refused(data: Any, labels: Any) -> str:
    with pytest.raises(InputError) as error:
        as_dataset(data, labels)
    assert len(str(error.value)) <= 240
    return str(error.value)


def test_an_index_that_names_no_file_or_some_is_refused(folder: Path) -> None:
    rows = SHUFFLED.set_index("file")
    message = refused(folder, rows.rename(lambda name: f"x{name}"))
    assert (
        "labels, the index: expected names of image files, such as 'im00.png', got 'xi" in message
    )
    assert "(0 of 12 match); write the files' names, or reset_index(drop=True) if" in message
    message = refused(folder, SHUFFLED.assign(file="x" + SHUFFLED["file"]))
    assert "labels, column 'file': expected names of image files, such as 'im00.png'" in message
    assert "(0 of 12 match); write the files' names, or drop(columns='file') if rows" in message
    for partly in (rows.rename({"im03.png": "?"}), SHUFFLED.replace("im03.png", "?"), rows[:-1]):
        name = "im03.png" if len(partly) == 12 else SHUFFLED["file"].iloc[-1]
        message = refused(folder, partly)
        assert f"a row for each image file, got none for 1 of 12, such as {name!r}" in message
        assert ("('?' names no file); add their rows" in message) == (len(partly) == 12)
    message = refused(folder, pd.concat([rows, rows[:2].rename(lambda name: f"more{name}")]))
    assert "expected names of image files, got 'moreim" in message
    assert "(2 of 14 rows); leave such rows out" in message
    twice = pd.concat([rows[1:], rows[1:2]])
    for repeated in (twice, twice.reset_index()):
        message = refused(folder, repeated)
        assert f"file name {rows.index[1]!r} stands twice, in rows 1, 12" in message
    other = SHUFFLED.assign(copy=SHUFFLED["file"].to_numpy()[::-1])
    assert "got column 'file' and column 'copy', which differ" in refused(folder, other)


def test_numbers_in_another_order_are_refused(folder: Path) -> None:
    arrays = [np.full((4, 4), 255 * label, np.uint8) for label in BRIGHT]
    for images in (folder, arrays):
        for rows in (SHUFFLED, TABLE[TABLE["bright"] == 1], TABLE.set_axis(range(1, 13))):
            message = refused(images, rows[["bright"]])
            assert message.startswith("labels: expected an index 0, 1 ... in order, got ")
            assert "; reset_index(drop=True) if rows are in the order of the images" in message
            assert refused(images, rows["bright"]) == message
        again = refused(images, pd.concat([TABLE[:11], TABLE[5:6]])[["bright"]])
        assert "expected an index 0, 1 ... in order, got 5 twice ...; reset_index" in again
    assert agree(from_table(folder, pd.concat([TABLE[6:], TABLE[:6]])))
    named = from_table(arrays, TABLE.set_index("file"))
    assert agree(named)
    assert named.sample_id(0) == "im00.png"
    assert len(from_table(None, SHUFFLED[["bright"]])) == 12  # recorded answers go by id


def test_a_table_alone_is_given_a_remedy_that_works(folder: Path) -> None:
    with pytest.raises(InputError, match="give the folder of images as data and the table as lab"):
        as_dataset(SHUFFLED)
    assert agree(as_dataset(folder, SHUFFLED))
    assert agree(as_dataset(folder, SHUFFLED.assign(site="a"), ["bright"]))


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """The folder's images as 0.png to 11.png."""
    for number, label in enumerate(BRIGHT):
        write_bytes(tmp_path / f"{number}.png", png(np.full((4, 4, 1), 255 * label, np.uint8)))
    return tmp_path


COUNTED = pd.DataFrame({"nr": range(12), "bright": BRIGHT, "site": [*"ab"] * 6})


@pytest.mark.parametrize("make", [as_dataset, from_table])
def test_whole_numbers_in_a_column_name_files_whatever_the_order(numbered: Path, make: Any) -> None:
    texts = [numbered / name for name in sorted(f"{k}.png" for k in range(12))]  # 10 before 2
    shuffled = COUNTED.sample(frac=1, random_state=1)
    for labels in (
        COUNTED,
        COUNTED.astype({"nr": float}),
        shuffled,
        shuffled.reset_index(drop=True),
        shuffled.set_index("nr"),
        shuffled.assign(nr=shuffled["nr"].map("{:03}".format)),
    ):
        for images in (numbered, texts):
            dataset = make(images, labels)
            assert agree(dataset)
            assert dataset.remarks["labels"].startswith("joined with files by ")
            assert (dataset.concepts, dataset.metadata_columns) == (("bright",), ("site",))
            sites = dict(zip(dataset.ids, dataset.metadata_values("site"), strict=True))
            assert sites == {f"{k}.png": "ab"[k % 2] for k in range(12)}


def test_numbers_that_name_no_file_are_no_names(folder: Path, numbered: Path) -> None:
    dataset: Any = as_dataset(folder, COUNTED)
    assert dataset.remarks["labels"].startswith("in the order of the files: im00.png is row 1")
    assert dataset.metadata_columns == ("nr", "site")
    ages = COUNTED.assign(nr=[*range(4, 16)]).rename(columns={"nr": "age"})  # 8 are files, too
    assert agree(as_dataset(numbered, ages))
    message = refused(numbered, ages.rename(columns={"age": "id"}))
    assert "labels, column 'id': expected a row for each image file, got none for 4 of" in message
    labels = pd.DataFrame({"bright": [1, 0]})
    two: Any = as_dataset([numbered / "0.png", numbered / "1.png"], labels)
    assert (two.concepts, two.truths.tolist()) == (("bright",), [[1], [0]])


def test_metadata_are_joined_as_labels_are(folder: Path) -> None:
    sites = pd.DataFrame({"file": NAMES, "site": [name[2:4] for name in NAMES]})
    other = sites.sample(frac=1, random_state=2)
    for metadata in (
        other,
        other.reset_index(drop=True),
        other.set_index("file"),
        other.set_index("file")["site"],
        sites["site"],
        {"site": sites["site"].tolist()},
    ):
        for labels in (SHUFFLED.assign(site="?", ward="w"), BRIGHT, None):
            dataset: Any = as_dataset(folder, labels, metadata=metadata)
            assert dataset.metadata_values("site").tolist() == sites["site"].tolist()
            is_table = isinstance(labels, pd.DataFrame)
            assert dataset.metadata_columns == (*["ward"] * is_table, "site")
            assert not is_table or agree(dataset)
    for labels, wrong, message in (
        (SHUFFLED, other[1:], "metadata, column 'file': expected a row for each image file"),
        (SHUFFLED, {"site": ["a"]}, "metadata: expected 12 (one per row of labels), got 1"),
        (SHUFFLED, "site", "metadata: expected a row per image, or names of columns of a table"),
        (SHUFFLED, ["sit"], "unknown metadata column 'sit'"),
        (BRIGHT, ["site"], "metadata: expected rows, as these labels have no such columns"),
    ):
        with pytest.raises(InputError) as error:
            as_dataset(folder, labels, metadata=wrong)
        assert message in str(error.value)


def test_minus_one_next_to_zero_is_unknown_in_memory_as_in_files() -> None:
    dataset = from_table(None, pd.DataFrame({"edema": [1.0, 0.0, -1.0, np.nan]}))
    assert dataset.truths[:, 0].tolist() == [1, 0, -1, -1]
    assert dataset.remarks["edema"] == "read '-1.0' (1) as unknown"
    dataset = from_table(None, pd.DataFrame({"edema": ["Yes", "no", ""], "note": [*"abc"]}))
    assert (dataset.concepts, dataset.metadata_columns) == (("edema",), ("note",))
    assert dataset.remarks["edema"].startswith("read 'Yes' (1) as yes; 'no' (1) as no; 'empty' (1)")
