"""Mistakes of newcomers: a folder for a spec, a table left alone, a missing extra."""

import re
from pathlib import Path

import numpy as np
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.certify import Certifier, named_targets
from adaptive_vtt.config import read_spec
from adaptive_vtt.errors import InputError, unknown
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.utils import importing as extras
from adaptive_vtt.utils.files import write_bytes, write_text
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import refused, shown


def test_a_forecast_is_never_more_than_the_calls_that_are_left() -> None:
    space = avtt.QuestionSpace(tiny_dataset(6, 2), ["identity", "rotation"])
    targets = named_targets(space, ["overall", "relations"])
    certifier = Certifier(space, targets, answers="all", half_width=0.001)
    calls = np.arange(space.images)
    for place in range(5):
        unit = np.repeat(np.arange(len(calls)), 2)
        questions = (2 * calls[:, None] + np.arange(2)).ravel()
        inside = certifier.members(questions)
        proposal = np.full(len(calls), 1 / len(calls))
        move = certifier.bet(inside, unit, None, proposal, 0)
        certifier.learn(move, inside[:, :2], np.full(2, place % 2), np.full(2, place % 2))
        calls = calls[1:]
        forecasts = [row.more_calls for row in certifier.table()]
        assert all(more is None or 0 <= more.most <= len(calls) for more in forecasts)


# -- init, and what is in a folder --------------------------------------------------------


def classes(folder: Path) -> Path:
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 200, (12, 12, 3), dtype=np.uint8)
        write_bytes(folder / ("cat", "dog")[number % 2] / f"{number}.png", png(pixels))
    rows = [f"{('cat', 'dog')[n % 2]}/{n}.png,{n % 2}" for n in range(12)]
    write_text(folder / "labels.csv", "\n".join(["id,bright", *rows]) + "\n")
    return folder


def test_a_table_beside_class_folders_is_named_with_how_to_choose_it(tmp_path: Path) -> None:
    data = classes(tmp_path / "data")
    output = shown("init", str(tmp_path / "spec"), "--data", str(data))
    assert "2 class folders (cat, dog); 'labels.csv' was left alone; to read it" in output
    with pytest.warns(UserWarning, match=rf"give {re.escape(str(data / 'labels.csv'))} in place"):
        avtt.QuestionSpace(data)
    chosen = ("init", str(tmp_path / "other"), "--data", str(data / "labels.csv"))
    assert "with a table of labels (bright)" in shown(*chosen)


def test_init_makes_no_folder_with_the_name_of_a_file(tmp_path: Path) -> None:
    write_text(tmp_path / "there.txt", "mine")
    for name in ("README.md", "labels.csv", "there.txt"):
        sentence = refused("init", str(tmp_path / name))
        assert "expected a folder to write into, got the name of a file" in sentence
        assert not (tmp_path / name).is_dir()


def test_a_folder_for_a_spec_is_told_what_to_do_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    named = re.escape(f"'{folder}'")  # as a shell takes it
    with pytest.raises(InputError, match=f"got a folder; 'avtt init DIR --data {named}' writes a"):
        read_spec(folder)
    begin = f"'avtt audit SPEC.toml --out '{folder / 'first'}'' begins one"
    assert begin in shown("runs", str(folder))
    write_text(folder / "journal.db", "")
    printed = f"got a folder; it holds an audit: run 'avtt resume {named}' or 'avtt report {named}'"
    with pytest.raises(InputError, match=printed):
        read_spec(folder)


# -- sentences ----------------------------------------------------------------------------


def test_the_nearest_name_comes_before_a_short_list() -> None:
    names = [f"name{k:02}" for k in range(28)]
    error = str(unknown("relation", "nam05", names, every="avtt list relations"))
    assert error.startswith("unknown relation 'nam05'; did you mean 'name05'? Expected one of ")
    assert error.endswith("name05 and 22 more ('avtt list relations' shows all)")
    far = str(unknown("relation", "xyz", names))
    assert far.endswith("name11 and 16 more")
    assert str(unknown("side", "up", ["a", "b"])) == "unknown side 'up': expected one of a, b"


def test_a_missing_part_is_installed_by_the_packages_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needed = ["numpy>=2", "openai>=1.60; extra == 'openai'", 'httpx>=1; extra == "http"']
    monkeypatch.setattr(extras, "requires", lambda _: needed)
    assert extras.pip_install("openai") == "pip install 'openai>=1.60'"
    monkeypatch.setattr(extras, "requires", lambda _: None)
    assert extras.pip_install("openai") == "pip install 'adaptive-vtt[openai]'"
