"""``avtt fleet`` as it is typed: processes, a loopback endpoint that keeps the bill, kills."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.audit.fleet import FLEET
from adaptive_vtt.audit.fleet.broker import Caps, Member, read_fleet_db
from adaptive_vtt.cli.fleet_processes import Crew, _told
from tests.campaigns.fleet_kills import kills
from tests.helpers.command_line import run

FLEET_TOML = """
[fleet]
max_calls = 60
[[member]]
spec = "a/SPEC.toml"
set.audit.seed = 1
set.certify.targets = ["overall"]
set.certify.half_width = 0.3
[[member]]
spec = "a/SPEC.toml"
name = "b"
set.audit.seed = 1
set.certify.half_width = 0.1
"""


def ran(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    program = "from adaptive_vtt.cli import main; main()"
    words = [sys.executable, "-c", program, *arguments]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)


def test_members_that_died_before_they_were_told_are_noted_and_others_go_on() -> None:
    nobody: Any = None
    ended = [sys.executable, "-c", "raise SystemExit(3)"]
    crew = Crew(nobody, Path(), (), goes_on=False)
    with crew:
        for name in ("a", "b"):
            crew._running[name] = subprocess.Popen(ended, stdin=subprocess.PIPE, text=True)
            crew._running[name].wait()
            _told(crew._running[name], "go")
        crew._look()
        assert crew.died == {"a": 3, "b": 3}
        crew._running["c"] = subprocess.Popen(ended, stdin=subprocess.PIPE, text=True)
        crew._running["c"].wait()
        _told(crew._running["c"], "go")


@pytest.mark.slow
def test_a_fleet_keeps_to_its_calls_and_goes_on_with_more(tmp_path: Path) -> None:
    assert ran(tmp_path, "init", "a").returncode == 0
    (tmp_path / "FLEET.toml").write_text(FLEET_TOML)
    first = ran(tmp_path, "fleet", "FLEET.toml", "--out", "out", "--require-certified")
    assert first.returncode == 3
    assert max(map(len, first.stdout.splitlines()[:12])) <= 80
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    assert told["calls"] == 60
    assert [m["state"] for m in told["members"]] == ["done", "short"]
    assert [m["certified"] for m in told["members"]] == [1, 0]
    assert "the fleet's 60 calls are used up" in first.stdout
    assert "avtt fleet FLEET.toml --out out --resume --max-calls " in first.stdout
    again = ran(tmp_path, "fleet", "FLEET.toml", "--out", "out")
    assert (again.returncode, "holds a fleet already; --resume" in again.stderr) == (2, True)
    more = ("fleet", "FLEET.toml", "--out", "out", "--resume", "--max-calls", "75", "--json")
    second = ran(tmp_path, *more)
    assert second.returncode == 0
    assert json.loads(second.stdout)["calls"] == 75
    for name in ("a", "b"):
        assert ran(tmp_path, "verify", f"out/{name}").returncode == 0
    # one member alone, under its own limit, which the fleet counts when it goes on
    alone = ran(tmp_path, "resume", "out/b", "--budget", "500", "--json")
    assert alone.returncode == 2
    assert (
        "out/b: is a member of the fleet in out, whose cap it shares; 'avtt fleet" in alone.stderr
    )
    alone = ran(tmp_path, "resume", "out/b", "--leave-fleet", "--json")
    assert alone.returncode == 0
    assert json.loads(alone.stdout)["calls"] > json.loads(second.stdout)["members"][1]["calls"]
    again = ran(tmp_path, *more)
    assert again.returncode == 2
    assert "max_calls: expected at least" in again.stderr


@pytest.mark.slow
def test_nothing_is_asked_where_one_member_cannot_begin(tmp_path: Path) -> None:
    assert ran(tmp_path, "init", "a").returncode == 0
    bad = FLEET_TOML + 'set.model.target = "none.py:predict"\n'
    (tmp_path / "FLEET.toml").write_text(bad)
    ended = ran(tmp_path, "fleet", "FLEET.toml", "--out", "out")
    assert ended.returncode == 2
    assert "member 'b': " in ended.stderr
    assert "none.py" in ended.stderr
    assert "nothing was asked" in ended.stderr
    _, members = read_fleet_db(tmp_path / "out" / FLEET)
    assert [member.drawn for member in members] == [0, 0]
    # mended, the same command begins
    (tmp_path / "FLEET.toml").write_text(FLEET_TOML)
    assert ran(tmp_path, "fleet", "FLEET.toml", "--out", "out").returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux")
def test_fleets_over_loopback_keep_the_cap_when_killed() -> None:
    rows = kills(6)
    assert sum(row["kills"] for row in rows) >= 6
    for row in rows:
        assert row["kept"], row
        assert 0 <= row["answered twice"] <= row["calls lost"], row
        assert (row["code"], row["verified"]) == (0, 3)


def test_the_table_fits_80_columns_and_says_what_was_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rich.console import Console

    from adaptive_vtt.cli.fleet_table import in_all, record, table

    figures = {"certified": 3, "targets": 12, "widest": 0.1234, "calls": 1234, "spent": 1.5}
    long = "a-name-that-is-much-longer-than-any-column-should-be"
    members = [
        Member(long, 0, 2.0, 1234, 1.5, 1234, "stopped", 0.0, "was killed by signal 9", figures),
        Member("b", 1, 0.5, 10, 0.5, 10, "done", 0.0, "all 5 targets are certified", {}),
    ]
    caps = Caps(5.0, 9000, 1)
    Console(width=80).print(table(members, caps))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "3/12  +-12.3 points  1,234  $1.50  $0.50  stopped" in shown
    assert in_all(members, caps) == "$2.00 of $5.00 spent, 1,244 of 9,000 calls"
    told = record(members, caps, Path("out"))
    assert (told["cost"], told["may_have_cost"], told["calls"]) == (2.0, 2.5, 1244)
    assert told["members"][0]["stop_reason"] == "was killed by signal 9"


def test_it_is_a_command_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fleet", "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Run several audits under one cap" in shown
    assert "--resume" in shown
