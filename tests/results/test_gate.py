"""Rules about certified rates: what they say, what they decide, and what they may not name."""

import json
import re
import shlex
import sqlite3
import tomllib
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit.versus import Versus
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.config import parse_spec
from adaptive_vtt.config.building import build_audit
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.families import OfGroup, Overall
from adaptive_vtt.journal import MemoryJournal, SQLiteJournal, read_journal
from adaptive_vtt.journal.facts import read_facts
from adaptive_vtt.models import ModelDefaults
from adaptive_vtt.results.advice import Names, steps_of_gate
from adaptive_vtt.results.gate import Gate, Gated, Rule, Ruling, chosen, gate
from adaptive_vtt.results.report.section import THIN, span
from adaptive_vtt.results.run import Run
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer
from adaptive_vtt.utils.random_streams import generator
from tests.helpers.command_line import plain_start, refused, run, shown
from tests.helpers.copied_journals import add_rows
from tests.helpers.report_pages import Tags


def audited(**options: Any) -> Any:
    journal = MemoryJournal()
    chosen = {"surrogate": False, "half_width": 0.2, "targets": ["overall", "relations"], "seed": 3}
    Audit(space(), ScriptedModel(), journal=journal, **{**chosen, **options}).run()
    return journal


def space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(30, 2), ["identity", "gaussian_noise"])


@cache
def finished() -> MemoryJournal:
    """Return the journal of one audit, for tests that only read it."""
    return audited()


def copied(journal: Any) -> Any:
    """Fill ``journal`` with the rows of ``finished()``, for tests that change it or need a file."""
    journal.set_facts(**finished().facts())
    add_rows(journal, finished())
    return journal


@pytest.mark.parametrize(
    ("text", "about", "sign", "limit", "versus"),
    [
        ("relation:fog <= 0.2", "relation:fog", "<=", 0.2, False),
        ("overall<10 %", "overall", "<", 0.1, False),
        ("versus:overall <= +0.01", "overall", "<=", 0.01, True),
        ("versus:relation:fog <= -1e-2", "relation:fog", "<=", -0.01, True),
    ],
)
def test_a_rule_is_read_as_it_is_written(text, about, sign, limit, versus):
    rule = Rule.parse(text)
    assert (rule.about, rule.sign, rule.limit, rule.versus) == (about, sign, limit, versus)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("overall", "expected TARGET, one of <= < >= >, and a number"),
        ("overall <= much", "expected TARGET, one of"),
        ("overall =< 0.2", "expected TARGET, one of"),
        ("overall <= 25", "expected a limit from 0 to 1, got 25; for percent write '25 %'"),
        ("overall <= 120 %", "expected a limit from 0 to 1, got 1.2$"),
        ("versus:overall <= -2", "expected a limit from -1 to 1"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(text, sentence):
    with pytest.raises(InputError, match=sentence):
        Rule.parse(text)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.sampled_from(["<=", "<", ">=", ">"]))
def test_a_decided_rule_is_right_for_every_rate_in_the_interval(a, b, limit, sign):
    lower, upper = sorted((a, b))
    state = Rule.parse(f"overall {sign} {limit:.17f}").state(lower, upper)
    for rate in (lower, (lower + upper) / 2, upper):
        below, above = rate <= limit + 1e-8, rate >= limit - 1e-8
        holds, fails = (below, above) if sign[0] == "<" else (above, below)
        assert state != "pass" or holds
        assert state != "fail" or fails


def test_a_rate_on_the_limit_fulfils_at_most_and_not_less():
    for sign, state in {"<=": "pass", "<": "fail", ">=": "pass", ">": "fail"}.items():
        assert Rule.parse(f"overall {sign} 0.5").state(0.5, 0.5) == state
    assert Rule.parse("overall <= 0.5").state(0.4, 0.6) == "open"


def test_a_failing_rule_fails_the_gate_and_an_open_one_leaves_it_open():
    passed = gate(finished(), ["overall <= 0.95"])
    assert (passed.state, passed.exit_code) == ("pass", 0)
    open_ = gate(finished(), ["overall <= 0.95", "overall <= 50%"])
    assert (open_.state, open_.exit_code) == ("open", 4)
    failed = gate(finished(), ["overall <= 0.5", "overall <= 0.01"])
    assert (failed.state, failed.exit_code) == ("fail", 1)


