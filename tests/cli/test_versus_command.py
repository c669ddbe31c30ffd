"""avtt versus: from two specs to a decision, a result and a report; one sentence per mistake."""

import json
import re
import shlex
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from adaptive_vtt.audit.versus import verdict_of
from adaptive_vtt.certify.further import DONE, Range
from adaptive_vtt.certify.status import compared
from adaptive_vtt.cli.run_folder import same_command
from adaptive_vtt.cli.versus import _print_limits as print_limits
from adaptive_vtt.cli.versus import _still_open, differs
from adaptive_vtt.config import read_spec
from adaptive_vtt.journal import read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.oracles import Consistency
from adaptive_vtt.results.difference import extent, in_brackets, wrong_more
from adaptive_vtt.results.result import summarise
from adaptive_vtt.results.run import Run
from adaptive_vtt.results.runs import read_rates
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.testing import tiny_dataset
from tests.helpers.command_line import plain_start, refused, run, shown
from tests.helpers.report_pages import Tags
from tests.helpers.result_file import ResultFile


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: a model, and one that is always wrong about brightness."""
    base = tmp_path_factory.mktemp("specs")
    plain_start(base / "new", budget=24)
    shutil.copytree(base / "new", base / "old")
    model = base / "old" / "model.py"
    model.write_text(model.read_text().replace("-12 *", "12 *"))
    return base


def command(specs: Path, out: Path, *more: str) -> list[str]:
    given = ["versus", str(specs / "old" / "SPEC.toml"), str(specs / "new" / "SPEC.toml")]
    return [*given, "--out", str(out), "--seed", "1", *more]


@pytest.fixture(scope="module")
def ran(specs: Path) -> Path:
    out = specs / "run"
    assert run(*command(specs, out, "--budget", "24", "--targets", "overall,relations")) == 0
    return out


def test_the_result_says_which_model_errs_less_and_what_that_took(ran: Path):
    result = ResultFile.model_validate_json((ran / "result.json").read_text())
    assert result.versus is not None
    whole = result.versus[0]
    assert whole.target == "overall label error"
    assert whole.lower <= whole.delta <= whole.upper
    assert whole.calls_a == whole.calls_b == 12
    assert whole.questions == 24
    assert whole.disagreement is not None
    assert whole.disagreement > 0.3
    assert result.targets[0].decision == whole.decision
    assert sum(row.calls_b for row in result.versus[1:]) == 12
    assert result.derived == []


def test_the_first_lines_say_that_the_specs_limits_are_those_of_both_models(
    specs: Path, capsys: pytest.CaptureFixture[str]
):
    path = specs / "old" / "SPEC.toml"
    print_limits(path, read_spec(path), {"audit.budget": None}, [])
    expected = f"{path}: budget = 24 limits the calls of both models together; --budget gives"
    assert capsys.readouterr().err == f"{expected} another\n"
    for flags, sets in (({"audit.budget": 8}, []), ({}, ["audit.budget=8"])):
        print_limits(path, read_spec(path), flags, sets)
        assert not capsys.readouterr().err


def test_models_of_one_name_go_by_their_files(ran: Path):
    with closing(read_journal(ran / "journal.db")) as journal:
        verdict = verdict_of(summarise(journal), journal)
    assert verdict.names == ("old/model.py", "new/model.py")
    assert verdict.differences[0].startswith("new is wrong ")
    page = Tags((ran / "report.html").read_text()).text
    assert "disagree (A: the old model, old/model.py; B: the new one, new/model.py)" in page


@pytest.mark.parametrize(
    ("likely", "output"),
    [
        (50, "1 of 2 targets is open; deciding it would take about 50 (30 to 70) more calls"),
        (None, "1 of 2 targets is open; how many more calls that takes is not known yet"),
    ],
)
def test_what_would_decide_an_open_difference_is_told_in_calls_of_both_models(
    ran: Path, likely: int | None, output: str
):
    with closing(read_journal(ran / "journal.db")) as journal:
        read = Run(journal)
        verdict = verdict_of(summarise(read), read)
    assert (verdict.calls_a, verdict.calls_b, verdict.result.calls) == (12, 12, 12)
    left = 2 * (read.facts.all_calls - len(read.draws))
    forecasts = [s.more_calls for s in verdict.result.statuses if s.more_calls is not None]
    assert all(each.most <= left for each in forecasts)
    more = None if likely is None else Range(likely, 30, 70)
    done, open_ = (
        replace(verdict.result.statuses[0], decision=decision, more_calls=further)
        for decision, further in (("better", DONE), ("open", more))
    )
    decisions = verdict.targets.head(2).assign(decision=["better", "open"])
    read.__dict__["statuses"] = [done, open_]  # a cached property
    assert _still_open(replace(verdict, targets=decisions), read) == output


def test_the_next_command_carries_the_budget_that_would_decide_the_rest(
    specs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = ("--margin", "0.03", "--budget", "8", "--targets", "overall")
    given = command(specs, tmp_path / "two runs", *whole)
    monkeypatch.setattr("sys.argv", ["avtt", *given])
    steps = shown(*given).split("\nnext:\n")[1].splitlines()
    (step,) = (shlex.split(line, comments=True) for line in steps if " versus " in line)
    assert step[:-2] == ["avtt", *given[:-4], *given[-2:]]
    assert step[-2] == "--budget"
    assert int(step[-1]) > 8
    (gate,) = (line for line in steps if "avtt gate" in line)
    assert "versus:overall <= 0.03" in gate  # the margin is the first limit proposed
    rule = ("--rule", "versus:overall <= 0.03")
    steps = shown("gate", str(tmp_path / "two runs"), *rule, code=4).splitlines()
    lines = [shlex.split(line, comments=True) for line in steps if "avtt versus" in line]
    assert lines == [step]  # both commands have their advice from one place


@pytest.mark.parametrize(
    ("given", "options", "wanted"),
    [
        ("--budget 5 --out x", "--budget 90", "--out x --budget 90"),
        ("--budget=5 a.toml", "--budget 90", "a.toml --budget 90"),
        ("--set a.b=9 --set a.c=1", "--set a.b=60", "--set a.c=1 --set a.b=60"),
        ("'a b.toml'", "", "'a b.toml'"),
    ],
)
def test_the_same_command_has_other_options_in_place_of_its_own(
    given: str, options: str, wanted: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.argv", ["/bin/avtt", "compare", *shlex.split(given)])
    assert same_command(options) == f"avtt compare {wanted}".rstrip()


def test_the_report_shows_differences_and_no_rates_of_pairs(ran: Path):
    page = Tags((ran / "report.html").read_text(encoding="utf-8"))
    told = json.loads((ran / "result.json").read_text())["versus"][0]
    for id in ("verdict", "differences", "failures", "grounds"):
        assert page.with_id(id)
    for id in ("certified", "conditions", "widths", "beliefs", "counts", "derived"):
        assert not page.with_id(id)
    how = "more" if told["delta"] < 0 else "less"
    output = f"new/model.py is wrong {100 * abs(told['delta']):.1f} points {how} often"
    assert f"best guess: {output}; 95 % sure: {extent(-told['upper'], -told['lower'])}" in page.text
    assert "Better model" in page.text


def test_other_commands_work_on_it_or_say_why_not(ran: Path):
    assert run("verify", str(ran)) == 0
    assert run("report", str(ran)) == 0
    assert run("gate", str(ran), "--rule", "versus:overall <= 1") == 0
    assert "pairs: two models are compared, and each pair is a call of" in shown("runs", str(ran))
    assert json.loads(shown("runs", str(ran), "--json"))[0]["paired"]
    assert "holds a comparison of two models" in refused("resume", str(ran))
    told = refused("export", str(ran), "--failures", str(ran / "failures"))
    assert "'export --disagreements' read it" in told
    page = (ran / "report.html").read_text()
    assert "avtt resume" not in page
    assert "avtt export DIR --disagreements FOLDER" in Tags(page).text
    row = json.loads((ran / "result.json").read_text())["versus"][0]
    rule = f"versus:overall <= {-row['delta']:.4f}"  # within the interval
    (budget,) = re.findall(r"--budget (\d+)", shown("gate", str(ran), "--rule", rule, code=4))
    assert int(budget) >= 2 * (row["calls_a"] + row["calls_b"]) == 48


def test_images_at_which_the_models_differ_are_exported_with_both_losses(ran: Path, tmp_path: Path):
    out = tmp_path / "apart"
    told = json.loads(shown("export", str(ran), "--disagreements", str(out), "--coco", "--json"))
    table = pd.read_csv(out / "disagreements.csv")
    with closing(read_journal(ran / "journal.db")) as journal:
        rows = [row for call in journal.calls() for row in call.answers]
    apart = [row for row in rows if row.loss != 0.5]
    assert told["answers"] == len(table) == len(apart) > 0
    assert told["better_a"] == (table["loss_a"] < table["loss_b"]).sum()
    assert told["better_b"] == (table["loss_a"] > table["loss_b"]).sum()
    assert told["models"] == {"a": "old/model.py", "b": "new/model.py"}
    assert {*table.columns} > {"id", "relation", "concept", "truth", "answer_a", "answer_b"}
    right = (table["answer_b"] >= 0.5) == (table["truth"] == 1)
    assert (right == (table["loss_b"] == 0)).all()
    ids = pd.read_csv(out / "labels.csv")["id"]
    assert {*ids} == {*table["id"]} == {path.stem for path in (out / "images").iterdir()}
    assert (out / "coco.json").is_file()


@pytest.mark.slow
def test_it_ends_with_its_gate_and_other_commands_refuse_its_run(specs: Path, tmp_path: Path):
    out, rule = tmp_path / "gated", "versus:overall <= +0.6"
    alone, spec = ["--targets", "overall"], str(specs / "old" / "SPEC.toml")
    given = command(specs, out, "--budget", "300", "--gate", rule, *alone)
    output = " ".join(shown(*given).split())
    assert "stopped: every rule of the gate is decided: 1 pass" in output
    assert f"avtt gate {out} --rule '{rule}'" in output
    assert run("gate", str(out), "--rule", rule) == 0
    assert shown("gate", str(out), "--list") == "versus:overall\n"
    other = command(specs, tmp_path / "other", "--budget", "9", *alone, "--gate")
    for arguments, sentence in (
        ([*other, "overall <= 0.2"], "two models, such as 'versus:overall <= 0.2'"),
        ([*other, "versus:relations <= 0.2"], "versus:overall; --targets relations adds it"),
        (["plan", spec, *alone, "--pilot", str(out)], "got a comparison of two"),
        (["audit", spec, "--out", str(out)], "holds a comparison of two models; another --out"),
    ):
        assert sentence in refused(*arguments)


def test_what_does_not_fit_is_told_in_a_sentence(specs: Path, tmp_path: Path):
    out = tmp_path / "run"
    assert "from 0 to below 1, got 1.5" in refused(*command(specs, out, "--margin", "1.5"))
    told = refused(*command(specs, out, "--journal-a", str(tmp_path)))
    assert "expected a run folder, got another" in told
    claim = ["--budget", "9", "--at-least", "-0.02", "--gate", "versus:overall <= 0.02"]
    told = refused(*command(specs, out, *claim))  # intervals and its bets might disagree
    assert "expected a rule next to the claim --at-least -0.02" in told
    other = tmp_path / "other"
    shutil.copytree(specs, other)
    spec = other / "new" / "SPEC.toml"
    spec.write_text(spec.read_text().replace('"rotation"', '"brightness_up"'))
    told = refused(*command(other, out))
    first, second = other / "old" / "SPEC.toml", other / "new" / "SPEC.toml"
    only = f"rotation only in {first}; brightness_up only in {second}"
    assert f"two specs that ask the same questions, got other relations: {only}; only the" in told
    assert not (out / "journal.db").exists()


def test_what_two_specs_ask_otherwise_is_named_with_its_spec():
    def space(samples: int = 8, concepts: int = 3, **options: Any) -> QuestionSpace:
        return QuestionSpace(tiny_dataset(samples, concepts), ["rotation"], **options)

    plain = space()
    for other, message in {
        space(
            severities=[1]
        ): "severities: rotation 2, rotation 3, rotation 4 and 1 more only in a",
        space(concepts=2): "concepts: c2 only in a.toml",
        space(samples=3): "samples: s3, s4, s5 and 2 more only in a.toml",
        space(seed=4): "seeds: 0 only in a.toml; 4 only in b.toml",
        space(oracle=Consistency()): "options of [oracle]: name Correctness",
    }.items():
        assert differs(plain, other, "a.toml", "b.toml").startswith(f"other {message}")
    assert differs(plain, space(), "a.toml", "b.toml") == ""


@pytest.mark.parametrize(
    ("more", "output"),
    [
        (-0.044, "4.4 points less often (between 10.0 points less and 1.0 more)"),
        (0.012, "1.2 points more often (between 10.0 points less and 1.0 more)"),
        (4e-4, "as often (between 10.0 points less and 1.0 more)"),
    ],
)
def test_a_difference_is_told_of_the_new_model_with_the_sign_of_a_gate(more: float, output: str):
    assert wrong_more("new (b)", more, -0.1, 0.01) == f"new (b) is wrong {output}"
    assert extent(-0.4, -0.042) == "between 4.2 and 40.0 points less"
    assert extent(0.0, 0.05) == "between 0.0 and 5.0 points more"
    assert extent(-0.1, -0.1) == "exact"
    assert in_brackets(-0.044, -0.1, 0.01) == "−4.4 (−10.0 to +1.0)"


def test_table_gate_report_and_list_tell_one_difference_with_one_sign(ran: Path):
    row = json.loads((ran / "result.json").read_text())["versus"][0]
    output = wrong_more("new", -row["delta"], -row["upper"], -row["lower"])
    out = " ".join(shown("gate", str(ran), "--rule", "versus:overall <= 1").split())
    assert f"versus:overall <= 1: difference in overall label error: {output}" in out
    assert read_rates(ran).compared == f"overall label error: {output}"
    figures = in_brackets(-row["delta"], -row["upper"], -row["lower"])
    assert figures in Tags((ran / "report.html").read_text(encoding="utf-8")).text
    with closing(read_journal(ran / "journal.db")) as journal:
        assert verdict_of(summarise(journal), journal).differences[0] == output


def test_calls_of_a_that_were_known_are_not_counted(ran: Path):
    with closing(read_journal(ran / "journal.db")) as journal:
        certificate, draws = read_facts(journal.facts()).certificate, journal.draws(proposals=False)
        known = {draw.question for draw in draws[:5]}
        statuses = summarise(journal).statuses
        whole = compared(certificate, statuses, draws, journal.calls(), known)[0]
    assert (whole.calls_a, whole.calls_b) == (7, 12)
