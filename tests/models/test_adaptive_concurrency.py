"""Calls in flight that follow what the server bears: bounds, steps, and what is drawn then."""

import asyncio
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_vtt import Audit, QuestionSpace
from adaptive_vtt.certify.verify import verify
from adaptive_vtt.certify.verify_draws import check_known
from adaptive_vtt.errors import JournalError
from adaptive_vtt.journal import SQLiteJournal
from adaptive_vtt.models.network.attempts import Trouble
from adaptive_vtt.models.network.limits import Concurrency, Gate
from adaptive_vtt.testing import ScriptedModel, tiny_dataset

# -- the controller alone -------------------------------------------------------------------------

EVENTS = st.tuples(st.sampled_from(["answered", "congested", "late"]), st.floats(allow_nan=True))


@settings(max_examples=40)
@given(least=st.integers(1, 20), more=st.integers(0, 60), events=st.lists(EVENTS, max_size=300))
def test_no_server_moves_it_out_of_its_bounds(least, more, events):
    controller = Concurrency(least, least + more)
    for kind, seconds in events:
        sent = controller.sent(busy=controller.level)
        if kind == "answered":
            controller.answered(seconds, sent)
        else:
            controller.congested(sent - (kind == "late"))
        assert least <= controller.level <= least + more


def levels(controller, rounds, seconds=1.0):
    """The level after each round of as many answers as there may be attempts."""
    seen = []
    for _ in range(rounds):
        for _ in range(controller.level):
            controller.answered(seconds, controller.sent(controller.level))
        seen.append(controller.level)
    return seen


def test_it_doubles_until_a_first_refusal_then_grows_by_one_a_round():
    controller = Concurrency(1, 40)
    assert [controller.level, *levels(controller, 4)] == [4, 8, 16, 32, 40]
    controller.congested(controller.sent(40))
    assert [controller.level, *levels(controller, 3)] == [20, 21, 22, 23]


def test_one_refusal_halves_it_and_those_of_the_same_flight_do_not():
    controller = Concurrency(1, 64)
    levels(controller, 4)
    flight = [controller.sent(k + 1) for k in range(64)]
    for sent in flight:
        controller.congested(sent)
    assert (controller.level, controller.halvings) == (32, 1)
    for sent in flight * 40:
        controller.answered(0.1, sent)  # late answers of that flight are ignored
    assert controller.level == 32
    controller.congested(controller.sent(1))
    assert controller.level == 16


def test_a_server_that_is_slow_for_its_own_reasons_is_not_left_alone():
    controller = Concurrency(1, 64)
    levels(controller, 3)
    after = levels(controller, 40, seconds=5.0)
    assert after[0] == 16
    assert min(after[2:]) >= 16
    assert after[-1] > 40


@pytest.mark.parametrize("limit", [3, 40])
def test_it_settles_on_what_a_server_bears(limit):
    """A server that answers after a second and refuses what is more than ``limit`` at a time."""
    controller, seen = Concurrency(1, 64), []
    for _ in range(400):
        flight = [controller.sent(k + 1) for k in range(controller.level)]
        for place, sent in enumerate(flight):
            if place < limit:
                controller.answered(1.0, sent)
            else:
                controller.congested(sent)
        seen.append(controller.level)
    seen = seen[20:]
    assert max(seen) == limit + 1
    assert min(seen) == (limit + 1) // 2
    assert 0.65 * limit <= np.mean(seen) <= limit


# -- attempts -------------------------------------------------------------------------------------


def test_attempts_stay_within_the_level():
    async def all_of_them():
        concurrency = Concurrency(2, 16)
        gate, busy, most_over = Gate(concurrency), 0, 0
        kinds = cycle(["fine"] * 90 + ["http 429", "timeout", "http 500"])

        async def attempt():
            nonlocal busy, most_over
            async with gate.admitted():
                with gate.sending():
                    busy += 1
                    most_over = max(most_over, busy - concurrency.level)
                    await asyncio.sleep(0.0005)
                    busy -= 1
                    if (kind := next(kinds)) != "fine":
                        raise Trouble(kind)

        await asyncio.gather(*(attempt() for _ in range(600)), return_exceptions=True)
        return concurrency.halvings >= 3, busy, most_over

    assert asyncio.run(all_of_them()) == (True, 0, 0)


# -- draws ----------------------------------------------------------------------------------------

CERTIFIED = {"half_width": 0.02, "targets": ["overall"], "seed": 3, "surrogate": False}


class Wavering(ScriptedModel):
    """Takes now more, now fewer calls at a time, and answers the newest first. ``dies_at``: the
    call at which it is interrupted."""

    adapts = True

    def __init__(self, seed, dies_at=0):
        super().__init__()
        self._levels = np.random.default_rng(seed).integers(1, 13, 1000).tolist()
        self._sent, self._dies_at = 0, dies_at
        self._pool = ThreadPoolExecutor(1)
        self._waiting = deque()

    @property
    def in_flight(self):
        return int(self._levels[self._sent // 5])

    def submit(self, prompt):
        self._sent += 1
        if self._sent == self._dies_at:
            raise KeyboardInterrupt
        future = Future()
        self._waiting.append((prompt, future))
        self._pool.submit(self._answer_newest)
        return future

    def _answer_newest(self):
        prompt, future = self._waiting.pop()
        future.set_result(self._answer(prompt))


def audit(seed, dies_at=0, **options):
    space = QuestionSpace(tiny_dataset(12, 2), ["identity", "rotation"])
    return Audit(space, Wavering(seed, dies_at), **{"budget": 44, **CERTIFIED, **options})


def drawn(journal):
    return [(row.call, row.learned, row.proposal) for row in journal.draws()]


def levels_of(made):
    """The calls in flight that draws record, by the number of the draw."""
    rows = made.journal.draws(proposals=False)
    return {row.draw: row.why["in_flight"] for row in rows if "in_flight" in row.why}


def test_interrupted_it_resumes_with_the_draws_that_follow_from_the_journaled_levels(tmp_path):
    path = tmp_path / "j.db"
    with audit(1, 17, journal=path) as first, pytest.raises(KeyboardInterrupt):
        first.run()
    with closing(SQLiteJournal(path)) as journal:
        before = drawn(journal)
    with audit(2, journal=path) as resumed:
        resumed.run()
        verify(resumed.journal)
        assert drawn(resumed.journal)[: len(before)] == before
        levels = levels_of(resumed)
        assert len(levels) > 2
        again = audit(5)  # never interrupted, with as many calls in flight from each draw on
        order = again._loop.draw_order
        order._blocks._calls = lambda: levels[max(d for d in levels if d <= len(order.calls))]
        again.run()
        assert drawn(again.journal) == drawn(resumed.journal)
        assert again.result().targets.equals(resumed.result().targets)


def test_a_draw_knows_all_but_twice_as_many_draws_as_were_in_flight():
    made = audit(4, budget=48)
    made.run()
    levels, known, end, level = levels_of(made), 0, 0, 0
    draws = made.journal.draws()
    for row in draws:
        level = levels.get(row.draw, level)
        if row.draw in levels or row.draw == end:
            known = max(known, row.draw - 2 * level)
            end = row.draw + max(1, level // 2)
        assert row.learned == known
    links = made.journal.links()
    check_known(links, draws)
    for learned in (0, 48):  # the last draw: how many are in flight before follows from answers
        wrong = [*draws[:47], replace(draws[47], learned=learned)]
        with pytest.raises(JournalError, match=r"expected draw 47 to know .* draws.*, got"):
            check_known(links, wrong)