def test_a_target_that_was_not_registered_is_refused_with_the_reason():
    for about, reason in {
        "relation:rotation": r"registered when the audit began.*--out, .*prior_journal",
        "accuracy": r"got 'accuracy'; .*; 'avtt gate DIR --list' lists all",
        "group:site=far north": r"--targets group:site and.* --posthoc 'group:site=far north'$",
        "relation:gausian_noise": r"did you mean relation:gaussian_noise\?$",
        "identity": r"did you mean relation:identity\?$",
        "versus:overall": "expected a comparison of two models",
    }.items():
        with pytest.raises(InputError, match=reason):
            gate(finished(), [f"{about} <= 0.2"])
    with pytest.raises(InputError, match="at least one rule"):
        gate(finished(), [])
    with pytest.raises(InputError, match="one that explores"):
        gate(audited(half_width=None, budget=1), ["overall <= 0.2"])


def test_decisions_by_bets_decide_the_rule_with_their_limit():
    journal = audited(half_width=None, at_most=0.3, targets=["overall"])
    assert gate(journal, ["overall <= 0.3"]).state == "fail"
    assert gate(journal, ["overall > 0.3"]).state == "pass"


def test_a_comparison_is_gated_by_how_much_worse_the_new_model_is():
    models = ScriptedModel(seed=1), ScriptedModel()
    versus = Versus(space(), *models, budget=120, seed=0, surrogate=False)
    row = versus.run().targets.iloc[0]
    most, least = -row["lower"], -row["upper"]  # of R_B - R_A
    journal = versus.audit.journal
    assert gate(journal, [f"versus:overall <= {most + 0.01:+.3f}"]).state == "pass"
    assert gate(journal, [f"versus:overall <= {least - 0.01:+.3f}"]).state == "fail"
    assert gate(journal, [f"versus:overall <= {(least + most) / 2:+.3f}"]).state == "open"
    with pytest.raises(InputError, match="a rule about the difference of two models"):
        gate(journal, ["overall <= 0.2"])


def test_junit_and_markdown_say_what_was_decided():
    decided = gate(finished(), ["overall <= 0.95", "overall <= 50 %", "overall <= 1 %"])
    suite = ElementTree.fromstring(decided.junit())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [len(case.findall("failure")) for case in suite.iter("testcase")] == [0, 0, 1]
    assert "## Gate: fail" in decided.markdown()
    assert "| fail | `overall <= 1 %` | overall label error |" in decided.markdown()
    assert decided.promise in decided.markdown()


def test_the_command_exits_with_what_was_decided(tmp_path: Path):
    folder = tmp_path / "run"
    folder.mkdir()
    copied(SQLiteJournal(folder / "journal.db")).close()
    junit, summary = tmp_path / "gate.xml", tmp_path / "gate.md"
    written = ["--junit", str(junit), "--summary", str(summary)]
    for rule, code, state in (
        ("overall <= 0.95", 0, "pass"),
        ("overall <= 0.01", 1, "fail"),
        ("overall <= 0.5", 4, "open"),
    ):
        printed = shown("gate", str(folder), "--rule", rule, *written, code=code)
        assert f"gate: {state}" in printed
    assert "open" in summary.read_text()
    assert junit.read_text().startswith("<?xml")


class Flipping(ModelDefaults):
    """Model that is right but for a share of its answers."""

    answers = "all"

    def __init__(self, dataset: Any, share: float) -> None:
        self.truth = {dataset.sample(k).id: dataset.profile[0][k] for k in range(len(dataset))}
        self.share, self.name = share, f"flips {share}"

    def ask(self, prompts: Any) -> list[Answer]:
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Any) -> Answer:
        draws = generator(1, f"{prompt.sample_id}/{prompt.relation}/{prompt.severity}")
        wrong = draws.random(len(prompt.concepts)) < self.share
        return Answer(tuple(abs(self.truth[prompt.sample_id] - wrong).tolist()))


@pytest.mark.slow
def test_a_comparison_ends_with_its_gate_and_not_with_its_decisions() -> None:
    """Where B errs more often, that is decided before a rule that allows for some of it."""
    dataset = tiny_dataset(60, 2)
    space = QuestionSpace(dataset, ["identity", "gaussian_noise"])
    calls = {}
    for rule, state in ((None, ""), ("<= 0.15", "fail"), ("<= +0.5", "pass")):
        text = [] if rule is None else [f"versus:overall {rule}"]
        until = Gated.of(text, [Overall()], versus=True) if text else None
        models = Flipping(dataset, 0.0), Flipping(dataset, 0.3)
        with Versus(space, *models, until=until, budget=720, seed=0, surrogate=False) as versus:
            verdict = versus.run()
            calls[rule] = verdict.calls_b
            if text:
                assert verdict.result.reason == f"every rule of the gate is decided: 1 {state}"
                assert gate(versus.audit.journal, text).state == state
            else:
                assert list(verdict.targets["decision"]) == ["worse"]
    assert calls["<= 0.15"] > calls[None]
    with pytest.raises(InputError, match="a rule about the difference of two models"):
        Gated.of(["overall <= 0.2"], [Overall()], versus=True)


