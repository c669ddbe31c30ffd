"""Comparisons: the truth, the figures of the summary by hand, and what the command writes."""

import json
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptive_vtt as avtt
from adaptive_vtt import strategies
from adaptive_vtt.audit.everything import all_losses, means
from adaptive_vtt.benchmark import executors
from adaptive_vtt.benchmark.kept import KeptRuns
from adaptive_vtt.benchmark.runs import Job, certified_run, options_of
from adaptive_vtt.certify import named_targets
from adaptive_vtt.cli.init import write_start
from adaptive_vtt.config import Spec, parse_spec
from adaptive_vtt.config.building import build_audit, build_model, build_space
from adaptive_vtt.engine.proposals import Proposal
from adaptive_vtt.errors import InputError
from adaptive_vtt.models import Recorded
from adaptive_vtt.space import QuestionSpace
from tests.helpers.command_line import run

SAMPLES = 40


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """40 samples, two relations, two concepts; every fourth "a" and every fifth "b" wrong,
    "b" unanswered on the first sample."""
    numbers = np.arange(SAMPLES)
    a, b = numbers % 2, (numbers // 2) % 2
    ids = [f"s{n}" for n in numbers]
    pd.DataFrame({"id": ids, "a": a, "b": b}).to_csv(tmp_path / "labels.csv", index=False)
    answers = {"a": np.where(numbers % 4 == 0, 1 - a, a), "b": np.where(numbers % 5 == 0, 1 - b, b)}
    table = pd.DataFrame({"sample": ids, "relation": "identity", "severity": 0, **answers})
    table["b"] = table["b"].astype(float)
    table.loc[0, "b"] = np.nan
    other = table.assign(relation="rotation", severity=1)
    pd.concat([table, other]).to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "SPEC.toml").write_text(
        """
        [dataset]
        kind = "table"
        labels = "labels.csv"
        [model]
        kind = "recorded"
        answers = "answers.csv"
        [space]
        relations = ["identity", "rotation"]
        severities = [1]
        [certify]
        half_width = 0.2
        targets = ["overall", "concept:a"]
        surrogate = false
        """
    )
    return tmp_path


def spec_in(folder: Path, **changes: Any) -> Spec:
    import tomllib

    table = tomllib.loads((folder / "SPEC.toml").read_text())
    table["certify"].update(changes)
    return parse_spec(table, "test")


def job_of(
    spec: Spec, base: Path, strategy: str, seed: int, truth: tuple[float, ...] | None = None
) -> Job:
    return Job(partial(build_audit, spec, base), strategy, seed, spec.audit.budget, truth)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn: test_compare_figures.py has the page."""
    monkeypatch.setattr("adaptive_vtt.benchmark.comparison.page", lambda *_: "a page")


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits run in a thread; test_cli.py has a comparison in processes of its own."""
    monkeypatch.setattr(
        "adaptive_vtt.benchmark.executors.ProcessPoolExecutor",
        lambda workers, **_: ThreadPoolExecutor(1),
    )


# -- the truth ----------------------------------------------------------------------------


def test_the_truth_pass_gives_the_mean_loss_of_every_target(recorded):
    spec = spec_in(recorded)
    space = build_space(spec, recorded)
    model = build_model(spec, recorded, space.dataset)
    steps: list[int] = []
    questions, losses = all_losses(space, model, steps.append)
    assert sum(steps) == 2 * SAMPLES
    assert len(questions) == space.size == 4 * SAMPLES
    truth = means(
        space, named_targets(space, spec.certify.targets, spec.certify.where), questions, losses
    )
    # "a" is wrong on multiples of 4, all of them absent; "b" on multiples of 5, the first
    # of which is unanswered and counts as wrong
    assert truth == pytest.approx([(10 + 8) / 80, 0.0, 10 / 20])


# -- runs ---------------------------------------------------------------------------------


def test_a_run_counts_calls_and_a_truth_it_can_not_hold(recorded):
    spec = spec_in(recorded)
    good = certified_run(job_of(spec, recorded, "uniform", 0, (18 / 80, 0.0, 0.5)))
    assert good["held"]
    assert not good["missed"]
    assert good["calls"] == good["at"][-1] == good["calls_to"][-1][1]
    assert good["all_calls"] == 2 * SAMPLES
    assert good["half_width"][-1] <= 0.2 < good["half_width"][-2]
    spec.audit.budget = 12
    planted = certified_run(job_of(spec, recorded, "uniform", 0, (18 / 80, 0.0, 0.99)))
    assert planted["missed"]
    unknown = certified_run(job_of(spec, recorded, "random", 1))
    assert "held" not in unknown
    assert list(unknown["estimates"]) == ["certified", "pseudo-outcomes"]


