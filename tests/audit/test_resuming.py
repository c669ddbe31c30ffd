"""Journaled first, an audit resumes after anything, kills included, and only as what it was."""

import sqlite3
from collections.abc import Sequence
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
from adaptive_vtt.config.resuming import resume
from adaptive_vtt.datasets import from_table
from adaptive_vtt.engine.belief import Belief
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import MemoryJournal, SQLiteJournal, begin_anew
from adaptive_vtt.models import Answer, Prompt, PythonModel, Unanswered
from adaptive_vtt.strategies import Combined
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from adaptive_vtt.types import Candidates
from tests.helpers.audits import content, finished, same_targets
from tests.helpers.dying import Run, Ticks, killed, needs_fork, ticking
from tests.helpers.twins import crossed

# -- written before asked, answered before learnt ------------------------------------------


def committed(path: Path, table: str) -> int:
    """How many rows another process would see."""
    with sqlite3.connect(path) as database:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.mark.parametrize("batch", [1, 3])
def test_draws_are_committed_before_a_call(space: QuestionSpace, tmp_path: Path, batch: int):
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


PLANS: list[dict[str, Any]] = [{}, {"batch": 3, "candidates": 10, "strategy": "uncertainty"}]
PLANS += [{"exploration": 0.2, "strategy": "unpredictability", "batch": 2}]


@pytest.mark.parametrize(
    ("fails_at", "options", "anew"), crossed([1, 2, 4], PLANS, [False, True]), ids=str
)
def test_after_a_model_raised_the_audit_ends_as_if_it_had_not(
    space: QuestionSpace, options: Any, fails_at: int, anew: bool
) -> None:
    undisturbed = finished(space, budget=12, **options)
    journal, model = MemoryJournal(), Flaky(fails_at)
    audit = Audit(space, model, budget=12, journal=journal, **options)
    with pytest.raises(ModelError, match=r"'scripted' raised TimeoutError: no route"):
        audit.run()
    if anew:
        audit = Audit(space, model, budget=12, journal=journal, **options)
    audit.run()
    assert content(journal) == content(undisturbed.journal)
    assert same_targets(audit, undisturbed)
    assert len(model.asked) == len(set(model.asked)) == 12


def test_calls_without_an_answer_come_first_when_resumed(space: QuestionSpace) -> None:
    journal = MemoryJournal()
    calls = Audit(space, ScriptedModel(), journal=journal).ask(3)
    resumed = Audit(space, ScriptedModel(), journal=journal)
    resumed.tell(calls[1], [0.5, 0.5])
    again = resumed.ask(3)
    assert [c.number for c in again[:2]] == [calls[0].number, calls[2].number]
    assert [c.draw for c in again] == [0, 2, 3]
    assert np.array_equal(again[0].image, calls[0].image)  # type: ignore[arg-type]


def test_calls_that_a_crash_lost_keep_their_worst_price(space: QuestionSpace, tmp_path: Path):
    options: dict[str, Any] = {"journal": tmp_path / "journal.db", "max_cost": 6.0}
    with Audit(space, ScriptedModel(), **options) as audit:
        audit.ask(3)  # sent, and never answered
    with Audit(space, ScriptedModel(), **options) as audit:
        result = audit.run()
        assert (audit.interrupted, result.calls, result.cost) == (3, 3, 3.0)


def test_a_finished_audit_goes_on_with_a_larger_budget_alone(space: QuestionSpace):
    journal, model = MemoryJournal(), ScriptedModel()
    finished(space, journal=journal, budget=8)
    head = journal.head
    assert finished(space, journal=journal, budget=8, model=model).result().calls == 8
    assert (model.asked, journal.head) == ([], head)  # looking writes nothing
    more = finished(space, journal=journal, budget=12, model=model)
    assert len(model.asked) == 4
    assert content(more.journal) == content(finished(space, budget=12).journal)
    assert more.result().reason == "12 calls were made"


