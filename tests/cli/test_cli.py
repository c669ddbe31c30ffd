"""The command line: what it promises a user, and one sentence for every mistake."""

import inspect
import json
import re
import shutil
import sqlite3
from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest
from plotly.io._html import plotly_cdn_url
from plotly.offline import get_plotlyjs

from adaptive_vtt.cli.init import commented_spec, field_texts, write_start
from adaptive_vtt.cli.main import SUMMARIES, command
from adaptive_vtt.cli.options import share
from adaptive_vtt.config import Spec, parse_spec
from adaptive_vtt.config.section import kinds_of
from tests.helpers.command_line import plain_start, refused, run, shown

REPOSITORY = Path(__file__).parents[2]


class Audited(NamedTuple):
    """A folder of ``avtt init``, the run folder of its audit, and what was printed with --json."""

    start: Path
    out: Path
    printed: str


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """The audit that ``avtt init`` offers, run to its end without predictions."""
    start, out = (tmp_path_factory.mktemp("audited") / name for name in ("start", "run"))
    plain_start(start, budget=40)
    printed = shown("audit", str(start / "SPEC.toml"), "--out", str(out), "--json")
    return Audited(start, out, printed)


# -- what works ---------------------------------------------------------------------------


def test_init_writes_a_spec_that_runs_and_leaves_journal_result_and_report(audited):
    out = audited.out
    result = json.loads((out / "result.json").read_text())
    assert json.loads(audited.printed) == result  # --json prints nothing else
    assert result["stop_reason"]
    assert 0 < result["calls"] <= 40
    assert result["questions"] == 2 * result["calls"]
    assert {t["target"] for t in result["targets"]} > {
        "overall label error",
        "relation rotation: label error",
    }
    assert (out / "report.html").stat().st_size > 10_000
    assert (out / "journal.db").exists()


def test_the_commented_spec_names_every_field_and_uncommented_lines_parse():
    text = commented_spec(field_texts("chosen"))
    import tomllib

    parse_spec(tomllib.loads(text), "test")
    for section, info in Spec.model_fields.items():
        assert f"[{section}]" in text
        for kind in kinds_of(info.annotation):
            for name, field in kind.model_fields.items():
                assert f"{name} = " in text
                assert name == "kind" or field.description in text
    for line in text.splitlines():
        if re.match(r"# \w+ = ", line):  # left out, and still to be copied
            tomllib.loads(line[2:])


def test_report_rebuilds_everything_from_the_journal_alone(audited, tmp_path):
    """In a folder of its own, where neither spec nor images are."""
    shutil.copy(audited.out / "journal.db", tmp_path / "journal.db")
    audited.start.rename(audited.start.with_name("gone"))
    try:
        assert run("report", str(tmp_path)) == 0
    finally:
        audited.start.with_name("gone").rename(audited.start)
    assert (tmp_path / "result.json").read_text() == (audited.out / "result.json").read_text()
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_plotly_js_is_packed_inside_beside_or_at_its_public_address(audited, tmp_path):
    shutil.copy(audited.out / "journal.db", tmp_path / "journal.db")
    page, library = tmp_path / "report.html", tmp_path / "plotly.min.js"
    sizes = {}
    for way in ("inline", "cdn", "folder"):
        assert not library.exists()
        assert run("report", str(tmp_path), "--plotly", way) == 0
        sizes[way] = page.stat().st_size
        if way == "cdn":
            text = page.read_text()
            assert f'data-src="{plotly_cdn_url()}"' in text
            assert f" {plotly_cdn_url()}" in unescape(text).split("script-src ")[1].split(";")[0]
    assert library.read_text() == get_plotlyjs()
    assert sizes["inline"] > 1_500_000 + max(sizes["cdn"], sizes["folder"])
    message = "--plotly: expected inline, folder or cdn, got 'web'"
    assert message in refused("report", str(tmp_path), "--plotly", "web")
    out = str(tmp_path / "new")
    assert message in refused("audit", "--demo", "--out", out, "--plotly", "web")
    assert not (tmp_path / "new").exists()


def test_no_line_of_a_help_text_is_broken_by_a_narrow_terminal():
    """Lines of later paragraphs are printed as they are written: they fit 80 columns."""
    for name in SUMMARIES:
        assert "Example: avtt" in command(name).help
        paragraphs = inspect.cleandoc(command(name).help).split("\n\n")[1:]
        lines = "\n".join(p for p in paragraphs if not p.startswith("Example")).split("\n")
        assert max(map(len, lines)) <= 78, name


def test_list_of_commands_fits_a_screen_and_says_what_each_says_of_itself():
    assert len(shown("--help").splitlines()) <= 40
    assert max(map(len, SUMMARIES.values())) < 60
    summaries = {name: inspect.cleandoc(command(name).help).split("\n\n")[0] for name in SUMMARIES}
    assert {name: " ".join(text.split()) for name, text in summaries.items()} == SUMMARIES


# -- mistakes -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``avtt init --full`` writes it."""
    return write_start(tmp_path_factory.mktemp("written"), full=True).parent