# -- an audit that ends with its gate, and a gate as a test ---------------------------------


@pytest.mark.slow
def test_an_audit_ends_once_every_rule_of_its_gate_is_decided() -> None:
    gated = Gated.of(["overall <= 0.9", "overall > 0.05"], [Overall()])
    options: dict[str, Any] = {"half_width": 0.05, "targets": ["overall", "relations"], "seed": 3}
    audit = Audit(space(), ScriptedModel(), stop=gated, **options)
    result = audit.run()
    assert result.reason == "every rule of the gate is decided: 2 pass"
    without = Audit(space(), ScriptedModel(), budget=result.calls, **options).run()
    assert without.reason == f"{result.calls} calls were made"
    assert gate(audit.journal, ["overall <= 0.9", "overall > 0.05"]).state == "pass"


@pytest.mark.slow
def test_the_command_line_and_the_spec_take_a_gate(tmp_path: Path, capsys: Any) -> None:
    write_start(tmp_path)
    spec, out = str(tmp_path / "SPEC.toml"), tmp_path / "run"
    options = ["--targets", "overall", "--half-width", "0.02", "--seed", "1", "--out", str(out)]
    options += ["--set", "certify.self_taught=false"]
    for rule, sentence in {
        "overal <= 0.9": "did you mean overall?",
        "severity:rotation:5 <= 0.9": "--targets severities adds it",
        "versus:overall <= 0.9": "expected",
    }.items():
        assert sentence in refused("audit", spec, *options, "--gate", rule)
    output = " ".join(shown("audit", spec, *options, "--gate", "overall <= 0.95").split())
    assert "every rule of the gate is decided" in output
    advised = re.findall(r"avtt (resume \S+ --half-width 0\.02 --budget \d+)", output)
    report = Tags((out / "report.html").read_text(encoding="utf-8")).text
    assert re.search(r"avtt resume \S+ --half-width 0\.02 --budget \d+", report)
    with closing(read_journal(out / "journal.db")) as journal:
        assert journal.facts()["ended"]["by"] == "gate"
    output = " ".join(shown("gate", str(out), "--rule", "overall <= 0.25", code=4).split())
    assert re.search(r"avtt resume \S+ --half-width 0\.02", output)
    (budget,) = re.findall(r"--budget (\d+)", advised[0])
    assert run("gate", str(out), "--rule", "overall <= 0.95") == 0
    calls = json.loads((out / "result.json").read_text())["calls"]
    # its gate is decided and ends it no more
    assert run(*advised[0].split(), "--half-width", "0.12") == 0
    assert f"continues with budget {budget}, half-width 0.12" in capsys.readouterr().err
    result = json.loads((out / "result.json").read_text())
    assert calls < result["calls"]
    assert "certified to +-0.12" in result["stop_reason"]


def test_a_gate_without_an_interval_to_wait_for_is_refused(tmp_path: Path) -> None:
    write_start(tmp_path)
    table = tomllib.loads((tmp_path / "SPEC.toml").read_text(encoding="utf-8"))
    del table["certify"]["half_width"]
    spec = parse_spec({**table, "stop": {"gate": ["overall <= 0.1"]}}, "SPEC.toml")
    with pytest.raises(InputError, match=r"stop\.gate: expected an audit that certifies"):
        build_audit(spec, tmp_path)


