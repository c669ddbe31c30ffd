"""Files of labels: read back as written, lost by no crash, and what is wrong is named."""

import csv
import os
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_audit import NOON, found, journal, said, space

from adaptive_vtt.errors import InputError
from adaptive_vtt.labelling import NONE, Item, Label, keep, read_folder, read_labels
from adaptive_vtt.labelling.labels import COLUMNS, read_own, to_csv
from adaptive_vtt.oracles.caption_rules import ERROR_TYPES

__all__ = ["found", "journal", "space"]  # fixtures

names = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=9)
labels = st.builds(
    Label,
    st.integers(0, 10**12),
    names,
    st.just("ann"),
    st.sampled_from([*ERROR_TYPES, NONE]),
    st.integers(0, 10**9).map(lambda ms: NOON + timedelta(milliseconds=ms)),
)


@given(st.lists(labels, max_size=5))
def test_labels_read_back_as_they_were_written(given_labels: list[Label]) -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / "ann.csv"
        path.write_text(to_csv(given_labels), encoding="utf-8", newline="")
        assert read_labels(path) == given_labels


def test_a_new_label_replaces_the_old_and_leaves_those_of_others(
    tmp_path: Path, found: list[Item]
) -> None:
    first, second = found[:2]
    keep(tmp_path, [said(first, "ann", "2.2"), said(second, "ann", NONE), said(first, "bo", "3")])
    keep(tmp_path, [said(first, "ann", "1.2", minutes=-9)])
    kept = read_folder(tmp_path)
    assert {
        name: [own[i.key].type for i in found[:2] if i.key in own] for name, own in kept.items()
    } == {"ann": ["1.2", NONE], "bo": ["3"]}


def test_a_crash_while_writing_loses_no_label(
    tmp_path: Path, found: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, [said(found[0], "ann", "2.2")])
    before = (tmp_path / "ann.csv").read_bytes()

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path, [said(found[1], "ann", "3")])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


GOOD = "3,dog,ann,yes,2.2,2024-05-31T12:00:00Z"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("3,dog,ann,yes,2.2", r"row 3: expected 6 fields, got 5"),
        ("x,dog,ann,yes,2.2,T", r"row 3: question: expected its number, got 'x'"),
        ("3,,ann,yes,2.2,T", r"row 3: object: expected its name, got nothing"),
        ("3,cat,../ann,yes,2.2,T", r"row 3: inspector: expected a name"),
        ("3,cat,ann,maybe,2.2,T", r"row 3: error: expected yes or no, got 'maybe'"),
        ("3,cat,ann,yes,2.3,T", r"row 3: type: expected 1.1 or .* where error is yes, got '2.3'"),
        ("3,cat,ann,yes,none,T", r"row 3: type: expected .* where error is yes, got 'none'"),
        ("3,cat,ann,no,3,T", r"row 3: type: expected none where error is no, got '3'"),
        ("3,cat,ann,no,none,noon", r"row 3: time: expected one as .*, got 'noon'"),
        ("3,cat,ann,no,none,2024-05-31T12:00", r"row 3: time: .* with its zone"),
        (GOOD, r"row 3: object: 'dog' of question 3 stands there twice"),
        (GOOD.replace("ann", "bo"), r"row 3: inspector: expected 'ann', as the file is called"),
    ],
)
def test_bad_rows_are_named_by_file_row_and_field(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "ann.csv").write_text(f"{','.join(COLUMNS)}\n{GOOD}\n{row}\n")
    with pytest.raises(InputError, match=r"ann\.csv, " + message):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"row 1: expected question,object,.*, got an empty file"),
        (b"a,b\n", r"row 1: expected question,object,.*, got a,b"),
        (b"\xff\xfe", r"expected a CSV file in UTF-8"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        read_labels(tmp_path / "none.csv")


@pytest.mark.parametrize("name", ["", "../ann", ".ann", "a/b", "ann ", "a" * 61, "ann\n"])
def test_inspectors_are_called_what_a_file_can_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--inspector: expected a name"):
        read_own(tmp_path, name)


def test_written_files_are_plain_csv(tmp_path: Path, found: list[Item]) -> None:
    keep(tmp_path, [said(found[0], "ann", "2.2")])
    rows = list(csv.DictReader((tmp_path / "ann.csv").open(encoding="utf-8")))
    assert rows == [
        {
            "question": "0",
            "object": "dog",
            "inspector": "ann",
            "error": "yes",
            "type": "2.2",
            "time": "2024-05-31T12:00:00.000+00:00",
        }
    ]
