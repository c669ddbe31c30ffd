"""The command that makes the rate of images as they are exact, after an audit that left it open."""

import json
import re
import shlex
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt.cli.audit import _asked_whole
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.config import read_spec
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.results.result import summarise
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
    said = capsys.readouterr().out
    assert "all 60 images as they are take 60 calls, and tell their rate exactly:" in said
    command = re.findall(r"^  avtt (census .*)$", said, re.MULTILINE)[0]
    assert run(*shlex.split(command), "--json") == 0
    census = json.loads(capsys.readouterr().out)
    assert (census["calls"], census["rates"][0]["target"]) == (60, "overall error")
    assert (tmp_path / "run-as-they-are" / "census.html").exists()

    with closing(read_journal(out / "journal.db")) as journal:
        facts, result = read_facts(journal.facts()), summarise(journal)
    table, read = result.targets, read_spec(spec)

    def told(space: dict[str, Any] | None = None, **columns: Any) -> str:
        changed = read.model_copy(update={"space": read.space.model_copy(update=space or {})})
        rows = replace(result, targets=table.assign(**columns))
        return _asked_whole(spec, changed, facts, out, rows)

    assert told() in said
    assert not told({"severities": [3]})  # of images as they are there is none
    assert not told(more_calls=30)
    assert not told(certified=True)
    assert not told(more_calls=None)
