"""``avtt label``: what it takes, refuses and sums up, and one sentence for every mistake."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import QuestionSpace
from adaptive_vtt.cli.label import Wanted
from adaptive_vtt.cli.label import label_run as label
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.people.answers import Given, keep, to_csv
from adaptive_vtt.people.captions import Item
from adaptive_vtt.people.cards import NONE
from tests.helpers.labelled_audit import CASES, NOON, fill, folder, found, journal, said, space

__all__ = ["folder", "found", "journal", "space"]  # fixtures


def command(folder: Path, **options: Any) -> None:
    label(folder, Wanted(**options))


def test_a_downloaded_file_is_taken_and_summed_up(
    folder: Path, found: list[Item], capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "download.csv"
    file.write_text(to_csv([said(found[0], "ann", "2.2"), said(found[4], "ann", NONE)]))
    command(folder, take=file)
    assert "took 2 new of 2 answers by ann" in capsys.readouterr().out
    older = said(found[0], "ann", "1.1", minutes=-5)
    file.write_text(to_csv([older, said(found[4], "ann", "3", minutes=5)]))
    command(folder, take=file)
    assert "took 1 new of 2" in capsys.readouterr().out
    command(folder, summary=True, as_json=True)
    figures = json.loads(capsys.readouterr().out)
    assert (figures["objects"]["tp"], figures["labelled"]) == (2, {"ann": 2})
    assert figures["objects"]["scores"]["recall"] is None
    command(folder, summary=True)
    text = capsys.readouterr().out
    assert "100.0 %" in text
    assert "note: no kappa" in text


def test_labels_of_another_audit_are_refused(folder: Path, found: list[Item]) -> None:
    stranger = Given(3, "zebra", "ann", "3", NOON)
    (folder / "x.csv").write_text(to_csv([stranger]))
    with pytest.raises(InputError, match=r"x\.csv: card 3 .* has no question 'zebra'"):
        command(folder, take=folder / "x.csv")
    assert not (folder / "labels").exists()
    keep(folder / "labels", [stranger])
    with pytest.raises(InputError, match=r"ann\.csv: card 3 .* has no question 'zebra'"):
        command(folder, summary=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "--reader: expected the name of whoever reads"),
        ({"reader": "a/b"}, "--reader: expected a name"),
        ({"html": True, "summary": True}, "one of --html, --take and --summary, got several"),
        ({"reader": "ann", "as_json": True}, "--json: goes with --summary"),
        ({"reader": "ann", "sample": 1, "everything": True}, "--sample or --all, got both"),
        ({"reader": "ann", "summary": True}, "expected no --reader, --sample or --all"),
        ({"reader": "ann"}, "expected a terminal to label on, got none"),
        ({"reader": "ann", "sample": -2}, "expected 0 or more follow-ups, got -2"),
    ],
)
def test_mistakes_are_one_sentence(
    folder: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(InputError, match=re.escape(message)):
        command(folder, **options)


def test_nothing_to_label(tmp_path: Path, space: QuestionSpace) -> None:
    fill(SQLiteJournal(tmp_path / "journal.db"), space, [CASES[1]]).close()
    with pytest.raises(InputError, match="nothing to label: no violation was found"):
        command(tmp_path, reader="ann")
    with pytest.raises(JournalError, match="does not exist"):
        command(tmp_path / "none", summary=True)