@pytest.fixture
def start(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder to spoil, in which commands are given."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    simulated = 'kind = "simulated"\ntarget = "unbiased"\n'
    (tmp_path / "free.toml").write_text(f'[dataset]\nkind = "fashion"\n[model]\n{simulated}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


AUDIT = ["audit", "SPEC.toml", "--out", "new"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["audit"], "expected either a SPEC.toml or --demo, got neither"),
        (
            ["audit", "nothing.toml"],
            "nothing.toml: expected a SPEC.toml, got nothing: it does not exist",
        ),
        (["resume", "new"], "does not exist"),
        (["audit", "SPEC.toml", "--out", "labels.csv/run"], "cannot be opened"),
        ([*AUDIT, "--strategy", "mine.py"], "of the file's names it is, as in 'mine.py:Name'"),
        ([*AUDIT, "--at-most"], "set by --set certify.at_most=VALUE"),
        (["plan", "--confidence=0.9"], "set by --set certify.confidence=VALUE"),
        ([*AUDIT, "--device"], "--set model.device=VALUE or --set audit.device=VALUE"),
        (["view", "--confidence"], "No such option: --confidence"),
        (["compare", "free.toml"], "expected a budget"),
        (
            ["compare", "SPEC.toml", "--budget", "5", "--strategies", "randm"],
            "did you mean 'random'?",
        ),
    ],
)
def test_a_command_that_cannot_be_followed_is_answered_in_a_line(start, arguments, sentence):
    assert sentence in refused(*arguments)
    assert not (start / "new").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("SPEC.toml", "budget = 200", "budgt = 200", "audit: unknown field 'budgt'"),
        ("SPEC.toml", '"rotation"]', '"rotate"]', "did you mean 'rotation'?"),
        ("SPEC.toml", "# severities = [1, 3, 5]", "severities = [6]", "some of [0, 1, 2, 3, 4, 5]"),
        ("SPEC.toml", '# concepts = ["polyp", "blood"]', 'concepts = ["rond"]', "mean 'round'?"),
        ("SPEC.toml", "model.py:predict", "model.py:predic", "unknown name 'predic'"),
        ("SPEC.toml", "model.py:predict", "model.py", "'package.module:name' or 'file.py:name'"),
        ("labels.csv", "shape-03,0", "shape-03,2", "got '2' at sample 'shape-03'"),
        ("labels.csv", "shape-03,", "shape-02,", "sample id 'shape-02' stands twice"),
        ("labels.csv", "shape-03,", "shape-99,", "59 of 60 images found"),
        (
            "labels.csv",
            "",
            "id,bright,round\nshape-00,,\n",
            "got neither among bright, round; write labels so",
        ),
        ("images/*.png", "", "no image", "is not an image that can be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_before_anything_is_asked(
    start, file, old, new, sentence
):
    for path in start.glob(file):
        text = path.read_text() if old else ""
        assert old in text
        path.write_text(text.replace(old, new, 1) if old else new)
    assert sentence in refused(*AUDIT)
    assert not (start / "new" / "journal.db").exists()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("raise RuntimeError('no\\nlicence')", "raised RuntimeError: no licence"),
        ("return np.full((len(images), 2), np.nan)", "expected P(yes) between 0 and 1, got nan"),
    ],
)
def test_a_model_that_is_broken_is_named_and_nothing_is_lost(start, body, sentence):
    model = f"import numpy as np\ndef predict(images):\n    {body}\n"
    (start / "model.py").write_text(model)
    line = refused(*AUDIT, "--set", "certify.surrogate=false")
    assert sentence in line
    assert "model.py:predict" in line
    with sqlite3.connect(start / "new" / "journal.db") as db:
        assert db.execute("SELECT count(*) FROM draws").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (0,)


def test_a_folder_that_holds_an_audit_is_not_overwritten(audited):
    before = (audited.out / "journal.db").read_bytes()
    given = ["audit", str(audited.start / "SPEC.toml"), "--out", str(audited.out)]
    assert "holds an audit already; 'avtt resume" in refused(*given)
    assert (audited.out / "journal.db").read_bytes() == before


DEAR = """
from adaptive_vtt.testing import ScriptedModel
class Dear(ScriptedModel):
    most_cost = 0.01
"""


@pytest.mark.parametrize("kind", ["openai", "inspect", "dear.py:Dear"])
def test_comparing_wants_a_model_that_costs_nothing(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("dear.py").write_text(DEAR)
    own = "" if kind.endswith("Dear") else 'model = "m/m"\nurl = "http://127.0.0.1:9/v1"\n'
    Path("SPEC.toml").write_text(f'[dataset]\nkind = "fashion"\n[model]\nkind = "{kind}"\n{own}')
    line = refused("compare", "SPEC.toml", "--budget", "5")
    assert f"compare: expected a model that costs nothing, got one of kind '{kind}'" in line


def test_a_key_in_place_of_a_variables_name_is_not_repeated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = 'kind = "openai"\nmodel = "m"\nkey = "sk-planted-0815"\n'
    Path("SPEC.toml").write_text(f'[dataset]\nkind = "fashion"\n[model]\n{model}')
    line = refused(*AUDIT)
    assert "expected the name of an environment variable that holds the key" in line
    assert "planted" not in line


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--half-width", "wide", "expected a number such as 0.05 or '5 %', got 'wide'"),
        ("--budget", "1e3", "expected a whole number, got '1e3'"),
        ("--max-cost", "2 EUR", "expected a number, got '2 EUR'"),
        ("--half-width", "2", "expected a share above 0 and below 0.5, such as 0.02 for +-2"),
        ("--half-width", "60 %", "expected a share above 0 and below 0.5, such as 0.05 for +-5"),
    ],
)
def test_a_text_in_place_of_a_number_gets_a_sentence(option: str, value: str, sentence: str):
    assert f"{option}: {sentence}" in refused("audit", "--demo", option, value)


def test_a_half_width_may_be_written_in_percent():
    assert [share(text) for text in ("5%", "5 %", "0.05", ".05")] == [0.05] * 4
