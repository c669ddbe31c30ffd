"""What an audit is to know before it ends: goals together, and those that cannot be reached."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.cli.spec_changes import read
from adaptive_vtt.config import parse_spec, read_spec
from adaptive_vtt.errors import InputError
from adaptive_vtt.stopping import SURELY_HARD, MaxQuestions, UncertaintyBelow
from adaptive_vtt.surrogates import lowest_with_hard_answers
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Answer
from tests.helpers.command_line import plain_start, refused, run, shown


class Hard(ScriptedModel):
    """Says Yes or No, never how likely."""

    def ask(self, prompts: Any) -> list[Any]:
        return [Answer((float(a.values[0] >= 0.5),)) for a in super().ask(prompts)]


def space_of(samples: int = 50) -> QuestionSpace:
    return QuestionSpace(tiny_dataset(samples, 3, images=False), ["identity"])


# -- together ------------------------------------------------------------------------------


def test_goals_given_together_are_all_reached() -> None:
    half_width, tau = 0.15, 0.6
    model, options = ScriptedModel(answers="one"), {"targets": ["overall"], "surrogate": False}
    goal = UncertaintyBelow(tau)
    both = Audit(space_of(), model, half_width=half_width, goal=goal, **options)  # type: ignore[arg-type]
    first: list[bool] = []

    def note(step: Any) -> None:
        certified, certain = both.belief.certifying.certified.all(), step.state.mean <= tau
        first.append(bool(certified) != bool(certain))  # one alone does not end it

    result = both.run(note)
    assert any(first)
    assert bool(result.targets["certified"].all())
    assert both.state().mean <= tau
    assert both.rules == [
        f"every target within +-{half_width:g} and mean uncertainty at most {tau:g} of its prior"
    ]
    assert str(result.reason).startswith(f"all 1 targets are certified to +-{half_width:g} and the")


def test_a_limit_ends_an_audit_whatever_its_goals() -> None:
    options: dict[str, Any] = {"half_width": 0.05, "goal": UncertaintyBelow(0.1)}
    audit = Audit(space_of(), ScriptedModel(), stop=MaxQuestions(9), budget=40, **options)
    assert audit.run().reason == "9 questions were answered"
    assert len(audit.rules) == 3


def test_in_a_spec_uncertainties_are_goals_and_the_rest_limits(tmp_path: Path) -> None:
    write_start(tmp_path)
    table = read_spec(tmp_path / "SPEC.toml").model_dump()
    table["stop"] = {"questions": 7, "uncertainty": 0.5, "max_uncertainty": 0.8, "seconds": 9}
    stop = parse_spec(table, "test").stop
    assert str(stop.limit()) == "7 questions or 9 seconds"
    words = "mean uncertainty at most 0.5 of its prior and max uncertainty at most 0.8 of its prior"
    assert str(stop.goal()) == words
    table["stop"] = {}
    stop = parse_spec(table, "test").stop
    assert stop.limit() is stop.goal() is None


# -- exploring -----------------------------------------------------------------------------


def test_explore_runs_the_papers_loop_on_a_spec_that_certifies(tmp_path: Path) -> None:
    write_start(tmp_path / "start")
    spec, out = str(tmp_path / "start" / "SPEC.toml"), tmp_path / "out"
    options = ("--seed", "0", "--set", "stop.uncertainty=0.6", "--set", "audit.device=cpu")
    assert run("audit", spec, "--explore", *options, "--out", str(out)) == 0
    result = json.loads((out / "result.json").read_text())
    assert result["stop_reason"].startswith("the mean uncertainty is 0.")
    assert not any(row["certified"] for row in result["targets"])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "by the strategy <b>uncertainty+unpredictability</b>" in page
    assert run("verify", str(out)) == 0


def test_explore_takes_back_what_only_certificates_need(tmp_path: Path) -> None:
    write_start(tmp_path)
    path = tmp_path / "SPEC.toml"
    text = path.read_text().replace("[audit]", '[audit]\nstrategy = "certify"', 1)
    path.write_text(text)
    spec, _ = read(path, False, {}, explore=True)
    assert (spec.audit.strategy, spec.certify.certifies) == (None, False)
    spec, _ = read(path, False, {"audit.strategy": "bald"}, explore=True)
    assert spec.audit.strategy == "bald"


def test_a_strategy_that_needs_targets_leaves_nothing_behind(tmp_path: Path) -> None:
    write_start(tmp_path)
    spec, out = str(tmp_path / "SPEC.toml"), ("--out", str(tmp_path / "out"))
    sentence = refused("audit", spec, "--explore", "--strategy", "certify", *out)
    assert "needs targets to certify: give half_width or at_most" in sentence
    sentence = refused("audit", spec, "--explore", "--require-certified", *out)
    assert "which certifies nothing, or --require-certified, got both" in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "sets", "option"),
    [
        ({"certify.half_width": 0.1}, [], "--half-width"),
        ({"certify.targets": ["overall"]}, [], "--targets"),
        ({"certify.cohort": ["a"]}, [], "--after"),
        ({}, ["certify.at_most=0.1"], "--set certify.at_most"),
        ({}, ["certify.self_taught=false"], "--set certify.self_taught"),
    ],
)
def test_explore_and_what_only_certificates_need_are_one_too_many(
    flags: dict[str, Any], sets: list[str], option: str
) -> None:
    message = rf"either --explore, which certifies nothing, or {option}, got both"
    with pytest.raises(InputError, match=message):
        read(None, True, flags, sets, explore=True)


def test_set_takes_toml_words_without_quotes_and_tables_within_tables() -> None:
    given = ["audit.device=cpu", "certify.targets=['overall']", "audit.strategy_options.power=2"]
    given += ['certify.weights."overall label error"=3', "certify.discover=1", "certify.discover=2"]
    spec, _ = read(None, True, {"audit.seed": 7}, [*given, "audit.seed=6"])
    assert (spec.audit.device, spec.audit.seed, spec.audit.budget) == ("cpu", 7, 3000)
    assert spec.audit.strategy_options == {"power": 2}
    assert (spec.certify.targets, spec.certify.discover) == (["overall"], 2)
    assert spec.certify.weights == {"overall label error": 3}


@pytest.mark.parametrize(
    ("strategy", "sets", "kept", "message"),
    [
        ("bald", [], {"power": 2.0}, ""),
        (
            "neyman",
            [],
            None,
            "{'power': 2.0} are left out: they belong to bald; set those of neyman by",
        ),
        ("bald", ["audit.strategy_options.power=3"], {"power": 3}, ""),
        ("neyman", ["audit.strategy_options.own=3"], {"own": 3}, ""),
    ],
)
def test_options_of_the_specs_strategy_are_not_those_of_another(
    strategy: str,
    sets: list[str],
    kept: dict[str, Any] | None,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, bald = tmp_path / "SPEC.toml", '{ strategy = "bald", strategy_options = { power = 2.0 } }'
    model = 'dataset.kind = "fashion"\nmodel = { kind = "simulated", target = "unbiased" }\n'
    path.write_text(f"{model}audit = {bald}\n")
    spec, _ = read(path, False, {"audit.strategy": strategy}, sets)
    assert (spec.audit.strategy, spec.audit.strategy_options) == (strategy, kept)
    errors = capsys.readouterr().err
    assert message in errors
    assert bool(errors) == bool(message)


def test_a_half_width_that_all_intervals_have_is_refused(tmp_path: Path) -> None:
    """It would certify every target with no call at all."""
    spec = write_start(tmp_path)
    message = r"below 0.5, such as 0.05 for \+-5 points, got 0.5"
    assert re.search(
        f"--half-width: .*{message}",
        refused("audit", str(spec), "--half-width", "0.5", "--out", str(tmp_path / "out")),
    )
    spec.write_text(spec.read_text().replace("half_width = 0.15", "half_width = 0.5"))
    with pytest.raises(InputError, match=rf"SPEC.toml: certify.half_width: .*{message}"):
        read_spec(spec)
    with pytest.raises(InputError, match=message):
        Audit(space_of(), ScriptedModel(), half_width=0.5)
    assert not (tmp_path / "out").exists()


def test_undecided_targets_are_required_too(tmp_path: Path) -> None:
    spec = plain_start(tmp_path)
    spec.write_text(spec.read_text().replace("half_width = 0.15", "at_most = 0.5"))
    options = ["--budget", "5", "--require-certified", "--out", str(tmp_path / "out")]
    assert "5 of 5 targets are not decided" in refused("audit", str(spec), *options, code=3)


# -- answers of 0 and 1 --------------------------------------------------------------------


@pytest.mark.parametrize(("form", "lowest"), [("std", 0.763), ("variance", 0.654)])
def test_hard_answers_leave_what_the_integral_over_two_ends_says(form: Any, lowest: float) -> None:
    x = np.linspace(0, 0.5, 100_001)
    k = np.exp(-((x / 0.1) ** 2)) / 1.025
    taken = 1 - np.sqrt(1 - k) if form == "std" else k
    share = float(np.trapezoid(taken, x)) / 0.5
    assert lowest_with_hard_answers(form) == pytest.approx(1 - 2 * share, abs=2e-4)
    assert lowest_with_hard_answers(form) == pytest.approx(lowest, abs=5e-4)


def test_hard_answers_stop_an_audit_that_can_never_be_certain_enough() -> None:
    """Before, it asked all 150 questions."""
    audit = Audit(space_of(), Hard(answers="one"), goal=UncertaintyBelow(0.5), seed=0)
    result = audit.run()
    assert result.calls == SURELY_HARD
    assert result.reason == (
        "the mean uncertainty cannot fall to 0.5 of its prior: all 100 answers were 0 or 1, with "
        "which at least 0.763 is left; certify instead (half_width), which such answers can, ask "
        "for more than that, or have the model give probabilities"
    )


@pytest.mark.slow
def test_a_certificate_is_waited_for_where_certainty_cannot_be_had() -> None:
    options: dict[str, Any] = {"half_width": 0.2, "targets": ["overall"], "surrogate": False}
    alone = Audit(space_of(), Hard(answers="one"), **options).run()
    both = Audit(space_of(), Hard(answers="one"), goal=UncertaintyBelow(0.5), **options).run()
    assert both.calls == max(alone.calls, SURELY_HARD)
    assert bool(both.targets["certified"].all())
    assert "and the mean uncertainty cannot fall to 0.5" in str(both.reason)


@pytest.mark.slow
def test_a_dry_run_says_that_hard_answers_cannot_reach_tau(tmp_path: Path) -> None:
    spec = str(write_start(tmp_path))
    for tau, warned in ((0.5, True), (0.8, False)):
        options = ["--dry-run", "--budget", "5", "--set", f"stop.uncertainty={tau}"]
        out = " ".join(shown("audit", spec, *options).split())
        sentence = "cannot fall below 0.763 of its prior, and the goal is 0.5: if the first 100"
        assert (sentence in out) is warned
