"""The command line: what it promises a user, and one sentence for every mistake."""

import inspect
import io
import json
import re
import shutil
import sqlite3
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from plotly.io._html import plotly_cdn_url
from plotly.offline import get_plotlyjs

from adaptive_vtt.cli.init import SET, commented_spec, write_start
from adaptive_vtt.cli.main import SUMMARIES, command
from adaptive_vtt.config import Spec, parse_spec
from adaptive_vtt.config.section import kinds_of
from tests.helpers.command_line import plain_start, run

REPOSITORY = Path(__file__).parents[2]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line a mistake is answered with."""
    assert run(*arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    lines = [line for line in lines if line.startswith("avtt: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A folder as ``avtt init --full`` writes it."""
    write_start(tmp_path / "start", full=True)
    return tmp_path / "start"


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
    with redirect_stdout(io.StringIO()) as printed:
        assert run("audit", str(start / "SPEC.toml"), "--out", str(out), "--json") == 0
    return Audited(start, out, printed.getvalue())


def edit(start: Path, old: str, new: str) -> str:
    spec = start / "SPEC.toml"
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))
    return str(spec)


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
    text = commented_spec(SET)
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
def test_plotly_js_is_packed_inside_beside_or_at_its_public_address(audited, tmp_path, capsys):
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
            assert text.split("base-uri")[0].endswith(f" {plotly_cdn_url()}; ")  # may run
    assert library.read_text() == get_plotlyjs()
    assert sizes["inline"] > 1_500_000 + max(sizes["cdn"], sizes["folder"])
    message = "--plotly: expected inline, folder or cdn, got 'web'"
    assert message in refused(capsys, "report", str(tmp_path), "--plotly", "web")
    out = str(tmp_path / "new")
    assert message in refused(capsys, "audit", "--demo", "--out", out, "--plotly", "web")
    assert not (tmp_path / "new").exists()


def test_no_line_of_a_help_text_is_broken_by_a_narrow_terminal():
    """Lines of later paragraphs are printed as they are written: they fit 80 columns."""
    for name in SUMMARIES:
        assert "Example: avtt" in command(name).help
        paragraphs = inspect.cleandoc(command(name).help).split("\n\n")[1:]
        lines = "\n".join(p for p in paragraphs if not p.startswith("Example")).split("\n")
        assert max(map(len, lines)) <= 78, name


def test_list_of_commands_fits_a_screen_and_says_what_each_says_of_itself(capsys):
    assert run("--help") == 0
    assert len(capsys.readouterr().out.splitlines()) <= 40
    assert max(map(len, SUMMARIES.values())) < 60
    summaries = {name: inspect.cleandoc(command(name).help).split("\n\n")[0] for name in SUMMARIES}
    assert {name: " ".join(text.split()) for name, text in summaries.items()} == SUMMARIES


# -- mistakes -----------------------------------------------------------------------------


def test_neither_spec_nor_demo(capsys):
    assert "expected either a SPEC.toml or --demo, got neither" in refused(capsys, "audit")


def test_missing_spec(capsys):
    assert "nothing.toml: cannot be read: No such file" in refused(capsys, "audit", "nothing.toml")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("budget = 200", "budgt = 200", "audit: unknown field 'budgt'"),
        ("budget = 200", "budget = 0", "audit.budget: expected greater than or equal to 1, got 0"),
        ('"rotation"]', '"rotate"]', "did you mean 'rotation'?"),
        ("# severities = [1, 3, 5]", "severities = [6]", "expected some of [0, 1, 2, 3, 4, 5]"),
        ('# concepts = ["polyp", "blood"]', 'concepts = ["rond"]', "did you mean 'round'?"),
        ('# kind = "python"', 'kind = "pyton"', "model.kind: unknown value 'pyton'"),
        ("# uncertainty = 0.8", "uncertainty = 2.0", "expected less than or equal to 1, got 2.0"),
        ("model.py:predict", "model.py:predic", "unknown name 'predic'"),
        ("model.py:predict", "model.py", "expected 'package.module:name' or 'file.py:name'"),
    ],
)
def test_wrong_spec(start, capsys, tmp_path, old, new, sentence):
    spec = edit(start, old, new)
    assert sentence in refused(capsys, "audit", spec, "--out", str(tmp_path / "r"))
    assert not (tmp_path / "r" / "journal.db").exists()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("raise RuntimeError('no\\nlicence')", "raised RuntimeError: no licence"),
        ("return np.full((len(images), 2), np.nan)", "expected P(yes) between 0 and 1, got nan"),
    ],
)
def test_a_model_that_is_broken_is_named_and_nothing_is_lost(
    start, capsys, tmp_path, body, sentence
):
    model = f"import numpy as np\ndef predict(images):\n    {body}\n"
    (start / "model.py").write_text(model)
    spec, out = str(start / "SPEC.toml"), tmp_path / "r"
    line = refused(capsys, "audit", spec, "--out", str(out))
    assert sentence in line
    assert "model.py:predict" in line
    with sqlite3.connect(out / "journal.db") as db:
        assert db.execute("SELECT count(*) FROM draws").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM answers").fetchone() == (0,)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("shape-03,2,0", "expected 0, 1 or empty (unknown), got '2' at sample 'shape-03'"),
        ("shape-02,0,0", "sample id 'shape-02' stands twice"),
        ("shape-99,0,0", "59 of 60 images found"),
    ],
)
def test_wrong_labels(start, capsys, tmp_path, row, sentence):
    lines = (start / "labels.csv").read_text().splitlines()
    lines[4] = row
    (start / "labels.csv").write_text("\n".join(lines))
    line = refused(capsys, "audit", str(start / "SPEC.toml"), "--out", str(tmp_path / "r"))
    assert sentence in line


