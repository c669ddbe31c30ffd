"""The command line: what it promises a user, and one sentence for every mistake."""

import inspect
import io
import json
import resource
import shutil
import sqlite3
import subprocess
import sys
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
from tests.helpers.command_line import run

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
    """The audit that ``avtt init`` offers, run to its end."""
    start, out = (tmp_path_factory.mktemp("audited") / name for name in ("start", "run"))
    write_start(start)
    with redirect_stdout(io.StringIO()) as printed:
        assert run("audit", str(start / "SPEC.toml"), "--out", str(out), "--json") == 0
    return Audited(start, out, printed.getvalue())


def edit(start: Path, old: str, new: str) -> str:
    spec = start / "SPEC.toml"
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))
    return str(spec)


def model(start: Path, body: str) -> str:
    (start / "model.py").write_text(f"import numpy as np\ndef predict(images):\n    {body}\n")
    return str(start / "SPEC.toml")


# -- what works ---------------------------------------------------------------------------


def test_init_writes_a_spec_that_runs_and_leaves_journal_result_and_report(audited):
    out = audited.out
    result = json.loads((out / "result.json").read_text())
    assert result["stop_reason"]
    assert 0 < result["calls"] <= 200
    assert result["questions"] == 2 * result["calls"]
    assert {t["target"] for t in result["targets"]} > {"overall error", "relation rotation: error"}
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


def test_json_prints_json_and_nothing_else(audited):
    assert json.loads(audited.printed)["calls"] > 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_and_another_seed_another(start, tmp_path):
    results = []
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        out = tmp_path / name
        spec = str(start / "SPEC.toml")
        assert run("audit", spec, "--seed", seed, "--budget", "8", "--out", str(out)) == 0
        results.append(json.loads((out / "result.json").read_text())["targets"])
    assert results[0] == results[1]
    assert results[0] != results[2]


@pytest.mark.slow
def test_a_model_that_breaks_midway_can_be_resumed_to_the_undisturbed_result(start, tmp_path):
    spec = str(start / "SPEC.toml")
    text = (start / "SPEC.toml").read_text()
    (start / "SPEC.toml").write_text(text.replace("\n[model]\n", '\n[model]\nversion = "1"\n'))
    good = (start / "model.py").read_text()
    options = ("--seed", "0", "--budget", "20")
    assert run("audit", spec, "--out", str(tmp_path / "whole"), *options) == 0
    (start / "model.py").write_text(
        good.replace(
            "    answers = np.empty((len(images), 2))",
            "    predict.calls = getattr(predict, 'calls', 0) + 1\n"
            "    if predict.calls > 7:\n        raise RuntimeError('out of money')\n"
            "    answers = np.empty((len(images), 2))",
        )
    )
    assert run("audit", spec, "--out", str(tmp_path / "broken"), *options) == 2
    (start / "model.py").write_text(good)
    assert run("resume", str(tmp_path / "broken")) == 0
    result = json.loads((tmp_path / "broken" / "result.json").read_text())
    assert "run 'whole' beside this one" in result.pop("warnings")[0]
    whole = json.loads((tmp_path / "whole" / "result.json").read_text())
    assert whole.pop("warnings") == []
    # the call that raised may have been charged for, and was made again
    assert result.pop("journal_head") != whole.pop("journal_head")
    assert result == {**whole, "lost": 1}


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


@pytest.mark.slow
def test_compare_counts_calls_per_strategy(start, tmp_path):
    out = tmp_path / "cmp"
    spec = str(start / "SPEC.toml")
    options = ["--strategies", "random,uncertainty", "--repeats", "2", "--budget", "8"]
    assert run("compare", spec, *options, "--out", str(out)) == 0
    record = json.loads((out / "compare.json").read_text())
    names = [row["strategy"] for row in record["summary"]]
    assert names == ["uniform", "random", "uncertainty"]  # uniform is there to compare with
    assert len(record["runs"]) == 6
    assert (out / "compare.html").exists()


def test_relations_are_listed_and_previewed(start, tmp_path, capsys):
    assert run("list", "relations", "medtest", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 9
    image = str(next((start / "images").iterdir()))
    assert run("preview", image, "--out", str(tmp_path / "sheet.png")) == 0
    assert (tmp_path / "sheet.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("audit",),
        ("resume",),
        ("report",),
        ("compare",),
        ("init",),
        ("preview",),
        ("label",),
    ],
)
def test_every_command_has_help_with_an_example_and_stands_in_the_docs(command, capsys):
    assert run(*command, "--help") == 0
    text = capsys.readouterr().out
    if command:
        assert "Example: avtt" in " ".join(text.replace("│", " ").split())
        pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
        assert any(" ".join(("avtt", *command)) in " ".join(p.read_text().split()) for p in pages)


