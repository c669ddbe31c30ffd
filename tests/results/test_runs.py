"""What a folder of runs holds, in the terminal, whatever state each run is in."""

import json
import os
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit
from adaptive_vtt.certify.status import TargetStatus
from adaptive_vtt.errors import InputError
from adaptive_vtt.families import OfDrop, OfRelation
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.journal.files import Lock, holder
from adaptive_vtt.results.runs import Rates, ago, find, read_rates, read_run, span_of
from adaptive_vtt.results.view.pages import Site
from adaptive_vtt.results.view.watching import Watch, build_report
from adaptive_vtt.testing import ScriptedModel
from tests.helpers.audits import finished
from tests.helpers.command_line import plain_start, run, shown
from tests.helpers.watched import LIMITS, small_space, watched


def audited(folder: Path, seed: int = 1) -> Path:
    """An audit run to its end in ``folder``."""
    limits: dict[str, Any] = {**LIMITS, "budget": 24, "surrogate": False}
    finished(small_space(), journal=folder / "journal.db", seed=seed, **limits).close()
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that ended, one that explored, and two that cannot be read."""
    folder = tmp_path_factory.mktemp("runs")
    audited(folder / "first")
    audited(folder / "second", seed=2)
    finished(small_space(), journal=folder / "exploring" / "journal.db", budget=6).close()
    for name, content in (("broken", b"nothing"), ("half", b"")):
        (folder / name).mkdir()
        (folder / name / "journal.db").write_bytes(content)
    (folder / "other").mkdir()
    return folder


@pytest.mark.slow
def test_the_table_fits_a_terminal_and_says_what_cannot_be_read(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(runs.parent)
    table = shown("runs", runs.name)
    assert max(map(len, table.splitlines())) <= 80
    words = " ".join(table.split())
    assert "broken: journal" in words
    assert "no audit was begun here" in words
    assert "other" not in words
    assert "not verified: rates are as journals state them" in words
    for name in ("first", "second", "exploring", "ended", "unreadable", "/3", "24"):
        assert name in words


def test_json_has_every_figure_of_the_journal(runs: Path) -> None:
    found = {each["name"]: each for each in json.loads(shown("runs", str(runs), "--json"))}
    assert set(found) == {"first", "second", "exploring", "broken", "half"}
    first, rates = found["first"], read_rates(runs / "first")
    assert (first["state"], first["targets"], first["calls"]) == ("ended", 3, 24)
    assert first["note"] == "24 calls were made"
    assert first["certified"] == rates.certified
    assert first["verified"] is False
    with closing(SQLiteJournal(runs / "first" / "journal.db", read_only=True)) as journal:
        assert first["head"] == journal.head
        assert first["cost"] == sum(call.cost for call in journal.calls())
    assert found["exploring"]["worst"] is None
    assert found["broken"]["state"] == "unreadable"


def test_running_stopped_and_ended_are_told_apart_by_lock_and_journal(
    runs: Path, tmp_path: Path
) -> None:
    with watched(tmp_path / "a") as audit:
        run = read_run(audit.folder)
        assert (run.state, run.model) == ("running", "scripted")
        assert len(read_rates(audit.folder).rows) == 3
        audit.kill()
        run = read_run(audit.folder)
        assert run.state == "stopped"
        assert "stopped before its end; continue with the lines of Python" in run.words
    assert read_run(runs / "first").words == "ended: 24 calls were made"


@pytest.mark.slow
def test_an_audit_that_a_limit_ended_names_how_it_goes_on(tmp_path: Path) -> None:
    plain_start(tmp_path / "start")
    spec, out = str(tmp_path / "start" / "SPEC.toml"), tmp_path / "runs" / "a"
    options = ["--targets", "overall", "--half-width", "0.1", "--budget", "4"]
    shown("audit", spec, *options, "--out", str(out))
    way = f"1 of 1 targets is open: 'avtt resume {out}' continues with a higher --budget"
    assert read_run(out).words == f"ended: 4 calls were made; {way}"
    assert way in " ".join(shown("runs", str(tmp_path / "runs")).split())
    shown("resume", str(out), "--half-width", "0.45", "--budget", "60")
    assert not read_run(out).further
    stopped = tmp_path / "b"
    shown("audit", spec, *options, "--set", "stop.questions=2", "--out", str(stopped))
    assert read_run(stopped).words.endswith("a higher --budget or --set stop.questions")


def test_an_audit_that_ended_is_starting_once_a_process_goes_on_with_it(tmp_path: Path) -> None:
    with finished(small_space(), journal=tmp_path / "journal.db", budget=6) as audit:
        assert audit.stopped
        assert read_run(tmp_path).state == "ended"  # its process still holds the lock
    time.sleep(0.05)  # a file's clock ticks every few milliseconds
    with closing(SQLiteJournal(tmp_path / "journal.db", must_exist=True)) as journal:
        assert read_run(tmp_path).words == "starting: it continues"
        journal.set_facts(ended=None)
        assert read_run(tmp_path).state == "running"
    assert read_run(tmp_path).state == "stopped"


def test_reading_a_killed_run_leaves_every_byte_of_its_journal(tmp_path: Path) -> None:
    with watched(tmp_path / "a") as audit:
        audit.kill()
        files = [audit.folder / name for name in ("journal.db", "journal.db-wal")]
        before = [file.read_bytes() for file in files]
        assert read_run(audit.folder).calls > 1
        assert read_rates(audit.folder).rows
        assert [file.read_bytes() for file in files] == before


def test_intervals_of_a_running_audit_are_those_that_its_end_would_journal(
    runs: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(runs / "first", tmp_path / "a")
    ended = read_rates(folder)
    with closing(SQLiteJournal(folder / "journal.db")) as journal:
        journal.set_facts(ended=None, intervals=None)
    again = read_rates(folder)
    for one, other in zip(ended.rows, again.rows, strict=True):
        assert (one.id, one.certified) == (other.id, other.certified)
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), abs=1e-9)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE facts SET value = '{' WHERE name = 'settings'", "expected JSON"),
        ("UPDATE facts SET value = '[1]' WHERE name = 'space'", "'space' is damaged"),
        ("DROP TABLE calls", "got no table 'calls'"),
        ("UPDATE calls SET cost = 9e999", "costs that add up"),
    ],
)
def test_a_damaged_journal_is_a_sentence(
    runs: Path, tmp_path: Path, statement: str, told: str
) -> None:
    shutil.copytree(runs / "first", tmp_path / "a")
    with closing(sqlite3.connect(tmp_path / "a" / "journal.db")) as db:
        db.execute("PRAGMA foreign_keys=OFF")
        db.execute(statement)
        db.commit()
    run = read_run(tmp_path / "a")
    assert run.state == "unreadable"
    assert told in run.words


def test_links_out_of_the_folder_are_left_out(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "out").symlink_to(runs / "first")
    inner = tmp_path / "in" / "journal"
    inner.mkdir()
    (inner / "journal.db").symlink_to(runs / "first" / "journal.db")
    shutil.copytree(runs / "second", tmp_path / "in" / "own")
    assert list(find(tmp_path / "in")) == ["own"]
    assert find(tmp_path / "in" / "own") == {"own": tmp_path / "in" / "own"}
    with pytest.raises(InputError, match="expected a run folder or a folder of runs, got nothing"):
        find(tmp_path / "nowhere")


def test_whoever_looks_at_a_lock_never_hinders_a_writer(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    assert holder(journal) is None
    lock = Lock(journal)
    assert holder(journal) == os.getpid()
    lock.release()
    assert holder(journal) is None
    child = os.fork()
    while child == 0:  # nothing but a look, again and again
        holder(journal)
        time.sleep(0.001)
    try:
        for _ in range(200):
            Lock(journal).release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def rate(lower: float, upper: float, valid: bool = True, name: str = "a") -> TargetStatus:
    middle, about = (lower + upper) / 2, OfRelation(name)
    return TargetStatus(
        id=about, estimate=middle, lower=lower, upper=upper, certified=True, invalidated=not valid
    )


def test_the_surely_worst_has_the_highest_lower_bound() -> None:
    unsure, worse, broken = rate(0.0, 0.9), rate(0.2, 0.3, name="b"), rate(0.6, 0.7, valid=False)

    def worst(*rows: TargetStatus) -> TargetStatus | None:
        return Rates("", "", "", "loss", 0.95, "all", rows).worst

    assert worst(unsure, worse, broken, rate(0.0, 0.1, name="c")) == worse
    assert worst(unsure, worse, broken, rate(0.0, 0.2, name="c")) is None  # they may be alike
    assert worst(worse) is worst(unsure) is None  # nothing beside it


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (rate(0.1234, 0.2), "12.3 to 20.0 %"),
        (rate(0.13, 0.2001), "13.0 to 20.1 %"),
        (rate(0.0, 1.0), "0 to 100 %"),
        (replace(rate(-0.0751, 0.2), id=OfDrop("fog")), "−7.6 to +20.0 points, changed − original"),
        (replace(rate(0.1, 0.1), id=OfDrop("fog")), "+10.0 points, changed − original, exact"),
    ],
)
def test_intervals_are_rounded_outwards(status: TargetStatus, words: str) -> None:
    assert span_of(status) == words


def test_times_are_told_in_a_persons_units() -> None:
    hour = 3600
    words = [ago(s) for s in (-1, 3.9, 59, 60, hour - 1, hour, 47 * hour, 72 * hour)]
    units = ["0 s", "3 s", "59 s", "1 min", "59 min", "1 h", "47 h", "3 days"]
    assert words == [f"{each} ago" for each in units]


# -- censuses: exact rates ------------------------------------------------------------------


def counted(folder: Path, **options: Any) -> Path:
    options |= {"strategy": "everything", "journal": folder / "journal.db"}
    with Audit(small_space(), ScriptedModel(seed=3), **options) as audit:
        audit.run().save(folder)
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return counted(tmp_path_factory.mktemp("runs") / "whole")


def test_a_census_is_listed_with_its_exact_rates(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rates = json.loads((whole / "result.json").read_text())["census"]["rates"]
    table = shown("runs", str(whole.parent))
    words = " ".join(table.split())
    assert f"whole {len(rates)} exact" in words
    assert " scripted " in words
    (record,) = json.loads(shown("runs", str(whole), "--json"))
    exact = {row["target"]: row["exact"] for row in rates}
    worst = record["worst"]
    assert worst["estimate"] == worst["lower"] == worst["upper"] == exact[worst["target"]]
    assert worst["estimate"] == max(exact.values())
    assert record["census"]
    assert "%, exact" in words


@pytest.mark.slow
def test_a_census_that_a_limit_ended_says_so(tmp_path: Path) -> None:
    cut = counted(tmp_path / "cut", budget=40)
    assert "exact" not in shown("runs", str(tmp_path))
    assert read_run(cut).note == "40 calls were made"
    assert not all(row.certified for row in read_rates(cut).rows)
    assert run("gate", str(cut), "--rule", "overall <= 0.1") in (1, 4)
    report = (cut / "report.html").read_text()
    assert "Not every question was asked" in report


@pytest.mark.slow
def test_view_lists_a_census_and_shows_its_report(whole: Path, tmp_path: Path) -> None:
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
    assert "Exact rates" in (report.out / "report.html").read_text()
    assert report.head == read_run(whole).head
