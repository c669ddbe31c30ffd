"""Calls at a time that follow what the server bears: bounds, steps, and what is drawn then."""

import asyncio
import os
import signal
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_draws import check_known
from adaptive_vtt.errors import InputError, JournalError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models import Answer, Limits, Prompt, Unanswered
from adaptive_vtt.models.network.attempts import Trouble
from adaptive_vtt.models.network.limits import Concurrency, Gate
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

# -- the controller alone -------------------------------------------------------------------------

Event = tuple[str, float]
EVENTS = st.lists(
    st.tuples(st.sampled_from(["answered", "congested", "late"]), st.floats(allow_nan=True)),
    max_size=300,
)


@given(least=st.integers(1, 20), more=st.integers(0, 60), events=EVENTS)
def test_no_server_moves_it_out_of_its_bounds(least: int, more: int, events: list[Event]) -> None:
    found = Concurrency(least, least + more)
    for kind, seconds in events:
        sent = found.sent(busy=found.level)
        if kind == "answered":
            found.answered(seconds, sent)
        else:
            found.congested(sent - (kind == "late"))
        assert least <= found.level <= least + more


def round_of(found: Concurrency, seconds: float = 1.0, used: float = 1.0) -> None:
    """As many answers as there may be attempts, of which a share is used."""
    for _ in range(found.level):
        found.answered(seconds, found.sent(int(used * found.level)))


def levels(found: Concurrency, rounds: int, **options: float) -> list[int]:
    return [(round_of(found, **options), found.level)[1] for _ in range(rounds)]


def test_it_doubles_until_a_first_refusal_then_grows_by_one_a_round() -> None:
    found = Concurrency(1, 40)
    assert [found.level, *levels(found, 4)] == [4, 8, 16, 32, 40]
    found.congested(found.sent(40))
    assert [found.level, *levels(found, 3)] == [20, 21, 22, 23]


def test_one_refusal_halves_it_and_those_of_the_same_flight_do_not() -> None:
    found = Concurrency(1, 64)
    levels(found, 4)
    flight = [found.sent(k + 1) for k in range(64)]
    for sent in flight:
        found.congested(sent)
    assert (found.level, found.halvings) == (32, 1)
    for sent in flight * 40:
        found.answered(0.1, sent)  # late answers of that flight tell nothing of today's level
    assert found.level == 32
    found.congested(found.sent(1))
    assert found.level == 16


def test_a_server_that_is_slow_for_its_own_reasons_is_not_left_alone() -> None:
    found = Concurrency(1, 64)
    levels(found, 3)
    after = levels(found, 40, seconds=5.0)
    assert after[0] == 16
    assert min(after[2:]) >= 16
    assert after[-1] > 40


def simulated(limit: int, seconds: int = 400) -> list[int]:
    """The level second by second, with a server that answers after one and refuses what is more
    than ``limit`` at a time."""
    found, seen = Concurrency(1, 64), []
    for _ in range(seconds):
        flight = [found.sent(k + 1) for k in range(found.level)]
        for place, sent in enumerate(flight):
            if place < limit:
                found.answered(1.0, sent)
            else:
                found.congested(sent)
        seen.append(found.level)
    return seen


@pytest.mark.parametrize("limit", [3, 6, 10, 40])
def test_it_finds_what_a_server_bears(limit: int) -> None:
    seen = simulated(limit)[20:]
    assert max(seen) == limit + 1
    assert min(seen) == (limit + 1) // 2
    assert 0.65 * limit <= np.mean(seen) <= limit


# -- attempts -------------------------------------------------------------------------------------


def test_no_more_attempts_at_a_time_than_it_says() -> None:
    async def all_of_them() -> int:
        concurrency = Concurrency(2, 16)
        gate, busy, most_over = Gate(concurrency), 0, 0
        kinds = cycle(["fine"] * 90 + ["http 429", "timeout", "http 500"])

        async def turn() -> None: ...

        async def send() -> None:
            nonlocal busy, most_over
            busy += 1
            most_over = max(most_over, busy - concurrency.level)
            await asyncio.sleep(0.0005)
            busy -= 1
            if (kind := next(kinds)) != "fine":
                raise Trouble(kind)

        await asyncio.gather(
            *(gate.attempt(turn, send) for _ in range(600)), return_exceptions=True
        )
        assert concurrency.halvings >= 3
        assert busy == 0
        return most_over

    assert asyncio.run(all_of_them()) == 0


