"""The audit: ask and tell in any sensible order, journaled first, and resumed after anything."""

import os
import signal
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.audit import Call, Progress
from adaptive_vtt.belief import Belief
from adaptive_vtt.datasets import from_table
from adaptive_vtt.errors import AvttError, InputError, JournalError, ModelError, OrderError
from adaptive_vtt.journal import Journal, MemoryJournal, SQLiteJournal
from adaptive_vtt.law import Law
from adaptive_vtt.models import Answer, Prompt, PythonModel, Recorded, Unanswered
from adaptive_vtt.pool import Candidates
from adaptive_vtt.results import confusion, outcomes
from adaptive_vtt.strategies import Combined
from adaptive_vtt.testing import ScriptedModel, TiledDataset, tiny_dataset

Content = tuple[list[Any], list[Any], dict[int, Any]]


def content(journal: Journal) -> Content:
    """Draws, answers and pictures; all but the time they took and the order they came in."""
    draws = [{**vars(row), "elapsed": None} for row in journal.draws()]
    calls = sorted((c.call, c.cost, c.answers) for c in journal.calls())
    return draws, calls, journal.pictures()


def same_targets(one: Audit, other: Audit) -> bool:
    return one.result().targets.equals(other.result().targets)


def finished(space: QuestionSpace, **options: Any) -> Audit:
    """An audit run to its end without disturbance."""
    audit = Audit(space, options.pop("model", None) or ScriptedModel(), **options)
    audit.run()
    return audit


# -- budget and coverage -------------------------------------------------------------------


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("budget", [1, 10, 1000])
def test_budget_is_kept_and_nothing_is_asked_twice(
    space: QuestionSpace, answers: Any, batch: int, budget: int
) -> None:
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


def test_a_call_answers_one_concept_or_all(space: QuestionSpace) -> None:
    (one,) = Audit(space, ScriptedModel(answers="one")).ask()
    (everything,) = Audit(space, ScriptedModel(answers="all")).ask()
    assert len(one.concepts) == 1
    assert everything.concepts == ("c0", "c1")
    assert one.image is not None
    assert one.image.shape == (16, 16, 3)


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


# -- ask and tell --------------------------------------------------------------------------


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


def test_plain_numbers_are_taken_as_an_answer(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel())
    (call,) = audit.ask()
    audit.tell(call, np.array([0.25, 0.75]))  # type: ignore[arg-type]
    (row,) = audit.journal.calls()
    assert [a.answer for a in row.answers] == [0.25, 0.75]


def test_telling_what_does_not_wait_is_refused(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel())
    message = r"tell: call {} is not waiting for an answer"
    with pytest.raises(OrderError, match=message.format(3)):
        audit.tell(3, [0.5, 0.5])
    (call,) = audit.ask()
    audit.tell(call, [0.5, 0.5])
    with pytest.raises(OrderError, match=message.format(call.number)):
        audit.tell(call, [0.5, 0.5])
    assert len(audit.journal.calls()) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.5], r"tell: expected 2 values \(one per concept\), got 1"),
        ([0.5, 1.5], r"tell: expected P\(yes\) between 0 and 1, got 1\.5 .* concept 'c1'"),
        ([0.5, float("nan")], r"tell: expected P\(yes\) between 0 and 1, got nan"),
        (["yes", "no"], r"tell: expected 2 numbers for call \d+, got \['yes', 'no'\]"),
        (None, r"tell: expected .*got"),
    ],
)
def test_told_what_is_no_answer_the_call_goes_on_waiting(
    space: QuestionSpace, answer: Any, message: str
) -> None:
    audit = Audit(space, ScriptedModel())
    (call,) = audit.ask()
    with pytest.raises(ModelError, match=message):
        audit.tell(call, answer)
    assert audit.journal.calls() == []
    audit.tell(call, [0.5, 0.5])
    assert len(audit.journal.calls()) == 1


def test_progress_is_told_after_every_batch(space: QuestionSpace) -> None:
    seen: list[Progress] = []
    Audit(space, ScriptedModel(), budget=10, batch=4).run(seen.append)
    assert [p.state.calls for p in seen] == [4, 8, 10]
    assert [p.cost for p in seen] == [4, 8, 10]
    assert all(p.concept in space.concepts and p.side in (0, 1) for p in seen)