def test_unreadable_image(start, capsys, tmp_path):
    for image in (start / "images").iterdir():
        image.write_bytes(b"not an image")
    line = refused(capsys, "audit", str(start / "SPEC.toml"), "--out", str(tmp_path / "r"))
    assert "is not an image that can be read" in line


def test_no_eligible_question(start, capsys, tmp_path):
    (start / "labels.csv").write_text("id,bright,round\nshape-00,,\n")
    line = refused(capsys, "audit", str(start / "SPEC.toml"), "--out", str(tmp_path / "r"))
    assert "no question can be asked" in line


def test_a_folder_that_holds_an_audit_is_not_overwritten(start, capsys, tmp_path):
    arguments = ["audit", str(start / "SPEC.toml"), "--out", str(tmp_path / "r"), "--budget", "3"]
    assert run(*arguments) == 0
    capsys.readouterr()
    assert "holds an audit already; 'avtt resume" in refused(capsys, *arguments)


def test_resume_of_nothing(capsys, tmp_path):
    assert "does not exist" in refused(capsys, "resume", str(tmp_path))
    assert not (tmp_path / "journal.db").exists()


def test_a_folder_that_cannot_be_written(start, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "run")
    line = refused(capsys, "audit", str(start / "SPEC.toml"), "--out", out)
    assert "cannot be opened" in line


@pytest.mark.parametrize(
    ("command", "option", "sentence"),
    [
        ("audit", "--at-most", "set by --set certify.at_most=VALUE"),
        ("plan", "--confidence=0.9", "set by --set certify.confidence=VALUE"),
        ("audit", "--device", "--set model.device=VALUE or --set audit.device=VALUE"),
        ("view", "--confidence", "No such option: --confidence"),
        ("resume", "--confidence", "No such option: --confidence"),
    ],
)
def test_a_field_given_as_an_option_is_told_how_to_be_set(capsys, command, option, sentence):
    assert sentence in refused(capsys, command, option)


def test_compare_wants_a_budget_and_known_names(start, capsys):
    edit(start, "half_width = 0.15", "")
    spec = edit(start, "budget = 200", "")
    assert "expected a budget" in refused(capsys, "compare", spec)
    line = refused(capsys, "compare", spec, "--budget", "5", "--strategies", "randm")
    assert "did you mean 'random'?" in line


@pytest.mark.parametrize("kind", ["openai", "inspect", "dear.py:Dear"])
def test_comparing_on_a_model_that_costs_money_is_refused(kind, tmp_path, capsys):
    (tmp_path / "dear.py").write_text(
        "from adaptive_vtt.testing import ScriptedModel\n"
        "class Dear(ScriptedModel):\n    most_cost = 0.01\n"
    )
    own = "" if kind.endswith("Dear") else 'model = "m/m"\nurl = "http://127.0.0.1:9/v1"\n'
    spec = tmp_path / "SPEC.toml"
    spec.write_text(f'[dataset]\nkind = "fashion"\n[model]\nkind = "{kind}"\n{own}')
    assert run("compare", str(spec), "--budget", "5", "--out", str(tmp_path / "c")) == 2
    assert f"compare: expected a model that costs nothing, got one of kind '{kind}'" in (
        capsys.readouterr().err
    )


def test_a_key_in_place_of_a_variables_name_is_not_repeated(tmp_path, capsys):
    spec = tmp_path / "SPEC.toml"
    spec.write_text(
        '[dataset]\nkind = "fashion"\n[model]\nkind = "openai"\nmodel = "m"\n'
        'key = "sk-planted-0815"\n'
    )
    assert run("audit", str(spec), "--budget", "5", "--out", str(tmp_path / "a")) == 2
    printed = capsys.readouterr()
    assert "expected the name of an environment variable that holds the key" in printed.err
    assert "planted" not in printed.err + printed.out


def test_a_strategy_in_a_file_needs_the_name_of_its_class(tmp_path, capsys):
    out = tmp_path / "run"
    assert run("audit", "--demo", "--strategy", "mine.py", "--out", str(out)) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert "expected which of the file's names it is, as in 'mine.py:Name'" in output
    assert not out.exists()