def test_turns_are_kept_though_calls_wait_for_the_level_to_rise() -> None:
    told: list[tuple[str, int]] = []

    async def attempt(gate: Gate, call: int) -> None:
        async def turn() -> None:
            await asyncio.sleep(0)
            told.append(("turn", call))

        async def send() -> None:
            told.append(("send", call))
            for _ in range(5):  # longer than a turn: at a low level calls wait at the gate
                await asyncio.sleep(0)

        await gate.attempt(turn, send)

    async def all_of_them() -> None:
        gate = Gate(Concurrency(1, 64))
        await asyncio.gather(*(attempt(gate, call) for call in range(40)))

    asyncio.run(all_of_them())
    assert told[::2] == [("turn", call) for _, call in told[1::2]]  # who had a turn goes at once
    assert [kind for kind, _ in told[1::2]] == ["send"] * 40


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((5, 4), "in_flight: expected the least and the most .* in this order, got \\(5, 4\\)"),
        ((0, 4), "in_flight: expected the least and the most .*, got \\(0, 4\\)"),
    ],
)
def test_bounds_in_the_wrong_order_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Limits(in_flight=given)


# -- draws ----------------------------------------------------------------------------------------

CERTIFIED: dict[str, Any] = {
    "half_width": 0.02,
    "targets": ["overall"],
    "seed": 3,
    "surrogate": False,
}


class Wavering(ScriptedModel):
    """Takes now more, now fewer calls at a time, and answers the newest first. ``dies_at``: the
    call at which it kills its process."""

    adapts = True

    def __init__(self, seed: int, dies_at: int = 0) -> None:
        super().__init__()
        self._levels = np.random.default_rng(seed).integers(1, 13, 1000).tolist()
        self._sent, self._dies_at = 0, dies_at
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[tuple[Prompt, Future[Answer | Unanswered]]] = deque()

    @property
    def in_flight(self) -> int:
        return int(self._levels[self._sent // 5])

    def submit(self, prompt: Prompt) -> "Future[Answer | Unanswered]":
        self._sent += 1
        if self._sent == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        future: Future[Answer | Unanswered] = Future()
        self._waiting.append((prompt, future))
        self._pool.submit(self._answer_newest)
        return future

    def _answer_newest(self) -> None:
        asked, answered = self._waiting.pop()
        answered.set_result(self._answer(asked))


def space() -> QuestionSpace:
    return QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"])


def drawn(audit: Audit) -> list[tuple[int, int, bytes]]:
    return [(row.call, row.learned, row.proposal) for row in audit.journal.draws()]


def run_and_die(path: Path, dies_at: int) -> None:
    Audit(space(), Wavering(1, dies_at), journal=path, budget=44, **CERTIFIED).run()


@pytest.mark.slow
def test_killed_it_goes_on_with_the_draws_that_follow_from_the_journaled_levels(
    tmp_path: Path,
) -> None:
    path, dies_at = tmp_path / "j.db", 17
    child = get_context("spawn").Process(target=run_and_die, args=(path, dies_at))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with closing(SQLiteJournal(path)) as journal:
        before = [(row.call, row.learned, row.proposal) for row in journal.draws()]
    with Audit(space(), Wavering(2), journal=path, budget=44, **CERTIFIED) as audit:
        audit.run()
        verify(audit.journal)
        assert drawn(audit)[: len(before)] == before
        assert len(levels_of(audit)) > 2
        again = undisturbed(levels_of(audit))
        again.run()
        assert drawn(again) == drawn(audit)
        assert again.result().targets.equals(audit.result().targets)


def undisturbed(levels: dict[int, int]) -> Audit:
    """An audit that is never interrupted, with as many calls in flight from each draw on."""
    audit = Audit(space(), Wavering(5), budget=44, **CERTIFIED)
    order = audit._loop.draw_order
    assert order._blocks is not None
    order._blocks._calls = lambda: levels[max(d for d in levels if d <= len(order.calls))]
    return audit


def levels_of(audit: Audit) -> dict[int, int]:
    """The calls at a time that draws tell, by the number of the draw."""
    rows = audit.journal.draws(proposals=False)
    return {row.draw: row.why["in_flight"] for row in rows if "in_flight" in row.why}


def test_a_draw_knows_all_but_twice_as_many_draws_as_were_in_flight() -> None:
    audit = Audit(space(), Wavering(4), budget=48, **CERTIFIED)
    audit.run()
    levels, known, end, level = levels_of(audit), 0, 0, 0
    draws = audit.journal.draws()
    for row in draws:
        level = levels.get(row.draw, level)
        if row.draw in levels or row.draw == end:
            known = max(known, row.draw - 2 * level)
            end = row.draw + max(1, level // 2)
        assert row.learned == known
    links = audit.journal.links()
    check_known(links, draws)
    for learned in (0, 48):  # the last draw: how many are in flight before follows from answers
        wrong = [*draws[:47], replace(draws[47], learned=learned)]
        with pytest.raises(JournalError, match=r"expected draw 47 to know .* draws.*, got"):
            check_known(links, wrong)
