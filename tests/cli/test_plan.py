"""``avtt plan``: a half-width against calls and money, before anything is paid."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.utils.figures import money, points
from tests.helpers.command_line import refused, run, shown


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    write_start(folder)
    return folder / "SPEC.toml"


def steps(*arguments: str) -> list[dict[str, Any]]:
    return list(json.loads(shown("plan", *arguments, "--json"))["half_widths"])


def test_narrower_takes_more_calls_and_the_bounds_are_in_order(spec: Path) -> None:
    rows = steps(str(spec))
    assert [step["half_width"] for step in rows] == [
        *(0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4)
    ]
    for wide, narrow in zip(rows[1:], rows, strict=False):
        assert narrow["at_least"] >= wide["at_least"]
        assert narrow["likely"]["0.3"] >= wide["likely"]["0.3"]
    for step in rows:
        few, many = step["likely"]["0.1"], step["likely"]["0.3"]
        assert step["at_least"] <= few <= many <= step["at_most"]


def test_a_dry_run_prints_what_a_plan_does(spec: Path) -> None:
    for options in ([], ["--json"]):
        plan = shown("plan", str(spec), "--targets", "overall", *options)
        assert shown("audit", str(spec), "--targets", "overall", "--dry-run", *options) == plan


CAPPED = """
[dataset]
kind = "adaptive_vtt.experiments.medtest.phantoms:frames"
[dataset.options]
count = 100
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


@pytest.mark.parametrize("cap", [pytest.param(0.26, marks=pytest.mark.slow), 0.06])
def test_it_says_how_far_the_cap_on_cost_reaches(cap: float, tmp_path: Path) -> None:
    spec = tmp_path / "SPEC.toml"
    spec.write_text(CAPPED.format(cap=cap))
    rows = steps(str(spec), "--half-width", "0.1,0.2")
    output = " ".join(shown("plan", str(spec), "--half-width", "0.1,0.2").split())
    calls = round(100 * cap)
    text = f"the cap of {money(cap)} on cost pays for about {calls} calls ({calls // 5} at the"
    assert text in output
    reached = dict[str, list[str]]()
    for loss, rate in (("0.1", "10 %"), ("0.3", "30 %")):
        widths = [s["half_width"] for s in rows if s["likely"][loss] <= calls]
        reached.setdefault(points(min(widths)) if widths else "none of these", []).append(rate)
    for width, rates in reached.items():  # two rates that reach the same are named together
        assert re.search(f"{re.escape(width)}.* at a rate of {' or '.join(rates)}[,;]", output)
    # as the report's forecast calls them
    assert "half-width at least rate 10 % rate 30 % at most cost in all" in output


def test_it_needs_no_key_and_says_that_none_is_set(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"MY_KEY": 'key = "MY_KEY"', "MY_PARAMETER": 'options = {user = "${MY_PARAMETER}"}'}
    for name in keys:
        monkeypatch.delenv(name, raising=False)
    spec = tmp_path / "SPEC.toml"
    lines = "\n".join(["retries = 4", *keys.values()])
    spec.write_text(CAPPED.format(cap=0.26).replace("retries = 4", lines))
    assert run("plan", str(spec)) == 0
    text = capsys.readouterr()
    assert "nothing was asked" in text.out
    for name in keys:
        assert f"{name} is not set yet: a plan needs no key, the audit needs" in text.err
    sentence = refused("audit", str(spec), "--out", str(tmp_path / "r"))  # which asks
    assert re.search("variable MY_.*which is not set", sentence)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_it_needs_no_client_library_and_shows_the_words_of_a_call(
    kind: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, kind, None)  # as where it is not installed
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", "abc")
    spec = tmp_path / "SPEC.toml"
    spec.write_text(CAPPED.format(cap=0.26).replace('kind = "openai"', f'kind = "{kind}"'))
    assert run("plan", str(spec)) == 0
    text = capsys.readouterr()
    assert f"the audit needs the package {kind}, a plan does not: pip install" in text.err
    assert "words of a call:\n" in text.out
    assert "polyp" in text.out.partition("words of a call:")[2].partition("nothing was asked")[0]
    assert f"this kind of model needs {kind}: pip install" in refused("audit", str(spec))


def test_items_of_a_csv_are_planned_as_they_are_labelled(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("city\n" + "rome\n" * 100 + "paris\n" * 300)
    (row,) = steps(str(table), "--group", "city", "--half-width", "0.1")
    pool = avtt.Pool.from_frame(pd.read_csv(table), group="city")
    audit = avtt.Audit(pool, half_width=0.1, targets=["overall", "group:city"])
    together = audit.plan().iloc[-1]
    assert [row["at_least"], *row["likely"].values(), row["at_most"]] == together[1:].tolist()
    printed = shown("plan", str(table), "--group", "city", "--half-width", "0.1")
    assert "400 questions; 400 labels" in printed
    assert "labels in all until certified to +-10 points" in printed
    assert "spec" not in printed
    assert "--probe: expected a SPEC.toml with it" in refused("plan", str(table), "--probe")
    sentence = refused("plan", "SPEC.toml", "--group", "city")
    assert "--group: expected a CSV of items with it" in sentence


@pytest.mark.slow
def test_a_pilot_tells_how_its_intervals_narrowed(spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "pilot"
    options = ["--targets", "overall", "--half-width", "0.2", "--seed", "1"]
    options += ["--set", "certify.self_taught=false"]
    assert run("audit", str(spec), *options, "--out", str(out)) == 0
    result = json.loads((out / "result.json").read_text())
    widest = max(row["half_width"] for row in result["targets"])
    same = ["--targets", "overall", "--pilot", str(out)]
    at, half = steps(str(spec), *same, "--half-width", f"{widest / 2},{widest}")
    assert half["by_pilot"] == result["calls"]
    assert result["calls"] < at["by_pilot"] <= min(4 * result["calls"], at["at_most"])
    assert at["cost_by_pilot"] is None  # its calls cost nothing
    assert max(map(len, shown("plan", str(spec), *same).splitlines())) <= 80
    sentence = refused("plan", str(spec), "--pilot", str(out), "--targets", "relations")
    assert "expected an audit of the same targets" in sentence
    few = [*options, "--budget", "5", "--out", str(tmp_path / "few")]
    assert run("audit", str(spec), *few) == 0
    sentence = refused("plan", str(spec), "--targets", "overall", "--pilot", str(tmp_path / "few"))
    assert "more than 8 draws about every target, and that left" in sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--half-width", "narrow"], "--half-width: expected a number such as 0.05 or '5 %'"),
        (["--half-width", "0.7"], "above 0 and below 0.5"),
        (["--targets", "overal"], "unknown target 'overal'"),
    ],
)
def test_mistakes_are_one_sentence(spec: Path, arguments: list[str], sentence: str) -> None:
    assert sentence in refused("plan", str(spec), *arguments)