def test_no_line_of_a_help_text_is_broken_by_a_narrow_terminal():
    """Lines of later paragraphs are printed as they are written: they fit 80 columns."""
    for name in SUMMARIES:
        paragraphs = inspect.cleandoc(command(name).help).split("\n\n")[1:]
        lines = "\n".join(p for p in paragraphs if not p.startswith("Example")).split("\n")
        assert max(map(len, lines)) <= 78, name


def test_list_of_commands_says_what_each_says_of_itself():
    said = {name: inspect.cleandoc(command(name).help).split("\n\n")[0] for name in SUMMARIES}
    assert {name: " ".join(text.split()) for name, text in said.items()} == SUMMARIES


# -- mistakes -----------------------------------------------------------------------------


def test_neither_spec_nor_demo(capsys):
    assert "expected either a SPEC.toml or --demo, got neither" in refused(capsys, "audit")


def test_missing_spec(capsys):
    assert "nothing.toml: cannot be read: No such file" in refused(capsys, "audit", "nothing.toml")


def test_spec_that_is_no_toml(start, capsys):
    (start / "SPEC.toml").write_text("budget = = 3")
    assert "SPEC.toml: is no TOML" in refused(capsys, "audit", str(start / "SPEC.toml"))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("budget = 200", "budgt = 200", "audit: unknown field 'budgt'"),
        ("budget = 200", "budgt = 200", "did you mean 'budget'?"),
        ("budget = 200", "budget = 0", "audit.budget: expected greater than or equal to 1, got 0"),
        ("budget = 200", 'budget = "many"', "audit.budget: expected a valid integer, got 'many'"),
        ("budget = 200", 'strategy = "uncertain"', "unknown strategy 'uncertain'"),
        ("budget = 200", 'strategy = "uncertain"', "did you mean 'uncertainty'?"),
        ('"rotation"]', '"rotate"]', "unknown relation 'rotate'"),
        ('"rotation"]', '"rotate"]', "did you mean 'rotation'?"),
        ("# severities = [1, 3, 5]", "severities = [6]", "expected some of [0, 1, 2, 3, 4, 5]"),
        ('# concepts = ["polyp", "blood"]', 'concepts = ["rond"]', "unknown concept 'rond'"),
        ('# concepts = ["polyp", "blood"]', 'concepts = ["rond"]', "did you mean 'round'?"),
        ('# kind = "python"', 'kind = "pyton"', "model.kind: unknown value 'pyton'"),
        ("# uncertainty = 0.8", "uncertainty = 2.0", "expected less than or equal to 1, got 2.0"),
        ("model.py:predict", "model.py:predic", "unknown name 'predic'"),
        ("model.py:predict", "modell.py:predict", "modell.py' does not exist"),
        ("model.py:predict", "model.py", "expected 'package.module:name' or 'file.py:name'"),
        ("[dataset]", "[datasett]", "unknown field 'datasett'"),
    ],
)
def test_wrong_spec(start, capsys, tmp_path, old, new, sentence):
    spec = edit(start, old, new)
    if new == "[datasett]":  # a missing section may be named first; both are one sentence
        assert "dataset" in refused(capsys, "audit", spec, "--out", str(tmp_path / "r"))
    else:
        assert sentence in refused(capsys, "audit", spec, "--out", str(tmp_path / "r"))
    assert not (tmp_path / "r" / "journal.db").exists()


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("raise RuntimeError('no\\nlicence')", "raised RuntimeError: no licence"),
        ("return np.full((len(images), 2), np.nan)", "expected P(yes) between 0 and 1, got nan"),
        ("return np.full((len(images), 2), 1.5)", "expected P(yes) between 0 and 1, got 1.5"),
        ("return np.zeros((len(images), 3))", "expected an array of shape (1, 2)"),
        ("return 'yes'", "expected an array of numbers, got str"),
    ],
)
def test_a_model_that_is_broken_is_named_and_nothing_is_lost(
    start, capsys, tmp_path, body, sentence
):
    spec = model(start, body)
    out = tmp_path / "r"
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


def test_resume_of_another_space(start, capsys, tmp_path):
    out = str(tmp_path / "r")
    assert run("audit", str(start / "SPEC.toml"), "--out", out, "--budget", "3") == 0
    lines = (start / "labels.csv").read_text().splitlines()
    (start / "labels.csv").write_text("\n".join(lines[:-1]))
    capsys.readouterr()
    assert "journal: belongs to another space" in refused(capsys, "resume", out, "--budget", "4")