@pytest.mark.slow
def test_plug_in_and_raw_mean_end_at_the_truth_when_everything_was_asked(recorded):
    spec = spec_in(recorded, half_width=0.0001, surrogate=True)
    truth = (18 / 80, 0.0, 0.5)
    whole = certified_run(job_of(spec, recorded, "random", 0, truth))
    assert whole["calls"] == 2 * SAMPLES
    for name in ("raw mean", "GP plug-in", "certified", "pseudo-outcomes"):
        assert whole["estimates"][name][-1] == pytest.approx(truth, abs=2e-3)


def test_prediction_powered_draws_evenly_and_predicts(recorded):
    spec = spec_in(recorded, surrogate=True)
    for name, predicted in (("prediction-powered", True), ("uniform", False)):
        job = job_of(spec, recorded, name, 0)
        with build_audit(spec, recorded, **options_of(job), budget=12) as audit:
            audit.run()
            assert (audit.belief.losses is not None) == predicted
            for row in audit.journal.draws():
                proposal = Proposal.unpack(row.proposal).probabilities
                assert proposal == pytest.approx(
                    np.full(len(proposal), 1 / len(proposal)), rel=1e-2
                )


# -- the command --------------------------------------------------------------------------


def _without_seconds(record: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison without the seconds it took."""
    for row in [*record["runs"], *record["summary"]]:
        row.pop("seconds", None)
        row.pop("seconds per draw", None)
    return record


@pytest.mark.usefixtures("in_process")
def test_an_interrupted_comparison_ends_as_if_undisturbed(recorded, tmp_path, monkeypatch, capsys):
    spec, whole, cut = str(recorded / "SPEC.toml"), tmp_path / "whole", tmp_path / "cut"
    options = ["--strategies", "random", "--repeats", "2", "--budget", "4"]
    assert run("compare", spec, *options, "--out", str(whole), "--json") == 0
    begun: list[tuple[str, int]] = []

    def interrupted(job: Job) -> dict[str, Any]:
        begun.append((job.strategy, job.seed))
        if begun[3:]:
            raise KeyboardInterrupt
        return certified_run(job)

    monkeypatch.setattr("adaptive_vtt.benchmark.runs.certified_run", interrupted)
    assert run("compare", spec, *options, "--out", str(cut)) == 130
    output = capsys.readouterr().err
    assert "interrupted; 3 of 4 audits are kept in" in output
    assert "those under way are lost; the same command continues" in output
    with (cut / "runs.jsonl").open("a") as file:
        file.write('{"run": {"strategy": "random", "se')  # a crash while the last was written

    assert run("compare", spec, *options, "--half-width", "0.1", "--out", str(cut)) == 2
    told = "of another comparison, with spec.certify.half_width 0.2, not 0.1: the same call"
    assert told in capsys.readouterr().err

    begun.clear()
    assert run("compare", spec, *options, "--out", str(cut)) == 0
    assert begun == [("random", 1)]
    assert "3 of 4 audits are in" in capsys.readouterr().err
    first, second = (json.loads((out / "compare.json").read_text()) for out in (whole, cut))
    assert _without_seconds(first) == _without_seconds(second)

    begun.clear()  # it has ended, and more repeats cost what is new
    more = [*options[:3], "3", *options[4:]]
    assert run("compare", spec, *more, "--out", str(cut)) == 0
    assert begun == [("uniform", 2), ("random", 2)]
    assert run("compare", spec, *options, "--half-width", "0.1", "--out", str(cut)) == 2
    assert "give another folder (out), or remove this file" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_edits_and_a_larger_budget_cost_their_audits(recorded, tmp_path, monkeypatch, capsys):
    spec, out, mine = str(recorded / "SPEC.toml"), tmp_path / "out", recorded / "mine.py"
    code = "class Mine:\n    def weights(self, candidates, belief):\n        return {}\n"
    mine.write_text(code.format("[1.0] * len(candidates)"))
    begun: list[tuple[str, int]] = []

    def noted(job: Job) -> dict[str, Any]:
        begun.append((job.name, job.seed))
        if begun[limit:]:
            raise KeyboardInterrupt
        return certified_run(job)

    def compared(*more: str) -> int:
        begun.clear()
        options = ["--strategies", "mine.py:Mine,random", "--repeats", "2", "--out", str(out)]
        return run("compare", spec, *options, "--set", "audit.strategy=mine.py:Mine", *more)

    limit = 99
    monkeypatch.setattr("adaptive_vtt.benchmark.runs.certified_run", noted)
    assert compared("--budget", "45") == 0
    capsys.readouterr()
    mine.write_text(code.format("candidates.truth + 1.0"))
    limit = 1
    assert compared("--budget", "45") == 130
    told = "audits outdated, as a strategy or the budget changed: mine.py:Mine (2)"
    assert told in capsys.readouterr().err
    limit = 99
    assert compared("--budget", "45") == 0
    assert begun == [("mine.py:Mine", 1)]  # of the code before, nothing came back from the file

    runs = json.loads((out / "compare.json").read_text())["runs"]
    short = [(run["strategy"], run["seed"]) for run in runs if not all(run["certified"])]
    assert 0 < len(short) < 6
    assert compared("--budget", "44") == 2
    assert "another comparison, with budget 45, not 44" in capsys.readouterr().err
    assert compared("--budget", "70") == 0
    assert begun == short


class _CutShort(list[float]):
    """One job, and Ctrl-C before the next is handed out."""

    def __iter__(self) -> Iterator[float]:
        yield 300.0
        raise KeyboardInterrupt


def test_an_interruption_waits_for_no_audit():
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        executors.run_all(time.sleep, _CutShort())
    assert time.monotonic() - begun < 200


def test_ctrl_c_ends_no_worker_by_itself():
    """A terminal sends it to every process; what to do is for the one that began them to say."""
    assert executors.run_all(signal.raise_signal, [signal.SIGINT]) == [None]


def test_what_is_no_file_of_kept_runs_is_refused(tmp_path):
    (tmp_path / "runs.jsonl").write_text('{"run": 3}\n')
    with pytest.raises(InputError, match=r"runs\.jsonl, line 1: expected a run that 'avtt"):
        KeptRuns(tmp_path)


def test_answers_that_an_interrupted_exhaust_got_are_not_asked_again(tmp_path, monkeypatch, capsys):
    write_start(tmp_path)
    arguments = ["compare", str(tmp_path / "SPEC.toml"), "--strategies", "uniform"]
    arguments += ["--repeats", "1", "--budget", "20", "--half-width", "0.4", "--exhaust"]
    arguments += ["--out", str(tmp_path / "out")]

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("adaptive_vtt.cli.compare.run_all", interrupted)
    assert run(*arguments) == 130
    errors = capsys.readouterr().err
    assert errors.startswith("warning: --repeats 1 is too few to say which strategy")
    assert "the answers to everything are kept; the same command" in errors
    monkeypatch.setattr("adaptive_vtt.cli.compare.all_answers", None)  # nothing is asked again
    assert run(*arguments) == 130
    with (tmp_path / "model.py").open("a") as file:
        file.write("# changed\n")
    assert run(*arguments) == 2
    assert "with files.model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--repeats", "0"], "--repeats: expected at least 1, got 0"),
        (["--strategies", "random,certify:explore=.2"], "'certify': unknown option 'explore'; did"),
        (["--strategies", "bald:power=x"], "power: expected a number of at least 0, got 'x'"),
        (["--targets", "overal"], "unknown target 'overal'"),
        (["--strategies", "uniform:exploration=.1"], "expected no options, got exploration"),
    ],
)
def test_mistakes_are_one_sentence(recorded, tmp_path, capsys, arguments, sentence):
    spec = str(recorded / "SPEC.toml")
    assert run("compare", spec, *arguments, "--out", str(tmp_path / "out")) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert sentence in lines[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("in_process")
def test_without_a_half_width_calls_to_uncertainties_are_counted(recorded, tmp_path, capsys):
    spec, out = recorded / "SPEC.toml", tmp_path / "out"
    spec.write_text(spec.read_text().replace("half_width = 0.2", ""))
    options = ["--strategies", "random,uncertainty", "--repeats", "1", "--budget", "8", "--json"]
    assert run("compare", str(spec), *options, "--out", str(out)) == 0
    rows = json.loads(capsys.readouterr().out)["summary"]
    assert [row["strategy"] for row in rows] == ["random", "uncertainty"]
    assert [row["calls"] for row in rows] == [8, 8]
    assert rows[0]["calls to 0.1"] is None


@pytest.mark.usefixtures("in_process")
def test_one_strategy_several_times_with_its_own_options(recorded, tmp_path, monkeypatch, capsys):
    spec, out = str(recorded / "SPEC.toml"), tmp_path / "out"
    (recorded / "mine.py").write_text(
        "class Mine:\n    def __init__(self, curiosity=1.0):\n"
        "        self.curiosity = curiosity\n\n"
        "    def weights(self, candidates, belief):\n        return [1.0] * len(candidates)\n"
    )
    asked: list[Any] = []

    def noted(job: Job) -> Any:
        with job.audit_of(**options_of(job), budget=1) as audit:
            settings = audit.journal.facts()["settings"]
        asked.append((settings["strategy_options"].get("curiosity"), settings["exploration"]))
        return certified_run(job)

    monkeypatch.setattr("adaptive_vtt.benchmark.runs.certified_run", noted)
    names = ["random", "certify", "certify:curiosity=.3:exploration=0.4"]
    names += ["mine.py:Mine:curiosity=3"]
    arguments = ["--strategies", ",".join(names), "--repeats", "1", "--budget", "4"]
    assert run("compare", spec, *arguments, "--out", str(out)) == 0
    rows = pd.read_csv(out / "compare.csv")
    assert rows["strategy"].tolist() == ["uniform", *names]
    assert asked[2:] == [(0.1, 0.2), (0.3, 0.4), (3, 0.2)]


def test_without_a_half_width_a_budget_is_wanted_and_nothing_to_exhaust(recorded, capsys):
    spec = recorded / "SPEC.toml"
    spec.write_text(spec.read_text().replace("half_width = 0.2", ""))
    assert run("compare", str(spec)) == 2
    assert "expected a budget (--budget or audit.budget) or a half-width" in capsys.readouterr().err
    assert run("compare", str(spec), "--budget", "5", "--exhaust") == 2
    assert "--exhaust: expected a half-width to certify" in capsys.readouterr().err


# -- in Python ----------------------------------------------------------------------------


@pytest.fixture
def answers(recorded) -> tuple[QuestionSpace, Recorded]:
    """The space of ``recorded`` and its model."""
    spec = spec_in(recorded)
    space = build_space(spec, recorded)
    model = build_model(spec, recorded, space.dataset)
    assert isinstance(model, Recorded)
    return space, model


OPTIONS: dict[str, Any] = {
    "half_width": 0.2,
    "targets": ["overall", "concept:a"],
    "surrogate": False,
}


def test_rows_of_a_mapping_have_names_and_options_of_their_own(answers, tmp_path):
    rows = {
        "plain": "lure",
        "curious": ("lure", {"exploration": 0.5}),
        "made": strategies.get("certify", curiosity=0.3),
    }
    done: list[int] = []
    options = {**OPTIONS, "budget": 3, "out": tmp_path, "advance": done.append}
    comparison = avtt.compare(*answers, rows, repeats=1, **options)
    assert sum(done) == len(comparison.runs) == 4
    assert avtt.StrategyComparison.read(tmp_path).to_dict() == comparison.to_dict()
    assert comparison.table["strategy"].tolist() == ["uniform", *rows]
    without = avtt.compare(*answers, {"one": "random"}, repeats=1, budget=3)
    assert without.table["strategy"].tolist() == ["one"]
    assert without.conclusion == ""
    assert without.truth is None


def test_python_goes_on_with_the_same_out_and_runs_anew_what_nobody_can_tell(answers, tmp_path):
    """Whether a strategy of one's own is as it was, nobody can tell."""
    settings = {**OPTIONS, "budget": 5, "out": tmp_path}
    rows, done = {"random": "random", "own": Same()}, []
    for _ in range(2):
        avtt.compare(*answers, rows, repeats=1, advance=done.append, **settings)
    assert done == [0, 1, 1, 1, 2, 1]  # what ended is kept, and the own one is run again
    with pytest.raises(InputError, match="another comparison, with budget 5, not 4"):
        avtt.compare(*answers, rows, repeats=1, **{**settings, "budget": 4})
    other = QuestionSpace(answers[0].dataset, ["identity"])
    with pytest.raises(InputError, match="another comparison, with space"):
        avtt.compare(other, answers[1], rows, repeats=1, **settings)
    (tmp_path / "compare.json").write_text("[]")
    with pytest.raises(InputError, match=r"compare\.json: expected what 'avtt compare' writes"):
        avtt.StrategyComparison.read(tmp_path)


class Same:
    """A strategy of somebody's own."""

    def weights(self, candidates: Any, belief: Any) -> Any:
        return np.ones(len(candidates))


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (["lur"], OPTIONS, "unknown strategy 'lur'; did you mean 'lure'?"),
        ([], OPTIONS, "strategies: expected at least one, got none"),
        (["lure"], {"budget": 3, "exhaust": True}, "compare: expected a half_width, got none"),
        ([Same(), Same()], OPTIONS, "strategies: expected a different name for each, got 'Same'"),
        ({"a": ("bald", {"pwer": 2})}, OPTIONS, "'bald': unknown option 'pwer'; did you mean"),
        ({"uniform": "lure"}, OPTIONS, "strategy 'uniform': expected another name, this is"),
        (["lure"], {}, "compare: expected a half_width or a budget, got none"),
        (["lure"], {**OPTIONS, "seed": 3}, "compare: expected no 'seed' among the options"),
    ],
)
def test_what_python_cannot_compare_is_one_sentence(answers, given, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        avtt.compare(*answers, given, **options)
