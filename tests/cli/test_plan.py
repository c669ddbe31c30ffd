"""``avtt plan``: a half-width against calls and money, before anything is paid."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

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
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["half_widths"]
    return found


def test_narrower_takes_more_calls_and_the_bounds_are_in_order(spec: Path, capsys: Any) -> None:
    found = steps(capsys, str(spec))
    assert [step["half_width"] for step in found] == [
        *(0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4)
    ]
    for wide, narrow in zip(found[1:], found, strict=False):
        assert narrow["at_least"] >= wide["at_least"]
        assert narrow["likely"]["0.3"] >= wide["likely"]["0.3"]
    for step in found:
        few, many = step["likely"]["0.1"], step["likely"]["0.3"]
        assert step["at_least"] <= few <= many <= step["at_most"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_dry_run_prints_what_a_plan_does(spec: Path, capsys: Any, options: list[str]) -> None:
    assert run("plan", str(spec), "--targets", "overall", *options) == 0
    plan = capsys.readouterr().out
    assert run("audit", str(spec), "--targets", "overall", "--dry-run", *options) == 0
    assert capsys.readouterr().out == plan


def test_the_spec_s_own_half_width_takes_what_its_row_says(spec: Path, capsys: Any) -> None:
    options = ["--half-width", "0.1", "--targets", "overall", "--json"]
    assert run("audit", str(spec), "--dry-run", *options) == 0
    told = json.loads(capsys.readouterr().out)
    (step,) = (row for row in told["half_widths"] if row["half_width"] == 0.1)
    assert {name: step[name] for name in ("at_least", "likely", "at_most")} == {
        name: told["together"][name] for name in ("at_least", "likely", "at_most")
    }
    assert step["by_pilot"] is None


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
    found = steps(capsys, str(spec), "--half-width", "0.1,0.2")
    assert run("plan", str(spec), "--half-width", "0.1,0.2") == 0
    said = " ".join(capsys.readouterr().out.split())
    calls = round(100 * cap)
    told = f"the cap of {money(cap)} on cost pays for about {calls} calls ({calls // 5} at the"
    assert told in said
    for loss in ("0.1", "0.3"):
        reached = [s["half_width"] for s in found if s["likely"][loss] <= calls]
        width = points(min(reached)) if reached else "none of these"
        assert f"{width} where {float(loss):.0%} fail" in said


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
    told = capsys.readouterr()
    assert "nothing was asked" in told.out
    for name in keys:
        assert f"{name} is not set yet: a plan needs no key, the audit needs" in told.err
    assert run("audit", str(spec), "--out", str(tmp_path / "r")) == 2  # which asks
    assert "variable MY_" in (refused := capsys.readouterr().err)
    assert "which is not set" in " ".join(refused.split())
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("by_tokens", [False, True])
def test_a_price_of_tokens_is_said_to_be_that_of_the_longest_reply(
    by_tokens: bool, tmp_path: Path, capsys: Any
) -> None:
    spec = tmp_path / "SPEC.toml"
    tokens = "price_input = 2\nprice_output = 9\nmax_input_tokens = 900\nmax_tokens = 64"
    text = CAPPED.format(cap=0.26)
    spec.write_text(text.replace("price_per_call = 0.01", tokens) if by_tokens else text)
    assert run("audit", str(spec), "--dry-run") == 0
    assert (" each at full length, $" in " ".join(capsys.readouterr().out.split())) == by_tokens
    assert run("plan", str(spec)) == 0
    told = "costs are of replies at full length: many calls cost a third of that"
    assert (told in " ".join(capsys.readouterr().out.split())) == by_tokens


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


PRICED = """
[dataset]
kind = "classes"
path = "pictures"
[space]
relations = ["identity", "rotation"]
[model]
kind = "openai"
model = "m"
url = "http://127.0.0.1:9"
price_input = 750.0
price_output = 0.0
max_input_tokens = 5000
[audit]
by_price = {by_price}
[certify]
targets = ["overall"]
"""


def test_where_prices_differ_a_plan_tells_what_calls_are_likely_to_cost(
    tmp_path: Path, capsys: Any
) -> None:
    """Half of the images have nine times the pixels; 750 per million tokens is one per million
    pixels. Each image is asked about twice, dear ones less often where draws go by price."""
    for place in range(20):
        side = 900 if place % 2 else 300
        path = tmp_path / "pictures" / "ab"[place // 10] / f"{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.zeros((side, side, 3), np.uint8))
    call, told = 750 * 40 / 1e6, []  # the words that all prompts have
    for by_price in ("true", "false"):
        spec = tmp_path / "SPEC.toml"
        spec.write_text(PRICED.format(by_price=by_price))
        (step,) = steps(capsys, str(spec), "--half-width", "0.2")
        told.append(step["cost"]["0.3"] / step["likely"]["0.3"])
        most = step["cost_at_most"]["0.3"] / step["likely"]["0.3"]
    cheap, dear = call + 0.09, call + 0.81
    even = (cheap + dear) / 2
    assert told[1] == pytest.approx(even, rel=0.05)  # which images a sample holds
    assert told[0] == pytest.approx(0.8 * (cheap * dear) ** 0.5 + 0.2 * even, rel=0.05)
    many = (300**2 + 900**2) / 2 / 500  # tokens of an image, by a provider that counts many
    assert most == pytest.approx(750 * (40 + 255 + many) / 1e6, rel=0.05)
    assert run("audit", str(spec), "--dry-run", "--half-width", "0.2") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f", {money(told[1])} to {money(most)} likely, $22.50 at most" in said
    assert "prices differ: a call's likely one is guessed from its image and words" in said


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
