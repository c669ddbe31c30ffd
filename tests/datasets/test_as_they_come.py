"""The folders and tables of ``as_they_come.toml``, as ``avtt init`` reads them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command_line import run
from tests.helpers.small_datasets import mask, picture

CASES = tomllib.loads(Path(__file__).with_name("as_they_come.toml").read_text(encoding="utf-8"))


def expanded(files):
    """Return names of files: "{3}" stands for 0, 1 and 2."""
    for file in files:
        before, count, after = re.fullmatch(r"(.*?)(?:\{(\d+)\}(.*))?", file).groups()
        yield from [file] if count is None else [f"{before}{k}{after}" for k in range(int(count))]


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_what_was_meant(tmp_path, capsys, name):
    case: dict[str, Any] = CASES[name]
    top = tmp_path / "data"
    for folder in case.get("folders", ()):
        (top / folder).mkdir(parents=True)
    for file in expanded(case["images"]):
        picture(top / file)
    for file in expanded(case.get("masks", ())):
        mask(top / file)
    for file, text in case.get("texts", {}).items():
        (top / file).parent.mkdir(exist_ok=True)
        (top / file).write_text(text)
    status = run("init", str(tmp_path / "spec"), "--data", str(top))
    out, error = (" ".join(text.split()) for text in capsys.readouterr())
    assert status == (2 if "error" in case else 0), error
    assert (tmp_path / "spec").exists() == (status == 0)
    if status:
        assert re.search(case["error"], error)
    for concept, (present, absent) in case.get("concepts", {}).items():
        counts = f"{concept} concept: {present} yes, {absent} no"
        one_of_several = f"{concept} class of images: {present}"
        assert counts in out or one_of_several in out or (not present + absent and concept in out)
    assert case.get("says", "").replace(": ", " ", 1) in out