# -- written before asked, answered before learnt ------------------------------------------


def committed(path: Path, table: str) -> int:
    """How many rows another process would see."""
    with sqlite3.connect(path) as database:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.mark.parametrize("batch", [1, 3])
def test_draws_are_committed_before_the_model_is_asked(
    space: QuestionSpace, tmp_path: Path, batch: int
) -> None:
    path = tmp_path / "journal.db"

    class Watching(ScriptedModel):
        def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
            assert committed(path, "draws") == len(self.asked) + len(prompts)
            assert committed(path, "calls") == len(self.asked)
            return super().ask(prompts)

    model = Watching()
    with Audit(space, model, budget=7, batch=batch, journal=path) as audit:
        audit.run()
    assert len(model.asked) == committed(path, "calls") == 7


def test_answers_are_committed_before_they_are_learnt(space: QuestionSpace, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    learnt = []

    class Watching:
        def weights(self, candidates: Candidates, belief: Belief) -> Tensor:
            learnt.append(int(belief.answers.counts.sum()))
            assert learnt[-1] <= committed(path, "answers")
            return torch.ones(len(candidates))

    with Audit(space, ScriptedModel(), strategy=Watching(), budget=6, journal=path) as audit:
        audit.run()
    assert learnt == [0, 2, 4, 6, 8, 10]


def test_beliefs_are_frozen_within_a_batch(space: QuestionSpace) -> None:
    audit = finished(space, budget=8, batch=3)
    assert [row.learned for row in audit.journal.draws()] == [0, 0, 0, 3, 3, 3, 6, 6]


# -- unanswered ----------------------------------------------------------------------------


def test_unanswered_counts_as_wrong_and_teaches_nothing(space: QuestionSpace) -> None:
    audit = finished(space, model=ScriptedModel(refuse=1.0), budget=10)
    rows = [a for call in audit.journal.calls() for a in call.answers]
    assert {(a.answer, a.unanswered, a.loss, a.coordinate) for a in rows} == {
        (None, "refused", 1.0, None)
    }
    assert audit.state().uncertainty == pytest.approx(np.ones((2, 2)), abs=1e-12)
    result = audit.result()
    assert (result.questions, result.cost) == (20, 5.0)
    assert result.targets.set_index("target").loc["overall error", "estimate"] == 1


def test_one_concept_unanswered_leaves_the_others_learnt(space: QuestionSpace) -> None:
    audit = Audit(space, ScriptedModel())
    (call,) = audit.ask()
    audit.tell(call, Answer((Unanswered("garbage"), 0.5)))
    (row,) = audit.journal.calls()
    assert [(a.answer, a.unanswered) for a in row.answers] == [(None, "garbage"), (0.5, None)]
    uncertainty = audit.state().uncertainty
    assert uncertainty[0] == pytest.approx([1, 1], abs=1e-12)
    assert uncertainty[1].min() < 0.9


# -- determinism ---------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [4096, 10])
def test_same_seed_same_journal_other_seed_other_draws(
    space: QuestionSpace, candidates: int, tmp_path: Path
) -> None:
    def journal(seed: int, where: Path | None = None) -> Content:
        options: Any = {"budget": 20, "batch": 2, "candidates": candidates, "journal": where}
        return content(finished(space, seed=seed, **options).journal)

    assert journal(1) == journal(1, tmp_path / "journal.db")
    assert [d["question"] for d in journal(1)[0]] != [d["question"] for d in journal(2)[0]]


def test_batch_size_does_not_change_what_random_asks(space: QuestionSpace) -> None:
    asked = [
        [row.question for row in finished(space, strategy="random", batch=b).journal.draws()]
        for b in (1, 5, 100)
    ]
    assert asked[0] == asked[1] == asked[2]


def test_every_law_sums_to_one_and_holds_the_draw(space: QuestionSpace) -> None:
    journal = finished(space, floor=0.1, candidates=30).journal
    for row in journal.draws():
        law = Law.unpack(row.law)
        assert law.probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert law.probabilities.min() >= 0.1 / len(law.calls) * (1 - 1e-9)
        drawn = law.probabilities[law.calls == row.call]
        assert drawn.tolist() == [row.probability]


# -- resuming ------------------------------------------------------------------------------


class Flaky(ScriptedModel):
    """Raises once, at its n-th call."""

    def __init__(self, fails_at: int, **options: Any) -> None:
        super().__init__(**options)
        self.left = fails_at

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        self.left -= 1
        if self.left == 0:
            raise TimeoutError("no route")
        return super().ask(prompts)


@pytest.mark.parametrize("fails_at", [1, 2, 5])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch": 3, "candidates": 10, "strategy": "uncertainty"},
        {"floor": 0.2, "strategy": "unpredictability", "batch": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("anew", [False, True], ids=["same audit", "new audit"])
def test_after_a_model_raised_the_audit_ends_as_if_it_had_not(
    space: QuestionSpace, options: dict[str, Any], fails_at: int, anew: bool
) -> None:
    undisturbed = finished(space, budget=20, **options)
    journal, model = MemoryJournal(), Flaky(fails_at)
    audit = Audit(space, model, budget=20, journal=journal, **options)
    with pytest.raises(ModelError, match=r"'scripted' raised TimeoutError: no route"):
        audit.run()
    if anew:
        audit = Audit(space, model, budget=20, journal=journal, **options)
    audit.run()
    assert content(journal) == content(undisturbed.journal)
    assert same_targets(audit, undisturbed)
    assert len(model.asked) == len(set(model.asked)) == 20


def test_calls_without_an_answer_come_first_when_resumed(space: QuestionSpace) -> None:
    journal = MemoryJournal()
    calls = Audit(space, ScriptedModel(), journal=journal).ask(3)
    resumed = Audit(space, ScriptedModel(), journal=journal)
    resumed.tell(calls[1], [0.5, 0.5])
    again = resumed.ask(3)
    assert [c.number for c in again[:2]] == [calls[0].number, calls[2].number]
    assert [c.draw for c in again] == [0, 2, 3]
    assert np.array_equal(again[0].image, calls[0].image)  # type: ignore[arg-type]


def test_finished_audit_asks_nothing_when_resumed_and_goes_on_with_a_larger_budget(
    space: QuestionSpace,
) -> None:
    journal, model = MemoryJournal(), ScriptedModel()
    finished(space, journal=journal, budget=8)
    assert finished(space, journal=journal, budget=8, model=model).result().calls == 8
    assert model.asked == []
    more = finished(space, journal=journal, budget=12, model=model)
    assert len(model.asked) == 4
    assert content(more.journal) == content(finished(space, budget=12).journal)
    assert more.result().reason == "12 calls were made"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, r"begun with seed 0, not 1"),
        ({"strategy": "random"}, r"begun with strategy 'uncertainty\+.*', not 'random'"),
        ({"floor": 0.5}, r"begun with floor 0\.0, not 0\.5"),
        ({"candidates": 7}, r"begun with candidates 4096, not 7"),
        ({"model": ScriptedModel(answers="one")}, r"begun with answers 'all', not 'one'"),
        ({"model": PythonModel(len, name="other")}, r"begun with model 'scripted', not 'other'"),
    ],
)
def test_journal_of_other_settings_is_refused(
    space: QuestionSpace, changes: dict[str, Any], message: str
) -> None:
    journal = finished(space, budget=3).journal
    before = content(journal)
    with pytest.raises(JournalError, match=f"journal: was {message}"):
        Audit(space, changes.pop("model", None) or ScriptedModel(), journal=journal, **changes)
    assert content(journal) == before


