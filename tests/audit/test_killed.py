"""Killed at any moment, an audit resumes to the end it would have come to."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models import Answer, Prompt, Unanswered
from adaptive_vtt.testing import ScriptedModel, tiny_dataset
from tests.helpers.audits import content, finished, same_targets
from tests.helpers.dying import Run, Ticks, killed, needs_fork, ticking

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
    assert killed(audited(killed_space, path), 1 + round(moment * (ticks - 1)))
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
