"""Reviewing questions: on the page, in the file beside them, and the table that comes of it."""

import csv
import json
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.datasets.formats.endobench import from_endobench
from adaptive_vtt.datasets.vqa.question_table import Line, write_questions
from adaptive_vtt.errors import InputError
from adaptive_vtt.people.reviewing import Review
from adaptive_vtt.results.view.server import Serving
from tests.helpers.chromium import Browser, needs_chromium
from tests.helpers.command_line import run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four questions of three options each, A right, about images of one colour each."""
    lines = [
        Line(
            np.full((40, 50, 3), 60 * k, np.uint8),
            f"What is in image {k}?",
            ("polyp", "ulcer", "=none"),
            0,
            task="Lesion Type Identification",
        )
        for k in range(4)
    ]
    write_questions(tmp_path / "q" / "questions.tsv", lines)
    return tmp_path / "q" / "questions.tsv"


def keep(review: Review, at: int, verdict: str, **said: object) -> tuple[int, str]:
    query = urlencode({"at": at, "verdict": verdict, **said}, doseq=True)
    reply = review.answer(f"/{review.key}/keep?{query}")
    return reply.status, reply.body.decode()


EDITED = {"question": " What  is it? ", "answer": "C", "option": ["polyp", "ulcer", "normal"]}


def test_decisions_are_kept_at_once_and_gone_on_with(table: Path) -> None:
    review = Review(table)
    assert keep(review, 0, "accept") == (200, "kept")
    assert keep(review, 1, "edit", **EDITED) == (200, "kept")
    assert keep(review, 2, "accept") == (200, "kept")
    assert keep(review, 2, "reject") == (200, "kept")  # in place of what was decided before
    again = Review(table)
    assert again.decisions == review.decisions
    assert again.counts == {"accept": 1, "edit": 1, "reject": 1, "left": 1}
    assert json.loads(again.decisions["0"].options) == ["polyp", "ulcer", "=none"]


def test_what_was_accepted_becomes_a_table(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    review = Review(table)
    for at, verdict in ((0, "accept"), (2, "reject")):
        keep(review, at, verdict)
    keep(review, 1, "edit", **EDITED)
    out = tmp_path / "reviewed"
    assert run("review-vqa", str(table.parent), "--out", str(out)) == 0
    said = capsys.readouterr().out
    assert said == f"wrote {out}: 2 questions; 1 accepted, 1 edited, 1 rejected, 1 left\n"
    assert 'path = "questions.tsv"' in (out / "SPEC.toml").read_text()
    before, after = (
        pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
        for path in (table, out / "questions.tsv")
    )
    assert [*after.columns] == [*before.columns]
    assert [*after.iloc[0]] == [*before.iloc[0]]
    changed = {c: after[c][1] for c in after if after[c][1] != before[c][1]}
    assert changed == {"question": "What is it?", "answer": "C", "gt": "normal", "C": "normal"}
    read = from_endobench(out / "questions.tsv").sample(1)
    assert read.answers == {"Lesion Type Identification": ("C",)}


def test_only_the_page_itself_is_answered(table: Path) -> None:
    review = Review(table)
    page = review.answer(f"/{review.key}/")
    assert b"What is in image 3?" in page.body
    assert review.answer(f"/{review.key}/picture?at=2").body[:2] == b"\xff\xd8"
    assert review.answer("/keep?at=0&verdict=accept").status == 404
    assert not review.decisions


@pytest.mark.parametrize(
    ("at", "verdict", "said", "sentence"),
    [
        (4, "accept", {}, "expected a question from 0 to 3, got 4"),
        (0, "maybe", {}, "expected accept, edit or reject, got 'maybe'"),
        (0, "edit", {**EDITED, "question": " "}, "expected a question, and options that differ"),
        (0, "edit", {**EDITED, "option": ["a", "a", "b"]}, "options that differ from each other"),
        (0, "edit", {**EDITED, "option": ["a", "b"]}, "expected 3 options, got 2"),
        (0, "edit", {**EDITED, "answer": "D"}, "expected the letter of an option, got 'D'"),
    ],
)
def test_a_mistake_is_a_sentence_and_kept_nowhere(
    table: Path, at: int, verdict: str, said: dict[str, object], sentence: str
) -> None:
    review = Review(table)
    status, told = keep(review, at, verdict, **said)
    assert status == 400
    assert sentence in told
    assert not review.file.exists()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("index,", "number,", "row 1: expected index,verdict,asked,"),
        ("image 0", "image 9", r"row 2: expected a question of the table, got 'What is in image 9"),
        (",A,", ",Z,", "row 2: expected the letter of an option, got 'Z'"),
        ("[", "{", "row 2: expected 7 cells, options as JSON"),
        ("accept", "accept,", "row 2: expected 7 cells, options as JSON"),
    ],
)
def test_a_file_of_another_review_is_refused(
    table: Path, old: str, new: str, sentence: str
) -> None:
    review = Review(table)
    keep(review, 0, "accept")
    text = review.file.read_text()
    assert old in text
    review.file.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=sentence):
        Review(table)


def test_there_must_be_something_to_write(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("review-vqa", str(table), "--out", str(tmp_path / "r")) == 2
    assert "expected an accepted question, got none: review first" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
    assert run("review-vqa", str(table.with_suffix(".parquet"))) == 2
    assert "expected a TSV of questions" in capsys.readouterr().err


@pytest.mark.slow
@needs_chromium
def test_keys_accept_edit_and_reject_in_a_browser(table: Path, tmp_path: Path) -> None:
    review = Review(table)
    press = "document.dispatchEvent(new KeyboardEvent('keydown', {{key: '{}', ctrlKey: {}}}))"
    with Serving(review) as server, Browser(tmp_path / "profile", 1280, 900) as browser:
        browser.open(f"{server.url}{review.key}/")
        browser.until("document.querySelector('.asked')?.textContent === 'What is in image 0?'")
        browser.value(press.format("a", "false"))
        browser.until("document.querySelector('.asked')?.textContent === 'What is in image 1?'")
        browser.value(press.format("e", "false"))
        browser.value("document.querySelector('#words textarea').value = 'What is this?'")
        browser.value("document.querySelectorAll('#words [name=answer]')[1].checked = true")
        browser.value(press.format("Enter", "true"))
        browser.until("document.querySelector('.asked')?.textContent === 'What is in image 2?'")
        browser.value(press.format("r", "false"))
        browser.until("document.getElementById('count').textContent === '3 of 4 reviewed'")
        browser.value("go(1)")
        browser.value(press.format("a", "false"))  # the question as it is shown: edited
        browser.until("place === 3")
        assert browser.complaints == []
    rows = [*csv.DictReader(review.file.open(encoding="utf-8"))]
    assert [(row["verdict"], row["answer"]) for row in rows] == [
        ("accept", "A"),
        ("edit", "B"),
        ("reject", "A"),
    ]
    assert rows[1]["question"] == "What is this?"