def test_journal_of_other_strategy_options_is_refused(space: QuestionSpace) -> None:
    journal = finished(space, budget=3, strategy=Combined(0.1)).journal
    with pytest.raises(JournalError, match=r"begun with strategy_options epsilon 0\.1, not 0\.2"):
        Audit(space, ScriptedModel(), journal=journal, strategy=Combined(0.2))


def test_journal_of_another_space_is_refused(space: QuestionSpace) -> None:
    journal = finished(space, budget=3).journal
    other = QuestionSpace(tiny_dataset(7, 2))
    with pytest.raises(JournalError, match=r"another space: 'tiny' with 72 .* not 'tiny' with 14"):
        Audit(other, ScriptedModel(), journal=journal)


def test_full_disk_stops_the_audit_and_the_file_goes_on(
    space: QuestionSpace, tmp_path: Path
) -> None:
    path, model = tmp_path / "journal.db", ScriptedModel()
    audit = Audit(space, model, budget=20, journal=path)
    assert isinstance(audit.journal, SQLiteJournal)
    pages = audit.journal._db.execute("PRAGMA page_count").fetchone()[0]
    audit.journal._db.execute(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(JournalError, match=r"database or disk is full"):
        audit.run()
    kept = len(audit.journal.calls())
    for step in (audit.ask, audit.run):
        with pytest.raises(JournalError, match=r"could not be finished; resume from the journal"):
            step()
    assert len(audit.journal.calls()) == kept < 20
    audit.close()
    with Audit(space, model, budget=20, journal=path) as resumed:
        resumed.run()
        assert content(resumed.journal) == content(finished(space, budget=20).journal)


def test_image_that_cannot_be_read_stops_the_audit_until_it_can(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.png" for i in range(6)]
    for value, file in enumerate(files):
        cv2.imwrite(str(file), np.full((8, 8, 3), value * 20, np.uint8))
    labels = pd.DataFrame({"a": [0, 1, 0, 1, 0, 1], "b": [1, 1, 0, 0, 1, 0]})
    space = QuestionSpace(from_table([str(f) for f in files], labels), ["identity"])
    undisturbed = finished(space)
    good = files[3].read_bytes()
    files[3].write_bytes(b"no picture")
    journal = MemoryJournal()
    audit = Audit(space, ScriptedModel(), journal=journal)
    with pytest.raises(InputError, match=r"sample '3': .*3\.png' is not an image"):
        audit.run()
    with pytest.raises(JournalError, match=r"could not be finished; resume from the journal"):
        audit.run()
    files[3].write_bytes(good)
    Audit(space, ScriptedModel(), journal=journal).run()
    assert content(journal) == content(undisturbed.journal)


# -- what is refused, and what comes out ---------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"floor": -0.1}, r"floor: expected a share between 0 and 1, got -0\.1"),
        ({"floor": 1.5}, r"floor: expected a share between 0 and 1, got 1\.5"),
        ({"floor": float("nan")}, r"floor: expected a share between 0 and 1, got nan"),
        ({"candidates": 0}, r"candidates: expected at least 1, got 0"),
        ({"batch": 0}, r"batch: expected at least 1, got 0"),
        ({"budget": 0}, r"expected a number of calls above 0, got 0"),
        ({"strategy": "randon"}, r"unknown strategy 'randon'.*did you mean 'random'"),
        ({"device": "abacus"}, r"device 'abacus' cannot be used"),
    ],
)
def test_settings_out_of_range_are_refused(
    space: QuestionSpace, options: dict[str, Any], message: str
) -> None:
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
    with pytest.raises(AvttError, match=r"strategy: expected weight on some of 36 candidates"):
        audit.run()
    assert audit.journal.draws() == []


