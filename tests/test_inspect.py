"""Tasks of Inspect, certified with few of their samples."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaptive_vtt as avtt
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, ModelError
from adaptive_vtt.inspect import CertifiedStop, audit
from adaptive_vtt.journal import SQLiteJournal
from tests.helpers.command_line import run as command

pytest.importorskip("inspect_ai")
from inspect_ai import Task
from inspect_ai import eval as evaluated
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import (
    ModelCost,
    ModelInfo,
    ModelOutput,
    ModelUsage,
    get_model,
    set_model_info,
)
from inspect_ai.scorer import SampleScore, Score, match
from inspect_ai.solver import generate, solver

SIZE = 60
WRONG = np.arange(SIZE) % 4 == 0


def quiz(**options: Any) -> Task:
    """Sixty samples, of the fields "law" and "physics"; the first has an id that Inspect would take
    for a pattern, the last has none."""
    samples = [
        Sample(
            id={0: "q[1-9]", SIZE - 1: None}.get(k, f"q{k}"),
            input=f"{k} is?",
            target="yes",
            metadata={"field": ["law", "physics"][k % 2], "number": k},
        )
        for k in range(SIZE)
    ]
    options = {"scorer": match(), "solver": generate(), **options}
    return Task(dataset=MemoryDataset(samples, name="quiz"), name="quiz", **options)


def model(wrong: Any = WRONG, name: str = "sixth", fails_at: int = -1) -> Any:
    """A mock model that answers sample k wrongly where ``wrong[k]``, and raises at ``fails_at``."""

    def said(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        number = int(messages[-1].text.split()[0])
        if number == fails_at:
            raise ValueError("no\nroute")
        output = ModelOutput.from_content(f"mockllm/{name}", "no" if wrong[number] else "yes")
        output.usage = ModelUsage(input_tokens=10, output_tokens=1, total_tokens=11)
        return output

    return get_model(f"mockllm/{name}", custom_outputs=said)


QUICK: dict[str, Any] = {"half_width": 0.2, "seed": 0, "on_progress": None, "log_level": "error"}
IDS = ["q[1-9]", *(f"q{k}" for k in range(1, SIZE - 1)), str(SIZE)]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("audit")
    return folder, audit(quiz, model=model(), out=folder, **QUICK)


def test_rates_by_metadata_are_certified_and_verified(audited: tuple[Path, Any], capsys: Any):
    folder, result = audited
    table = result.targets.set_index("target")
    assert [*table.index] == [
        "overall mean loss",
        "field law: mean loss",
        "field physics: mean loss",
    ]
    assert table["certified"].all()
    for target, truth in zip(table.index, (0.25, 0.5, 0), strict=True):
        assert table["lower"][target] <= truth <= table["upper"][target]
    assert result.calls < SIZE
    assert command("verify", str(folder)) == 0
    assert "every draw follows" in " ".join(capsys.readouterr().out.split())


def test_its_logs_are_ordinary_ones_and_make_a_member_of_a_cohort(audited: tuple[Path, Any]):
    folder, result = audited
    logs = sorted((folder / "logs").glob("*.eval"))
    read = [read_eval_log(str(path)) for path in logs]
    assert [log.status for log in read] == ["success"] * len(logs)
    assert sum(len(log.samples or ()) for log in read) == result.calls
    (member,) = avtt.Cohort.from_inspect(folder / "logs").members
    known = member.on(avtt.Pool(SIZE, ids=IDS))
    assert len(known.questions) == result.calls
    assert known.losses.tolist() == WRONG[known.questions].tolist()


def test_an_audit_that_has_ended_evaluates_nothing_again(audited: tuple[Path, Any]) -> None:
    folder, result = audited
    logs = len([*(folder / "logs").iterdir()])
    again = audit(quiz, model=model(), out=folder, **QUICK)
    assert (again.calls, len([*(folder / "logs").iterdir()])) == (result.calls, logs)


def test_a_sample_that_fails_counts_as_lost_and_money_is_counted(tmp_path: Path) -> None:
    price = ModelCost(input=1e5, output=0, input_cache_write=0, input_cache_read=0)
    set_model_info("mockllm/priced", ModelInfo(cost=price))  # a dollar for ten tokens
    priced = model(0 * WRONG, name="priced", fails_at=7)
    options: dict[str, Any] = {**QUICK, "half_width": 0.01, "by": (), "log_dir": str(tmp_path)}
    options |= {"epochs": 2, "cost_limit": 1.5, "max_cost": 190, "batch": SIZE}
    result = audit(quiz, model=priced, **options)
    assert result.failures()[["sample", "unanswered"]].to_numpy().tolist() == [
        ["q7", "ValueError('no\\nroute')"]
    ]
    # a call may cost 1.5 in each epoch, and the failed one cost nothing
    assert (result.calls, result.cost) == (SIZE, 2.0 * (SIZE - 1))


def test_attempts_that_failed_within_a_sample_are_booked(tmp_path: Path) -> None:
    price = ModelCost(input=1e5, output=0, input_cache_write=0, input_cache_read=0)
    set_model_info("mockllm/flaky", ModelInfo(cost=price))
    failed = set()

    @solver
    def flaky() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state = await generate(state)  # a dollar
            if str(state.sample_id)[-1] in "369" and state.sample_id not in failed:
                failed.add(state.sample_id)
                raise ValueError("the tool broke")
            return state

        return solve

    task = quiz(solver=flaky())
    options: dict[str, Any] = {**QUICK, "half_width": 0.01, "by": (), "log_dir": str(tmp_path)}
    options |= {"retry_on_error": 1, "cost_limit": 1.5, "max_cost": 200, "batch": 12}
    result = audit(task, model=model(0 * WRONG, name="flaky"), **options)
    assert len(failed) == 17
    assert (result.calls, result.cost) == (SIZE, pytest.approx(SIZE + 17))


def test_samples_that_are_not_evaluated_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def cancelled(task: Task, sample_id: list[Any], **options: Any) -> list[Any]:
        return evaluated(task, sample_id=sample_id[1:], **options)

    monkeypatch.setattr("inspect_ai.eval", cancelled)
    with pytest.raises(ModelError, match=r"all of 2 samples to be evaluated, got none of"):
        audit(quiz, model=model(), **{**QUICK, "batch": 2, "log_dir": str(tmp_path)})


# -- Inspect's own order ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CertifiedStop, Any]:
    folder = tmp_path_factory.mktemp("stop")
    rng = np.random.default_rng(0)
    others = avtt.Cohort(
        [
            avtt.cohort.Member(name, {avtt.cohort.Item(i): float(w) for i, w in lost})
            for name in "abc"
            for lost in [[*zip(IDS, WRONG ^ (rng.random(SIZE) < 0.1), strict=True)]]
        ]
    )
    stop = CertifiedStop(0.2, cohort=others, seed=0, out=folder)
    options: dict[str, Any] = {"display": "none", "log_level": "error", "max_connections": 3}
    (log,) = evaluated(stop.of(quiz), model=model(), log_dir=str(folder), **options)
    return folder, stop, log


def test_an_evaluation_ends_once_all_is_certified(stopped: tuple[Path, CertifiedStop, Any]):
    folder, stop, log = stopped
    told = log.results.early_stopping
    assert (log.status, told.manager) == ("success", "adaptive_vtt")
    assert stop.result is not None
    assert 0 < len(told.early_stops) == SIZE - stop.result.calls
    assert told.early_stops[0].reason == "all 1 targets are certified to +-0.2"
    assert [row["target"] for row in told.metadata["intervals"]] == [*stop.result.targets["target"]]
    assert stop.result.targets["certified"].all()
    assert (folder / "report.html").exists()


def test_its_samples_come_in_the_order_of_draws(stopped: tuple[Path, CertifiedStop, Any]):
    folder, _, log = stopped
    journal = SQLiteJournal(folder / "journal.db")
    drawn = [IDS[row.call] for row in journal.draws(proposals=False)]
    assert drawn == log.eval.dataset.sample_ids[: len(drawn)]
    assert {str(sample.id) for sample in log.samples} == {*drawn}
    (interval,) = verify(journal)
    journal.close()
    assert interval.lower <= WRONG.mean() <= interval.upper


def completed(stop: CertifiedStop, task: Task, scores: dict[str, Any]) -> None:
    """Inspect comes to the first sample and scores it."""
    sample = task.dataset[0].id
    assert sample is not None
    found = {name: SampleScore(score=Score(value=value)) for name, value in scores.items()}

    async def run() -> None:
        assert await stop.schedule_sample(sample, 1) is None
        await stop.complete_sample(sample, 1, found)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"a": 1, "b": 0}, "inspect: sample .* expected scorer= to name one of 'a', 'b'"),
        ({"a": 7}, "inspect: sample .* expected a score between 0 and 1, got 7"),
        ({"a": "good"}, "expected a score between 0 and 1, got 'good'"),
    ],
)
def test_scores_that_are_no_rates_are_refused(scores: dict[str, Any], message: str) -> None:
    stop = CertifiedStop(0.2, seed=0)
    with pytest.raises(InputError, match=message):
        completed(stop, stop.of(quiz), scores)


def test_a_sample_that_was_never_scored_counts_as_lost_in_the_end() -> None:
    stop = CertifiedStop(0.2, seed=0, scorer="a")
    task = stop.of(quiz)
    completed(stop, task, {"a": "P", "b": 0})
    second = task.dataset[1].id
    assert second is not None
    asyncio.run(stop.schedule_sample(second, 1))
    asyncio.run(stop.complete_task())
    assert stop.result is not None
    lost = stop.result.failures().set_index("sample")
    assert lost["loss"].to_dict() == {str(task.dataset[0].id): 0.5, str(second): 1.0}
    assert lost["unanswered"][str(second)] == "Inspect ended it with an error"


def test_epochs_and_a_folder_with_an_audit_are_refused(stopped: tuple[Path, CertifiedStop, Any]):
    folder, stop, log = stopped
    with pytest.raises(InputError, match=r"inspect: expected one epoch, .* got 2"):
        asyncio.run(stop.start_task(log.eval, [], 2))
    with pytest.raises(InputError, match="inspect: out: expected a folder without an audit"):
        CertifiedStop(0.2, out=folder).of(quiz)


# -- what cannot be --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (quiz, {"limit": 5}, "inspect: expected samples to be chosen and scored by .*, got limit"),
        (quiz, {"max_cost": 1}, "inspect: max_cost: expected cost_limit, too, .* got none"),
        (quiz, {"by": ["year"]}, "inspect: by: .*'year'"),
        ("arc", {}, "inspect: expected a task of Inspect or a function that makes one, got 'arc'"),
        (quiz, {"model": ["a", "b"]}, r"inspect: model: expected one model, got \['a', 'b'\]"),
    ],
)
def test_what_cannot_be_audited_is_said(task: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        audit(task, **{"model": "mockllm/model", **options})
