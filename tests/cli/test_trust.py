"""Specs and run folders are programs: what runs them, what never does, what is checked first."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.journal import SQLiteJournal
from tests.helpers.command_line import plain_start, refused, run, shown

READERS = (
    "report",
    "verify",
    "export",
    "label --realism --reader ann",
    "label --realism --summary",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the "start" of ``avtt init`` and its audit "out", which ended."""
    base = tmp_path_factory.mktemp("finished")
    spec = plain_start(base / "start")
    assert run("audit", str(spec), "--budget", "6", "--out", str(base / "out")) == 0
    return base


@pytest.fixture
def start(finished: Path) -> Iterator[Path]:
    """Its start, whose files a test may change."""
    files = {path: path.read_bytes() for path in (finished / "start").iterdir() if path.is_file()}
    yield finished / "start"
    for path, data in files.items():
        path.write_bytes(data)
    (finished / "start" / "was-run").unlink(missing_ok=True)


@pytest.fixture
def out(start: Path, tmp_path: Path) -> Path:
    """A copy of the finished audit."""
    return shutil.copytree(start.parent / "out", tmp_path / "out")


def facts_of(out: Path) -> dict[str, Any]:
    journal = SQLiteJournal(out / "journal.db")
    try:
        return journal.facts()
    finally:
        journal.close()


def set_fact(out: Path, name: str, value: Any) -> None:
    """As someone would who edits the file: past the program, and past what it may seal."""
    with sqlite3.connect(out / "journal.db") as db:
        db.execute("UPDATE facts SET value = ? WHERE name = ?", (json.dumps(value), name))
    db.close()


def plant(folder: Path) -> tuple[str, Path]:
    """A module that leaves a mark where it is imported: its target, and the mark."""
    mark = folder / "was-run"
    model = "def predict(images):\n    return [[0.5]] * len(images)\n"
    text = f"open({str(mark)!r}, 'w').close()\n{model}"
    (folder / "planted.py").write_text(text)
    return f"{folder / 'planted.py'}:predict", mark


def test_reading_a_run_folder_runs_nothing_of_it(out: Path, tmp_path: Path) -> None:
    target, mark = plant(tmp_path)
    spec = facts_of(out)["spec"]
    spec["model"] |= {"kind": "python", "target": target}
    spec["certify"]["proxies"] = {"other": target}
    set_fact(out, "spec", spec)
    for number, command in enumerate(READERS):
        name, *options = command.split()
        if name == "export":
            options = ["--failures", str(tmp_path / f"failures-{number}")]
        run(name, str(out), *options)  # that they end well is the business of other tests
        assert not mark.exists(), command


def test_resume_checks_the_spec_before_it_runs_what_that_names(out: Path, tmp_path: Path) -> None:
    target, mark = plant(tmp_path)
    spec = facts_of(out)["spec"]
    spec["model"] |= {"kind": "python", "target": target}
    set_fact(out, "spec", spec)
    assert "journal" in refused("resume", str(out))
    assert not mark.exists()


def test_resume_imports_no_model_where_the_space_is_another(start: Path, out: Path) -> None:
    mark = start / "was-run"
    planted = f"open({str(mark)!r}, 'w').close()\n"
    (start / "model.py").write_text(planted + (start / "model.py").read_text())
    labels = start / "labels.csv"
    labels.write_text("\n".join(labels.read_text().splitlines()[:-1]) + "\n")  # a sample fewer
    assert "belongs to another space" in refused("resume", str(out), "--budget", "8")
    assert not mark.exists()


@pytest.mark.slow
def test_resume_imports_the_model_where_all_fits_and_something_is_asked(
    start: Path, out: Path
) -> None:
    mark = start / "was-run"
    planted = f"open({str(mark)!r}, 'w').close()\n"
    (start / "model.py").write_text(planted + (start / "model.py").read_text())
    assert run("resume", str(out)) == 0
    assert not mark.exists()
    assert run("resume", str(out), "--budget", "8") == 0
    assert mark.exists()


def test_dry_run_imports_no_model_and_no_proxy(start: Path, tmp_path: Path) -> None:
    target, mark = plant(tmp_path)
    spec = start / "SPEC.toml"
    text = spec.read_text().replace("model.py:predict", target)
    assert target in text
    spec.write_text(f"{text}\n[certify.proxies]\nother = {target!r}\n")
    printed = shown("audit", str(spec), "--dry-run", "--budget", "4")
    assert "no model was imported: the plan assumes that a call answers every concept" in printed
    assert not mark.exists()


def test_what_a_dry_run_assumed_of_a_model_is_held_against_it(start: Path, tmp_path: Path) -> None:
    spec = start / "SPEC.toml"
    text = spec.read_text()
    spec.write_text(text.replace("[model]", '[model]\nper_call = "one"', 1))
    given = ["audit", str(spec), "--budget", "4"]
    assert "the plan assumes that a call answers one question" in shown(*given, "--dry-run")
    sentence = refused(*given, "--out", str(tmp_path / "out"))
    assert "model.per_call: expected 'all', as the model says" in sentence
