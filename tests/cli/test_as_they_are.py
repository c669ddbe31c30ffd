"""The command that makes the rate of images as they are exact, after an audit that left it open."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.certify.further import Range
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.cli.run_folder import named as _named
from adaptive_vtt.results.advice import Names, census_as_they_are, next_steps
from adaptive_vtt.results.opening import opening
from adaptive_vtt.results.run import Run
from adaptive_vtt.types import JsonObject
from tests.helpers.command_line import run


def test_it_is_told_where_it_takes_no_more_than_what_is_open_and_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_start(tmp_path)
    spec, out = tmp_path / "SPEC.toml", tmp_path / "run"
    lacking = "[certify]\nsurrogate = false\nself_taught = false\n"
    spec.write_text(spec.read_text().replace("[certify]\n", lacking))
    options = ["--half-width", "0.1", "--budget", "40", "--seed", "1", "--out", str(out)]
    assert run("audit", str(spec), *options) == 0
    output = capsys.readouterr().out
    assert "asking about all 60 original images takes 60 calls: the exact rate:" in output
    command = re.findall(r"^  avtt (census .*)$", output, re.MULTILINE)[0]
    assert run(*shlex.split(command), "--json") == 0
    census = json.loads(capsys.readouterr().out)
    assert (census["calls"], census["census"]["rates"][0]["target"]) == (60, "overall label error")
    assert (tmp_path / "run-as-they-are" / "report.html").exists()

    with Run.opened(out) as ended:
        facts, statuses = ended.facts, ended.statuses
        step = next(s for s in next_steps(ended, Names()) if "census" in s.command)
    assert step.why == "asking about all 60 original images takes 60 calls: the exact rate"
    assert step.command.partition(" --set")[2] in output.replace(str(out), "DIR")
    assert facts.spec is not None
    before, places = facts.spec, opening(facts)
    assert places is not None

    def text(calls: int = 40, likely: int = 60, width: float = 0.2, **changes: Any) -> bool:
        """Whether it is told after so many calls, with so many to come."""
        changed, asked = facts.model_copy(update=changes), [None] * calls
        plain = replace(statuses[places.plain], lower=0.1, upper=0.1 + width)
        every = [plain if k == places.plain else status for k, status in enumerate(statuses)]
        vars(ended).update(facts=changed, statuses=every, draws=asked, sources=[])
        open_ = [replace(plain, more_calls=Range(likely, likely, likely))]
        return census_as_they_are(ended, open_, Names()) is not None

    def asking(section: str, **fields: Any) -> JsonObject:
        return {**before, section: {**before[section], **fields}}

    assert text()
    assert not text(likely=59)
    assert text(calls=60, likely=0)  # nothing is open, and it takes no more than was spent
    assert not text(width=0.0)  # exact by now
    assert not text(spec=None)
    assert not text(spec=asking("space", severities=[3]))  # of images as they are there is none
    assert not text(spec=asking("certify", where={"a": {"sex": ["f"]}}))
    assert not text(worst=0.1)
    assert not text(endpoint={"calls": 40})


def test_targets_that_were_named_stand_among_the_changes_of_the_spec() -> None:
    changed = ["--set", 'certify.targets=["overall"]', "--set", "audit.seed=1"]
    assert _named(Path("a/SPEC.toml"), ["audit.seed=1"], ["overall"]) == ["SPEC.toml", *changed]
    assert _named(None, None, None) == ["--demo"]
