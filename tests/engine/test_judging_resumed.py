"""Judge models: what their audits journal, how those go on, and how sure they are."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import adaptive_vtt as avtt
from adaptive_vtt.audit.rejudging import rejudge
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.errors import InputError, JournalError, ModelError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.journal.in_memory import MemoryJournal
from adaptive_vtt.journal.rows import JudgingRow
from adaptive_vtt.models import Answer, ModelDefaults, Prompt, Unanswered
from adaptive_vtt.oracles import MultipleChoice
from adaptive_vtt.oracles.judge_models import JudgeModel
from tests.helpers.dying import Run, Ticks, code_of_child, killed, needs_fork, ticking
from tests.helpers.judged import (
    JUDGE_PRICE,
    MODEL_PRICE,
    Reader,
    Voluble,
    audit,
    digit,
    read,
    space,
)


def rows(journal: Any) -> tuple[Any, ...]:
    """What a journal holds of draws, answers and judgements, without times."""
    draws = [(d.draw, d.call, d.proposal, d.learned) for d in journal.draws()]
    calls = [(c.call, c.cost, c.answers) for c in journal.calls()]
    judging = [(r.call, r.question, r.asked, r.said, r.cost) for r in journal.judging()]
    return draws, calls, judging


# -- going on ---------------------------------------------------------------------------------


def _billed(path: Path, bill: Path) -> Run:
    """The audit that is killed."""

    def run(tick: Ticks) -> None:
        with _billed_audit(path, bill, tick) as made:
            made.run()

    return run


def _billed_audit(path: Path, bill: Path, tick: Callable[[], None] = lambda: None) -> avtt.Audit:
    """One whose models write what they bill into a file, before anybody can know of it."""

    def billing(model: ModelDefaults, price: float) -> None:
        ask = model.ask

        def asked(prompts: Any) -> Any:
            tick()
            with bill.open("a") as file:
                file.write(f"{price * len(prompts)}\n")
            said = ask(prompts)
            tick()
            return said

        model.ask = asked  # type: ignore[method-assign]

    model, judge = Voluble(), Reader()
    billing(model, MODEL_PRICE)
    billing(judge, JUDGE_PRICE)
    options: dict[str, Any] = {"max_cost": 25.0, "half_width": None, "journal": path}
    return audit(JudgeModel(judge, check=0.2), model, **options)


@pytest.mark.slow
@needs_fork
def test_twenty_kills_cost_no_more_than_is_booked_and_change_no_draw(tmp_path: Path) -> None:
    whole, path, bill = tmp_path / "whole.db", tmp_path / "journal.db", tmp_path / "bill"
    undisturbed, torn = Ticks(), _billed(path, bill)
    ticking(_billed(whole, tmp_path / "other"), undisturbed)
    assert undisturbed.count > 200
    assert sum(killed(torn, 41 + 13 * (k % 5)) is not None for k in range(20)) >= 10
    with _billed_audit(path, bill) as made:
        made.run()
        spent = made.cost
        lost = made.interrupted * MODEL_PRICE + made._loop.budget.judged.lost * JUDGE_PRICE
    billed = sum(map(float, bill.read_text().split()))
    assert spent <= billed <= spent + lost  # all that is known is booked, the rest is reserved
    assert billed <= 25.0
    with closing(SQLiteJournal(path)) as journal, closing(SQLiteJournal(whole)) as other:
        verify(journal)
        (draws, calls, judging), (all_draws, all_calls, all_judging) = map(rows, (journal, other))
    count = min(len(draws), len(all_draws))
    assert draws[:count] == all_draws[:count]  # lost calls take money, so that it may end earlier
    known = {call[0]: call for call in all_calls}
    assert all(known.get(call[0], call)[2] == call[2] for call in calls)
    asked = {row[:2]: row for row in all_judging}
    assert all(asked.get(row[:2], row)[:4] == row[:4] for row in judging)


@needs_fork
@pytest.mark.parametrize("share", [pytest.param(0.2, marks=pytest.mark.slow), 0.6])
def test_killed_once_without_a_cap_it_comes_to_the_same_end(tmp_path: Path, share: float) -> None:
    def made(journal: Path | SQLiteJournal) -> avtt.Audit:
        return audit(JudgeModel(Reader()), journal=journal, half_width=0.15, budget=25)

    with made(tmp_path / "whole.db") as undisturbed:
        undisturbed.run()
        expected = rows(undisturbed.journal)
    stop = int(len(expected[2]) * share)
    path = tmp_path / "journal.db"

    class Deadly(SQLiteJournal):
        def add(self, rows: Any) -> None:
            super().add(rows)
            if rows and isinstance(rows[-1], JudgingRow) and rows[-1].position >= stop:
                os.kill(os.getpid(), signal.SIGKILL)

    assert code_of_child(lambda: made(Deadly(path)).run()) == -signal.SIGKILL
    with made(path) as resumed:
        resumed.run()
        assert rows(resumed.journal) == expected


class Slow(Reader):
    """A judge that is asked while the audit goes on, and speaks a while after."""

    in_flight = 4

    def __init__(self) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(1)

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        return self._pool.submit(self._late, prompt)

    def _late(self, prompt: Prompt) -> Answer | Unanswered:
        time.sleep(0.002)
        return self.ask([prompt])[0]  # type: ignore[no-any-return]


class Refused(Slow):
    """A judge whose key is wrong."""

    def _late(self, prompt: Prompt) -> Answer | Unanswered:
        raise ModelError("model 'reader' at x: http 401: the key is wrong")


def test_a_judge_that_can_never_work_ends_the_audit_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    made = audit(JudgeModel(Refused()), journal=path)
    with made, pytest.raises(ModelError, match=r"http 401: the key is wrong"):
        made.run()
    with audit(JudgeModel(Slow()), journal=path) as resumed:
        result = resumed.run()
        assert result.reason is not None
        assert "certified" in result.reason
        verify(resumed.journal)


# -- the journal ------------------------------------------------------------------------------


def test_what_a_judge_said_cannot_be_altered_unseen(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with audit(JudgeModel(Reader()), journal=path, budget=12) as made:
        made.run()
        verify(made.journal)
        position = next(row.position for row in made.journal.judging() if not row.received)
    database = sqlite3.connect(path)
    database.execute("UPDATE judging SET said = '[\"A\"]' WHERE position = ?", (position,))
    database.commit()
    database.close()
    with (
        closing(SQLiteJournal(path, read_only=True)) as journal,
        pytest.raises(JournalError, match=r"a step of judging call \d+ was alt"),
    ):
        verify(journal)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_a_judgement_is_written_once(kind: str, tmp_path: Path) -> None:
    made = audit(JudgeModel(Reader()), journal=tmp_path / "a.db", budget=12)
    with made:
        made.run()
        draws, judging = made.journal.draws(), made.journal.judging()
    journal: Any = MemoryJournal() if kind == "memory" else SQLiteJournal(tmp_path / "b.db")
    journal.add(draws)
    journal.add(judging)
    assert journal.judging() == judging
    with pytest.raises(JournalError, match=r"judging .*\d+ .*stands there"):
        journal.add(judging[:1])
    journal.close()


@pytest.mark.slow
def test_rejudging_takes_what_the_judge_said_and_asks_nobody(tmp_path: Path) -> None:
    with audit(JudgeModel(Reader())) as made:
        first = made.run()
        silent = Reader(lambda text: pytest.fail("was asked"))
        same = rejudge(made.journal, space(MultipleChoice(judge=JudgeModel(silent))))
        bounds = ["lower", "upper", "pseudo_outcome_mean"]
        assert same.targets[bounds].equals(first.targets[bounds])
        assert same.judge == first.judge
        alone = rejudge(made.journal, space(MultipleChoice()))
        assert alone.targets["estimate"].iloc[0] > first.targets["estimate"].iloc[0]
        assert alone.judge is None
        other = JudgeModel(silent, regime="yes-no")
        with pytest.raises(InputError, match=r"expected the judge .* have to be asked and paid"):
            rejudge(made.journal, space(MultipleChoice(judge=other)))
    with audit(None) as made:
        made.run()
        with pytest.raises(InputError, match=r"judge that read its replies \(none\)"):
            rejudge(made.journal, space(MultipleChoice(judge=JudgeModel(silent))))


@pytest.mark.parametrize("seeds", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_intervals_cover_as_often_as_they_say(seeds: int) -> None:
    """At 90 % 12 or more misses in 60, or 5 in 6, have a probability below 1 %."""
    misses = 0
    for seed in range(seeds):
        fails = Reader(lambda text: read(text) if digit("fails", text) < 90 else Unanswered("down"))
        options = {"half_width": 0.2, "confidence": 0.9, "seed": seed, "surrogate": False}
        made = audit(JudgeModel(fails), **options)
        row = made.run().targets.iloc[0]
        misses += not row["lower"] <= _truth_with_failures() <= row["upper"]
    assert misses < {6: 5, 60: 12}[seeds]


@cache
def _truth_with_failures() -> float:
    oracle = MultipleChoice(
        judge=JudgeModel(
            Reader(lambda text: read(text) if digit("fails", text) < 90 else Unanswered("down"))
        )
    )
    made = avtt.Audit(space(oracle), Voluble(), strategy="random", seed=0)
    return float(made.run().targets["estimate"].iloc[0])
