"""``avtt rejudge``: an audit's answers judged by another oracle, from the command line."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.results.advice import resuming
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import plain_start, refused, run, shown

JUDGE = """
from adaptive_vtt.oracles import Correctness

class Strict(Correctness):
    def __init__(self, share={share}):
        super().__init__(threshold=share)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the folder that ``avtt init`` writes, judged by a file."""
    base = tmp_path_factory.mktemp("rejudged")
    spec = plain_start(base / "my")
    (base / "my" / "judge.py").write_text(JUDGE.format(share=0.5))
    spec.write_text(spec.read_text().replace('"correctness"', '"judge.py:Strict"'))
    given = ("--budget", "25", "--seed", "7", "--targets", "overall")
    assert run("audit", str(spec), *given, "--out", str(base / "first")) == 0
    return base


def test_the_command_takes_another_oracle_or_other_options(folder: Path) -> None:
    first = str(folder / "first")
    given = ("--set", "oracle.options.share=0.9", "--out", str(folder / "b"))
    printed = shown("rejudge", first, *given)
    assert "50 questions judged again, none asked" in printed
    assert "chosen without looking" in printed
    given = ("--oracle", "correctness", "--set", "oracle.threshold=0.9")
    assert run("rejudge", first, *given, "--out", str(folder / "c"), "--json") == 0
    files = [folder / name / "result.json" for name in ("b", "c", "first")]
    targets = [json.loads(file.read_text())["targets"] for file in files]
    assert targets[0] == targets[1] != targets[2]
    assert run("verify", str(folder / "b")) == 0
    assert "resume that audit, and judge it again" in refused("resume", str(folder / "c"))
    assert run("gate", str(folder / "c"), "--rule", "overall <= 0.001") in (1, 4)
    remedy = resuming(read_facts(read_journal(folder / "c" / "journal.db").facts()), folder / "c")
    assert remedy.startswith(f"the audit whose answers these are, {first}, and judge it again")


@pytest.mark.slow
def test_an_oracle_in_a_changed_file_may_judge_and_other_changed_code_may_not(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder / "first", tmp_path / "first")
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(JUDGE.format(share=0.95))
    assert run("rejudge", "first", "--oracle", "mine.py:Strict", "--out", "again") == 0
    assert avtt.read_result("again").warnings[0].count("which Strict judged") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--set", "share"), r"expected SECTION.FIELD=VALUE, .*, got 'share'"),
        (("--set", "audit.seed=1"), r"expected oracle.FIELD, .*, got 'audit'"),
        (("--oracle", "corectness"), r"did you mean 'correctness'"),
        (("--oracle", "correctness", "--set", "oracle.treshold=1"), r"treshold"),
        (("--oracle", "consistency"), r"asked about none; an audit with this oracle has to ask"),
    ],
)
def test_bad_input_has_its_sentence(folder: Path, tmp_path: Path, given: Any, message: str) -> None:
    assert re.search(
        message, refused("rejudge", str(folder / "first"), *given, "--out", str(tmp_path / "no"))
    )
    assert not (tmp_path / "no").exists()


REGIONS = """
[dataset]
kind = "yolo"
path = "."
[regions]
grid = [2, 2]
[model]
kind = "simulated"
target = "unbiased"
[space]
relations = ["identity"]
[certify]
half_width = 0.4
surrogate = false
self_taught = false
"""


@pytest.mark.slow
def test_without_an_oracle_it_is_the_audits_that_suits_the_regions(tmp_path: Path) -> None:
    """An image shows one class, as of classification; its regions do not."""
    for name in ("images", "labels"):
        (tmp_path / name).mkdir()
    for number in range(6):
        (tmp_path / "images" / f"{number}.png").write_bytes(png(np.zeros((8, 8, 3), np.uint8)))
        (tmp_path / "labels" / f"{number}.txt").write_text(f"{number % 2} 0.2 0.2 0.3 0.3\n")
    (tmp_path / "SPEC.toml").write_text(REGIONS)
    first, again = tmp_path / "first", tmp_path / "again"
    given = ("--sample", "--budget", "4", "--seed", "1", "--out", str(first))
    assert run("audit", str(tmp_path / "SPEC.toml"), *given) == 0
    assert run("rejudge", str(first), "--out", str(again)) == 0
    before, after = (json.loads((f / "result.json").read_text()) for f in (first, again))
    assert [t["target"] for t in after["targets"]] == [t["target"] for t in before["targets"]]
