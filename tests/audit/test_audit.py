"""The audit: no question asked twice, none over the budget, every answer counted and checked."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit import Call
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.cli.verify import check
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Belief
from adaptive_vtt.errors import AvttError, InputError, ModelError, OrderError
from adaptive_vtt.experiments.engine.tiled import TiledDataset
from adaptive_vtt.journal import MemoryJournal
from adaptive_vtt.models import Answer, PythonModel, Recorded, Unanswered
from adaptive_vtt.results.outcomes import confusion, outcomes
from adaptive_vtt.testing import ScriptedModel
from adaptive_vtt.types import Candidates
from tests.helpers.audits import Content, content, finished, same_targets

# -- budget and coverage -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "batch", "budget"),
    [("one", 1, 1), ("all", 4, 10), ("one", 4, 1000), ("all", 1, 1000)],
)
def test_no_call_twice_or_over_budget(space: QuestionSpace, answers: Any, batch: int, budget: int):
    model = ScriptedModel(answers=answers)
    result = finished(space, model=model, budget=budget, batch=batch).result()
    everything = 72 if answers == "one" else 36
    assert len(model.asked) == len(set(model.asked)) == min(budget, everything)
    assert result.calls == result.cost == len(model.asked)
    assert result.questions == len(model.asked) * (1 if answers == "one" else 2)
    ended = f"{budget} calls were made" if budget < everything else "every question was asked"
    assert result.reason == ended
    assert result.waiting == 0


def test_budget_holds_for_calls_handed_out_and_over_resumption(space: QuestionSpace) -> None:
    journal = MemoryJournal()
    audit = Audit(space, ScriptedModel(), budget=5, journal=journal)
    assert len(audit.ask(3)) == 3
    assert len(audit.ask(3)) == 2
    assert audit.ask(3) == []
    again = Audit(space, ScriptedModel(), budget=5, journal=journal)
    assert len(again.ask(50)) == 5
    assert again.ask(50) == []
    assert len(journal.draws()) == 5


def test_audit_has_not_ended_while_calls_wait(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel())
    *calls, last = audit.ask(1000)
    for call in calls:
        audit.tell(call, [0.5, 0.5])
    assert audit.ask(1000) == []
    assert audit.stopped is None
    assert (audit.result().reason, audit.result().waiting) == (None, 1)
    audit.tell(last, [0.5, 0.5])
    assert audit.ask(1000) == []
    assert audit.stopped == audit.result().reason == "every question was asked"


def test_unknown_truths_are_never_drawn_and_never_judged(labels: pd.DataFrame) -> None:
    space = QuestionSpace(from_table(None, labels))
    for answers, kept in (("one", 11), ("all", 12)):
        audit = finished(space, model=ScriptedModel(answers=answers))  # type: ignore[arg-type]
        rows = [a for call in audit.journal.calls() for a in call.answers]
        unknown = [a for a in rows if a.loss is None]
        assert len(rows) == kept
        # row b, concept fluid: question 1 * 3 + 2
        assert [a.question for a in unknown] == ([5] if answers == "all" else [])
        assert all((a.truth, a.coordinate) == (None, None) for a in unknown)
        assert audit.result().questions == 11
        assert 5 not in {row.question for row in audit.journal.draws()}


# -- unanswered ----------------------------------------------------------------------------


def test_unanswered_counts_as_wrong_and_teaches_nothing(space: QuestionSpace) -> None:
    audit = finished(space, model=ScriptedModel(refuse=1.0), budget=10, fail_on_error=1)
    rows = [a for call in audit.journal.calls() for a in call.answers]
    assert {(a.answer, a.unanswered, a.loss, a.coordinate) for a in rows} == {
        (None, "refused", 1.0, None)
    }
    assert audit.state().uncertainty == pytest.approx(np.ones((2, 2)), abs=1e-12)
    result = audit.result()
    assert (result.questions, result.cost) == (20, 5.0)
    assert result.targets.set_index("target").loc["overall label error", "estimate"] == 1


def test_one_concept_unanswered_leaves_the_others_learnt(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel())
    (call,) = audit.ask()
    audit.tell(call, Answer((Unanswered("garbage"), 0.5)))
    (row,) = audit.journal.calls()
    assert [(a.answer, a.unanswered) for a in row.answers] == [(None, "garbage"), (0.5, None)]
    uncertainty = audit.state().uncertainty
    assert uncertainty[0] == pytest.approx([1, 1], abs=1e-12)
    assert uncertainty[1].min() < 0.9


# -- what comes out ------------------------------------------------------------------------


def test_result_is_counted_from_the_answers() -> None:
    # truth and answer:   A: 1 .9 (tp)   1 .2 (fn)   0 .7 (fp)   0 .1 (tn)
    #                     B: 1 .6 (tp)   1 .8 (tp)   0 .3 (tn)   0 nothing recorded
    labels = pd.DataFrame({"A": [1, 1, 0, 0], "B": [1, 1, 0, 0]})
    said = pd.DataFrame({"A": [0.9, 0.2, 0.7, 0.1], "B": [0.6, 0.8, 0.3, np.nan]})
    audit = finished(QuestionSpace(from_table(None, labels)), model=Recorded(said))
    targets = audit.result().targets.set_index("target")
    assert targets["estimate"].to_dict() == {
        "overall label error": 3 / 8,
        "A: miss rate": 1 / 2,
        "A: false-alarm rate": 1 / 2,
        "B: miss rate": 0,
        "B: false-alarm rate": 1 / 2,
        "relation identity: label error": 3 / 8,
    }
    assert targets["questions"].tolist() == [8, 2, 2, 2, 2, 8]
    assert not targets["certified"].any()
    assert targets[["lower", "upper", "half_width"]].isna().all(axis=None)
    table = confusion(outcomes(audit.journal), "concept")
    counts = table[["tn", "fp", "fn", "tp", "unanswered"]]
    assert counts.loc["A"].tolist() == [1, 1, 1, 1, 0]
    assert counts.loc["B"].tolist() == [1, 0, 0, 2, 1]
    # A is right half of the time, as chance is; B is always right where it answers.
    assert table.loc["A", ["sensitivity", "precision", "f1", "kappa"]].tolist() == [0.5] * 3 + [0]
    assert table.loc["B", ["sensitivity", "specificity", "f1", "kappa"]].tolist() == [1] * 4


# -- determinism ---------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [4096, 10])
def test_a_seed_decides_the_journal(space: QuestionSpace, candidates: int, tmp_path: Path):
    def journal(seed: int, where: Path | None = None) -> Content:
        options: Any = {"budget": 12, "batch": 2, "candidates": candidates, "journal": where}
        return content(finished(space, seed=seed, **options).journal)

    first = journal(1)
    assert first == journal(1, tmp_path / "journal.db")
    assert [d["question"] for d in first[0]] != [d["question"] for d in journal(2)[0]]


def test_beliefs_are_frozen_within_a_batch(space: QuestionSpace) -> None:
    audit = finished(space, budget=8, batch=3)
    assert [row.learned for row in audit.journal.draws()] == [0, 0, 0, 3, 3, 3, 6, 6]


# -- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exploration": -0.1}, r"exploration: expected .* least 0 and at most 1, got -0\.1"),
        ({"exploration": float("nan")}, r"exploration: expected .* least 0 and at most 1, got nan"),
        ({"candidates": 0}, r"candidates: expected a whole number of at least 1, got 0"),
        ({"batch": 0}, r"batch: expected a whole number of at least 1, got 0"),
        ({"budget": 0}, r"budget: expected a whole number of at least 1, got 0"),
        ({"form": "area"}, "unknown form 'area'"),
        ({"half_width": 0.1, "proxies": [0.5]}, r"proxies: expected a dict, .* got list"),
        ({"half_width": 0.1, "proxies": {"p": [[1]]}}, "proxy 'p': expected an array, .* got list"),
        ({"device": "meta"}, r"device 'meta' cannot be used: .*; 'auto' is CUDA where there is"),
        ({"strategy": "randon"}, r"unknown strategy 'randon'.*did you mean 'random'"),
        ({"device": "abacus"}, r"device 'abacus' cannot be used: expected auto, cpu"),
    ],
)
def test_settings_out_of_range_are_refused(space: QuestionSpace, options: Any, message: str):
    with pytest.raises(InputError, match=message):
        Audit(space, ScriptedModel(), **options)


def test_model_that_needs_images_is_refused_where_there_are_none() -> None:
    space = QuestionSpace(TiledDataset([[0, 1]], 10))
    with pytest.raises(InputError, match=r"'len' looks at images, but dataset 'tiled' has none"):
        Audit(space, PythonModel(len))


def test_strategy_without_weights_is_refused_and_nothing_is_journaled(space: QuestionSpace) -> None:
    class Nothing:
        def weights(self, candidates: Candidates, belief: Belief) -> Tensor:
            return torch.zeros(len(candidates))

    audit = Audit(space, ScriptedModel(), strategy=Nothing())
    with pytest.raises(AvttError, match="expected a weight above 0, got none"):
        audit.run()
    assert audit.journal.draws() == []


# -- ask and tell ------------------------------------------------------------------------


def test_answers_told_out_of_order_come_to_the_same(space: QuestionSpace) -> None:
    def play(order: Callable[[list[Call]], list[Call]]) -> Audit:
        audit, model = Audit(space, ScriptedModel(), budget=16, seed=4), ScriptedModel()
        while calls := audit.ask(4):
            for call in order(calls):
                audit.tell(call, model.ask([call.prompt])[0])
        return audit

    straight = play(lambda calls: calls)
    for order in (lambda c: c[::-1], lambda c: [c[2], c[0], *c[:0:-2]]):
        other = play(order)  # type: ignore[no-untyped-call]
        assert content(other.journal) == content(straight.journal)
        assert same_targets(other, straight)


def test_ask_and_tell_come_to_the_same_as_run(space: QuestionSpace) -> None:
    audit, model = Audit(space, ScriptedModel(), budget=9), ScriptedModel()
    while calls := audit.ask(2):
        for call in calls:
            answer = model.ask([call.prompt])[0]
            assert isinstance(answer, Answer)
            audit.tell(call.number, Answer(answer.values, cost=1.0))
    assert content(audit.journal) == content(finished(space, budget=9, batch=2).journal)


def test_what_is_saved_in_the_middle_agrees_with_the_journal(space: QuestionSpace, tmp_path: Path):
    options: dict[str, Any] = {"half_width": 0.05, "surrogate": False, "seed": 1}
    with Audit(space, ScriptedModel(), journal=tmp_path / "journal.db", **options) as audit:
        for call in audit.ask(8)[:7]:
            audit.tell(call, [0.9, 0.1])
        audit.result().save(tmp_path)
        assert "effective_draws" in audit.result().targets
        assert check(tmp_path)[1] == []


def test_telling_what_does_not_wait_is_refused(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel())
    message = r"tell: call {} is not waiting for an answer"
    with pytest.raises(OrderError, match=message.format(3)):
        audit.tell(3, [0.5, 0.5])
    (call,) = audit.ask()
    audit.tell(call, [0.5, 0.5])
    with pytest.raises(OrderError, match=message.format(call.number)):
        audit.tell(call, [0.5, 0.5])
    with pytest.raises(OrderError, match=r"expected a call that ask\(\) returned, got 'first'"):
        audit.tell("first", [0.5, 0.5])  # type: ignore[arg-type]
    assert len(audit.journal.calls()) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.5], r"tell: expected 2 values \(one per concept\), got 1"),
        ([0.5, 1.5], r"tell: expected P\(yes\) between 0 and 1, got 1\.5 .* concept 'c1'"),
        ([0.5, float("nan")], r"tell: expected P\(yes\) between 0 and 1, got nan"),
        (["yes", "no"], r"tell: expected 2 numbers for call \d+, got \['yes', 'no'\]"),
        (None, r"tell: expected .*got"),
        ([10**5000, 0.5], r"tell: expected 2 numbers for call \d+, got a number of thousands of"),
        (Answer((10**400, 0.5)), r"tell: expected P\(yes\) between 0 and 1, got 1000"),
    ],
)
def test_told_what_is_no_answer_a_call_waits_on(space: QuestionSpace, answer: Any, message: str):
    audit = Audit(space, ScriptedModel())
    (call,) = audit.ask()
    with pytest.raises(ModelError, match=message):
        audit.tell(call, answer)
    assert audit.journal.calls() == []
    audit.tell(call, [0.5, 0.5])
    assert len(audit.journal.calls()) == 1


@pytest.mark.parametrize("n", ["3", 2.5, None, -1])
def test_asked_for_what_is_no_number_of_calls_it_asks_nothing(space: QuestionSpace, n: Any) -> None:
    audit = Audit(space, ScriptedModel())
    with pytest.raises(InputError, match=r"ask: expected a whole number of calls, 0 or more, got"):
        audit.ask(n)
    assert audit.journal.draws() == []
    assert len(audit.ask(np.int64(2))) == 2  # type: ignore[arg-type]


def test_any_thread_asks_and_tells(space: QuestionSpace, tmp_path: Path) -> None:
    options: dict[str, Any] = {"half_width": 0.1, "targets": ["overall"], "budget": 24, "seed": 1}
    with Audit(space, ScriptedModel(), journal=tmp_path / "journal.db", **options) as audit:

        def work() -> None:
            model = ScriptedModel()
            while calls := audit.ask(2):
                for call in calls:
                    audit.tell(call, model.ask([call.prompt])[0])
                assert audit.result().targets.lower[0] <= audit.statuses()[0].upper

        with ThreadPoolExecutor(4) as pool:
            for worker in [pool.submit(work) for _ in range(4)]:
                worker.result()
        assert audit.state().calls == 24
        verify(audit.journal)
