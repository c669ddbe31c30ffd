"""Files of answers: read back as written, lost by no crash, bad rows named, and replayed."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt.errors import InputError
from adaptive_vtt.models.local.recorded import (
    COLUMNS,
    RecordedReader,
    card_id,
    read_answers,
    recorded,
)
from adaptive_vtt.people.cards import Asked, Card, check_answers, keep, read_folder, yes_or_no
from adaptive_vtt.types import Prompt, Unanswered
from adaptive_vtt.utils.tables import csv_text
from tests.helpers.labelled_audit import answers

words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=9)
spoken = words.filter(str.strip)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(words, words, st.just("ann"), spoken), max_size=5, unique_by=lambda r: r[:2])
)
def test_answers_read_back_as_they_were_written(rows: list[tuple[str, ...]]) -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / "ann.csv"
        path.write_text(csv_text(answers(rows)), encoding="utf-8", newline="")
        pd.testing.assert_frame_equal(read_answers(path), answers(rows), check_dtype=False)


def test_the_later_of_two_answers_counts_and_those_of_others_stay(tmp_path: Path) -> None:
    early, late = ("1", "dog", "ann", "2.2", "2024-05-31T12:00:00Z"), "2024-05-31T15:00:00+02:00"
    keep(tmp_path, answers([early, ("1", "dog", "bo", "=3")]))
    assert "'=3" in (tmp_path / "bo.csv").read_text()  # no formula of a spreadsheet
    assert keep(tmp_path, answers([(*early[:3], "none", late)])) == 1
    assert keep(tmp_path, answers([early])) == 0
    kept = read_folder(tmp_path)
    assert dict(zip(kept["reader"], kept["answer"], strict=True)) == {"ann": "none", "bo": "=3"}


def test_a_crash_while_writing_loses_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, answers([("1", "dog", "ann", "2.2")]))
    before = (tmp_path / "ann.csv").read_bytes()

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        keep(tmp_path, answers([("2", "dog", "ann", "3")]))
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


HEAD = ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.csv: cannot read answers: No columns"),
        ("a,b\n", "expected the columns card,question,reader,answer,time, got a,b"),
        (HEAD + "1,c,ann,yes\n", "row 2: time: expected a time with its zone"),
        (HEAD + "1,c,../a,yes,2024-05-31T12:00:00Z\n", "row 2: reader: expected a name of up to"),
        (HEAD + "1,c,ann, ,2024-05-31T12:00:00Z\n", "row 2: answer: expected 1 to 2000 letters"),
        (HEAD + "1,c,ann,yes,2024-05-31T12:00\n", "row 2: time: expected a time with its zone"),
        (HEAD + "1,c,ann,yes,noonZ\n", "time: expected a time with its zone, such as"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        read_answers(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"none\.csv: cannot read answers: it does not exist"):
        read_answers(tmp_path / "none.csv")


def test_a_spreadsheets_semicolons_are_read(tmp_path: Path) -> None:
    rows = answers([("1", "a dog; brown, old", "ann", "yes")])
    (tmp_path / "x.csv").write_text(rows.to_csv(index=False, sep=";"), encoding="utf-16")
    assert read_answers(tmp_path / "x.csv")["question"].tolist() == ["a dog; brown, old"]
    (tmp_path / "x.csv").write_text(rows.to_csv(index=False, sep=";"))
    assert recorded(tmp_path / "x.csv").name == "reader ann"
    (tmp_path / "p.csv").write_text("sample;polyp\na;0.5\n")
    assert recorded(tmp_path / "p.csv").ask([Prompt(None, ("polyp",), "a", "identity", 0)])[
        0
    ].values == (0.5,)


def test_only_what_was_asked_may_be_answered_and_only_by_a_choice() -> None:
    cards = [Card("1", 1, 1, (), (yes_or_no("c0", "?"), Asked("free", "?", {})))]
    check_answers(answers([("1", "c0", "a", "unsure"), ("1", "free", "a", "a polyp")]), cards, "x")
    with pytest.raises(InputError, match=r"x: .* got one to 'c0' of card 2; is the file of"):
        check_answers(answers([("2", "c0", "a", "yes")]), cards, "x")
    with pytest.raises(InputError, match="'c0': expected one of yes, no, unsure, got 'maybe'"):
        check_answers(answers([("1", "c0", "a", "maybe")]), cards, "x")


# -- replayed as a model ---------------------------------------------------------------------------


def prompt(*concepts: str) -> Prompt:
    return Prompt(None, concepts, "s1", "blur", 2)


def test_a_reader_answers_as_a_model_does() -> None:
    card = card_id("s1", "blur", 2)
    model = RecordedReader(answers([(card, "a", "ann", "yes"), (card, "b", "ann", "unsure")]))
    (answer,) = model.ask([prompt("a", "b", "c")])
    unsure = Unanswered("the reader is unsure"), Unanswered("not recorded")
    assert answer.values == (1.0, *unsure)  # type: ignore[union-attr]
    assert (model.name, model.answers) == ("reader ann", "all")
    other = RecordedReader(answers([(card, "a", "ann", "no")]))
    assert (other.answers, other.content() == model.content()) == ("one", False)
    words = RecordedReader(answers([(card, "a", "ann", "yes.")]))
    assert words.ask([prompt("a")])[0].values == ("yes.",)  # type: ignore[union-attr]