def test_resume_of_nothing(capsys, tmp_path):
    assert "does not exist" in refused(capsys, "resume", str(tmp_path))
    assert not (tmp_path / "journal.db").exists()


def test_a_newer_journal(start, capsys, tmp_path):
    out = tmp_path / "r"
    assert run("audit", str(start / "SPEC.toml"), "--out", str(out), "--budget", "3") == 0
    with sqlite3.connect(out / "journal.db") as db:
        db.execute("PRAGMA user_version=99")
    capsys.readouterr()
    assert "has schema version 99, and" in refused(capsys, "report", str(out))


def test_a_file_that_is_no_journal(capsys, tmp_path):
    (tmp_path / "journal.db").write_text("hello " * 500)
    assert "file is not a database" in refused(capsys, "report", str(tmp_path))


def test_a_folder_that_cannot_be_written(start, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "run")
    line = refused(capsys, "audit", str(start / "SPEC.toml"), "--out", out)
    assert "cannot be opened" in line


@pytest.mark.slow
def test_a_full_disk_loses_nothing_that_was_answered(start, tmp_path):
    out = tmp_path / "r"

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    command = [sys.executable, "-c", "from adaptive_vtt.cli import main; main()"]
    spec = str(start / "SPEC.toml")
    arguments = ["audit", spec, "--out", str(out), "--budget", "60", "--seed", "0"]
    full = subprocess.run(
        [*command, *arguments],
        preexec_fn=little_room,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert full.returncode == 2, full.stderr
    assert "cannot be written" in full.stderr
    assert "Traceback" not in full.stderr
    assert run("resume", str(out)) == 0
    assert run("audit", spec, "--out", str(tmp_path / "whole"), *arguments[4:]) == 0
    whole = json.loads((tmp_path / "whole" / "result.json").read_text())
    result = json.loads((out / "result.json").read_text())
    # 1 where the answer could not be written, 0 where its draw could not, and it was never sent
    assert result.pop("lost") in (0, 1)
    own = ("lost", "journal_head", "warnings")
    assert {k: v for k, v in result.items() if k not in own} == {
        k: v for k, v in whole.items() if k not in own
    }


def test_unknown_option_and_command(capsys):
    assert "--budgt" in refused(capsys, "audit", "--budgt", "3")
    assert "adit" in refused(capsys, "adit")


@pytest.mark.parametrize(
    ("command", "option", "told"),
    [
        ("audit", "--at-most", "set by --set certify.at_most=VALUE"),
        ("plan", "--confidence=0.9", "set by --set certify.confidence=VALUE"),
        ("audit", "--device", "--set model.device=VALUE or --set audit.device=VALUE"),
        ("view", "--confidence", "No such option: --confidence"),
        ("resume", "--confidence", "No such option: --confidence"),
    ],
)
def test_a_field_given_as_an_option_is_told_how_to_be_set(capsys, command, option, told):
    assert told in refused(capsys, command, option)


def test_compare_wants_a_budget_and_known_names(start, capsys):
    edit(start, "half_width = 0.15", "")
    spec = edit(start, "budget = 200", "")
    assert "expected a budget" in refused(capsys, "compare", spec)
    line = refused(capsys, "compare", spec, "--budget", "5", "--strategies", "randm")
    assert "did you mean 'random'?" in line


def test_init_overwrites_nothing(start, capsys):
    before = (start / "SPEC.toml").read_text()
    assert "stands there already; nothing was written" in refused(capsys, "init", str(start))
    assert (start / "SPEC.toml").read_text() == before


def test_preview_wants_a_png_and_an_image(tmp_path, capsys):
    assert "does-not-exist.png" in refused(capsys, "preview", "does-not-exist.png")
    line = refused(capsys, "preview", "x.png", "--out", str(tmp_path / "sheet.gif"))
    assert "expected a file ending in .png" in line


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
    told = capsys.readouterr()
    assert "expected the name of an environment variable that holds the key" in told.err
    assert "planted" not in told.err + told.out


def test_a_strategy_in_a_file_needs_the_name_of_its_class(tmp_path, capsys):
    out = tmp_path / "run"
    assert run("audit", "--demo", "--strategy", "mine.py", "--out", str(out)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "expected which of the file's names it is, as in 'mine.py:Name'" in said
    assert not out.exists()