def test_result_is_counted_from_the_answers() -> None:
    # truth and answer:   A: 1 .9 (tp)   1 .2 (fn)   0 .7 (fp)   0 .1 (tn)
    #                     B: 1 .6 (tp)   1 .8 (tp)   0 .3 (tn)   0 nothing recorded
    labels = pd.DataFrame({"A": [1, 1, 0, 0], "B": [1, 1, 0, 0]})
    said = pd.DataFrame({"A": [0.9, 0.2, 0.7, 0.1], "B": [0.6, 0.8, 0.3, np.nan]})
    audit = finished(QuestionSpace(from_table(None, labels)), model=Recorded(said))
    targets = audit.result().targets.set_index("target")
    assert targets["estimate"].to_dict() == {
        "overall error": 3 / 8,
        "A: miss rate": 1 / 2,
        "A: false-alarm rate": 1 / 2,
        "B: miss rate": 0,
        "B: false-alarm rate": 1 / 2,
        "relation identity: error": 3 / 8,
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


def test_result_for_json_has_null_for_what_is_unknown(space: QuestionSpace) -> None:
    result = finished(space, budget=2).result().as_dict()
    assert result["calls"] == 2
    assert result["stop_reason"] == "2 calls were made"
    assert result["targets"][0]["target"] == "overall error"
    assert result["targets"][0]["lower"] is None


# -- killed --------------------------------------------------------------------------------

KILLED: dict[str, Any] = {"budget": 14, "batch": 2, "seed": 6}


class Countdown:
    """Kills this process, for good, at the n-th tick; 0 never does."""

    def __init__(self, kill_at: int) -> None:
        self.ticks = 0
        self.kill_at = kill_at

    def __call__(self, _: object = None) -> None:
        self.ticks += 1
        if self.ticks == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class Ticking(ScriptedModel):
    """Ticks before and after every call."""

    def __init__(self, tick: Countdown) -> None:
        super().__init__(refuse=0.2)
        self.tick = tick

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        self.tick()
        answers = super().ask(prompts)
        self.tick()
        return answers


def run_ticking(space: QuestionSpace, path: Path, tick: Countdown) -> None:
    """An audit in which every SQL statement ticks, from the making of the file on."""
    connect = sqlite3.connect

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        database = connect(*args, **options)
        database.set_trace_callback(tick)
        return database

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connected)
        Audit(space, Ticking(tick), journal=path, **KILLED).run()


