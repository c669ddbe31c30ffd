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

from adaptive_vtt.errors import InputError
from adaptive_vtt.oracles.caption_rules import ERROR_TYPES
from adaptive_vtt.people.answers import (
    COLUMNS,
    Given,
    check_known,
    keep,
    read_file,
    read_folder,
    read_own,
    to_csv,
)
from adaptive_vtt.people.captions import Item, card_of
from adaptive_vtt.people.cards import NONE, known
from tests.helpers.labelled_audit import NOON, found, journal, said, space

__all__ = ["found", "journal", "space"]  # fixtures

names = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=9)
labels = st.builds(
    Given,
    st.integers(0, 10**12),
    names,
    st.just("ann"),
    st.sampled_from([*ERROR_TYPES, NONE]),
    st.integers(0, 10**9).map(lambda ms: NOON + timedelta(milliseconds=ms)),
)


@given(st.lists(labels, max_size=5))
def test_labels_read_back_as_they_were_written(given_labels: list[Given]) -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / "ann.csv"
        path.write_text(to_csv(given_labels), encoding="utf-8", newline="")
        assert read_file(path) == given_labels


def test_a_new_label_replaces_the_old_and_leaves_those_of_others(
    tmp_path: Path, found: list[Item]
) -> None:
    first, second = found[:2]
    keep(tmp_path, [said(first, "ann", "2.2"), said(second, "ann", NONE), said(first, "bo", "3")])
    keep(tmp_path, [said(first, "ann", "1.2", minutes=-9)])
    kept = read_folder(tmp_path)
    assert {
        name: [own[i.key].answer for i in found[:2] if i.key in own] for name, own in kept.items()
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


GOOD = "3,dog,ann,2.2,2024-05-31T12:00:00Z"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("3,dog,ann,2.2", r"row 3: expected 5 fields, got 4"),
        ("x,dog,ann,2.2,T", r"row 3: card: expected its number, got 'x'"),
        ("3,cat,../ann,2.2,T", r"row 3: reader: expected a name"),
        ("3,cat,ann,none,noon", r"row 3: time: expected one as .*, got 'noon'"),
        ("3,cat,ann,none,2024-05-31T12:00", r"row 3: time: .* with its zone"),
        (GOOD, r"row 3: question: 'dog' of card 3 stands there twice"),
        (GOOD.replace("ann", "bo"), r"row 3: reader: expected 'ann', as the file is called"),
    ],
)
def test_bad_rows_are_named_by_file_row_and_field(tmp_path: Path, row: str, message: str) -> None:
    (tmp_path / "ann.csv").write_text(f"{','.join(COLUMNS)}\n{GOOD}\n{row}\n")
    with pytest.raises(InputError, match=r"ann\.csv, " + message):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"row 1: expected card,question,.*, got an empty file"),
        (b"a,b\n", r"row 1: expected card,question,.*, got a,b"),
        (b"\xff\xfe", r"expected a CSV file in UTF-8"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_file(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        read_file(tmp_path / "none.csv")


@pytest.mark.parametrize("name", ["", "../ann", ".ann", "a/b", "ann ", "a" * 61, "ann\n"])
def test_readers_are_called_what_a_file_can_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="--reader: expected a name"):
        read_own(tmp_path, name)


def test_written_files_are_plain_csv(tmp_path: Path, found: list[Item]) -> None:
    keep(tmp_path, [said(found[0], "ann", "2.2")])
    rows = list(csv.DictReader((tmp_path / "ann.csv").open(encoding="utf-8")))
    assert rows == [
        {
            "card": "0",
            "question": "dog",
            "reader": "ann",
            "answer": "2.2",
            "time": "2024-05-31T12:00:00.000+00:00",
        }
    ]


def test_of_an_object_there_is_an_error_type_or_none(found: list[Item]) -> None:
    asked = known([card_of(found[0])])
    check_known([said(found[0], "ann", "3"), said(found[0], "ann", NONE)], asked, "x")
    for wrong in ("2.3", "unsure"):
        with pytest.raises(InputError, match=f"'dog': expected none, .* or 3, got '{wrong}'"):
            check_known([said(found[0], "ann", wrong)], asked, "x")
