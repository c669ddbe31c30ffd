"""``avtt slices``, ``certify.discover``, and what the report shows of slices."""

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.journal import MemoryJournal, read_journal
from adaptive_vtt.results.report.evidence import Evidence
from adaptive_vtt.results.report.gallery import slices_section
from adaptive_vtt.results.report.page import render
from adaptive_vtt.utils.image_codec import png
from tests.helpers.command_line import refused, run, shown

MODEL = """
def predict(images):
    return [[float(image.mean() > 130)] for image in images]
"""
SPEC = """
[dataset]
kind = "table"
labels = "labels.csv"
images = "images"
metadata = ["lamp", "site"]
[model]
kind = "python"
target = "model.py:predict"
[certify]
half_width = 0.07
targets = ["overall"]
surrogate = false
self_taught = false
"""


def lit(folder: Path, samples: int = 150) -> Path:
    """A SPEC.toml: bright images are taken for dark under a red lamp."""
    rng = np.random.default_rng(0)
    (folder / "images").mkdir()
    rows = []
    for k in range(samples):
        bright, red = int(rng.random() < 0.5), bool(rng.random() < 0.25)
        image = rng.integers(60, 90, (8, 8, 3), dtype=np.uint8) + np.uint8(90 * bright)
        if red:
            image[:, :, 1:] //= 2
        (folder / "images" / f"{k}.png").write_bytes(png(image))
        lamp = "red" if red else "white"
        rows.append((f"{k}.png", bright, lamp, rng.choice(["north", "south"])))
    table = pd.DataFrame(rows, columns=["id", "bright", "lamp", "site"])
    table.to_csv(folder / "labels.csv", index=False)
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    (folder / "SPEC.toml").write_text(SPEC, encoding="utf-8")
    return folder / "SPEC.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: "plain" set nothing aside, "found" looked for slices."""
    spec = str(lit(tmp_path_factory.mktemp("slices")))
    runs = Path(spec).parent
    for name, more in {"plain": ["--sample"], "found": ["--set", "certify.discover=2"]}.items():
        assert run("audit", spec, "--seed", "1", "--out", str(runs / name), "--json", *more) == 0
    return runs


def test_what_the_audit_found_is_certified_and_told(folder):
    text = shown("slices", str(folder / "found"))
    rate = r"[0-9.]+ to [0-9.]+ %"
    assert re.search(
        rf"^lamp red, present\n  rate {rate} on the \d+ questions unseen when it was noticed\n"
        rf"  whole slice {rate}, certified\n  discovered at call \d+, ",
        text,
    )
    assert max(map(len, text.splitlines())) <= 80
    as_json = json.loads(shown("slices", str(folder / "found"), "--json"))
    assert as_json["certified"][0]["slice"] == "lamp red, present"
    assert as_json["set_aside"] == 0.1
    result = json.loads((folder / "found" / "result.json").read_text())
    row = result["targets"][-1]
    assert (row["kind"], row["filter"], row["certified"]) == ("slice", "lamp red, present", True)
    shown("verify", str(folder / "found"))


def test_guesses_are_told_as_such_with_what_would_certify_them(folder):
    text = shown("slices", str(folder / "plain"))
    assert text.startswith("lamp red, present")
    assert "guesses: chosen among" in text
    assert '"lamp red, present' in text.split("[certify.where]")[1]
    assert max(map(len, text.splitlines())) <= 80
    matches = json.loads(shown("slices", str(folder / "plain"), "--json"))
    first = matches["proposed"][0]
    assert first["where"]["lamp"] == ["red"]
    assert first["least_lift"] <= first["lift"]
    assert len(first["examples"]) == 3


def test_resume_looks_only_where_alpha_was_set_aside(folder):
    output = refused("resume", str(folder / "plain"), "--set", "certify.discover=2")
    assert "expected an audit that set a share of its alpha aside" in output
    text = refused("slices", str(folder / "plain"), "--by", "lamps")
    assert "unknown proposer 'lamps'" in text


def test_a_gate_may_name_a_slice(folder):
    rule = "slice:lamp red, present >= 10 %"
    assert shown("gate", str(folder / "found"), "--rule", rule).startswith("gate: pass; ")


def test_exploring_looks_for_nothing(folder):
    output = refused("audit", "--demo", "--explore", "--set", "certify.discover=2")
    assert "expected either --explore, which certifies nothing, or --set certify.discover" in output


def test_the_report_shows_slices_with_pictures(folder):
    with closing(read_journal(folder / "found" / "journal.db")) as journal:
        page, shown = render(journal), slices_section(Evidence(journal))
    assert shown is not None
    html = str(shown.html)
    assert html in page
    assert "lamp red, present</a>" in html
    assert 1 <= html.count('<img src="data:image/') <= 6
    assert "Noticed after" in html
    assert "only the draws made after that certify it" in html
    rate = r"<b>[0-9.]+ to [0-9.]+.%</b>"
    assert re.search(rf"questions unseen when it was noticed {rate} fail.*: quote this", html)
    with closing(read_journal(folder / "plain" / "journal.db")) as journal:
        assert slices_section(Evidence(journal)) is None  # none were looked for


def test_a_name_cannot_break_out_of_the_report(folder):
    evil, other = "<script>alert(1)</script>", MemoryJournal()
    with closing(read_journal(folder / "found" / "journal.db")) as journal:
        facts: Any = journal.facts()
        slices = [{**facts["slices"][0], "name": evil}]
        other.set_facts(**{**facts, "slices": slices})
        other.add(journal.draws())
        other.add(journal.calls())
    page = render(other)
    assert evil not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_gate_whose_targets_are_as_certain_as_asked_says_what_more_to_ask(folder):
    rate = json.loads((folder / "plain" / "result.json").read_text())["targets"][0]["estimate"]
    rule = f"overall <= {rate + 0.03:.4f}"
    output = shown("gate", str(folder / "plain"), "--rule", rule, code=4)
    output = " ".join(output.split())
    assert "asks more, for narrower intervals than requested avtt" in output
    assert re.search(r"avtt resume \S+ --half-width 0\.0(29|3)", output)
