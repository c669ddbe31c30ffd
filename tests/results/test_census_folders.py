"""Folders of censuses: listed, shown and compared as any audit's, with exact rates."""

import json
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.cli import main
from adaptive_vtt.results.runs import find, read_rates, read_run
from adaptive_vtt.results.view.pages import Site
from adaptive_vtt.results.view.watching import Watch, build_report
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.watched import small_space


def counted(folder: Path, refuse: float = 0.0, **options: Any) -> Path:
    options |= {"strategy": "everything", "journal": folder / "journal.db"}
    with Audit(small_space(), ScriptedModel(seed=3, refuse=refuse), **options) as audit:
        audit.run().save(folder)
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return counted(tmp_path_factory.mktemp("runs") / "whole")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    output = capsys.readouterr()
    return int(ended.value.code or 0), output.out + output.err


def test_a_census_is_listed_with_its_exact_rates(
    whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rates = json.loads((whole / "result.json").read_text())["census"]["rates"]
    code, table = run(capsys, "runs", str(whole.parent))
    assert code == 0
    words = " ".join(table.split())
    assert f"whole {len(rates)} exact" in words
    assert " scripted " in words
    (record,) = json.loads(run(capsys, "runs", str(whole), "--json")[1])
    exact = {row["target"]: row["exact"] for row in rates}
    worst = record["worst"]
    assert worst["estimate"] == worst["lower"] == worst["upper"] == exact[worst["target"]]
    assert worst["estimate"] == max(exact.values())
    assert record["census"]
    assert "%, exact" in words


def test_one_that_a_limit_ended_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = counted(tmp_path / "cut", budget=40)
    assert "exact" not in run(capsys, "runs", str(tmp_path))[1]
    assert read_run(cut).note == "40 calls were made"
    assert not all(row.certified for row in read_rates(cut).rows)
    code, text = run(capsys, "gate", str(cut), "--rule", "overall <= 0.1")
    assert code in (1, 4)
    assert "overall" in text
    report = (cut / "report.html").read_text()
    assert "Not every question was asked" in report


def test_one_that_was_hardly_answered_is_listed_with_nothing_certified(tmp_path: Path) -> None:
    mute = counted(tmp_path / "mute", refuse=0.9, fail_on_error=1.0)
    assert not any(row.certified for row in read_rates(mute).rows)


def test_view_lists_it_and_shows_its_report(whole: Path, tmp_path: Path) -> None:
    assert find(whole) == {"whole": whole}
    watch = Watch(whole.parent)
    try:
        site, rows = Site(watch), len(read_rates(whole).rows)
        assert f"{rows} exact" in site.answer("/").content.decode()
        figures = json.loads(site.answer("/run/whole/state").content)["figures"]
        assert figures.startswith(f"{rows} exact rates · ")
    finally:
        watch.close()
    report = build_report(whole, tmp_path)
    assert "Exact rates" in report.files["report.html"].read_text()
    assert report.head == read_run(whole).head