def run_and_kill(space: QuestionSpace, path: Path, kill_at: int) -> bool:
    """Runs the audit in a child that dies at tick ``kill_at``; whether it did."""
    child = os.fork()
    if child == 0:
        try:
            run_ticking(space, path, Countdown(kill_at))
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return os.WIFSIGNALED(status)


@pytest.fixture(scope="module")
def killed_space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(6, 2), ["identity", "gaussian_noise"])


@pytest.fixture(scope="module")
def undisturbed(killed_space: QuestionSpace) -> Audit:
    return finished(killed_space, model=ScriptedModel(refuse=0.2), **KILLED)


@pytest.fixture(scope="module")
def ticks(killed_space: QuestionSpace, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many ticks an undisturbed audit takes."""
    tick = Countdown(0)
    run_ticking(killed_space, tmp_path_factory.mktemp("ticks") / "journal.db", tick)
    return tick.ticks


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


# 24 moments spread evenly over the audit; between any two statements, inside transactions too.
@needs_fork
@pytest.mark.parametrize("moment", [i / 23 for i in range(24)], ids=lambda m: f"{m:.0%}")
def test_killed_at_any_moment_it_resumes_to_the_same_end(
    killed_space: QuestionSpace, undisturbed: Audit, ticks: int, tmp_path: Path, moment: float
) -> None:
    path = tmp_path / "journal.db"
    assert run_and_kill(killed_space, path, 1 + round(moment * (ticks - 1)))
    survived = SQLiteJournal(path)
    paid = {row.call for row in survived.calls()}
    drawn = [vars(row) | {"elapsed": None} for row in survived.draws()]
    survived.close()
    assert drawn == content(undisturbed.journal)[0][: len(drawn)]
    model = ScriptedModel(refuse=0.2)
    with Audit(killed_space, model, journal=path, **KILLED) as resumed:
        resumed.run()
        assert content(resumed.journal) == content(undisturbed.journal)
        assert same_targets(resumed, undisturbed)
        assert len(model.asked) == len(set(model.asked)) == 14 - len(paid)


@needs_fork
def test_killed_again_and_again_it_comes_to_the_same_end(
    killed_space: QuestionSpace, undisturbed: Audit, tmp_path: Path
) -> None:
    path, deaths = tmp_path / "journal.db", 0
    while run_and_kill(killed_space, path, kill_at=61):
        deaths += 1
        assert deaths < 30
    assert deaths >= 2
    with closing(SQLiteJournal(path)) as journal:
        assert content(journal) == content(undisturbed.journal)


def test_both_readings_of_the_paper_can_be_chosen_and_change_the_audit() -> None:
    space = QuestionSpace(tiny_dataset(30, images=False), ["identity"])
    levels, draws = [], []
    for form in ("std", "variance"):
        audit = Audit(space, ScriptedModel(answers="one"), form=form, budget=12, seed=2)
        audit.run()
        levels.append(audit.state().mean)
    for history in ("truth", "answer"):
        model, strategy = ScriptedModel(answers="one"), "unpredictability"
        audit = Audit(space, model, history=history, strategy=strategy, budget=40, seed=2)
        audit.run()
        draws.append([row.question for row in audit.journal.draws()])
    assert levels[1] < levels[0]  # a variance below 1 is below its root
    assert draws[0] != draws[1]
    with pytest.raises(InputError, match="unknown form 'area'"):
        Audit(space, ScriptedModel(answers="one"), form="area", budget=12)
