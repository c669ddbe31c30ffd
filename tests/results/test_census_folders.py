"""Folders of censuses: listed, shown, reported and compared like audits, with exact rates."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.audit.census import Census
from adaptive_vtt.cli import main
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal.files import Lock
from adaptive_vtt.results import census
from adaptive_vtt.results.runs import find, read_rates, read_run
from adaptive_vtt.results.view.pages import Site
from adaptive_vtt.results.view.watching import Watch, build_report
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.watched import small_space


class Free(ScriptedModel):
    """Scripted, and costs nothing."""

    most_cost = 0.0

    def _answer(self, prompt: Any) -> Any:
        answer = super()._answer(prompt)
        return type(answer)(answer.values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    with Census(small_space(), Free(seed=3), out=folder) as begun:
        begun.run().save(folder)
    return folder


@pytest.fixture
def own(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(whole, tmp_path / "runs" / "whole")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


def test_a_census_is_listed_with_its_exact_rates(
    whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = json.loads((whole / "census.json").read_text())
    code, table = run(capsys, "runs", str(whole.parent))
    assert code == 0
    assert max(map(len, table.splitlines()[:-1])) <= 80
    words = " ".join(table.split())
    assert f"whole {len(told['rates'])} exact {told['calls']} $0.00 ended" in words
    assert " scripted " in words
    (record,) = json.loads(run(capsys, "runs", str(whole), "--json")[1])
    exact = {row["target"]: row["exact"] for row in told["rates"]}
    worst = record["worst"]
    assert worst["estimate"] == worst["lower"] == worst["upper"] == exact[worst["target"]]
    assert worst["estimate"] == max(exact.values())
    assert (record["census"], record["head"]) == (True, told["head"])
    assert "%, exact" in words


def test_an_unfinished_census_says_how_it_goes_on(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "census.json").unlink()
    found = read_run(own)
    assert (found.state, found.calls) == ("stopped", 256)
    assert f"go on with 'avtt census SPEC.toml --out {own}'" in found.words
    lock = Lock(own / "census.db")
    assert read_run(own).state == "running"
    lock.release()
    with pytest.raises(JournalError, match=r"census.json: expected the tables .* asks nothing"):
        read_rates(own)
    assert run(capsys, "report", str(own))[0] == 2


@pytest.mark.parametrize(
    "change",
    [{"head": "0"}, {"calls": "many"}, {"rates": [{"exact": float("nan")}]}, {"census": None}],
)
def test_tables_of_something_else_are_not_told(own: Path, change: dict[str, Any]) -> None:
    told = json.loads((own / "census.json").read_text())
    (own / "census.json").write_text(json.dumps(told | change))
    assert read_run(own).state == "stopped"
    with pytest.raises(JournalError, match=r"expected the tables of what census\.db holds"):
        census.told(own)


def test_a_damaged_record_is_a_sentence(own: Path) -> None:
    (own / "census.db").write_bytes(b"nothing" * 100)
    assert "census.db: cannot be read" in read_run(own).words


def test_the_page_is_made_anew(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (own / "census.html").read_text()
    (own / "census.html").unlink()
    code, said = run(capsys, "report", str(own))
    assert code == 0
    assert "not verified" in said
    assert (own / "census.html").read_text() == before
    code, said = run(capsys, "report", str(own), "--plotly", "cdn")
    assert (code, "--plotly: expected inline, for a census's page" in said) == (2, True)


def test_commands_about_audits_say_what_it_is(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["verify"], ["gate", "--rule", "overall <= 0.1"]):
        code, said = run(capsys, command[0], str(whole), *command[1:])
        assert code == 2
        assert "expected an audit, got a census, whose rates are exact; 'avtt report'" in said


def test_view_lists_it_and_shows_its_page(whole: Path, tmp_path: Path) -> None:
    assert find(whole) == {"whole": whole}
    watch = Watch(whole.parent)
    try:
        site, rows = Site(watch), len(read_rates(whole).rows)
        assert f"{rows} exact" in site.answer("/").body.decode()
        figures = json.loads(site.answer("/run/whole/state").body)["figures"]
        assert figures.startswith(f"{rows} exact rates · ")
    finally:
        watch.close()
    report = build_report(whole, tmp_path)
    assert report.files["report.html"].read_text() == (whole / "census.html").read_text()
    assert report.head == read_run(whole).head