def test_a_damaged_journal_is_refused_before_the_first_call(space: QuestionSpace, tmp_path: Path):
    path, model = tmp_path / "journal.db", ScriptedModel()
    options = {"half_width": 0.05, "targets": ["overall"], "seed": 3}
    finished(space, journal=path, budget=6, **options).close()
    path.write_bytes(path.read_bytes()[:-1])
    before = path.read_bytes()
    refused = "was altered after it was written; nothing was asked, .* restore the journal"
    with pytest.raises(JournalError, match=refused):
        Audit(space, model, journal=path, budget=11, **options)
    assert (model.asked, path.read_bytes()) == ([], before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, r"begun with seed 0, not 1"),
        ({"strategy": "random"}, r"begun with strategy 'uncertainty\+.*', not 'random'"),
        ({"exploration": 0.5}, r"begun with exploration 0\.0, not 0\.5"),
        ({"candidates": 7}, r"begun with candidates 4096, not 7"),
        ({"model": ScriptedModel(answers="one")}, r"begun with answers 'all', not 'one'"),
        ({"model": PythonModel(len, name="other")}, r"begun with model 'scripted', not 'other'"),
    ],
)
def test_journal_of_other_settings_is_refused(space: QuestionSpace, changes: Any, message: str):
    journal = finished(space, budget=3).journal
    before = content(journal)
    with pytest.raises(JournalError, match=f"journal: was {message}"):
        Audit(space, changes.pop("model", None) or ScriptedModel(), journal=journal, **changes)
    assert content(journal) == before


def test_journal_of_other_strategy_options_is_refused(space: QuestionSpace) -> None:
    journal = finished(space, budget=3, strategy=Combined(0.1)).journal
    with pytest.raises(JournalError, match=r"begun with strategy_options epsilon 0\.1, not 0\.2"):
        Audit(space, ScriptedModel(), journal=journal, strategy=Combined(0.2))


def test_full_disk_stops_the_audit_and_the_file_goes_on(space: QuestionSpace, tmp_path: Path):
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


def test_an_unreadable_image_stops_the_audit_until_it_is_mended(tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.png" for i in range(6)]
    for value, file in enumerate(files):
        cv2.imwrite(str(file), np.full((8, 8, 3), value * 20, np.uint8))
    labels = pd.DataFrame({"a": [0, 1, 0, 1, 0, 1], "b": [1, 1, 0, 0, 1, 0]})
    space = QuestionSpace(from_table([str(f) for f in files], labels), ["identity"])
    undisturbed, good = finished(space), files[3].read_bytes()
    files[3].write_bytes(b"no picture")
    journal, model = MemoryJournal(), ScriptedModel()
    audit = Audit(space, model, journal=journal)
    with pytest.raises(InputError, match=r"sample '3\.png': .*3\.png' is not an image"):
        audit.run()
    with pytest.raises(JournalError, match=r"could not be finished; resume from the journal"):
        audit.run()
    files[3].write_bytes(good)
    Audit(space, model, journal=journal).run()
    assert content(journal) == content(undisturbed.journal)
    assert len(model.asked) == len(set(model.asked)) == 6


def test_python_is_told_how_to_begin_anew_where_no_answer_stands(tmp_path: Path) -> None:
    path, space = tmp_path / "journal.db", QuestionSpace(tiny_dataset(4, 2), ["identity"])
    with Audit(space, ScriptedModel(), journal=path, seed=1) as audit:
        audit.ask(3)  # sent, and never answered
    message = r"seed 1, not 2; it holds no answer yet: .*journal=adaptive_vtt.journal.begin_anew\("
    with pytest.raises(JournalError, match=message):
        Audit(space, ScriptedModel(), journal=path, seed=2)
    with Audit(space, ScriptedModel(), journal=begin_anew(path), seed=2) as audit:
        assert audit.interrupted == 3
        audit.run()
    with pytest.raises(JournalError, match=r"seed 2, not 3; give what it was begun with"):
        Audit(space, ScriptedModel(), journal=path, seed=3)


def test_other_targets_are_told_as_two_lists_and_other_concepts_by_name(space: QuestionSpace):
    certified = {"half_width": 0.3, "surrogate": False, "self_taught": False, "seed": 0}
    sides = {"where": {"mine": {"truth": [1]}}, "targets": ["mine", "overall"], **certified}
    journal = finished(space, budget=3, **sides).journal
    with pytest.raises(JournalError, match=r"begun with 2 targets, 'mine', .* not with 1, 'mine'"):
        Audit(space, ScriptedModel(), journal=journal, **{**sides, "targets": ["mine"]})
    sides["where"] = {"mine": {"truth": [0]}}
    with pytest.raises(JournalError, match="of these names that are about other questions"):
        Audit(space, ScriptedModel(), journal=journal, **sides)
    other = QuestionSpace(tiny_dataset(), ["defocus_blur"])
    expected = r"another space.*: relations 'identity'.*, not 'defocus_blur'"
    with pytest.raises(JournalError, match=expected):
        Audit(other, ScriptedModel(), journal=journal, **sides)


def test_a_smaller_budget_says_what_was_made(space: QuestionSpace, tmp_path: Path):
    path = tmp_path / "journal.db"
    options = {"half_width": 0.3, "surrogate": False, "self_taught": False, "seed": 0}
    finished(space, journal=path, budget=6, **options).close()
    with Audit(space, ScriptedModel(), journal=path, budget=4, **options) as again:
        assert again.run().reason == "6 calls were made, 4 allowed"
    with pytest.raises(JournalError, match="continue with the lines of Python that began it, with"):
        resume(tmp_path)


# -- killed at any moment ----------------------------------------------------------------

KILLED: dict[str, Any] = {"budget": 14, "batch": 2, "seed": 6}


class Ticking(ScriptedModel):
    """Ticks before and after every call."""

    def __init__(self, tick: Ticks) -> None:
        super().__init__(refuse=0.2)
        self.tick = tick

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer | Unanswered]:
        self.tick()
        answers = super().ask(prompts)
        self.tick()
        return answers


