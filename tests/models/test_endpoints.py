"""Endpoints: limits, retries and money."""

import asyncio
import threading
import time
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
import pytest

from adaptive_vtt.audit import Audit
from adaptive_vtt.errors import InputError, ModelError, OrderError
from adaptive_vtt.journal.opening import begin_anew
from adaptive_vtt.models import Answer, Endpoint, Limits, Prices, Prompt, Retries, Unanswered, Usage
from adaptive_vtt.models.base import NotCharged
from adaptive_vtt.models.checking import checked
from adaptive_vtt.models.network.attempts import Reply, Trouble, of_status, retry_after
from adaptive_vtt.models.network.limits import Pace
from adaptive_vtt.space import QuestionSpace
from adaptive_vtt.testing import tiny_dataset
from adaptive_vtt.utils.random_streams import generator

PROMPT = Prompt(np.full((6, 4, 3), 7, np.uint8), ("drusen", "cyst"), "eye-7", "rotation", 3)
YES = Reply((0.9, 0.2), Usage(100, 10))
UNCOUNTED = Reply((0.9, 0.2))
BOUND = Usage(1000, 50)
PRICES = Prices(per_call=0.01, input=2.0, output=10.0, tokens=1000)
WORST, USUAL = 0.01 + 2.0 + 0.5, 0.01 + 0.2 + 0.1
"""What one attempt costs at most, and usually."""
BUSY, DOWN, HANGS = of_status(429, {}, ""), of_status(503, {}, ""), Trouble("timeout", billed=True)
WRONG_KEY = of_status(401, {}, "bad key")


class Scripted(Endpoint):
    """Ends its attempts as ``script`` says, then answers."""

    def __init__(self, *script, **options):
        self.slept: list[float] = []
        options = {"prices": PRICES, "bound": BOUND, "sleep": self._note, **options}
        super().__init__(name="scripted", host="example.org", **options)
        self._script = list(script)

    async def _note(self, seconds):
        self.slept.append(seconds)

    def prepare(self, prompt):
        return None

    async def send(self, request, prompt):
        step = self._script.pop(0) if self._script else YES
        if isinstance(step, Exception):
            raise step
        if step == "hang":
            await asyncio.sleep(30)
        return step


def scripted(*script, **options):
    return closing(Scripted(*script, **options))


def ask(endpoint):
    return checked(endpoint, [PROMPT])[0]


def paid(cost):
    return Answer((0.9, 0.2), pytest.approx(cost))


# -- attempts ------------------------------------------------------------------------------


def test_an_attempt_without_reply_in_time_may_have_been_billed():
    with scripted("hang", retries=Retries(timeout=0.05)) as endpoint:
        assert ask(endpoint) == paid(USUAL + WORST)
        assert endpoint.statistics()["cost_unconfirmed"] == pytest.approx(WORST)


def test_an_answer_costs_what_the_server_counts_or_the_most_it_can():
    with scripted() as endpoint:
        assert ask(endpoint) == paid(USUAL)
        counts = endpoint.statistics()
        assert (counts["calls"], counts["attempts"], counts["retries"]) == (1, 1, 0)
        assert (counts["input_tokens"], counts["output_tokens"]) == (100, 10)
        assert counts["cost"] == pytest.approx(USUAL)
        assert (counts["cost_unconfirmed"], counts["failures"]) == (0, {})
    with scripted(UNCOUNTED) as endpoint:
        assert ask(endpoint).cost == pytest.approx(WORST)
    with scripted(UNCOUNTED, prices=Prices(per_call=0.5)) as endpoint:
        assert ask(endpoint).cost == 0.5
        assert endpoint.statistics()["cost_unconfirmed"] == 0


@pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
def test_a_call_that_never_succeeds_is_unanswered_after_the_retries(status):
    with scripted(*[of_status(status, {}, "")] * 3, retries=Retries(times=2)) as endpoint:
        cost = 0.0 if status in (409, 429) else pytest.approx(3 * WORST)
        answer = ask(endpoint)
        assert (answer, answer.unconfirmed) == (Unanswered(f"http {status}", cost), cost)
        counts = endpoint.statistics()
        assert (counts["attempts"], counts["retries"]) == (3, 2)
        assert ask(endpoint) == paid(USUAL)


def test_no_call_costs_more_than_most_cost():
    rng = generator(0, "chaos")
    for _ in range(15):
        script = [(HANGS, BUSY, YES, Reply((0.1, 0.1)))[i] for i in rng.integers(0, 4, 5)]
        with scripted(*script, retries=Retries(times=3)) as endpoint:
            answers = [ask(endpoint) for _ in range(3)]
            assert all(a.cost <= endpoint.most_cost for a in answers)
            assert endpoint.statistics()["cost"] == pytest.approx(sum(a.cost for a in answers))
    with scripted(*[HANGS] * 4, retries=Retries(times=3)) as endpoint:
        assert ask(endpoint) == Unanswered("timeout", pytest.approx(4 * WORST))
        assert endpoint.most_cost == pytest.approx(4 * WORST)


def test_more_tokens_than_the_bound_are_paid_counted_and_bound_from_then_on():
    with scripted(Reply((0.9, 0.2), Usage(3000, 10))) as endpoint:
        assert endpoint.bounds() == {}
        assert ask(endpoint).cost == pytest.approx(0.01 + 6.0 + 0.1)
        assert endpoint.statistics()["over_bound"] == 1
        assert endpoint.bounds() == {"": (3000, 50)}
        with scripted() as later:
            later.keep_bounds(endpoint.bounds())
            assert later.most_cost == endpoint.most_cost > 6 * WORST


def test_waits_grow_are_random_and_the_same_again():
    patience = Retries(times=8, first_wait=1.0, longest_wait=16.0)
    waits = []
    for seed in (0, 0, 1):
        with scripted(*[DOWN] * 9, retries=patience, seed=seed) as endpoint:
            ask(endpoint)
            waits.append(endpoint.slept)
            assert endpoint.statistics()["seconds_backing_off"] == pytest.approx(sum(waits[-1]))
    assert waits[0] == waits[1] != waits[2]
    most = [1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0, 16.0]
    assert all(0 <= wait <= top for wait, top in zip(waits[0], most, strict=True))
    assert max(waits[0]) > 2.0


def test_a_retry_waits_as_long_as_the_server_asks():
    with scripted(of_status(429, {"retry-after": "17"}, "")) as endpoint:
        ask(endpoint)
        assert endpoint.slept == [17.0]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None), ("2.5", 2.5), ("-3", 0.0), ("soon", None), ("nan", None), ("9" * 5000, None),
        ("Sun, 01 Mar 99999999999 12:00:00 GMT", None), ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0), ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert retry_after(value, datetime(2026, 3, 1, 12, tzinfo=UTC)) == seconds


