"""Comparisons: the truth, the figures of the summary by hand, and what the command writes."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptive_vtt.benchmark import runs as work
from adaptive_vtt.benchmark import summary
from adaptive_vtt.benchmark.estimators import lure, peek, plug_in, running_means
from adaptive_vtt.benchmark.figure import certified_page
from adaptive_vtt.benchmark.runs import (
    MOST_ARGMAX,
    Job,
    certified_run,
    is_checkpoint,
    levels_to,
    options_of,
)
from adaptive_vtt.benchmark.truth import all_answers, all_losses, calls_of, means
from adaptive_vtt.certify import named_targets
from adaptive_vtt.cli import main
from adaptive_vtt.cli.start_folder import write_start
from adaptive_vtt.engine.law import Law
from adaptive_vtt.experiments import peers
from adaptive_vtt.models import Recorded
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.spec import Spec, parse_spec
from adaptive_vtt.spec.building import build_audit, build_model, build_space
from adaptive_vtt.testing import ScriptedModel, TiledDataset

SAMPLES = 40


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """40 samples, two relations, two concepts; every fourth "a" and every fifth "b" wrong,
    "b" unanswered on the first sample."""
    numbers = np.arange(SAMPLES)
    a, b = numbers % 2, (numbers // 2) % 2
    ids = [f"s{n}" for n in numbers]
    pd.DataFrame({"id": ids, "a": a, "b": b}).to_csv(tmp_path / "labels.csv", index=False)
    said = {"a": np.where(numbers % 4 == 0, 1 - a, a), "b": np.where(numbers % 5 == 0, 1 - b, b)}
    table = pd.DataFrame({"sample": ids, "relation": "identity", "severity": 0, **said})
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


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits run in a thread; test_cli.py has a comparison in processes of its own."""
    monkeypatch.setattr(
        "adaptive_vtt.benchmark.runs.ProcessPoolExecutor",
        lambda mp_context: ThreadPoolExecutor(1),
    )