def audited(space: QuestionSpace, path: Path) -> Run:
    """The audit that is killed."""
    return lambda tick: Audit(space, Ticking(tick), journal=path, **KILLED).run()


@pytest.fixture(scope="module")
def killed_space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(6, 2), ["identity", "gaussian_noise"])


@pytest.fixture(scope="module")
def undisturbed(killed_space: QuestionSpace) -> Audit:
    return finished(killed_space, model=ScriptedModel(refuse=0.2), **KILLED)


@pytest.fixture(scope="module")
def ticks(killed_space: QuestionSpace, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many ticks an undisturbed audit takes."""
    tick = Ticks()
    ticking(audited(killed_space, tmp_path_factory.mktemp("ticks") / "journal.db"), tick)
    return tick.count


# 24 moments spread evenly over the audit, 6 of them in `make test`; between any two statements,
# inside transactions too.
@needs_fork
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(i / 23, marks=[pytest.mark.slow] * bool(i % 4), id=f"{i / 23:.0%}")
        for i in range(24)
    ],
)
def test_killed_at_any_moment_it_resumes_to_the_same_end(
    killed_space: QuestionSpace, undisturbed: Audit, ticks: int, tmp_path: Path, moment: float
) -> None:
    path = tmp_path / "journal.db"
    struck = killed(audited(killed_space, path), 1 + round(moment * (ticks - 1)))
    assert struck or moment > 0.9  # beliefs are kept by the clock: some runs take fewer statements
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


@pytest.mark.slow
@needs_fork
def test_killed_again_and_again_it_comes_to_the_same_end(
    killed_space: QuestionSpace, undisturbed: Audit, tmp_path: Path
) -> None:
    path, deaths = tmp_path / "journal.db", 0
    while killed(audited(killed_space, path), at=81):  # later than the check of the chain
        deaths += 1
        assert deaths < 30
    assert deaths >= 2
    with closing(SQLiteJournal(path)) as journal:
        assert content(journal) == content(undisturbed.journal)
