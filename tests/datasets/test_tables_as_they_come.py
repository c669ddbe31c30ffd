"""Tables as spreadsheets, other systems and people write them: delimiters, encodings, words for
labels, and names of files that are not quite those of the files."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.datasets import UNKNOWN, as_dataset, read_table
from adaptive_vtt.datasets.columns import label_cells
from adaptive_vtt.datasets.formats.table_file import read_rows
from adaptive_vtt.errors import InputError
from adaptive_vtt.utils.table_text import delimiter_of
from tests.helpers.small_datasets import picture, truths

ROWS = [["id", "polyp", "note"], ["a", "1", "x, y"], ["b", "0", "z; w"]]


def written(rows, delimiter):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_delimiters_and_encodings_are_found(tmp_path, delimiter, encoding):
    path = tmp_path / "labels.csv"
    path.write_bytes(written(ROWS, delimiter).encode(encoding))
    table = read_rows(path)
    assert [[*table.columns], *table.to_numpy().tolist()] == ROWS


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("sep=;\nid;polyp\na;1\n", ["id", "polyp"]),
        ('"sep=\t"\nid\tpolyp\na\t1\n', ["id", "polyp"]),
        ("id\tpolyp, large\tulcer\na\t1\t0\n", ["id", "polyp, large", "ulcer"]),
        ("id;share, of all;x\na;0,5;1\nb;0,25;0\n", ["id", "share, of all", "x"]),
        ('id,"a;b;c",x\n1,2,0\n', ["id", "a;b;c", "x"]),
        ("id\n1\n2\n", ["id"]),
        ("id,x\r1,0\r2,1\r", ["id", "x"]),
    ],
)
def test_the_header_and_the_rows_tell_the_delimiter(tmp_path, text, columns):
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode())
    assert [*read_rows(path)] == columns


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=9)
ROW = st.lists(CELLS, min_size=3, max_size=3)


@settings(max_examples=20)
@given(st.lists(ROW, min_size=2, max_size=6), st.sampled_from(",;\t|"))
def test_what_a_csv_writer_wrote_is_parted_as_it_was(rows, delimiter):
    if not any(set(cell) & set(',;\t|"') for row in rows for cell in row):
        assert delimiter_of(written(rows, delimiter)) == delimiter


@pytest.mark.parametrize("encoding", ["cp1252", "cp1250"])
def test_code_pages_are_refused_with_the_remedy(tmp_path, encoding):
    (tmp_path / "l.csv").write_bytes("id,größe\n1,1\n".encode(encoding))
    with pytest.raises(InputError, match=r"l\.csv: .*line 1 is no UTF-8.* save it as UTF-8"):
        read_rows(tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("cells", "expected", "remark"),
    [
        (["1", "0", ""], [1, 0, None], "read 'empty' (1) as unknown"),
        (["1.0", "0.0", "nan"], [1, 0, None], ""),
        (["Yes", "no", "N/A"], [1, 0, None], "read 'Yes' (1) as yes; 'no' (1) as no; 'N/A' (1) as"),
        (["TRUE", "False", "null"], [1, 0, None], "read 'TRUE' (1) as yes"),
        (["1", "0", "-1"], [1, 0, None], "read '-1' (1) as unknown"),
        (["1.0", "0.0", "-1.0"], [1, 0, None], "read '-1.0' (1) as unknown"),
        (["present", "absent", "missing"], [1, 0, None], "read 'present' (1) as yes"),
        ([1.0, 0.0, np.nan], [1, 0, None], ""),
    ],
)
def test_words_for_labels_are_read_and_said(cells, expected, remark):
    read = label_cells(pd.Series(cells, dtype=object))
    assert not read.odd.any()
    assert [None if t != t else int(t) for t in read.truths] == expected
    assert read.remark.startswith(remark)


@pytest.mark.parametrize("cells", [["1", "-1", "-1"], ["2", "0", "1"], ["1", "0", "3"], ["01x"]])
def test_other_cells_are_no_labels(cells):
    assert label_cells(pd.Series(cells)).odd.any()


def table(root, text, *files, name="labels.csv"):
    for file in files:
        picture(root / file)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    return root


def test_minus_one_is_unknown_and_the_folders_of_studies_are_no_class(tmp_path):
    rows = ["Path,Edema,Effusion"]
    for k in range(8):
        picture(tmp_path / f"valid/p{k:03}/study1/v.jpg")
        rows.append(f"valid/p{k:03}/study1/v.jpg,{['1.0', '0.0', '-1.0', ''][k % 4]},{k % 2}.0")
    (tmp_path / "valid.csv").write_text("\n".join(rows))
    dataset = as_dataset(tmp_path)
    assert dataset.concepts == ("Edema", "Effusion")
    assert [row[0] for row in truths(dataset)] == [1, 0, UNKNOWN, UNKNOWN] * 2
    assert dataset.remarks["Edema"] == "read '-1.0' (2), 'empty' (2) as unknown"


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (["images\\P0.PNG", "images\\P1.PNG"], ["images/p0.png", "images/p1.png"]),
        (["P0", "p1"], ["images/p0.PNG", "images/P1.JPG"]),
        (["0", "1"], ["images/000.png", "images/001.png"]),
        (["7.0", "12.0"], ["images/0007.png", "images/0012.png"]),
        (["e\u0301te.png", "b.png"], ["images/\u00e9te.png", "images/b.png"]),
        (["./images/a.png", "images/b.png"], ["images/a.png", "images/b.png"]),
        (["IMAGES/a.png", "IMAGES/b.png"], ["images/a.png", "images/b.png"]),
        (["a.png", "b.png"], ["images/a.png", "more/b.png"]),
    ],
)
def test_names_that_are_nearly_those_of_files_are_found(tmp_path, names, files):
    root = table(tmp_path, "id,x\n" + "".join(f"{n},{k}\n" for k, n in enumerate(names)), *files)
    dataset: Any = as_dataset(root)
    for k, file in enumerate(files):
        assert Path(dataset.images[k]).relative_to(root).as_posix() == file
    assert dataset.remarks["id"].startswith("names the images")


@pytest.mark.parametrize("name", ["/home/somebody/val/a.png", "val/a.png", "/a/../../a.png"])
def test_names_of_another_folder_are_not_found(tmp_path, name):
    root = table(tmp_path, f"id,x\n{name},1\n", "test/a.png")
    with pytest.raises(InputError, match=r"outside|does not exist"):
        read_table(root / "labels.csv", root / "test")


def test_a_name_that_is_near_two_files_is_refused(tmp_path):
    files = "b.png", "c.png", "a.png", "a.PNG"
    root = table(tmp_path, "id,x\nA.png,1\nb.png,0\nc.png,0\n", *files)
    with pytest.raises(InputError, match=r"2 of 3 images found .* missing: A\.png"):
        read_table(root / "labels.csv", root)


def test_names_in_two_of_several_folders_are_refused(tmp_path):
    root = table(tmp_path, "id,x\na.png,1\nb.png,0\n", "m/a.png", "m/b.png", "n/a.png")
    with pytest.raises(InputError, match=r"row 1: 'a\.png' is in 2 of the folders"):
        read_table(root / "labels.csv", [root / "m", root / "n"])
    assert len(read_table(root / "labels.csv", [root / "m"])) == 2
