"""Killed at any moment, an audit resumes to the end it would have come to."""

import os
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from audits import content, finished, same_targets

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

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


# 24 moments spread evenly over the audit, 12 of them in `make test`; between any two statements,
# inside transactions too.
@needs_fork
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(i / 23, marks=[pytest.mark.slow] * (i % 2), id=f"{i / 23:.0%}")
        for i in range(24)
    ],
)
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
