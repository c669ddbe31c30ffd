"""``avtt plan``: a half-width against calls and money, before anything is paid."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.utils.figures import money, points
from tests.helpers.command_line import run


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    write_start(folder)
    return folder / "SPEC.toml"


def steps(capsys: Any, *arguments: str) -> list[dict[str, Any]]:
    assert run("plan", *arguments, "--json") == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["half_widths"]
    return rows


def test_narrower_takes_more_calls_and_the_bounds_are_in_order(spec: Path, capsys: Any) -> None:
    rows = steps(capsys, str(spec))
    assert [step["half_width"] for step in rows] == [
        *(0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4)
    ]
    for wide, narrow in zip(rows[1:], rows, strict=False):
        assert narrow["at_least"] >= wide["at_least"]
        assert narrow["likely"]["0.3"] >= wide["likely"]["0.3"]
    for step in rows:
        few, many = step["likely"]["0.1"], step["likely"]["0.3"]
        assert step["at_least"] <= few <= many <= step["at_most"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_dry_run_prints_what_a_plan_does(spec: Path, capsys: Any, options: list[str]) -> None:
    assert run("plan", str(spec), "--targets", "overall", *options) == 0
    plan = capsys.readouterr().out
    assert run("audit", str(spec), "--targets", "overall", "--dry-run", *options) == 0
    assert capsys.readouterr().out == plan


CAPPED = """
[dataset]
kind = "adaptive_vtt.experiments.medtest.phantoms:frames"
[dataset.options]
count = 200
size = 64
concepts = ["polyp"]
[model]
kind = "openai"
model = "m"
url = "http://127.0.0.1:9"
price_per_call = 0.01
retries = 4
[audit]
max_cost = {cap}
[certify]
half_width = 0.1
targets = ["overall"]
"""


@pytest.mark.parametrize("cap", [0.26, 0.06])
def test_it_says_how_far_the_cap_on_cost_reaches(cap: float, tmp_path: Path, capsys: Any) -> None:
    spec = tmp_path / "SPEC.toml"
    spec.write_text(CAPPED.format(cap=cap))
    rows = steps(capsys, str(spec), "--half-width", "0.1,0.2")
    assert run("plan", str(spec), "--half-width", "0.1,0.2") == 0
    output = " ".join(capsys.readouterr().out.split())
    calls = round(100 * cap)
    text = f"the cap of {money(cap)} on cost pays for about {calls} calls ({calls // 5} at the"
    assert text in output
    for loss in ("0.1", "0.3"):
        reached = [s["half_width"] for s in rows if s["likely"][loss] <= calls]
        width = points(min(reached)) if reached else "none of these"
        assert f"{width} at a rate of {100 * float(loss):.0f} %" in output
    # as the report's forecast calls them
    assert "half-width at least rate 10 % rate 30 % at most cost in all" in output


@pytest.mark.parametrize(
    "command",
    [["plan"], ["audit", "--dry-run"]],
)
def test_it_needs_no_key_and_says_that_none_is_set(
    command: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"MY_KEY": 'key = "MY_KEY"', "MY_PARAMETER": 'options = {user = "${MY_PARAMETER}"}'}
    for name in keys:
        monkeypatch.delenv(name, raising=False)
    spec = tmp_path / "SPEC.toml"
    lines = "\n".join(["retries = 4", *keys.values()])
    spec.write_text(CAPPED.format(cap=0.26).replace("retries = 4", lines))
    assert run(*command, str(spec)) == 0
    text = capsys.readouterr()
    assert "nothing was asked" in text.out
    for name in keys:
        assert f"{name} is not set yet: a plan needs no key, the audit needs" in text.err
    assert run("audit", str(spec), "--out", str(tmp_path / "r")) == 2  # which asks
    assert "variable MY_" in (refused := capsys.readouterr().err)
    assert "which is not set" in " ".join(refused.split())
    assert not (tmp_path / "r").exists()


def test_items_of_a_csv_are_planned_as_they_are_labelled(tmp_path: Path, capsys: Any) -> None:
    table = tmp_path / "items.csv"
    table.write_text("city\n" + "rome\n" * 100 + "paris\n" * 300)
    (row,) = steps(capsys, str(table), "--group", "city", "--half-width", "0.1")
    pool = avtt.Pool.from_frame(pd.read_csv(table), group="city")
    audit = avtt.Audit(pool, half_width=0.1, targets=["overall", "group:city"])
    together = audit.plan().iloc[-1]
    assert [row["at_least"], *row["likely"].values(), row["at_most"]] == together[1:].tolist()
    assert run("plan", str(table), "--group", "city", "--half-width", "0.1") == 0
    printed = capsys.readouterr().out
    assert "400 questions; 400 labels" in printed
    assert "labels in all until certified to +-10 points" in printed
    assert "spec" not in printed
    assert run("plan", str(table), "--probe") == 2
    assert "--probe: expected a SPEC.toml with it" in capsys.readouterr().err
    assert run("plan", "SPEC.toml", "--group", "city") == 2
    assert "--group: expected a CSV of items with it" in capsys.readouterr().err


@pytest.mark.slow
def test_a_pilot_tells_how_its_intervals_narrowed(spec: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "pilot"
    options = [
        "--targets",
        "overall",
        "--half-width",
        "0.2",
        "--set",
        "certify.self_taught=false",
        "--seed",
        "1",
    ]
    assert run("audit", str(spec), *options, "--out", str(out)) == 0
    result = json.loads((out / "result.json").read_text())
    widest = max(row["half_width"] for row in result["targets"])
    capsys.readouterr()
    same = ["--targets", "overall", "--pilot", str(out)]
    at, half = steps(capsys, str(spec), *same, "--half-width", f"{widest / 2},{widest}")
    assert half["by_pilot"] == result["calls"]
    assert result["calls"] < at["by_pilot"] <= min(4 * result["calls"], at["at_most"])
    assert at["cost_by_pilot"] is None  # its calls cost nothing
    assert run("plan", str(spec), *same) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    assert run("plan", str(spec), "--pilot", str(out), "--targets", "relations") == 2
    assert "expected an audit of the same targets" in capsys.readouterr().err
    few = [*options, "--budget", "5", "--out", str(tmp_path / "few")]
    assert run("audit", str(spec), *few) == 0
    capsys.readouterr()
    assert run("plan", str(spec), "--targets", "overall", "--pilot", str(tmp_path / "few")) == 2
    assert "more than 8 draws about every target, and that left" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--half-width", "narrow"], "--half-width: expected numbers such as 0.05,0.1"),
        (["--half-width", "0.7"], "above 0 and below 0.5"),
        (["--targets", "overal"], "unknown target 'overal'"),
    ],
)
def test_mistakes_are_one_sentence(
    spec: Path, capsys: Any, arguments: list[str], sentence: str
) -> None:
    assert run("plan", str(spec), *arguments) == 2
    assert sentence in capsys.readouterr().err