def test_a_gate_is_a_test_of_pytest(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pytester.mkdir("run")
    copied(SQLiteJournal(folder / "journal.db")).close()
    pytester.makepyfile(
        "def test_passes(avtt_gate):\n    avtt_gate('run', 'overall <= 0.95')\n"
        "def test_is_open(avtt_gate):\n    avtt_gate('run', 'overall <= 0.5')\n"
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # whether it is installed or not
    plugin = ("-p", "adaptive_vtt.testing.pytest_plugin", "-p", "no:cacheprovider")
    pytester.runpytest_inprocess(*plugin).assert_outcomes(passed=1, skipped=1)
    strict = pytester.runpytest_inprocess(*plugin, "--avtt-open=fail", "-k", "is_open")
    strict.assert_outcomes(failed=1, deselected=1)


def test_intervals_that_the_rows_do_not_bear_pass_no_gate():
    journal = copied(MemoryJournal())
    rows = journal.facts()["intervals"]
    rows[0] |= {"lower": 0.0, "upper": 0.01, "half_width": 0.005, "estimate": 0.005}
    journal.set_facts(intervals=rows)
    with pytest.raises(JournalError, match="the journal says otherwise"):
        gate(journal, ["overall <= 0.02"])


def test_a_ruling_shows_its_interval_rounded_outward_as_the_report_does():
    ruling = Ruling(Rule.parse("overall <= 0.1"), "overall", 0.05, 0.0089, 0.0871, "pass")
    assert str(ruling) == "pass: overall <= 0.1: overall 5.0 % (0.8 to 8.8 %)"
    assert "| 0.8 to 8.8 % |" in Gate((ruling,), "all hold").markdown()
    assert span(ruling.lower, ruling.upper) == f"0.8 to 8.8{THIN}%"


def killed(folder: Path) -> Path:
    """Return the folder of an audit that was killed: nothing states its intervals."""
    folder.mkdir()
    journal = copied(SQLiteJournal(folder / "journal.db"))
    journal.set_facts(ended=None, intervals=None)
    journal.close()
    return folder


def test_answers_changed_in_a_killed_audit_pass_no_gate(tmp_path: Path):
    folder = killed(tmp_path / "run")
    with sqlite3.connect(folder / "journal.db") as db:
        db.execute("UPDATE answers SET loss = 0")
    db.close()
    sentence = refused("gate", str(folder), "--rule", "overall <= 0.95")
    assert "was altered after it was written" in sentence


def test_a_gate_refuses_a_journal_with_another_head_than_was_kept(tmp_path: Path):
    folder = killed(tmp_path / "run")
    with closing(SQLiteJournal(folder / "journal.db", read_only=True)) as journal:
        head, earlier = journal.head, journal.links()[-2].seal
    for kept, code, words in (
        (head, 0, "gate: pass"),
        (earlier, 2, "the head given is this journal's of 1 rows ago"),
        ("0" * 32, 2, "the head given is none this journal ever had"),
    ):
        given = ["gate", str(folder), "--rule", "overall <= 0.95", "--head", kept]
        assert words in (refused(*given) if code else shown(*given))


# -- names that would like to be markup ---------------------------------------------------


@given(st.text())
@settings(max_examples=30)
def test_any_name_leaves_junit_and_summary_whole(name: str) -> None:
    decided = Gate((Ruling(Rule.parse("a <= 0.1"), name, 0.5, 0.4, 0.6, "fail"),), "all hold")
    ElementTree.fromstring(decided.junit())
    rows = [line for line in decided.markdown().splitlines() if line.startswith("| fail")]
    assert [len(re.split(r"(?<!\\)\|", row.replace("\\\\", ""))) for row in rows] == [8]


@pytest.mark.slow
def test_an_open_gate_advises_no_more_calls_than_there_are_and_names_the_census(
    tmp_path: Path,
) -> None:
    spec, out = plain_start(tmp_path), tmp_path / "run"
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(labels.read_text().splitlines()[:16]))  # 240 calls in all
    given = ["--targets", "overall", "--half-width", "0.1", "--seed", "1", "--out", str(out)]
    assert run("audit", str(spec), "--sample", *given) == 0
    rate = json.loads((out / "result.json").read_text())["targets"][0]["estimate"]
    output = " ".join(
        shown("gate", str(out), "--rule", f"overall <= {rate + 0.001}", code=4).split()
    )
    with closing(read_journal(out / "journal.db")) as journal:
        facts = read_facts(journal.facts())
    assert re.search(rf"avtt resume \S+ --half-width 0\.02\d* --budget {facts.all_calls}", output)
    assert f"or asks all {facts.all_calls} calls, which is exact" in output
    (command,) = re.findall(r"avtt (census .*-whole)", output)
    assert shlex.split(command)[-1] == f"{out}-whole"
    with Run.opened(out) as journaled:
        near = gate(journaled, [f"overall <= {rate + 0.001}"]).rulings
        far = [replace(ruling, rule=Rule.parse("overall <= 0.9"), state="open") for ruling in near]
        assert len(steps_of_gate(journaled, near, Names())) == 2
        assert len(steps_of_gate(journaled, far, Names())) == 1, "a little more is enough"
        journaled.facts = facts.model_copy(update={"endpoint": {"calls": 1}})
        assert len(steps_of_gate(journaled, near, Names())) == 1, "a census would cost"


@pytest.mark.parametrize("name", ["site turin", "site turin: label error", "group:site:turin"])
def test_rules_take_the_names_that_a_terminal_prints(name: str) -> None:
    ids = [OfGroup("site", "oslo", "label error"), OfGroup("site", "turin", "label error")]
    assert chosen(Rule.parse(f"{name} <= 60 %"), ids) == [1]