# -- what ends an audit --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (WRONG_KEY, r"http 401: the key is wrong or missing: bad key"),
        (of_status(403, {}, "no"), r"http 403: the key is not allowed"),
        (of_status(404, {}, "no m"), r"http 404: no such model or address: no m"),
        (of_status(400, {}, "no field x"), r"http 400: no field x"),
        (Trouble("unreachable", "refused"), r"unreachable: refused"),
        (of_status(429, {"retry-after": "9999"}, ""), r"asks to wait 9999 s \(http 429\), longer"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_no_call_can_escape_ends_the_audit_at_first(trouble, message):
    expected = rf"model 'scripted' at example.org.*{message}"
    with scripted(trouble) as endpoint, pytest.raises(ModelError, match=expected):
        ask(endpoint)
    assert endpoint.statistics()["attempts"] == 1


@pytest.mark.parametrize(
    ("script", "charged"),
    [([WRONG_KEY], False), ([Trouble("unreachable", "no")], False), ([DOWN, WRONG_KEY], True)],
)
def test_an_error_shows_whether_a_call_may_have_been_charged_for(script, charged):
    with scripted(*script) as endpoint, pytest.raises(ModelError) as raised:
        ask(endpoint)
    assert isinstance(raised.value, NotCharged) != charged


def test_a_key_that_is_refused_takes_nothing_of_the_cap(tmp_path):
    """Not in the audit that met it, nor in one that resumes it, nor in one that begins in its
    folder."""
    space, path = QuestionSpace(tiny_dataset(12, 2), ["identity"]), tmp_path / "j.db"
    options = {"seed": 0, "strategy": "random", "max_cost": 1.0}
    sent = {"prices": Prices(per_call=0.1), "retries": Retries(times=0)}
    for _ in range(2):
        with (
            scripted(*[WRONG_KEY] * 9, limits=Limits(in_flight=4), **sent) as wrong,
            Audit(space, wrong, journal=begin_anew(path), **options) as audit,
        ):
            with pytest.raises(ModelError, match="the key is wrong"):
                audit.run()
            assert audit.interrupted == 0
            assert audit.journal.draws()
    with scripted(**sent) as right, Audit(space, right, journal=path, **options) as audit:
        assert audit.interrupted == 0
        assert audit.run().calls == 10


def test_a_refused_request_after_answers_is_one_unanswered_call():
    with scripted(YES, of_status(400, {}, "odd image")) as endpoint:
        ask(endpoint)
        assert ask(endpoint) == Unanswered("http 400", 0.0)
        assert endpoint.statistics()["retries"] == 0


def test_calls_without_reply_count_only_in_a_row():
    script = [YES, *[DOWN, DOWN, YES] * 10, *[DOWN] * 3]
    with scripted(*script, retries=Retries(times=0, give_up_after=3)) as endpoint:
        assert sum(isinstance(ask(endpoint), Unanswered) for _ in range(33)) == 22
        with pytest.raises(ModelError, match="3 calls in a row had no reply"):
            ask(endpoint)


@pytest.mark.parametrize(
    ("trouble", "likely", "all_of_them"),
    [
        (BUSY, 0.0, WORST),
        (of_status(409, {}, ""), 0.0, WORST),
        (DOWN, WORST, WORST),
        (of_status(408, {}, ""), WORST, WORST),
        (Trouble("unreachable"), 0.0, 0.0),
        (HANGS, WORST, WORST),
        (Trouble("truncated", billed=True), WORST, WORST),
    ],
    ids=str,
)
def test_failed_attempts_cost_what_may_have_been_billed_or_what_is_set(
    trouble, likely, all_of_them
):
    for which, cost in ((None, likely), ("likely", likely), ("all", all_of_them), ("none", 0.0)):
        given = {} if which is None else {"failed_attempts": which}
        with scripted(YES, trouble, **given) as endpoint:
            ask(endpoint)
            answer = ask(endpoint)
            assert (answer, answer.unconfirmed) == (paid(USUAL + cost), cost)
            assert endpoint.statistics()["failures"] == {trouble.kind: 1}


def test_a_failed_attempt_whose_tokens_were_counted_costs_them():
    with scripted(Trouble("http 500", usage=Usage(100, 0))) as endpoint:
        assert ask(endpoint) == paid(USUAL + 0.01 + 0.2)


def test_what_a_subclass_raises_is_a_model_error_or_a_malformed_reply():
    class Broken(Scripted):
        def prepare(self, prompt):
            return 1 / self.divisor

    with closing(Broken(ZeroDivisionError("by"), retries=Retries(times=0))) as endpoint:
        endpoint.divisor = 1
        assert ask(endpoint) == Unanswered("malformed reply", pytest.approx(WORST))
        endpoint.divisor = 0
        with pytest.raises(ModelError, match=r"example.org: ZeroDivisionError: div") as raised:
            ask(endpoint)
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


# -- limits --------------------------------------------------------------------------------


class Time:
    """A clock that only sleep moves."""

    now = 0.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


def test_no_minute_has_more_calls_than_allowed():
    clock = Time()
    pace = Pace(30, clock=clock, sleep=clock.sleep)

    async def starts():
        times = []
        for pause in generator(0, "pauses").exponential(1.0, 300):
            await pace.turn()
            times.append(clock())
            clock.now += pause * (len(times) % 3 == 0)
        return np.array(times)

    times = asyncio.run(starts())
    assert max(np.sum((times >= t) & (times < t + 60 - 1e-6)) for t in times) == 30


def test_turns_are_kept_though_calls_wait_for_the_level_to_rise():
    events = []

    class Noted(Scripted):
        async def send(self, request, prompt):
            events.append("send")
            for _ in range(5):  # longer than a turn: at a low level calls wait
                await asyncio.sleep(0)
            return YES

    async def turn(units=1.0):
        await asyncio.sleep(0)
        events.append("turn")
        return 0.0

    with closing(Noted(limits=Limits(in_flight=(1, 64)))) as endpoint:
        endpoint._calls.turn = turn
        endpoint.ask([PROMPT] * 20)
    assert events == ["turn", "send"] * 20  # a call is sent right after its turn


def test_tokens_reserved_and_not_used_are_given_back():
    clock, limits = Time(), Limits(tokens_per_minute=1050)
    with scripted(limits=limits, clock=clock, sleep=clock.sleep) as endpoint:
        for _ in range(11):
            ask(endpoint)
        # each call uses 110 of the 1,050 tokens it reserves: 10 x 110 tokens before the last
        assert clock() == pytest.approx(10 * 110 / 1050 * 60)
        assert endpoint.statistics()["seconds_pacing"] == pytest.approx(clock())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Limits(in_flight=0), "in_flight: expected a whole number of at least 1, .*got 0"),
        (lambda: Limits(in_flight=(5, 4)), "in_flight: .*, or .least, most. in this order, got .5"),
        (lambda: Limits(in_flight=(0, 4)), "in_flight: expected .* in this order, got .0, 4"),
        (lambda: Limits(calls_per_minute=-1), "calls_per_minute: expected .*, got -1"),
        (lambda: Retries(times=-1), "retries: expected a whole number of at least 0, got -1"),
        (lambda: Retries(timeout=0), "timeout: expected a number above 0, got 0"),
        (lambda: Prices(input=-1.0), "price_input: expected a number of at least 0, got -1.0"),
        (lambda: Prices(input=float("inf")), "price_input: expected a finite number .*, got inf"),
        (lambda: Prices(tokens=0), "price_tokens: expected a whole number of at least 1, got 0"),
    ],
)
def test_limits_and_prices_that_are_none_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("prices", "known"),
    [
        (Prices(), False), (Prices(per_call=0.0), True), (Prices(input=1, output=1), True),
        (Prices(input=1), False), (Prices(per_call=1, output=1), False), (PRICES, True),
    ],
)  # fmt: skip
def test_prices_are_known_where_they_can_price_a_call(prices, known):
    with scripted(prices=prices) as endpoint:
        assert endpoint.prices_known == known


def test_closing_ends_calls_under_way_and_takes_no_more():
    before = set(threading.enumerate())
    endpoint = Scripted("hang")
    future = endpoint.submit(PROMPT)
    time.sleep(0.05)
    endpoint.close()
    endpoint.close()
    assert future.cancelled()
    with pytest.raises(OrderError, match="endpoint scripted: was closed"):
        endpoint.submit(PROMPT)
    assert set(threading.enumerate()) <= before


def test_a_disconnection_that_fails_leaves_no_thread():
    async def stuck():
        raise OSError("stuck")

    before = set(threading.enumerate())
    endpoint = Scripted()
    endpoint._background.at_the_end(stuck)
    ask(endpoint)
    with pytest.raises(OSError, match="stuck"):
        endpoint.close()
    assert set(threading.enumerate()) <= before