def run(*arguments: str) -> int:
    """The exit code of ``avtt arguments``."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    code = ended.value.code
    return code if isinstance(code, int) else 0


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


def test_answers_kept_by_the_pass_replay_as_the_model_itself(recorded):
    spec = spec_in(recorded)
    space = build_space(spec, recorded)
    model = build_model(spec, recorded, space.dataset)
    kept = Recorded(all_answers(space, model))
    again = all_losses(space, kept)
    assert again[1].tolist() == all_losses(space, model)[1].tolist()


def test_calls_of_a_huge_space_are_counted_and_not_listed():
    space = QuestionSpace(TiledDataset(np.array([[0, 1], [1, -1]]), 10**9))
    assert calls_of(space, ScriptedModel(answers="one")) == 3 * 10**9 // 2
    assert calls_of(space, ScriptedModel(answers="all")) == 10**9


# -- the figures, by hand -----------------------------------------------------------------


def planted(strategy: str, seed: int, calls: int | None, *, missed: bool, last: float) -> Any:
    """A run to half-width .1 that ended after 100 calls with estimate ``last``."""
    return {
        "strategy": strategy,
        "seed": seed,
        "calls": 100,
        "reason": "",
        "seconds": 0.001,
        "calls_to": [[0.3, 10], [0.2, 30], [0.1, calls]],
        "at": [1, 50, 100],
        "half_width": [0.5, 0.2, 0.1],
        "certified": [True],
        "variance_ratio": 0.5,
        "estimates": {"certified": [[0.5], [0.4], [last]]},
        "held": True,
        "missed": missed,
    }


def planted_runs() -> list[Any]:
    return [
        planted("uniform", 0, 100, missed=False, last=0.3),
        planted("uniform", 1, 80, missed=False, last=0.3),
        planted("neyman", 0, 45, missed=False, last=0.33),
        planted("neyman", 1, None, missed=True, last=0.26),
    ]


def test_summary_figures_by_hand():
    table = summary.certified_summary(planted_runs(), [0.3]).set_index("strategy")
    uniform, neyman = table.loc["uniform"], table.loc["neyman"]
    assert uniform["calls to 0.1"] == 90
    assert uniform["of uniform"] == 1
    assert neyman["calls to 0.2"] == 30
    assert neyman["calls to 0.1"] is None  # one of two did not get there
    assert neyman["of uniform"] is None
    assert neyman["ever missed"] == 0.5
    assert neyman["coverage"] == 1
    assert neyman["RMSE at stop"] == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2), abs=1e-4)
    estimators = summary.estimator_summary(planted_runs(), [0.3]).set_index("strategy")
    assert estimators.loc["neyman", "RMSE at 50"] == pytest.approx(0.1)
    assert estimators.loc["neyman", "bias at stop"] == pytest.approx(-0.005)


def test_rmse_stands_only_at_marks_that_every_run_reached():
    runs = planted_runs()
    assert summary.shared_marks(runs) == [50, 100]
    runs[0] = {**runs[0], "at": [1, 50, 90]}
    assert summary.shared_marks(runs) == [50]


def test_the_page_is_self_contained_and_safe_for_runs_that_fell_short():
    runs = planted_runs()
    table = summary.certified_summary(runs)
    page = certified_page(runs, 0.1, 0.95, {"strategies": table})
    assert "<script src=" not in page
    assert "cdn.plot.ly" not in page.split("</script>")[-2]
    assert "more than 100" in page


def test_running_means_and_plug_in_by_hand():
    inside = np.array([[True, True, False, True], [False, False, True, False]])
    losses, draw = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 2])
    assert running_means(inside, losses, draw, 1)[0] == 0.5
    assert np.isnan(running_means(inside, losses, draw, 1)[1])
    assert running_means(inside, losses, draw, 3) == pytest.approx([1 / 3, 1])
    found = plug_in(
        np.array([2.0, 1.0]),
        np.array([4.0, 0.0]),
        np.array([10.0, 5.0]),
        np.array([[True, True], [False, False]]),
        np.array([0.25, 0.75]),
    )
    assert found == pytest.approx([(2 + 4 * 0.5) / 10, 0.2])


def test_lure_is_the_formula_of_the_paper():
    """R = 1/M sum v_m l_m, v_m = 1 + (N-M)/(N-m) (1/((N-m+1) q_m) - 1), for all and for a part."""
    rng = np.random.default_rng(0)
    total, part = 12, 5  # the first questions are the part
    loss, weight = rng.random(total), rng.random(total) + 0.1
    unseen, drawn, chances, masses = list(range(total)), [], [], []
    for _ in range(10):
        law = weight[unseen] / weight[unseen].sum()
        place = int(rng.choice(len(unseen), p=law))
        masses.append(law[np.array(unseen) < part].sum())
        chances.append(law[place])
        drawn.append(unseen.pop(place))
    hit = np.stack([np.ones(10, bool), np.array(drawn) < part])
    left = np.array([[total], [part]]) - np.cumsum(hit, axis=1) + hit
    even = left / np.maximum(np.stack([np.ones(10), masses]), 1e-300)
    found = lure(
        hit * loss[drawn],
        hit,
        scale=np.tile(1 / np.array(chances), (2, 1)),
        even=even,
        calls=np.array([total, part]),
        sizes=np.array([total, part]),
    )

    def by_paper(n: int, losses: Any, q: Any) -> float:
        count = len(losses)
        steps = [
            1 + (n - count) / (n - m) * (1 / ((n - m + 1) * q[m - 1]) - 1) if m < n else 1.0
            for m in range(1, count + 1)
        ]
        return float(np.dot(steps, losses) / count)

    q = np.array(chances)
    for count in (1, 4, 9, 10):
        assert found[0, count - 1] == pytest.approx(by_paper(total, loss[drawn[:count]], q[:count]))
        mine = [m for m in range(count) if hit[1, m]]
        if mine and len(mine) < part:
            own = [q[m] / masses[m] for m in mine]
            assert found[1, count - 1] == pytest.approx(
                by_paper(part, loss[[drawn[m] for m in mine]], own)
            )
        assert np.isnan(found[1, count - 1]) == (not mine)
    everything = lure(
        np.array([[1.0, 0.0]]),
        np.ones((1, 2), bool),
        scale=np.array([[5.0, 1.0]]),
        even=np.array([[2.0, 1.0]]),
        calls=np.array([2.0]),
        sizes=np.array([2.0]),
    )
    assert everything[0, -1] == pytest.approx(0.5)


def test_peeking_by_hand():
    losses = np.tile([0.0, 1.0], 60)
    inside, draw = np.ones((1, 120), bool), np.arange(120)

    def look(truth: float, goal: float) -> Any:
        return peek(
            inside,
            losses,
            draw,
            truth=np.array([truth]),
            sizes=np.array([1000.0]),
            goal=goal,
            alpha=0.05,
        )

    # 1.96 sqrt(.25 / (n - 1)) is .1 at n = 98: even counts have mean 1/2
    stopped = look(0.5, 0.1)
    assert stopped.calls == pytest.approx(97, abs=1)
    assert stopped.held
    assert not stopped.missed
    assert look(0.9, 0.1).missed
    assert look(0.9, 0.1).held is False
    assert look(0.5, 0.01).calls is None


def test_checkpoints_and_levels():
    assert levels_to(0.08) == [0.3, 0.2, 0.1, 0.08]
    counts = [n for n in range(1, 10_001) if is_checkpoint(n)]
    assert {50, 100, 200, 400, 800, 1600, 3200, 6400} < set(counts)
    assert len(counts) < 110


# -- runs ---------------------------------------------------------------------------------


def test_a_run_counts_calls_and_a_truth_it_can_not_hold(recorded):
    spec = spec_in(recorded)
    good = certified_run(job_of(spec, recorded, "uniform", 0, (18 / 80, 0.0, 0.5)))
    assert good["held"]
    assert not good["missed"]
    assert good["calls"] == good["at"][-1] == good["calls_to"][-1][1]
    assert good["half_width"][-1] <= 0.2 < good["half_width"][-2]
    assert good["peeking"]["calls"] is None or good["peeking"]["calls"] <= good["calls"]
    planted = certified_run(job_of(spec, recorded, "uniform", 0, (18 / 80, 0.0, 0.99)))
    assert planted["missed"]
    unknown = certified_run(job_of(spec, recorded, "random", 1))
    assert "held" not in unknown
    assert list(unknown["estimates"]) == ["certified"]


def test_plug_in_and_raw_mean_end_at_the_truth_when_everything_was_asked(recorded):
    spec = spec_in(recorded, half_width=0.0001, surrogate=True)
    truth = (18 / 80, 0.0, 0.5)
    found = certified_run(job_of(spec, recorded, "random", 0, truth))
    assert found["calls"] == 2 * SAMPLES
    for name in ("raw mean", "GP plug-in", "certified"):
        assert found["estimates"][name][-1] == pytest.approx(truth, abs=2e-3)


def test_prediction_powered_draws_evenly_and_predicts(recorded):
    spec = spec_in(recorded, surrogate=True)
    for name, predicted in (("prediction-powered", True), ("uniform", False)):
        job = job_of(spec, recorded, name, 0)
        with build_audit(spec, recorded, **options_of(job), budget=12) as audit:
            audit.run()
            assert (audit.belief.losses is not None) == predicted
            for row in audit.journal.draws():
                law = Law.unpack(row.law).probabilities
                assert law == pytest.approx(np.full(len(law), 1 / len(law)), rel=1e-2)


def test_argmax_always_takes_the_best_and_ends(recorded):
    job = job_of(spec_in(recorded), recorded, "argmax", 0, (18 / 80, 0.0, 0.5))
    assert options_of(job)["budget"] == MOST_ARGMAX
    with job.audit_of(**{**options_of(job), "budget": 15}) as audit:
        audit.run()
        draws = audit.journal.draws()
        bounds = audit.result().targets
    laws = [Law.unpack(row.law).probabilities for row in draws]
    for row, law in zip(draws, laws, strict=True):
        assert row.probability == pytest.approx(law.max())
        assert ((law > 0.999 * law.max()) | (law < 1e-6)).all()  # the best, be they several
    assert np.median([(law > 1e-6).mean() for law in laws]) < 0.5
    assert (bounds["upper"] - bounds["lower"] > 0.5).all()  # nothing is certified of such draws


# -- the command --------------------------------------------------------------------------


@pytest.mark.usefixtures("in_process")
def test_compare_certifies_against_uniform(recorded, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["--strategies", "random", "--repeats", "2", "--out", str(out), "--json"]
    assert run("compare", str(recorded / "SPEC.toml"), *arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    record = json.loads((out / "compare.json").read_text())
    assert [row["strategy"] for row in printed["summary"]] == ["uniform", "random"]
    assert printed == {name: value for name, value in record.items() if name != "runs"}
    assert printed["truth"] == pytest.approx([18 / 80, 0, 0.5])
    assert printed["summary"][0]["of uniform"] == 1
    assert printed["peeking"]["repeats"] == 2
    assert len(record["runs"]) == 4
    assert "<script src=" not in (out / "compare.html").read_text()


def test_baselines_stands_for_all_there_is_to_compare_with(recorded, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(work, "run_all", lambda run_one, jobs, _: [run_one(job) for job in jobs])
    spec, out = str(recorded / "SPEC.toml"), tmp_path / "out"
    options = ["--strategies", "baselines,neyman", "--repeats", "1", "--budget", "4", "--json"]
    assert run("compare", spec, *options, "--out", str(out)) == 0
    record = json.loads(capsys.readouterr().out)
    paper = ["random", "unpredictability", "uncertainty", "uncertainty+unpredictability"]
    wanted = ["uniform", "stratified", "prediction-powered", "argmax", *paper, "lure", "neyman"]
    assert [row["strategy"] for row in record["summary"]] == wanted
    rows = {(row["strategy"], row["estimator"]) for row in record["estimators"]}
    assert {("argmax", "raw mean"), ("lure", "LURE"), ("prediction-powered", "GP plug-in")} < rows
    assert ("stratified", "GP plug-in") not in rows
    assert record["peeking"]["repeats"] == 1


@pytest.mark.usefixtures("in_process")
def test_exhaust_asks_a_callable_everything_once_and_replays_it(tmp_path, capsys):
    write_start(tmp_path)
    out = tmp_path / "out"
    spec = str(tmp_path / "SPEC.toml")
    options = ["--strategies", "uniform", "--repeats", "1", "--budget", "20"]
    assert (
        run(
            "compare",
            spec,
            *options,
            "--half-width",
            "0.4",
            "--targets",
            "overall",
            "--exhaust",
            "--out",
            str(out),
        )
        == 0
    )
    shown = capsys.readouterr().out
    assert "errors of estimates made from the same draws" in " ".join(shown.split())
    assert max(len(line) for line in shown.splitlines() if line.startswith("│")) <= 80
    record = json.loads((out / "compare.json").read_text())
    assert len(record["truth"]) == 1
    answers = pd.read_csv(out / "answers.csv")
    assert {"sample", "relation", "severity"} < set(answers)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--strategies", "neymann"], "unknown strategy 'neymann'"),
        (["--strategies", "neymann"], "did you mean 'neyman'?"),
        (["--strategies", ","], "--strategies: expected at least one name"),
        (["--repeats", "0"], "--repeats: expected at least 1, got 0"),
        (["--half-width", "1.5"], "certify.half_width: expected less than 1, got 1.5"),
        (["--targets", "overal"], "unknown target 'overal'"),
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
    assert "<script src=" not in (out / "compare.html").read_text()


def test_without_a_half_width_a_budget_is_wanted_and_nothing_to_exhaust(recorded, capsys):
    spec = recorded / "SPEC.toml"
    spec.write_text(spec.read_text().replace("half_width = 0.2", ""))
    assert run("compare", str(spec)) == 2
    assert "expected a budget (--budget or audit.budget) or a half-width" in capsys.readouterr().err
    assert run("compare", str(spec), "--budget", "5", "--exhaust") == 2
    assert "--exhaust: expected a half-width to certify" in capsys.readouterr().err


# -- peers --------------------------------------------------------------------------------


def flat(error: float, half: float) -> peers.Track:
    estimate = np.full(peers.MOST, error)
    return peers.Track(estimate, estimate - half, estimate + half)


def test_the_table_of_peers_by_hand():
    broken = flat(0.0, 0.1)
    broken.lower[150] = 0.01  # between the second mark and the third
    found = peers.table({"a": [flat(0.03, 0.05), flat(-0.04, 0.02)], "b": [broken], "c": "gone"})
    a = found[found["method"] == "a"].iloc[0]
    assert a["RMSE"] == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2))
    assert a["bias"] == pytest.approx(-0.005)
    assert a["half-width"] == pytest.approx(0.035)
    assert a["covered"] == 0.5
    b = found[found["method"] == "b"]
    assert b["covered"].tolist() == [1, 1, 1, 1]
    assert b["always"].tolist() == [1, 1, 0, 0]
    shown = peers.wide(found, "RMSE", 4).set_index("method")
    assert shown.loc["c"].tolist() == ["gone", "", "", ""]


def test_a_peer_that_is_missing_is_named(monkeypatch):
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(peers, "import_module", missing)
    monkeypatch.setattr(
        peers,
        "pool",
        lambda seed: peers.Bench(
            "tiny", np.zeros((4, 1)), np.zeros((4, 1)), np.zeros((4, 1, 1)), ("blur",), (0,), (1,)
        ),
    )
    assert peers.run(("ville, iid", 0)) == "not installed: ville"
    assert peers.run(("proeval", 0)) == "not installed: proeval.sampler"
